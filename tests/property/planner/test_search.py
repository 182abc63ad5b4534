"""Every search of the calendar equals brute force over every second of small worlds."""

from __future__ import annotations

import random

import pytest

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.demand import Alternative, Demand
from dws.model.names import BookingId, RequestId
from dws.model.request import CapacityRequest, Grant, Instance, RequestState
from dws.model.time import FOREVER, Span
from dws.model.topology import Fleet, Zone
from dws.planner import advise, kernels, snapshot
from dws.planner.backfill import Pass
from dws.planner.calendar import PoolCalendar
from dws.planner.options import PolicyOptions
from tests.property.planner.oracle import END, Small, small_worlds

CASES = 1500


def a_calendar(world: Small) -> PoolCalendar:
    calendar = PoolCalendar(world.pool)
    calendar.set_hosts(world.out)
    for booking in world.bookings:
        calendar.add(booking)
    return calendar


def a_question(rng: random.Random, world: Small) -> tuple[int, int, str | None, int, int]:
    levels = [None, *world.pool.levels]
    after = rng.randint(0, END)
    before = rng.choice((FOREVER, rng.randint(after, END)))
    return rng.randint(1, len(world.pool.hosts)), rng.randint(1, 30), rng.choice(levels), after, before


@pytest.mark.parametrize("seed", range(4))
def test_earliest_is_earliest(seed: int) -> None:
    """A request could be told a later start than is possible, or one that is not possible."""
    found = 0
    for world, rng in small_worlds(seed, CASES):
        calendar = a_calendar(world)
        count, length, within, after, before = a_question(rng, world)
        expected = world.earliest(count, length, within, after, before)
        answer = calendar.earliest(count, length, within=within, after=after, before=before)
        assert (answer and answer[0]) == expected, (world, count, length, within, after, before)
        if answer is not None:
            found += 1
            parts = answer[1]
            assert sum(p.count for p in parts) == count, "all or nothing"
            assert all(world.least(p.cell, answer[0], length) >= p.count for p in parts)
            assert any({p.cell for p in parts} <= set(g) for g in world.groups(within)), "one group"
    assert found > CASES // 4, "the cases must exercise both answers"


@pytest.mark.parametrize("seed", range(3))
def test_searches_that_go_on_where_the_last_ended_find_the_same(seed: int) -> None:
    """What an earlier search ruled out could hide capacity that was given back since."""
    for world, rng in small_worlds(20 + seed, 400):
        calendar = a_calendar(world)
        taken: list[tuple[int, int, tuple[Part, ...]]] = []
        for _ in range(12):
            count, length, within, after, before = a_question(rng, world)
            after = rng.choice((0, 0, after))
            count = rng.choice((count, 1))
            fresh = a_calendar(world)
            for start, end, parts in taken:
                fresh.take(start, end, parts)
            answer = calendar.earliest(count, length, within=within, after=after, before=before)
            assert answer == fresh.earliest(count, length, within=within, after=after, before=before)
            if taken and rng.random() < 0.3:
                start, end, parts = taken.pop()
                calendar.shift(start, end, parts, [p.count for p in parts], 1)
            elif answer is not None and rng.random() < 0.6:
                taken.append((answer[0], answer[0] + length, answer[1]))
                calendar.take(*taken[-1])


@pytest.mark.skipif(not kernels.IS_COMPILED, reason="numba is not installed: there is nothing to compare")
def test_compiled_equals_interpreted() -> None:
    """The compiled kernels could differ from the functions they were compiled from."""
    import numpy as np

    for world, rng in small_worlds(11, 300):
        calendar = a_calendar(world)
        count, length, within, after, before = a_question(rng, world)
        offsets, cells = calendar._cells_of(within)
        held = np.array([rng.randint(0, 1) for _ in world.pool.cells], dtype=np.int64)
        inner = np.array([rng.randint(-1, 1) for _ in world.pool.cells], dtype=np.int64)
        together = rng.randint(1, 2)
        piece = (rng.randint(1, 2), rng.randint(1, 2), together, rng.choice((0, together, 3)))
        args = (calendar._times, calendar._free, calendar._rows, offsets, cells, held, inner)
        rest = (*piece, count, length, after, before)
        compiled = kernels.earliest(*args, *rest)
        interpreted = kernels.earliest.py_func(*args, *rest)  # type: ignore[attr-defined]
        assert tuple(compiled) == tuple(interpreted)


