"""Many passes over a changing fleet: what must hold of every plan, and of all of them together."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec
import pytest

from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.demand import Alternative, Demand
from dws.model.names import BookingId, RequestId
from dws.model.request import CapacityRequest, RequestState
from dws.model.time import FOREVER, Span
from dws.model.topology import Fleet, HostState, HostStatus, Zone
from dws.planner import invariants, snapshot
from dws.planner.advise import quote
from dws.planner.backfill import plan, standing
from dws.planner.explain import forecast
from dws.planner.options import PolicyOptions
from dws.planner.plan import Book, Move, Plan, Start, Withdraw
from dws.planner.recheck import still_holds
from tests.property.planner.oracle import a_pool

OPTIONS = PolicyOptions(promise_horizon_s=10_000, promise_cap_accelerator_hours=10**9, max_wait_age_s=10**9)


@dataclass(slots=True)
class Line:
    """A queue in front of one pool, driven by plans alone: the smallest engine there can be."""

    fleet: Fleet
    options: PolicyOptions = OPTIONS
    now: int = 0
    waiting: dict[int, CapacityRequest] = field(default_factory=dict)
    bookings: dict[int, Booking] = field(default_factory=dict)
    out: dict[int, HostStatus] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)
    first_told: dict[int, int] = field(default_factory=dict)
    moved: list[Move | Withdraw] = field(default_factory=list)
    late_by: dict[int, int] = field(default_factory=dict)
    passes: int = 0

    def snapshot(self) -> snapshot.FleetSnapshot:
        return snapshot.build(
            self.fleet,
            bookings=self.bookings.values(),
            hosts=self.out.values(),
            queue=self.waiting.values(),
        )

    def ask(self, number: int, *alternatives: Alternative, priority: int = 0, **window: int) -> None:
        self.waiting[number] = CapacityRequest(
            id=RequestId(number),
            name=f"r{number}",
            project="p",
            principal="ann",
            demand=Demand(alternatives=alternatives, **window),
            state=RequestState.PENDING,
            submitted_at=self.now,
            priority=priority,
        )

    def plan(self) -> Plan:
        """One pass, checked and applied."""
        seen = self.snapshot()
        made = plan(seen, self.options, self.now)
        self.passes += 1
        invariants.check(made, seen)
        repairs = any(isinstance(d, Move | Withdraw) for d in made.decisions)
        for decision in made.decisions:
            holds = still_holds(decision, self.snapshot(), self.now) is None
            assert holds or repairs, "each holds when its turn comes, unless promises are being repaired"
            self._apply(decision)
        held = [u for b in self.bookings.values() if b.stage is Stage.LIVE for u in b.units]
        assert len(held) == len(set(held)), "no host is held twice, whatever overran"
        overdue = [b for b in self.bookings.values() if b.stage is Stage.FIRM and b.span.start < self.now]
        assert not overdue, "a promise is kept or moved, it never lies in the past"
        return made

    def _apply(self, decision: Start | Book | Move | Withdraw) -> None:
        request = self.waiting[decision.request]
        booking_id = BookingId(10_000 + request.id)
        if isinstance(decision, Withdraw):
            del self.bookings[booking_id]
            self.waiting[request.id] = replace(request, booking=None, promised_start=0)
            self.moved.append(decision)
            return
        stage = Stage.LIVE if isinstance(decision, Start) else Stage.FIRM
        self.bookings[booking_id] = Booking(
            id=booking_id,
            pool=decision.placement.pool,
            span=decision.placement.span,
            stage=stage,
            owner_kind=OwnerKind.REQUEST,
            owner=request.id,
            parts=decision.placement.parts,
        )
        if isinstance(decision, Start):
            self.started[request.id] = self.now
            del self.waiting[request.id]
            return
        if isinstance(decision, Move):
            self.moved.append(decision)
        elif request.promised_start:
            assert decision.placement.start < request.promised_start, "keep or improve"
        self.first_told.setdefault(request.id, decision.placement.start)
        self.waiting[request.id] = replace(
            request, booking=booking_id, promised_start=decision.placement.start
        )

    def step(self, to: int) -> None:
        """Time passes; what ends by then ends, with a pass after each end and each promise due."""
        while True:
            dues = [self.over_at(b) for b in self.bookings.values() if b.stage is Stage.LIVE]
            dues += [b.span.start for b in self.bookings.values() if b.stage is Stage.FIRM]
            dues += [h.until for h in self.out.values() if h.until > self.now]
            due = min((d for d in dues if d > self.now), default=FOREVER)
            if due > to:
                break
            self.now = due
            self._end_due()
            self.plan()
        self.now = to
        self.plan()

    def _end_due(self) -> None:
        live = [(i, b) for i, b in self.bookings.items() if b.stage is Stage.LIVE]
        over = [i for i, b in live if self.over_at(b) <= self.now]
        for booking_id in over:
            del self.bookings[booking_id]
        for unit in [u for u, h in self.out.items() if h.until and h.until <= self.now]:
            del self.out[unit]

    def over_at(self, booking: Booking) -> int:
        """When a run's hosts are confirmed free: at its end, unless it overruns."""
        return booking.span.end + self.late_by.get(booking.owner, 0)

    def end_early(self, rng: random.Random) -> None:
        live = [i for i, b in self.bookings.items() if b.stage is Stage.LIVE]
        if live:
            del self.bookings[rng.choice(live)]


