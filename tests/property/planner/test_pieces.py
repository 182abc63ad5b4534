"""The search for pieces, fractions of a cell and aligned runs of cells, equals brute force over every second
and every placement; and what is chosen leaves whole what is whole."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pytest

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.names import BookingId
from dws.model.piece import Piece
from dws.model.time import FOREVER, Span
from dws.model.topology import HostState, HostStatus
from dws.planner import kernels
from dws.planner.calendar import PoolCalendar
from tests.property.planner.oracle import END, Small, a_pool

CASES = 900


def a_shared_world(rng: random.Random) -> Small:
    """A pool whose cells are equal, with some of it booked, out, or to be maintained as whole cells."""
    size = rng.randint(1, 5)
    world = Small(a_pool([size] * rng.randint(1, 6), rng.random() < 0.5))
    cells = range(len(world.pool.cells))
    for cell in cells:
        if rng.random() < 0.15:
            until = rng.choice((0, rng.randint(1, END - 1)))
            for unit in world.pool.cells[cell].units:
                world.out[unit] = HostStatus(pool="p", unit=unit, state=HostState.DOWN, until=until)
    for number in range(rng.randint(0, 8)):
        start = rng.randint(0, END - 2)
        span = Span(start, rng.randint(start + 1, END))
        cell = rng.choice(cells)
        room = min(world.free(cell, s) for s in range(span.start, span.end))
        if room:
            is_maintained = room == size and rng.random() < 0.4
            world.bookings.append(_a_booking(world, number + 1, span, cell, room, is_maintained, rng))
    return world


def _a_booking(
    world: Small, number: int, span: Span, cell: int, room: int, is_maintained: bool, rng: random.Random
) -> Booking:
    units = tuple(world.pool.cells[cell].units) if is_maintained else ()
    return Booking(
        id=BookingId(number),
        pool="p",
        span=span,
        stage=Stage.FIRM,
        owner_kind=OwnerKind.MAINTENANCE if is_maintained else OwnerKind.RESERVATION,
        owner=number,
        parts=(Part(cell=cell, count=len(units) or rng.randint(1, room), units=units),),
    )


def a_calendar(world: Small) -> PoolCalendar:
    calendar = PoolCalendar(world.pool)
    calendar.set_hosts(world.out)
    for booking in world.bookings:
        calendar.add(booking)
    return calendar


def could_be_placed(least: list[int], piece: Piece, count: int, domains: list[int]) -> bool:
    """True when some multiset of `count` aligned runs fits: each placement is tried, one after another."""
    runs = [range(i, i + piece.span) for i in range(0, len(least) - piece.span + 1, piece.span)]
    for chosen in combinations_with_replacement(runs, count):
        taken = [piece.size * sum(cell in run for run in chosen) for cell in range(len(least))]
        fits = all(t <= room for t, room in zip(taken, least, strict=True))
        if fits and _stand_right(Counter(domains[run[0]] for run in chosen), piece):
            return True
    return False


def _stand_right(numbers: Counter[int], piece: Piece) -> bool:
    """True when so many pieces in each domain are together, or apart, as they must be."""
    return all(n % piece.together == 0 and n <= (piece.at_most or n) for n in numbers.values())


def domains_of(world: Small, piece: Piece, group: list[int]) -> list[int]:
    """The domain of each cell of a group in which pieces stand together or apart."""
    found = [i for c in group for i, g in enumerate(world.groups(piece.level or None)) if c in g]
    assert len(found) == len(group)
    return found


def a_piece(rng: random.Random, world: Small) -> Piece:
    """A fraction, a whole cell or a slice; by itself, together with others, or apart from them."""
    largest = world.pool.cells[0].size
    size = rng.choice((largest, rng.randint(1, largest)))
    if rng.random() < 0.5:
        return Piece(span=rng.choice((1, 1, 2, 3, 4)), size=size)
    level = rng.choice(world.pool.levels)
    span = rng.choice((1, 2)) if level == "row" else 1
    if rng.random() < 0.5:
        return Piece(span=span, size=size, level=level, together=rng.randint(1, 3))
    return Piece(span=span, size=size, level=level, at_most=rng.randint(1, 2))


def brute_force(
    world: Small, piece: Piece, count: int, length: int, within: str | None, after: int, before: int
) -> int | None:
    for start in range(after, min(before, END + 1) + 1):
        for group in world.groups(within):
            least = [world.least(c, start, length) for c in group]
            if could_be_placed(least, piece, count, domains_of(world, piece, group)):
                return start
    return None


@pytest.mark.parametrize("seed", range(4))
def test_the_earliest_place_for_pieces_is_the_earliest(seed: int) -> None:
    """A fraction or a slice could be told a later start than is possible, or a place that is none."""
    rng = random.Random(seed)
    found = refused = 0
    for _ in range(CASES):
        world = a_shared_world(rng)
        piece = a_piece(rng, world)
        within = rng.choice([None, *world.pool.levels])
        count, length = piece.together * rng.randint(1, 3), rng.randint(1, 30)
        after = rng.randint(0, END)
        before = rng.choice((FOREVER, rng.randint(after, END)))
        expected = brute_force(world, piece, count, length, within, after, before)
        answer = a_calendar(world).earliest(
            count, length, within=within, after=after, before=before, piece=piece
        )
        assert (answer and answer[0]) == expected, (world, piece, count, length, within, after, before)
        if answer is None:
            refused += 1
            continue
        found += 1
        assert sum(p.count for p in answer[1]) == count * piece.units, "all or nothing"
        assert all(world.least(p.cell, answer[0], length) >= p.count for p in answer[1])
        assert any(_is_made_of(answer[1], piece, group) for group in world.groups(within)), "aligned"
        taken = Counter[int]()
        of = domains_of(world, piece, list(range(len(world.pool.cells))))
        for part in answer[1]:
            taken[of[part.cell]] += part.count
        assert all(n % piece.units == 0 for n in taken.values()), "whole pieces in each domain"
        assert _stand_right(Counter({d: n // piece.units for d, n in taken.items()}), piece)
    assert min(found, refused) > CASES // 8, "the cases must exercise both answers"


def _is_made_of(parts: tuple[Part, ...], piece: Piece, group: list[int]) -> bool:
    """True when the parts are whole aligned pieces of one group."""
    counts = {p.cell: p.count for p in parts}
    runs = [group[i : i + piece.span] for i in range(0, len(group) - piece.span + 1, piece.span)]
    used = [run for run in runs if counts.keys() & set(run)]
    return {c for run in used for c in run} == counts.keys() and all(
        len({counts[c] for c in run}) == 1 and counts[run[0]] % piece.size == 0 for run in used
    )


@pytest.mark.parametrize("seed", range(2))
def test_searches_for_mixed_pieces_that_go_on_find_the_same(seed: int) -> None:
    """What a search for one kind of piece ruled out could hide room for another kind."""
    rng = random.Random(50 + seed)
    for _ in range(150):
        world = a_shared_world(rng)
        size = world.pool.cells[0].size
        calendar = a_calendar(world)
        taken: list[tuple[int, int, tuple[Part, ...]]] = []
        for _ in range(10):
            fresh = a_calendar(world)
            for start, end, parts in taken:
                fresh.take(start, end, parts)
            piece = Piece(span=rng.choice((1, 2)), size=rng.randint(1, size))
            count, length, after = rng.randint(1, 2), rng.randint(1, 20), rng.choice((0, 0, 10))
            answers = [
                c.earliest(count, length, within=None, after=after, before=FOREVER, piece=piece)
                for c in (calendar, fresh)
            ]
            assert answers[0] == answers[1]
            if answers[0] is not None and rng.random() < 0.6:
                taken.append((answers[0][0], answers[0][0] + length, answers[0][1]))
                calendar.take(*taken[-1])


def chosen(least: list[int], piece: Piece, count: int = 1) -> list[int]:
    """Units taken from each cell."""
    return [
        int(n)
        for n in kernels.choose_pieces(np.array(least, dtype=np.int64), piece.span, piece.size, count)
    ]


def test_j06_a_small_shape_takes_the_fullest_host_that_fits() -> None:
    """Two-GPU work would break up hosts that eight-GPU work is waiting for."""
    assert chosen([8, 3, 1, 2], Piece(size=2)) == [0, 0, 0, 2]
    assert chosen([8, 3, 1, 2], Piece(size=2), 2) == [0, 2, 0, 2]
    assert chosen([8, 6, 5], Piece(size=5)) == [0, 0, 5]


def test_j06_a_slice_takes_the_smallest_free_surroundings() -> None:
    """A 2x2 slice could be put into the middle of the last free 4x4."""
    assert chosen([4, 4, 4, 4, 0, 4, 0, 0], Piece(size=4)) == [0, 0, 0, 0, 0, 4, 0, 0]
    assert chosen([4, 4, 4, 4, 0, 0, 4, 4], Piece(span=2, size=4)) == [0, 0, 0, 0, 0, 0, 4, 4]


def test_free_cells_that_are_not_aligned_are_no_piece() -> None:
    """Two free hosts side by side across a boundary of the torus could be handed out as a slice."""
    assert Piece(span=2, size=4).in_cells([0, 4, 4, 0]) == 0
    assert Piece(span=2, size=4).in_cells([4, 4, 4, 0]) == 1
    assert Piece(size=3).in_cells([8, 2, -1]) == 2
