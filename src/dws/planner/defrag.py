"""Which running work stands in the way of a shape: what would have to end, or move, to make room for it.

For each domain that could hold what is asked for, those in the way are gathered run by run, the ones with
the least left to do first, until there is room; whoever turns out not to be needed is left alone again. The
domain where the least running time is in the way is told. It is found by a rule of thumb, so less might be
in the way elsewhere; but nobody named could be spared. It is a proposal, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.piece import Piece
from dws.model.topology import Pool
from dws.planner import kernels
from dws.planner.snapshot import FleetSnapshot

Units = dict[int, int]
"""How many units of each cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InTheWay:
    """Running work that would have to go. `owner` is its request, `units` those it has in the way, `left_s`
    how long it still runs at the most. It `fits_elsewhere` when all of it could be moved now, beside the room
    made and all others moved before it."""

    owner: int
    units: tuple[int, ...]
    left_s: int
    fits_elsewhere: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Where so much would have room: the cells of a domain, and who is in the way there; nobody when there is
    room now. `cost_unit_s` is the running time in the way, in unit-seconds."""

    pool: str
    cells: tuple[int, ...]
    in_the_way: tuple[InTheWay, ...] = ()
    cost_unit_s: int = 0


@dataclass(slots=True)
class _Holder:
    """A running booking and what it has of each cell."""

    booking: Booking
    piece: Piece
    units: Units = field(default_factory=dict)
    cost: int = 0


def room(
    seen: FleetSnapshot,
    now: int,
    pool: Pool,
    piece: Piece,
    count: int,
    within: str | None,
    held_as: Mapping[int, Piece],
) -> Room | None:
    """Where `count` pieces would have room in one domain of a level of a pool, and who is in the way; None
    when there would be none even without all who may be moved. `held_as` says in what pieces each booking
    holds its units. Raises InvalidArgument when the pool has no such level."""
    calendar = seen.calendars[pool.name]
    idle = [len(calendar.idle_units(cell)) for cell in range(len(pool.cells))]
    unready = calendar.unready_units()
    holders = [
        _holder(booking, held_as[booking.id], pool, now, unready)
        for booking in seen.bookings.values()
        if booking.calendar == pool.name and booking.id in held_as and _may_move(booking)
    ]
    groups = pool.groups(within)
    if piece.level and count == piece.together:  # all in one domain: then its runs count by themselves
        inner = pool.groups(piece.level)
        groups = tuple(d for group in groups for d in inner if set(d) <= set(group))
        piece = Piece(span=piece.span, size=piece.size)
    ways = (_clear(pool, group, idle, holders, piece, count) for group in groups)
    found = [way for way in ways if way is not None]
    if not found:
        return None
    group, chosen = min(found, key=lambda way: (sum(h.cost for h in way[1]), len(way[1]), way[0]))
    gone = _without(idle, chosen)
    taken = _take(pool, gone, group, piece, count)
    cells = tuple(sorted(taken))
    left = list(gone)
    for cell, units in taken.items():
        left[cell] -= units
    return Room(
        pool=pool.name,
        cells=cells,
        in_the_way=tuple(_in_the_way(h, pool, cells, left, now) for h in chosen),
        cost_unit_s=sum(h.cost for h in chosen),
    )


def _may_move(booking: Booking) -> bool:
    return booking.owner_kind is OwnerKind.REQUEST and booking.stage is Stage.LIVE and bool(booking.units)


def _holder(booking: Booking, piece: Piece, pool: Pool, now: int, unready: Iterable[int]) -> _Holder:
    lost = frozenset(unready)
    units: Units = {}
    for unit in booking.units:
        if unit not in lost:
            cell = pool.cell_of(unit)
            units[cell] = units.get(cell, 0) + 1
    return _Holder(booking, piece, units, max(0, booking.span.end - now) * len(booking.units))


def _clear(
    pool: Pool,
    group: tuple[int, ...],
    idle: list[int],
    holders: list[_Holder],
    piece: Piece,
    count: int,
) -> tuple[tuple[int, ...], list[_Holder]] | None:
    """The group, and whom to clear from it for so many pieces; None when that many never fit in it."""
    near = [h for h in holders if any(cell in h.units for cell in group)]
    if _rooms(pool, _without(idle, near), group, piece) < count:
        return None
    chosen: list[_Holder] = []
    while (there := _rooms(pool, _without(idle, chosen), group, piece)) < count:
        ways = (
            way
            for at in range(0, len(group) - piece.span + 1, piece.span)
            if (way := _clear_run(pool, group, at, idle, near, chosen, piece, there, count))
        )
        best = min(ways, key=lambda way: (way[0], [h.booking.id for h in way[1]]), default=None)
        chosen = [*chosen, *best[1]] if best is not None else near
    for holder in sorted(chosen, key=lambda h: (-h.cost, h.booking.id)):
        fewer = [h for h in chosen if h is not holder]
        if _rooms(pool, _without(idle, fewer), group, piece) >= count:
            chosen = fewer
    return group, sorted(chosen, key=lambda h: (h.cost, h.booking.id))


def _clear_run(
    pool: Pool,
    group: tuple[int, ...],
    at: int,
    idle: list[int],
    near: list[_Holder],
    chosen: list[_Holder],
    piece: Piece,
    there: int,
    count: int,
) -> tuple[float, list[_Holder]] | None:
    """Whom else to clear from the run that begins at `group[at]` for at least one more piece than there are,
    and what each that is wanted costs so; None when the run has no more to give."""
    run = group[at : at + piece.span]
    rest = [h for h in near if h not in chosen and any(cell in h.units for cell in run)]
    more: list[_Holder] = []
    for holder in sorted(rest, key=lambda h: (h.cost, h.booking.id)):
        more.append(holder)
        if _rooms(pool, _without(idle, chosen + more), group, piece) > there:
            break
    else:
        return None
    for holder in sorted(more, key=lambda h: (-h.cost, h.booking.id)):
        fewer = [h for h in more if h is not holder]
        if _rooms(pool, _without(idle, chosen + fewer), group, piece) > there:
            more = fewer
    gained = min(count, _rooms(pool, _without(idle, chosen + more), group, piece)) - there
    return sum(h.cost for h in more) / gained, more


def _without(idle: list[int], gone: Sequence[_Holder]) -> list[int]:
    """What is idle when these have gone."""
    left = list(idle)
    for holder in gone:
        for cell, units in holder.units.items():
            left[cell] += units
    return left


def _rooms(pool: Pool, idle: list[int], group: Sequence[int], piece: Piece) -> int:
    return pool.pieces_in(group, idle, piece)


def _take(pool: Pool, idle: list[int], group: Sequence[int], piece: Piece, count: int) -> Units:
    """What so many pieces would take of each cell of a group, chosen as the planner chooses."""
    least = np.array([idle[c] for c in group], dtype=np.int64)
    if piece.level:
        own = np.array(group, dtype=np.int64)
        inner = np.array(pool.domains_by_cell(piece.level), dtype=np.int64)
        kind = (piece.span, piece.size, piece.together, piece.at_most)
        taken = kernels.choose_by_domain(least, own, inner, *kind, count)
    else:
        taken = kernels.choose_pieces(least, piece.span, piece.size, count)
    return {cell: int(units) for cell, units in zip(group, taken, strict=True) if units}


def _in_the_way(
    holder: _Holder, pool: Pool, cells: tuple[int, ...], left: list[int], now: int
) -> InTheWay:
    """How it is told; takes what it would move to from `left`."""
    everywhere = range(len(left))
    count = sum(holder.units.values()) // holder.piece.units
    fits = _rooms(pool, left, everywhere, holder.piece) >= count
    if fits:
        for cell, units in _take(pool, left, everywhere, holder.piece, count).items():
            left[cell] -= units
    return InTheWay(
        owner=holder.booking.owner,
        units=tuple(u for u in holder.booking.units if pool.cell_of(u) in cells),
        left_s=max(0, holder.booking.span.end - now),
        fits_elsewhere=fits,
    )