def a_line(rng: random.Random, **options: object) -> Line:
    sizes = [rng.randint(1, 3) for _ in range(rng.randint(1, 3))]
    fleet = Fleet(zones=(Zone(name="z"),), pools=(a_pool(sizes, rng.random() < 0.5),))
    return Line(fleet, replace(OPTIONS, **options))  # type: ignore[arg-type]


def a_wish(rng: random.Random, line: Line) -> Alternative:
    pool = line.fleet.pools[0]
    within = rng.choice([None, *pool.levels])
    return Alternative(
        shape="m", count=rng.randint(1, pool.largest_group(within)), duration_s=rng.randint(1, 40), within=within
    )


def busy_day(line: Line, rng: random.Random, steps: int, trouble: Callable[[Line], None] | None = None) -> None:
    for number in range(1, steps):
        if rng.random() < 0.7:
            line.ask(number, *(a_wish(rng, line) for _ in range(rng.randint(1, 2))), priority=rng.choice((0, 0, 0, 5)))
            line.plan()
        if rng.random() < 0.15:
            line.end_early(rng)
            line.plan()
        if trouble is not None:
            trouble(line)
        line.step(line.now + rng.randint(0, 12))


@pytest.mark.parametrize("seed", range(60))
def test_promise_kept_never_overbooked_everyone_starts(seed: int) -> None:
    """A promise could slip because someone else arrived, or someone wait for ever."""
    rng = random.Random(seed)
    line = a_line(rng, promise_slack=rng.choice((0.0, 1.0, 3.0)), protected_depth=rng.choice((1, 1, 3)))
    busy_day(line, rng, 40)
    for _ in range(200):
        if not line.waiting:
            break
        line.step(line.now + 50)
    assert not line.waiting, "nobody starves once arrivals stop"
    assert not line.moved, "no promise moves without a loss of capacity"
    for request, told in line.first_told.items():
        assert line.started[request] <= told


@pytest.mark.parametrize("seed", range(30))
def test_with_outages_a_promise_moves_only_with_a_cause(seed: int) -> None:
    """When hosts are lost, promises could be broken silently, or nothing work any more."""
    rng = random.Random(1_000 + seed)
    line = a_line(rng)

    def trouble(line: Line) -> None:
        unit = rng.randrange(len(line.fleet.pools[0].hosts))
        if rng.random() < 0.1 and unit not in line.out:
            until = line.now + rng.randint(5, 60)
            line.out[unit] = HostStatus(pool="p", unit=unit, state=HostState.DOWN, until=until)
            hit = [i for i, b in line.bookings.items() if b.stage is Stage.LIVE and unit in b.units]
            for booking_id in hit:
                del line.bookings[booking_id]
            line.plan()

    busy_day(line, rng, 40, trouble)
    for _ in range(200):
        if not line.waiting:
            break
        line.step(line.now + 50)
    assert not line.waiting
    assert all(m.cause for m in line.moved)


@pytest.mark.parametrize("seed", range(30))
def test_runs_that_overrun_are_waited_for(seed: int) -> None:
    """A host not given back in time could be given to the next run, or a promise slip in silence."""
    rng = random.Random(7_000 + seed)
    line = a_line(rng)

    def trouble(line: Line) -> None:
        for owner in line.started:
            line.late_by.setdefault(owner, rng.choice((0, 0, 0, rng.randint(1, 30))))

    busy_day(line, rng, 40, trouble)
    for _ in range(200):
        if not line.waiting:
            break
        line.step(line.now + 50)
    assert not line.waiting
    assert all("not free in time" in m.cause for m in line.moved)


@pytest.mark.parametrize("seed", range(25))
def test_a_quote_is_what_then_happens(seed: int) -> None:
    """A quote could name a start, or a promise, that the very same request is then not given."""
    rng = random.Random(8_000 + seed)
    line = a_line(rng, promise_slack=rng.choice((0.0, 1.0, 3.0)))
    busy_day(line, rng, 15)
    assert not line.plan().decisions, "a second pass at the same instant finds nothing more to decide"
    wishes = tuple(a_wish(rng, line) for _ in range(rng.randint(1, 2)))
    demand = Demand(alternatives=wishes)
    told = quote(line.snapshot(), line.options, line.now, demand, project="p", priority=0)
    line.ask(900, *wishes)
    line.plan()
    if 900 in line.started:
        assert told.asked.start == told.promised_latest == line.now
        return
    expected = forecast(line.snapshot(), line.options, line.now)[900]
    assert told.asked.start == expected.expected_start
    assert (told.promised_latest or 0) == expected.promised_start


