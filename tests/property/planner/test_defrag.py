"""What stands in the way of a shape, against every subset of who runs."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from dws.model.booking import Booking
from dws.model.piece import Piece
from dws.model.topology import Fleet, Pool, Zone
from dws.planner import defrag
from dws.planner.snapshot import FleetSnapshot, build
from tests.build import NOW, H, a_booking
from tests.unit.planner.test_shared_hosts import FRACTIONS, a_shared_pool

HOSTS = 4
PIECES = {k: Piece(size=k) for k in (1, 2, 4, 8)}


def a_case(dice: random.Random) -> tuple[Pool, FleetSnapshot, dict[int, Piece]]:
    """A few small holders, wherever they happen to be."""
    pool = a_shared_pool(HOSTS)
    free = {host: list(pool.units_of(host)) for host in range(HOSTS)}
    bookings: list[Booking] = []
    held_as: dict[int, Piece] = {}
    for number in range(1, dice.randint(2, 9)):
        size, count = dice.choice((1, 1, 2, 4, 8)), dice.choice((1, 1, 2))
        parts: dict[int, tuple[int, ...]] = {}
        for host in dice.sample(range(HOSTS), HOSTS):
            if len(free[host]) >= size and len(parts) < count:
                parts[host] = tuple(free[host].pop(dice.randrange(len(free[host]))) for _ in range(size))
        if parts:
            bookings.append(a_booking(number, parts, owner=100 + number, end=NOW + dice.randint(1, 9) * H))
            held_as[number] = PIECES[size]
    fleet = Fleet(zones=(Zone(name="z1"),), pools=(pool,))
    return pool, build(fleet, bookings=bookings), held_as


def has_room(pool: Pool, seen: FleetSnapshot, gone: set[int], piece: Piece, count: int, within: str | None) -> bool:
    """Whether there is room in one domain when those have gone, counted host by host."""
    used = {u for b in seen.bookings.values() if b.owner not in gone for u in b.units}
    idle = [sum(u not in used for u in pool.units_of(host)) for host in range(HOSTS)]
    return any(sum(idle[c] // piece.size for c in group) >= count for group in pool.groups(within))


@pytest.mark.parametrize("seed", range(300))
def test_nobody_named_could_be_spared_and_there_is_room_without_them(seed: int) -> None:
    """An operator would end work in vain, or be told that nothing helps when something does."""
    dice = random.Random(seed)
    pool, seen, held_as = a_case(dice)
    piece, count, within = PIECES[dice.choice((2, 4, 8))], dice.randint(1, 4), dice.choice((None, "block"))
    found = defrag.room(seen, NOW, pool, piece, count, within, held_as)
    everyone = {b.owner for b in seen.bookings.values()}
    if found is None:
        assert not has_room(pool, seen, everyone, piece, count, within)
        return
    named = {h.owner for h in found.in_the_way}
    assert has_room(pool, seen, named, piece, count, within)
    assert len(found.cells) * (8 // piece.size) >= count
    for fewer in combinations(named, len(named) - 1) if named else ():
        assert not has_room(pool, seen, set(fewer), piece, count, within)
    cost = sum((b.span.end - NOW) * b.count for b in seen.bookings.values() if b.owner in named)
    assert found.cost_unit_s == cost


@pytest.mark.parametrize("seed", range(100))
def test_one_host_is_cleared_where_least_is_running(seed: int) -> None:
    """Long runs would be ended where a short one stood in the way of the same shape."""
    pool, seen, held_as = a_case(random.Random(seed))
    found = defrag.room(seen, NOW, pool, PIECES[8], 1, None, held_as)
    assert found is not None
    costs = []
    for host in range(HOSTS):
        there = [b for b in seen.bookings.values() if any(p.cell == host for p in b.parts)]
        costs.append(sum((b.span.end - NOW) * b.count for b in there))
    assert found.cost_unit_s == min(costs)


def test_who_could_move_is_told_and_who_could_not() -> None:
    """An operator would end what only had to move."""
    pool = a_shared_pool(2)
    assert pool.fractions == FRACTIONS
    bookings = [
        a_booking(1, {0: (0, 1)}, owner=1, end=NOW + H),
        a_booking(2, {0: (2, 3, 4, 5)}, owner=2, end=NOW + H),
        a_booking(3, {1: (8, 9, 10, 11, 12, 13)}, owner=3, end=NOW + 9 * H),
    ]
    seen = build(Fleet(zones=(Zone(name="z1"),), pools=(pool,)), bookings=bookings)
    held_as = {1: PIECES[2], 2: PIECES[4], 3: PIECES[2]}
    found = defrag.room(seen, NOW, pool, PIECES[8], 1, None, held_as)
    assert found is not None and found.cells == (0,)
    assert [(h.owner, h.units, h.left_s, h.fits_elsewhere) for h in found.in_the_way] == [
        (1, (0, 1), H, True),
        (2, (2, 3, 4, 5), H, False),
    ]
