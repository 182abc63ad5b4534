"""The search around maintenance equals brute force over units and seconds, also where it was forced over what
somebody has, and where two windows are on one host."""

from __future__ import annotations

import random

import pytest

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.names import BookingId
from dws.model.piece import Piece
from dws.model.time import FOREVER, Span
from dws.model.topology import HostState, HostStatus
from dws.planner.calendar import PoolCalendar
from tests.property.planner.oracle import END, Small, a_pool
from tests.property.planner.test_pieces import a_calendar, could_be_placed, domains_of

CASES = 700


def a_world(rng: random.Random) -> Small:
    """Running work, outages and windows, each on named units; windows anywhere, over anything."""
    world = Small(a_pool([rng.randint(1, 4)] * rng.randint(1, 4), rng.random() < 0.5))
    units = list(range(len(world.pool.hosts)))
    idle = units.copy()
    rng.shuffle(idle)
    for number in range(rng.randint(0, 4)):
        own = [idle.pop() for _ in range(min(len(idle), rng.randint(1, 3)))]
        if own:
            world.bookings.append(_named(world, number + 1, Span(0, rng.randint(1, END)), own, is_live=True))
    for unit in idle:
        if rng.random() < 0.15:
            until = rng.choice((0, rng.randint(1, END - 1)))
            world.out[unit] = HostStatus(pool="p", unit=unit, state=HostState.DOWN, until=until)
    for number in range(rng.randint(1, 4)):
        start = rng.randint(0, END - 2)
        span = Span(start, rng.randint(start + 1, END))
        own = rng.sample(units, min(len(units), rng.randint(1, 3)))
        world.bookings.append(_named(world, 10 + number, span, own, is_live=False))
    rng.shuffle(world.bookings)
    return world


def _named(world: Small, number: int, span: Span, units: list[int], *, is_live: bool) -> Booking:
    cells = {world.pool.cell_of(u) for u in units}
    own = {c: tuple(sorted(u for u in units if world.pool.cell_of(u) == c)) for c in cells}
    return Booking(
        id=BookingId(number),
        pool="p",
        span=span,
        stage=Stage.LIVE if is_live else Stage.FIRM,
        owner_kind=OwnerKind.REQUEST if is_live else OwnerKind.MAINTENANCE,
        owner=number,
        parts=tuple(Part(cell=c, count=len(own[c]), units=own[c]) for c in sorted(own)),
    )


def free_all_along(world: Small, cell: int, start: int, end: int) -> list[int]:
    """The units of a cell that nothing is on in any second of a window."""
    busy = {u for b in world.bookings if b.span.start < end and start < b.span.end for u in b.units}
    out = {u for u, status in world.out.items() if not status.until or start < status.until}
    return [u for u in world.pool.cells[cell].units if u not in busy | out]


def brute_force(
    world: Small, piece: Piece, count: int, length: int, within: str | None, after: int, before: int
) -> int | None:
    for start in range(after, min(before, END + 1) + 1):
        for group in world.groups(within):
            free = [len(free_all_along(world, c, start, start + length)) for c in group]
            if could_be_placed(free, piece, count, domains_of(world, piece, group)):
                return start
    return None


@pytest.mark.parametrize("seed", range(4))
def test_the_earliest_place_around_maintenance_is_the_earliest(seed: int) -> None:
    """Hosts under maintenance could be promised, or hosts be counted as missing twice and everybody wait."""
    rng = random.Random(seed)
    found = refused = 0
    for _ in range(CASES):
        world = a_world(rng)
        size = world.pool.cells[0].size
        piece = Piece(span=rng.choice((1, 1, 1, 2)), size=rng.choice((1, 1, rng.randint(1, size))))
        within = rng.choice([None, *world.pool.levels])
        count, length, after = rng.randint(1, 3), rng.randint(1, 30), rng.choice((0, 0, rng.randint(0, END)))
        before = rng.choice((FOREVER, rng.randint(after, END)))
        expected = brute_force(world, piece, count, length, within, after, before)
        calendar = a_calendar(world)
        answer = calendar.earliest(count, length, within=within, after=after, before=before, piece=piece)
        assert (answer and answer[0]) == expected, (world, piece, count, length, within, after, before)
        if answer is None:
            refused += 1
            continue
        found += 1
        if answer[0] == 0:
            span = Span(0, length)
            for part in calendar.draw(answer[1], frozenset(), span):
                assert set(part.units) <= set(free_all_along(world, part.cell, 0, length))
    assert min(found, refused) > CASES // 8, "the cases must exercise both answers"


def test_windows_that_come_and_go_leave_no_trace() -> None:
    """A cancelled window could leave hosts out for ever, or hosts that are not there be promised."""
    rng = random.Random(9)
    for _ in range(500):
        world = a_world(rng)
        calendar = PoolCalendar(world.pool)
        there: list[Booking] = []
        for booking in world.bookings * 2:
            if booking in there:
                calendar.remove(booking)
                there.remove(booking)
            else:
                calendar.add(booking)
                there.append(booking)
            if rng.random() < 0.2:
                calendar.set_hosts(rng.choice((world.out, {})))
            if rng.random() < 0.2:
                calendar = calendar.fork()
            fresh = PoolCalendar(world.pool)
            fresh.set_hosts(calendar.unready_units())
            for other in there:
                fresh.add(other)
            assert calendar.rows() == fresh.rows()