@pytest.mark.parametrize("seed", range(40))
def test_no_starvation(seed: int) -> None:
    """The head of the line could start later than the bookings ahead of it make it."""
    rng = random.Random(2_000 + seed)
    line = a_line(rng)
    busy_day(line, rng, 15)
    whole = line.fleet.pools[0]
    line.ask(500, Alternative(shape="m", count=len(whole.hosts), duration_s=30))
    line.plan()
    asked = line.now
    ahead = [b.span.end for b in line.bookings.values() if b.owner != 500]
    ahead_of_line = sum(a.demand.alternatives[0].duration_s for a in line.waiting.values() if a.id != 500)
    for number in range(501, 560):
        line.ask(number, Alternative(shape="m", count=1, duration_s=rng.randint(1, 40)))
        line.step(line.now + 3)
    line.step(line.now + 500)
    assert 500 in line.started
    assert line.started[500] <= max([asked, *ahead]) + ahead_of_line + 40


def test_equal_inputs_give_equal_bytes() -> None:
    """Two replicas, or a replay, could plan differently from the same ledger."""
    for seed in range(30):
        rng = random.Random(3_000 + seed)
        line = a_line(rng)
        busy_day(line, rng, 12)
        line.ask(900, a_wish(rng, line))
        seen = line.snapshot()
        shuffled = replace(seen, queue=tuple(reversed(seen.queue)))
        plans = {msgspec.json.encode(plan(s, line.options, line.now)) for s in (seen, seen, shuffled)}
        told = {msgspec.json.encode(list(forecast(s, line.options, line.now).values())) for s in (seen, shuffled)}
        assert len(plans) == 1 and len(told) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_forecast_is_never_later_than_the_promise(seed: int) -> None:
    """Someone could be told to expect a start later than the latest one promised."""
    rng = random.Random(4_000 + seed)
    line = a_line(rng)
    busy_day(line, rng, 25)
    for told in forecast(line.snapshot(), line.options, line.now).values():
        assert told.expected_start is not None
        if told.promised_start:
            assert told.expected_start <= told.promised_start
        assert told.reason.text


def test_places_count_everyone_who_waits() -> None:
    """Two requests could be told the same place in line."""
    rng = random.Random(5)
    line = a_line(rng)
    busy_day(line, rng, 20)
    told = forecast(line.snapshot(), line.options, line.now)
    line_order = sorted(line.waiting.values(), key=standing)
    assert [told[r.id].place for r in line_order] == list(range(1, len(line_order) + 1))


def test_looking_again_is_never_too_late() -> None:
    """A promise could be missed because nobody looked when it was due."""
    for seed in range(20):
        rng = random.Random(6_000 + seed)
        line = a_line(rng)
        busy_day(line, rng, 15)
        made = line.plan()
        due = [r.promised_start for r in line.waiting.values() if r.promised_start > line.now]
        if due:
            assert made.look_again_at is not None and line.now < made.look_again_at <= min(due)


def test_the_cap_bounds_what_a_project_is_promised() -> None:
    """One project could book the future of the whole fleet with promises."""
    line = a_line(random.Random(1), promise_cap_accelerator_hours=1)
    pool = line.fleet.pools[0]
    line.ask(1, Alternative(shape="m", count=len(pool.hosts), duration_s=1_000))
    line.plan()
    for number in range(2, 12):
        line.ask(number, Alternative(shape="m", count=1, duration_s=200))
    line.plan()
    promised = [r for r in line.waiting.values() if r.promised_start]
    held = sum(line.bookings[r.booking].span.length_s * 8 for r in promised if r.booking and r.id != 2)
    assert len(promised) < 10 and held <= 3600


def test_at_the_age_limit_a_promise_is_given_regardless() -> None:
    """Someone beyond the cap could wait without any bound."""
    line = a_line(random.Random(1), promise_cap_accelerator_hours=0, max_wait_age_s=100)
    pool = line.fleet.pools[0]
    line.ask(1, Alternative(shape="m", count=len(pool.hosts), duration_s=1_000))
    line.plan()
    for number in (2, 3, 4):
        line.ask(number, Alternative(shape="m", count=len(pool.hosts), duration_s=200))
    made = line.plan()
    assert [r.id for r in line.waiting.values() if r.promised_start] == [2], "only the head"
    assert made.look_again_at == 100
    told = forecast(line.snapshot(), line.options, line.now)
    assert told[3].promise_by == 100
    line.step(100)
    assert all(r.promised_start for r in line.waiting.values())


def test_an_open_ended_span_stays_open() -> None:
    """The end of time could overflow."""
    assert Span(5, FOREVER).shifted(10).end == FOREVER