@pytest.mark.parametrize("seed", range(3))
def test_incremental_equals_full(seed: int) -> None:
    """A calendar kept up to date could drift from one made from nothing."""
    for world, rng in small_worlds(100 + seed, 400):
        calendar = PoolCalendar(world.pool)
        kept: dict[int, Booking] = {}
        out: dict = {}
        for _ in range(12):
            if world.bookings and rng.random() < 0.6:
                booking = rng.choice(world.bookings)
                if booking.id in kept:
                    calendar.remove(kept.pop(booking.id))
                else:
                    kept[booking.id] = booking
                    calendar.add(booking)
            elif rng.random() < 0.5:
                out = {} if out else dict(world.out)
                calendar.set_hosts(out)
            fork = calendar.fork()
            fresh = PoolCalendar(world.pool)
            fresh.set_hosts(out)
            for other in kept.values():
                fresh.add(other)
            assert calendar.rows() == fresh.rows() == fork.rows()


def test_a_fork_leaves_the_original_alone() -> None:
    """Planning could change the ledger it plans from."""
    for world, _ in small_worlds(5, 200):
        calendar = a_calendar(world)
        before = calendar.rows()
        fork = calendar.fork()
        fork.take(1, 50, (Part(cell=0, count=1),))
        fork.occupy((Part(cell=0, count=1, units=(0,)),))
        assert calendar.rows() == before
        assert calendar.idle_units(0) == a_calendar(world).idle_units(0)


def test_lifting_and_dropping_leaves_no_trace() -> None:
    """Trying a request elsewhere could leave its promise half taken away (undo is exact)."""
    for world, rng in small_worlds(6, 300):
        calendar = a_calendar(world)
        before = calendar.rows()
        for booking in rng.sample(world.bookings, len(world.bookings)):
            calendar.lift(booking)
        for booking in rng.sample(world.bookings, len(world.bookings)):
            calendar.drop(booking)
        assert calendar.rows() == before


def test_pruning_forgets_only_the_past() -> None:
    """Forgetting what is over could change what is promised."""
    for world, rng in small_worlds(7, 300):
        calendar = a_calendar(world)
        now = rng.randint(0, END)
        calendar.prune(now)
        count, length, within, after, before = a_question(rng, world)
        after = max(after, now)
        before = max(after, before)
        expected = world.earliest(count, length, within, after, before)
        answer = calendar.earliest(count, length, within=within, after=after, before=before)
        assert (answer and answer[0]) == expected


# --- alternatives, extension, spare ---------------------------------------------------------------


def a_waiting(demand: Demand) -> CapacityRequest:
    return CapacityRequest(
        id=RequestId(1_000),
        name="x",
        project="p",
        principal="ann",
        demand=demand,
        state=RequestState.PENDING,
        submitted_at=0,
    )


@pytest.mark.parametrize("seed", range(2))
def test_of_several_alternatives_the_first_to_finish_wins(seed: int) -> None:
    """A request with alternatives could be given one that ends later than another would."""
    for world, rng in small_worlds(200 + seed, 700):
        fleet = Fleet(zones=(Zone(name="z"),), pools=(world.pool,))
        alternatives = tuple(
            Alternative(
                shape="m",
                count=rng.randint(1, len(world.pool.hosts)),
                duration_s=rng.randint(1, 30),
                within=rng.choice([None, *world.pool.levels]),
            )
            for _ in range(rng.randint(1, 3))
        )
        low = rng.randint(0, END)
        demand = Demand(
            alternatives=alternatives, not_before=low, not_after=rng.choice((FOREVER, low + 10))
        )
        seen = snapshot.build(fleet, bookings=world.bookings, hosts=world.out.values())
        best = Pass(seen, PolicyOptions(), 0).best(a_waiting(demand), after=0)
        ends = []
        for index, a in enumerate(alternatives):
            largest = max(sum(world.pool.cells[c].size for c in g) for g in world.groups(a.within))
            if largest < a.count:
                continue
            start = world.earliest(a.count, a.duration_s, a.within, low, demand.not_after)
            if start is not None:
                ends.append((start + a.duration_s, index, start))
        if not ends:
            assert best is None
            continue
        end, index, start = min(ends)
        assert best is not None
        assert (best.span.end, best.alternative, best.start) == (end, index, start)


