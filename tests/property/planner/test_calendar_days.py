"""Days on a small fleet in which everything happens: reservations are made, changed, given back and lose
hosts, work runs inside and outside of them. After every step the books are held against what is stored."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from dws.engine.books import Books
from dws.engine.commands import PlanMaintenance
from dws.model.booking import Stage
from dws.model.demand import Alternative
from dws.model.errors import DwsError
from dws.model.request import HostLossPolicy
from dws.model.reservation import Reservation, ReservationState, Share, Terms
from dws.model.resources import NO_OVERHEADS, Overheads
from dws.model.time import Span
from dws.model.topology import Fleet, HostState, HostStatus, Zone
from dws.planner import backfill, invariants
from dws.planner.options import PolicyOptions
from dws.planner.plan import Bind, Decision, Move, Plan, Withdraw
from dws.planner.recheck import Recheck
from dws.planner.snapshot import FleetSnapshot, calendars
from dws.store.memory import MemoryStore
from tests.scenarios.world import ANN, OPERATOR, World, a_gpu_pool

SHAPE = "a3-highgpu-8g"


@pytest.fixture(autouse=True)
def every_plan_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan may break an invariant, whatever was decided before it."""

    made_by = backfill.plan

    def plan(snapshot: FleetSnapshot, options: PolicyOptions, now: int) -> Plan:
        made = made_by(snapshot, options, now)
        invariants.check(made, snapshot)
        again = Recheck(snapshot, now, options)
        dropped = [d for d in made.decisions if again.why_not(d) is not None]
        repairs = any(isinstance(d, Move | Withdraw) or is_repair(d, snapshot) for d in made.decisions)
        assert repairs or not dropped, "each holds when its turn comes, unless something is being repaired"
        return made

    monkeypatch.setattr(backfill, "plan", plan)


def is_repair(decision: Decision, snapshot: FleetSnapshot) -> bool:
    """True when a reservation that has not started is put elsewhere, or found short."""
    if not isinstance(decision, Bind):
        return False
    return not snapshot.reservations[decision.reservation].state.is_open


