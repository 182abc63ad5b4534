"""Windows for reservations against brute force: every second of every window of small fleets."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.demand import Alternative
from dws.model.names import BookingId
from dws.model.time import Span
from dws.model.topology import Fleet, Zone
from dws.planner import snapshot, windows
from dws.planner.options import PolicyOptions
from dws.planner.plan import WindowOption
from dws.planner.snapshot import FleetSnapshot
from dws.planner.windows import Search
from tests.property.planner.oracle import END, Small, a_pool, small_worlds

HORIZON = 40
LAST = END + HORIZON
Told = tuple[list[list[int]], list[int], list[list[int]]]
"""Free units of each cell, and hosts in reservations, in every second; when maintenance begins in each cell."""


@dataclass(slots=True)
class Case:
    """A few small pools with a share for the calendar, what is asked for, and the booking to be changed."""

    pools: list[Small]
    share: float
    count: int
    within: str | None
    before: Booking | None = None
    _told: dict[str, Told] = field(default_factory=dict)

    @property
    def options(self) -> PolicyOptions:
        return PolicyOptions(calendar_share=self.share, calendar_horizon_s=HORIZON, reservation_min_s=1)

    def alternative(self, length: int = 1) -> Alternative:
        return Alternative(shape="m", count=self.count, duration_s=length, within=self.within)

    def snapshot(self) -> FleetSnapshot:
        fleet = Fleet(zones=(Zone(name="z"), Zone(name="y")), pools=tuple(w.pool for w in self.pools))
        return snapshot.build(
            fleet,
            bookings=[b for w in self.pools for b in w.bookings],
            hosts=[h for w in self.pools for h in w.out.values()],
        )

    def room(self, world: Small, span: Span) -> int:
        """How many hosts of one domain may be booked for that window."""
        free, reserved, begins = self.told(world)
        seconds = range(span.start, min(span.end, max(END, span.start) + 1))
        most = 0
        for group in world.groups(self.within):
            whole = 0
            for cell in group:
                ahead = [at for at in begins[cell] if span.start < at < span.end]
                whole += max(0, min(free[cell][s] - sum(s < at for at in ahead) for s in seconds))
            most = max(most, whole)
        share = int(self.share * len(world.pool.hosts) + 1e-9)
        return max(0, min(most, share - max(reserved[s] for s in seconds)))

    def told(self, world: Small) -> Told:
        """What is so in every second, without the booking to be changed."""
        name = world.pool.name
        if name not in self._told:
            others = Small(world.pool, [b for b in world.bookings if b is not self.before], world.out)
            cells = range(len(world.pool.cells))
            seconds = range(LAST)
            reservations = [b for b in others.bookings if b.owner_kind is OwnerKind.RESERVATION]
            works = [b for b in others.bookings if b.owner_kind is OwnerKind.MAINTENANCE]
            self._told[name] = (
                [[others.free(c, s) for s in seconds] for c in cells],
                [sum(b.count for b in reservations if b.span.covers(s)) for s in seconds],
                [[b.span.start for b in works if b.parts[0].cell == c] for c in cells],
            )
        return self._told[name]

    def fits(self, world: Small, start: int, end: int) -> bool:
        return self.room(world, Span(start, end)) >= self.count

    def could_ever(self, world: Small) -> bool:
        known = self.within is None or self.within in world.pool.levels
        groups = world.groups(self.within) if known else []
        return any(sum(world.pool.cells[c].size for c in g) >= self.count for g in groups)


def cases(seed: int, number: int) -> Iterator[tuple[Case, random.Random]]:
    """Random cases: one to three pools at different prices, promises and reservations in them."""
    worlds = small_worlds(seed, number * 3, grid=6)
    for _ in range(number):
        pools = []
        for index in range(3):
            world, rng = next(worlds)
            pool = replace(
                world.pool,
                name="cab"[index],
                zone=rng.choice("zy"),
                price_micros_per_hour=rng.choice((1, 2)) * 3_600_000,
            )
            world.pool = pool
            world.bookings = [_anyhow(rng, b, pool.name, index) for b in world.bookings]
            world.out = {u: replace(h, pool=pool.name) for u, h in world.out.items()}
            pools.append(world)
        del pools[rng.randint(1, 3) :]
        count = rng.randint(1, 6)
        share = rng.choice((1.0, 1.0, 0.75, 0.5))
        within = rng.choice([None, None, "block", "row"])
        yield Case(pools=pools, share=share, count=count, within=within), rng


def _anyhow(rng: random.Random, booking: Booking, pool: str, index: int) -> Booking:
    kind = rng.choice((OwnerKind.RESERVATION, OwnerKind.REQUEST))
    stage = rng.choice((Stage.FIRM, Stage.HOLD)) if kind is OwnerKind.RESERVATION else Stage.FIRM
    return replace(booking, id=BookingId(booking.id + 100 * index), pool=pool, owner_kind=kind, stage=stage)


def a_search(rng: random.Random) -> Search:
    start_from = rng.randint(0, 40)
    start_to = start_from + rng.randint(0, 40)
    min_s = rng.randint(1, 20)
    max_s = min_s + rng.choice((0, rng.randint(0, 40)))
    end_to = rng.choice((start_to + max_s, start_from + rng.randint(1, 50)))
    end_from = rng.choice((0, rng.randint(start_from, end_to)))
    return Search(
        start_from=start_from, start_to=start_to, end_to=end_to, min_s=min_s, max_s=max_s, end_from=end_from
    )


def every_longest(case: Case, search: Search) -> list[tuple[int, int, int, str]]:
    """(-length, start, cost, pool) of the longest window from each start, found second by second."""
    found = []
    for world in case.pools:
        if not case.could_ever(world):
            continue
        per_s = world.pool.price_micros_per_hour * 8 * case.count
        for start in range(search.start_from, search.start_to + 1):
            longest = min(search.max_s, search.end_to - start)
            for length in range(longest, search.min_s - 1, -1):
                if start + length >= search.end_from and case.fits(world, start, start + length):
                    found.append((-length, start, per_s * length // 3600, world.pool.name))
                    break
    return found


def as_key(option: WindowOption) -> tuple[int, int, int, str]:
    return -option.window.length_s, option.window.start, option.cost_micros, option.pool


def test_the_best_window_is_the_best() -> None:
    """A shorter, later or dearer window could be offered than there is, or none although there is one."""
    found = 0
    for case, rng in cases(1, 700):
        search = a_search(rng)
        advice = windows.advise(case.snapshot(), case.options, 0, case.alternative(), search, limit=100)
        every = every_longest(case, search)
        best = min(every, default=None)
        assert (as_key(advice.options[0]) if advice.options else None) == best
        soonest = windows.advise(
            case.snapshot(), case.options, 0, case.alternative(), search, limit=1, soonest=True
        )
        first = min(every, key=lambda key: (key[1], key), default=None)
        assert (as_key(soonest.options[0]) if soonest.options else None) == first
        assert len(advice.lost) == len(
            [w for w in case.pools if _known(case, w) and all(o.pool != w.pool.name for o in advice.options)]
        )
        found += best is not None
    assert 250 < found < 700


def _known(case: Case, world: Small) -> bool:
    return case.within is None or case.within in world.pool.levels


def test_every_window_offered_can_be_booked_as_it_is() -> None:
    """What the calendar offers would be refused a second later."""
    booked = 0
    for case, rng in cases(2, 600):
        search = a_search(rng)
        seen = case.snapshot()
        for option in windows.advise(seen, case.options, 0, case.alternative(), search, limit=100).options:
            world = next(w for w in case.pools if w.pool.name == option.pool)
            booked += 1
            assert search.start_from <= option.window.start <= search.start_to
            assert search.end_from <= option.window.end <= search.end_to
            assert search.min_s <= option.window.length_s <= search.max_s
            assert case.fits(world, option.window.start, option.window.end)
            there = Case([world], case.share, case.count, case.within).snapshot()
            length = option.window.length_s
            fit = windows.fit(there, case.options, 0, case.alternative(length), option.window)
            assert fit.option is not None
            assert_can_be_taken(world, option)
    assert booked > 500


def assert_can_be_taken(world: Small, option: WindowOption) -> None:
    """Its parts are free for the whole window, all in one domain of the level."""
    assert sum(p.count for p in option.parts) == option.count
    cells = {p.cell for p in option.parts}
    assert len(cells) == len(option.parts) and any(cells <= set(g) for g in world.groups(option.within))
    for part in option.parts:
        assert world.least(part.cell, option.window.start, option.window.length_s) >= part.count


def test_whether_a_window_fits_and_how_many_hosts_it_has_room_for() -> None:
    """A window that fits could be refused, one that does not be confirmed, or the wrong number be named."""
    yes = no = 0
    for case, rng in cases(3, 1500):
        start = rng.randint(0, 40)
        window = Span(start, start + rng.randint(1, 30))
        fit = windows.fit(case.snapshot(), case.options, 0, case.alternative(window.length_s), window)
        able = [w for w in case.pools if case.could_ever(w)]
        first = next((w.pool.name for w in able if case.fits(w, window.start, window.end)), None)
        assert (fit.option.pool if fit.option else None) == first
        if first is None:
            no += 1
            assert fit.reason is not None
            assert fit.most == max((case.room(w, window) for w in able), default=0)
        else:
            yes += 1
            assert fit.option is not None and fit.option.window == window
    assert yes > 250 and no > 250


def test_a_reservation_is_not_in_the_way_of_its_own_change() -> None:
    """A booking could not be moved by an hour because of itself."""
    changed = 0
    for case, rng in cases(4, 1000):
        mine = [(w, b) for w in case.pools for b in w.bookings if b.owner_kind is OwnerKind.RESERVATION]
        if not mine:
            continue
        world, case.before = rng.choice(mine)
        case.pools = [world]
        start = max(0, case.before.span.start + rng.randint(-10, 10))
        window = Span(start, start + rng.randint(1, 30))
        fit = windows.fit(
            case.snapshot(), case.options, 0, case.alternative(window.length_s), window, instead_of=case.before
        )
        assert (fit.option is not None) == (case.could_ever(world) and case.fits(world, start, window.end))
        changed += fit.option is not None
    assert changed > 150


def test_the_nearest_windows_are_the_nearest() -> None:
    """The user would be sent to a later hour than needed, or to one that does not fit either."""
    told = 0
    for case, rng in cases(5, 1500):
        now, start = rng.randint(0, 10), rng.randint(10, 40)
        window = Span(start, start + rng.randint(1, 20))
        length = window.length_s
        fit = windows.fit(case.snapshot(), case.options, now, case.alternative(length), window)
        if fit.option is not None:
            continue
        expected = []
        for world in (w for w in case.pools if case.could_ever(w)):
            later = range(start, max(now + HORIZON, start) + 1)
            earlier = range(start - 1, now - 1, -1)
            for way in (later, earlier):
                at = next((s for s in way if case.fits(world, s, s + length)), None)
                expected += [] if at is None else [(abs(at - start), at, world.pool.name)]
        got = [(abs(o.window.start - start), o.window.start, o.pool) for o in fit.nearest]
        assert got == sorted(expected)[:3]
        assert all(o.window.length_s == length for o in fit.nearest)
        told += len(got)
    assert told > 300


def test_a_window_around_maintenance_is_one_that_fits() -> None:
    """A window could be offered that needs a host on which an operator works meanwhile, or one that needs
    none be refused."""
    offered = 0
    for case, rng in cases(6, 500):
        for world in case.pools:
            _maintain(rng, world)
        search = a_search(rng)
        best = min(every_longest(case, search), default=None)
        advice = windows.advise(case.snapshot(), case.options, 0, case.alternative(), search, limit=100)
        assert (as_key(advice.options[0]) if advice.options else None) == best
        for option in advice.options[:3]:
            offered += 1
            world = next(w for w in case.pools if w.pool.name == option.pool)
            there = Case([world], case.share, case.count, case.within).snapshot()
            length = option.window.length_s
            fit = windows.fit(there, case.options, 0, case.alternative(length), option.window)
            assert fit.option is not None, "what is offered can be booked"
    assert offered > 150


def test_the_last_window_before_ends_where_only_the_share_changes() -> None:
    """A much earlier hour would be named where a run ends just as a reservation of as many hosts begins."""
    world = Small(a_pool([4], with_rows=False))
    one = Booking(
        id=BookingId(1),
        pool="p",
        span=Span(0, 20),
        stage=Stage.FIRM,
        owner_kind=OwnerKind.REQUEST,
        owner=1,
        parts=(Part(cell=0, count=2),),
    )
    kind = OwnerKind.RESERVATION
    world.bookings = [one, replace(one, id=BookingId(2), owner=2, owner_kind=kind, span=Span(20, 40))]
    case = Case(pools=[world], share=0.5, count=2, within=None)
    fit = windows.fit(case.snapshot(), case.options, 0, case.alternative(5), Span(28, 33))
    assert [o.window.start for o in fit.nearest] == [40, 15]


def _maintain(rng: random.Random, world: Small) -> None:
    """A maintenance window on a host, where the calendar has room for it."""
    unit = rng.randrange(len(world.pool.hosts))
    cell = world.pool.cell_of(unit)
    start = rng.randint(1, END - 2)
    end = rng.randint(start + 1, END)
    if unit in world.out or world.least(cell, start, end - start) < 1:
        return
    world.bookings.append(
        Booking(
            id=BookingId(900 + ord(world.pool.name)),
            pool=world.pool.name,
            span=Span(start, end),
            stage=Stage.FIRM,
            owner_kind=OwnerKind.MAINTENANCE,
            owner=900,
            parts=(Part(cell=cell, count=1, units=(unit,)),),
            name="m",
        )
    )
