"""What stands in the way of a shape, for people: in which pools there could be room, and who runs there."""

from __future__ import annotations

from dws.engine.answers import DefragRoom, InTheWay
from dws.engine.books import Books
from dws.model.demand import Alternative, Demand
from dws.model.errors import InvalidArgument
from dws.model.piece import Piece
from dws.model.request import CapacityRequest, Grant
from dws.model.topology import Pool
from dws.planner import defrag, slices
from dws.planner.resolve import Candidate, candidates


def rooms(books: Books, now: int, wanted: Alternative) -> tuple[DefragRoom, ...]:
    """In each pool that serves it and could make room, where that costs least; the cheapest pool first.

    Raises InvalidArgument when no pool serves what is wanted.
    """
    with books.lock:
        served = candidates(Demand(alternatives=(wanted,)), books.fleet)
        if not served:
            what = wanted.shape or wanted.accelerator
            level = f" with a level '{wanted.within}'" if wanted.within else ""
            raise InvalidArgument(
                f"{'machine' if wanted.shape else 'accelerators'}: no pool{level} serves '{what}' there "
                "('dws fleet show' lists the pools)",
                field="machine" if wanted.shape else "accelerators",
            )
        found = [room for each in served if (room := _room(books, now, each)) is not None]
    return tuple(sorted(found, key=lambda room: (room.accelerator_s, room.pool)))


def _room(books: Books, now: int, asked: Candidate) -> DefragRoom | None:
    pool = asked.pool
    holding = {r.grant.booking: r for r in books.holding.values() if r.grant is not None}
    held_as: dict[int, Piece] = {
        booking: piece
        for booking, request in holding.items()
        if request.grant is not None
        and request.grant.pool == pool.name
        and (piece := _held_as(request, request.grant, pool)) is not None
    }
    found = defrag.room(books.snapshot(), now, pool, asked.piece, asked.count, asked.within, held_as)
    if found is None:
        return None
    by_id: dict[int, CapacityRequest] = {r.id: r for r in holding.values()}
    return DefragRoom(
        pool=pool.name,
        zone=pool.zone,
        places=_places(pool, found.cells),
        accelerator_s=found.cost_unit_s * pool.unit_weight,
        in_the_way=tuple(
            InTheWay(
                request=by_id[each.owner].name,
                project=by_id[each.owner].project,
                hosts=pool.hosts_of(each.units),
                accelerators=len(each.units) * pool.unit_weight,
                until=now + each.left_s,
                fits_elsewhere=each.fits_elsewhere,
            )
            for each in found.in_the_way
        ),
    )


def _held_as(request: CapacityRequest, grant: Grant, pool: Pool) -> Piece | None:
    """The pieces in which a request holds what it has: slices as a whole, else its machines."""
    alternative = request.demand.alternatives[grant.alternative]
    topology = slices.in_pool(alternative, pool)
    if topology is not None:
        return slices.piece_of(topology, pool)
    return pool.piece_of(grant.shape)


def _places(pool: Pool, cells: tuple[int, ...]) -> tuple[str, ...]:
    """What cells are called: the outermost domains that are whole among them, then the cells left over."""
    left, names = set(cells), []
    for level in pool.levels:
        declared = (d.name for d in pool.domains if d.level == level)
        for name, group in zip(declared, pool.groups(level), strict=True):
            if group and left.issuperset(group):
                names.append(name)
                left.difference_update(group)
    return (*names, *(pool.cells[cell].name or pool.name for cell in sorted(left)))