class Days:
    """A world, what was agreed about each reservation, and a hand that does something at random."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        blocks = {f"b{i}": rng.randint(1, 3) for i in range(rng.randint(1, 3))}
        overheads = rng.choice((NO_OVERHEADS, Overheads(setup_s=20, grace_s=5, teardown_s=10)))
        pools = [a_gpu_pool("h", sum(blocks.values()), blocks, overheads=overheads)]
        if rng.random() < 0.4:
            pools.append(a_gpu_pool("g", 3, {"c1": 2, "c2": 1}, zone="z2", overheads=overheads))
        self.fleet = Fleet(zones=(Zone(name="z1"), Zone(name="z2")), pools=tuple(pools))
        self.policy = PolicyOptions(
            warning_leads_s=(),
            reservation_warning_leads_s=(60,),
            reservation_min_s=1,
            reservation_lock_s=rng.choice((0, 100)),
            calendar_share=rng.choice((1.0, 1.0, 0.7)),
            lend_idle_s=rng.choice((0, 0, 300)),
            no_show_release_s=rng.choice((0, 0, 900)),
            promise_slack=rng.choice((0.0, 1.0)),
            reservation_approval=rng.choice(("auto", "auto", "approver")),
        )
        self.world = World(self.fleet, self.policy, store=MemoryStore())
        self.agreed: dict[int, tuple[Span, int]] = {}
        self.made = 0

    # --- what may happen ----------------------------------------------------------------------

    def step(self) -> str:
        """Do one thing; what is refused changes nothing."""
        acts: list[Callable[[], object]] = [
            self.reserve, self.reserve, self.reserve,
            self.submit, self.submit, self.submit_inside, self.submit_inside, self.submit_inside,
            self.amend, self.amend, self.cancel, self.release, self.approve, self.end_run, self.extend,
            self.host, self.host, self.maintenance, self.restart, self.pass_time, self.pass_time,
        ]  # fmt: skip
        act = self.rng.choice(acts)
        before = None if act == self.pass_time else self.stored()
        try:
            act()
        except DwsError as refused:
            assert before is None or self.stored() == before, f"{act.__name__} refused with traces"
            assert "double" not in type(refused).__name__.lower(), refused
            return f"{act.__name__}: {refused.message}"
        return act.__name__

    def stored(self) -> tuple[object, ...]:
        return self.world.everything()

    def name(self) -> str:
        self.made += 1
        return f"n{self.made}"

    def some(self, *states: ReservationState) -> Reservation:
        found = [r for r in self.world.engine.books.reservations.values() if not states or r.state in states]
        if not found:
            raise DwsError("none")
        return self.rng.choice(found)

    def reserve(self) -> None:
        pool = self.rng.choice(self.fleet.pools)
        within = self.rng.choice([None, "block"])
        shares = (Share(project="q", hosts_max=self.rng.choice((0, 1))),) if self.rng.random() < 0.5 else ()
        made = self.world.reserve(
            self.name(),
            hosts=self.rng.randint(1, len(pool.hosts)),
            start=self.world.now() + self.rng.choice((0, self.rng.randint(1, 2_000))),
            hours=self.rng.randint(30, 2_000) / 3600,
            zones=(pool.zone,),
            within=within,
            terms=Terms(specific_only=self.rng.random() < 0.5, shares=shares),
        )
        self.agreed[made.id] = made.window, made.count

    def submit(self, reservation: str = "") -> None:
        until_end = reservation not in ("", "any") and self.rng.random() < 0.3
        self.world.submit(
            self.name(),
            alternatives=(
                Alternative(
                    shape=SHAPE,
                    count=self.rng.randint(1, 4),
                    duration_s=0 if until_end else self.rng.randint(1, 600),
                    within=self.rng.choice([None, None, "block"]),
                ),
            ),
            reservation=reservation,
            priority=self.rng.choice((0, 0, 3)),
            project=self.rng.choice(("p", "p", "q")) if "/" in reservation else "p",
            on_host_loss=self.rng.choice(list(HostLossPolicy)),
        )

    def submit_inside(self) -> None:
        self.submit(self.rng.choice(("any", f"p/{self.some().name}")))

    def amend(self) -> None:
        found = self.some()
        changes: dict[str, int] = {}
        if self.rng.random() < 0.4:
            changes["count"] = max(1, found.count + self.rng.randint(-2, 2))
        if self.rng.random() < 0.5:
            changes["end"] = found.window.end + self.rng.randint(-600, 600)
        if self.rng.random() < 0.4 and not found.state.is_open:
            changes["start"] = max(self.world.now(), found.window.start + self.rng.randint(-300, 300))
        who = self.rng.choice((ANN, OPERATOR))
        after = self.world.amend_reservation(found.name, who=who, force=self.rng.random() < 0.3, **changes)
        self.agreed[after.id] = after.window, after.count

    def cancel(self) -> None:
        if self.rng.random() < 0.5:
            self.world.engine.cancel_reservation(ANN, "p", self.some().name)
            return
        request = self.rng.choice(list(self.world.engine.books.waiting.values()) or [None])
        if request is not None:
            self.world.engine.cancel(ANN, request.project, request.name)

    def release(self) -> None:
        if self.rng.random() < 0.4:
            self.world.engine.release_reservation(ANN, "p", self.some().name)

    def approve(self) -> None:
        found = self.some(ReservationState.PENDING_APPROVAL)
        if self.rng.random() < 0.8:
            self.world.engine.approve_reservation(OPERATOR, "p", found.name)
        else:
            self.world.engine.decline_reservation(OPERATOR, "p", found.name, "")

    def end_run(self) -> None:
        held = [r for r in self.world.engine.books.holding.values() if r.project == "p"]
        if held:
            self.world.release(self.rng.choice(held).name)

    def extend(self) -> None:
        held = [r for r in self.world.engine.books.holding.values() if r.project == "p"]
        if held:
            self.world.extend(self.rng.choice(held).name, self.rng.randint(1, 300) / 3600, at_most=True)

    def host(self) -> None:
        pool = self.rng.choice(self.fleet.pools)
        state = self.rng.choice(("DOWN", "DRAINING", "READY", "READY"))
        until = self.world.now() + self.rng.randint(1, 900) if state == "DOWN" and self.rng.random() < 0.5 else 0
        self.world.hosts(state, self.rng.choice(pool.hosts), until=until)

    def maintenance(self) -> None:
        if self.rng.random() < 0.3:
            pool = self.rng.choice(self.fleet.pools)
            start = self.world.now() + self.rng.randint(1, 900)
            end = start + self.rng.randint(10, 600)
            self.world.engine.plan_maintenance(
                OPERATOR,
                PlanMaintenance(
                    name=self.name(), hosts=(self.rng.choice(pool.hosts),), start=start, end=end,
                    confirm=True, force=self.rng.random() < 0.5,
                ),
            )  # fmt: skip

    def restart(self) -> None:
        if self.rng.random() < 0.2:
            self.world.restart()

    def pass_time(self) -> None:
        self.world.advance(seconds=self.rng.choice((1, 10, 60, self.rng.randint(1, 500))))

    # --- what must be so ----------------------------------------------------------------------

    def faults(self) -> Iterator[str]:
        """Everything that is not as it must be."""
        yield from self.world.engine.verify(OPERATOR).faults
        yield from self._books_differ()
        yield from self._agreements_are_broken()

    def _books_differ(self) -> Iterator[str]:
        books, now = self.world.engine.books, self.world.now()
        anew = calendars(books.fleet, books.bookings.values(), books.hosts)
        if anew.keys() != books.calendars.keys():
            yield f"calendars {books.calendars.keys()} instead of {anew.keys()}"
            return
        for name, calendar in books.calendars.items():
            if rows_from(calendar.rows(), now) != rows_from(anew[name].rows(), now):
                yield f"{name}: {rows_from(calendar.rows(), now)} is not {rows_from(anew[name].rows(), now)}"
            cells = range(len(calendar.pool.cells))
            if [calendar.idle_units(c) for c in cells] != [anew[name].idle_units(c) for c in cells]:
                yield f"{name}: other units are idle"
            if calendar.idle_in_groups(None) != anew[name].idle_in_groups(None):
                yield f"{name}: idle units are counted wrong"

    def change_and_undo(self) -> Iterator[str]:
        """Changes of the books that are taken back, whatever they were, leave them as they were."""
        books = self.world.engine.books
        before = self.told()
        mark = books.mark()
        for _ in range(self.rng.randint(1, 6)):
            self._change(books)
            yield from self._books_differ()
        books.undo_to(mark)
        yield from self._books_differ()
        if self.told() != before:
            yield "what was undone left traces"

    def told(self) -> tuple[object, ...]:
        books, now = self.world.engine.books, self.world.now()
        rows = {name: rows_from(c.rows(), now) for name, c in books.calendars.items()}
        return dict(books.bookings), dict(books.reservations), dict(books.hosts), rows

    def _change(self, books: Books) -> None:
        """Any booking moves, grows, shrinks or ends; any host fails or is back."""
        pool = self.rng.choice(books.fleet.pools)
        if not books.bookings or self.rng.random() < 0.3:
            state = self.rng.choice((HostState.DOWN, HostState.READY))
            books.put_host(HostStatus(pool=pool.name, unit=self.rng.randrange(len(pool.hosts)), state=state))
            return
        booking = self.rng.choice(list(books.bookings.values()))
        children = books.inside(booking.id)
        part = self.rng.choice(booking.parts) if booking.parts else None
        act = self.rng.randint(0, 3)
        if act == 0:
            by = self.rng.randint(0, 500)
            span = Span(booking.span.start, booking.span.end + by)
            books.put_booking(replace(booking, span=span))
        elif act == 1 and part is not None and not part.units:
            books.put_booking(replace(booking, parts=(*booking.parts, replace(part, count=1))))
        elif act == 2 and part is not None and part.units and not children:
            fewer = replace(part, units=part.units[1:], count=part.count - 1)
            parts = [p for p in (*(p for p in booking.parts if p is not part), fewer) if p.count]
            books.put_booking(replace(booking, parts=tuple(parts)))
        else:
            for one in (*children, booking):
                books.put_booking(replace(one, stage=Stage.ENDED))

    def _agreements_are_broken(self) -> Iterator[str]:
        books = self.world.engine.books
        for reservation in books.reservations.values():
            booking = books.bookings[reservation.booking or 0]
            if reservation.state is ReservationState.ENDING:
                continue
            if self.agreed[reservation.id] != (reservation.window, reservation.count):
                yield f"{reservation.name} is not as agreed"
            if (booking.span, booking.count) != (reservation.window, reservation.count):
                yield f"{reservation.name} is not booked as agreed"
            if reservation.state.is_open and sum(p.count for p in booking.parts if not p.units) != reservation.short:
                yield f"{reservation.name} is short of hosts and does not say so"
        for booking in books.bookings.values():
            if booking.parent and not books.bookings[booking.parent].span.contains(booking.span):
                yield f"{booking.id} sticks out of its reservation"


def rows_from(rows: list[tuple[int, tuple[int, ...]]], now: int) -> list[tuple[int, tuple[int, ...]]]:
    """What a table says from an instant on."""
    first = max(i for i, (at, _) in enumerate(rows) if at <= now)
    return [(now, rows[first][1]), *rows[first + 1 :]]


@pytest.mark.parametrize("seed", range(30))
def test_books_calendars_and_agreements_hold_through_days(seed: int) -> None:
    """A reservation could move or shrink by itself, or work be planned on hosts that are not there."""
    days = Days(random.Random(seed))
    story = []
    for _ in range(60):
        story.append(days.step())
        days.world.engine.tick()
        faults = [*days.faults(), *days.change_and_undo()]
        assert not faults, (faults, story[-12:])