def test_the_longest_extension_is_the_longest() -> None:
    """An extension could run into a promise, or be refused seconds that are free."""
    checked = 0
    for world, rng in small_worlds(300, 1500):
        idle = [u for u in range(len(world.pool.hosts)) if u not in world.out]
        units = tuple(sorted(rng.sample(idle, min(len(idle), rng.randint(1, 2)))))
        end = rng.randint(1, END)
        cells = {world.pool.cell_of(u) for u in units}
        parts = tuple(
            Part(cell=c, count=len(own), units=own)
            for c in sorted(cells)
            for own in [tuple(u for u in units if world.pool.cell_of(u) == c)]
        )
        if not units or any(world.least(p.cell, 0, end) < p.count for p in parts):
            continue
        checked += 1
        running = Booking(
            id=BookingId(500),
            pool="p",
            span=Span(0, end),
            stage=Stage.LIVE,
            owner_kind=OwnerKind.REQUEST,
            owner=1_000,
            parts=parts,
        )
        grant = Grant(
            booking=running.id,
            attempt=1,
            alternative=0,
            pool="p",
            zone="z",
            shape="m",
            duration_s=end,
            started_at=0,
            delivered_at=1,
            ends_at=end,
            instances=tuple(Instance(rank=i, unit=u, host="h") for i, u in enumerate(units)),
        )
        request = CapacityRequest(
            id=RequestId(1_000),
            name="x",
            project="p",
            principal="ann",
            demand=Demand(alternatives=(Alternative(shape="m", count=len(units), duration_s=end),)),
            state=RequestState.ACTIVE,
            submitted_at=0,
            booking=running.id,
            grant=grant,
        )
        fleet = Fleet(zones=(Zone(name="z"),), pools=(world.pool,))
        seen = snapshot.build(fleet, bookings=[*world.bookings, running], hosts=world.out.values())
        by = rng.randint(1, 40)
        answer = advise.extension(seen, PolicyOptions(), 0, request, by)
        longest = 0
        while longest < by and all(world.free(p.cell, end + longest) >= p.count for p in parts):
            longest += 1
        assert answer.longest_s == longest
        assert (answer.reason is None) == (longest == by)
    assert checked > 300


def test_a_spare_is_free_to_the_end_and_near() -> None:
    """A lost host could be replaced by one that is promised to someone else."""
    given = 0
    for world, rng in small_worlds(400, 1200):
        idle = [u for u in range(len(world.pool.hosts)) if u not in world.out]
        if not idle:
            continue
        lost = rng.choice(idle)
        cell = world.pool.cell_of(lost)
        end = rng.randint(1, END)
        if world.least(cell, 0, end) < 1:
            continue
        running = Booking(
            id=BookingId(500),
            pool="p",
            span=Span(0, end),
            stage=Stage.LIVE,
            owner_kind=OwnerKind.REQUEST,
            owner=1_000,
            parts=(),
        )
        world.out[lost] = _down(lost)
        within = rng.choice([None, *world.pool.levels])
        fleet = Fleet(zones=(Zone(name="z"),), pools=(world.pool,))
        seen = snapshot.build(fleet, bookings=[*world.bookings, running], hosts=world.out.values())
        spare = advise.spare(seen, PolicyOptions(), 0, running, (lost,), within=within)
        group = next(g for g in world.groups(within) if cell in g)
        possible = [c for c in group if world.least(c, 0, end) >= 1]
        assert (spare is None) == (not possible)
        if spare is not None:
            given += 1
            home = world.pool.cell_of(spare[0])
            assert home in possible and (cell not in possible or home == cell), "the same cell first"
            assert spare[0] not in world.out
    assert given > 100


def _down(unit: int):  # type: ignore[no-untyped-def]
    from dws.model.topology import HostState, HostStatus

    return HostStatus(pool="p", unit=unit, state=HostState.DOWN)
