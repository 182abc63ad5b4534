"""From what is wanted to where it could be: each alternative, in each pool that can hold its kind.

A gang never spans pools, so it never mixes machine types. Accelerator counts are rounded up: to whole hosts,
or, where hosts are shared, to the smallest shape of the pool that has as many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dws.model.booking import Booking, calendar_name
from dws.model.catalog import accelerator_names
from dws.model.demand import OPEN_ENDED_S, UNTIL_END, Alternative, Demand
from dws.model.piece import UNIT, Piece
from dws.model.reservation import Reservation
from dws.model.resources import MachineShape
from dws.model.topology import HOST_LEVEL, Fleet, Pool
from dws.model.tpu import Topology
from dws.planner import slices


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One alternative in one pool: `count` pieces for `length_s`, set-up and tear-down included.

    With `inside`, in the booking of a reservation of that pool, and then `until_end` may say that it lasts
    to that booking's end, whenever it starts: `duration_s` and `length_s` are the longest it can be. `lent`
    is one that may start there now but is promised nothing. `shape` is what each of its instances is of,
    and `topology` that of the slices it is.
    """

    alternative: int
    pool: Pool
    count: int
    duration_s: int
    length_s: int
    within: str | None
    inside: Booking | None = None
    until_end: bool = False
    lent: bool = False
    piece: Piece = UNIT
    shape: str = ""
    topology: Topology | None = None
    near: bool = False

    @property
    def parent(self) -> int:
        """The booking it lies inside, 0 for the fleet itself."""
        return 0 if self.inside is None else self.inside.id

    @property
    def calendar(self) -> str:
        """The name of the calendar it would be in."""
        return calendar_name(self.pool.name, self.parent)

    @property
    def is_grouped(self) -> bool:
        """True when it has to stand together, or apart, by the wish of who asks."""
        return bool(self.piece.level) and (self.topology is None or self.topology.cubes < 2)

    @property
    def could_ever_fit(self) -> bool:
        """True when the empty pool, or reservation, has room for it, hosts that are down counted in."""
        if self.inside is None:
            return self.pool.largest(self.within, self.piece) >= self.count
        fits = self.duration_s > 0 and self.length_s <= self.inside.span.length_s
        held = [0] * len(self.pool.cells)
        for part in self.inside.parts:
            held[part.cell] += part.count
        groups = self.pool.groups(self.within)
        return fits and self.count <= max(
            (self.pool.pieces_in(group, held, self.piece) for group in groups), default=0
        )

    @property
    def number(self) -> int:
        """How many machines, or slices, it is."""
        return self.number_of(self.count)

    def number_of(self, pieces: int) -> int:
        """How many machines, or slices, so many pieces come to."""
        return pieces // max(1, self.topology.cubes) if self.topology is not None else pieces

    @property
    def noun(self) -> str:
        """What it is called: hosts, machines of a name, or slices."""
        return slices.noun(self.shape, self.topology, self.pool, self.number)

    @property
    def units(self) -> int:
        """Units of the pool that it takes."""
        return self.count * self.piece.units

    @property
    def machines(self) -> int:
        """Machines that it takes: one for each piece, or several for a slice of more than one."""
        return self.units // self.pool.piece_held(self.shape or self.pool.shape.name).units

    @property
    def slices(self) -> int:
        """TPU slices that it is, 0 for what is no slice."""
        return 0 if self.topology is None else self.accelerators // self.topology.chips

    @property
    def accelerators(self) -> int:
        """Accelerators held, 0 for CPU-only hosts."""
        return self.units * self.pool.shape.accelerators // self.pool.host_units

    @property
    def accelerator_s(self) -> int:
        """Accelerator-seconds booked, a host without accelerators counting as one."""
        return self.units * self.pool.unit_weight * self.length_s

    def cost_micros_of(self, duration_s: int) -> int:
        """What so many seconds cost."""
        return self.pool.price_micros_per_hour * self.units * self.pool.unit_weight * duration_s // 3600


def candidates(demand: Demand, fleet: Fleet) -> tuple[Candidate, ...]:
    """Every (alternative, pool) that is of the kind asked for, in order of preference and fleet order."""
    return tuple(
        Candidate(
            alternative=index,
            pool=pool,
            count=count,
            duration_s=alternative.duration_s,
            length_s=alternative.duration_s + pool.overheads.total_s,
            within=alternative.within,
            near=alternative.near,
            piece=piece,
            shape=shape_for(alternative, pool).name,
            topology=slices.in_pool(alternative, pool),
        )
        for index, alternative in enumerate(demand.alternatives)
        for pool in fleet.pools_in(alternative.locations)
        if is_of_kind(alternative, pool) and can_stand(alternative, pool)
        for count, piece in (pieces_needed(alternative, pool),)
    )


def is_of_kind(alternative: Alternative, pool: Pool) -> bool:
    """True when the pool's hosts are what the alternative asks for."""
    if slices.in_pool(alternative, pool) is not None:
        return True
    if slices.names_slice(alternative):
        return False
    if alternative.shape:
        return pool.piece_of(alternative.shape) is not None
    if pool.topology:
        return False  # so many chips that are no slice
    names = accelerator_names(pool.shape.accelerator) if pool.shape.accelerator else frozenset()
    return alternative.accelerator in names


def can_stand(alternative: Alternative, pool: Pool, held: str = "") -> bool:
    """True when a pool of its kind knows the alternative's levels of closeness, and what it comes to there,
    or inside a reservation of the shape `held`, makes whole groups."""
    asked = alternative.grouping
    if not has_level(pool, alternative.within):
        return False
    if asked is None:
        return True
    topology = slices.in_pool(alternative, pool)
    if topology is not None and topology.cubes > 1:
        return False  # its cubes stand together in a pod already
    if asked.level == HOST_LEVEL and not pool.is_shared:
        return asked.together == 1
    return has_level(pool, asked.level) and pieces_needed(alternative, pool, held)[0] % asked.together == 0


def has_level(pool: Pool, within: str | None) -> bool:
    """True when the pool knows the level of closeness, or the domain."""
    if within == HOST_LEVEL and pool.is_shared:
        return True
    if within is None or within == "pool" or within in pool.levels:
        return True
    return pool.domain_named(within) is not None


def shape_for(alternative: Alternative, pool: Pool, held: str = "") -> MachineShape:
    """The shape that the alternative's instances have in a pool of its kind: the one asked for, or the
    smallest that has as many accelerators, or the largest there is. Inside a reservation of the shape `held`
    none is larger than that."""
    topology = slices.in_pool(alternative, pool)
    if topology is not None:
        return slices.vm_shape(alternative, topology, pool)
    if alternative.shape:
        return pool.shape_named(alternative.shape)
    most = pool.piece_held(held or pool.shape.name).units
    served = [s for s in pool.shapes if pool.piece_held(s.name).units <= most]
    return next((s for s in served if s.accelerators >= alternative.count), served[-1])


def pieces_needed(alternative: Alternative, pool: Pool, held: str = "") -> tuple[int, Piece]:
    """How many pieces of which kind the alternative comes to in a pool of its kind, or inside a reservation
    of the shape `held` there."""
    topology = slices.in_pool(alternative, pool)
    if topology is not None:
        count, piece = slices.pieces(alternative, topology, pool)
        return count, grouped(piece, alternative, pool)
    shape = shape_for(alternative, pool, held)
    count = alternative.count if alternative.shape else -(-alternative.count // shape.accelerators)
    return count, grouped(pool.piece_held(shape.name), alternative, pool)


def grouped(piece: Piece, alternative: Alternative, pool: Pool) -> Piece:
    """The same pieces, standing together or apart as the alternative asks. Machines of whole hosts are on
    different hosts anyway."""
    asked = alternative.grouping
    if asked is None or (asked.level == HOST_LEVEL and not pool.is_shared):
        return piece
    return replace(piece, level=asked.level, together=asked.together, at_most=asked.at_most)


def machines_needed(alternative: Alternative, pool: Pool) -> int:
    """How many machines the alternative comes to in a pool of its kind."""
    count, piece = pieces_needed(alternative, pool)
    return count * piece.units // pool.piece_held(shape_for(alternative, pool).name).units


def candidates_inside(
    demand: Demand, fleet: Fleet, booking: Booking, reservation: Reservation
) -> tuple[Candidate, ...]:
    """Every alternative that could lie inside a reservation's booking, in order of preference. What is larger
    than each of the machines or slices that it holds is of another kind. What has no end of its own lasts to
    the end of a reservation that has none either."""
    pool, held = fleet.pool(booking.pool), reservation.shape
    overhead_s = pool.overheads.total_s
    found = []
    for index, alternative in enumerate(demand.alternatives):
        if not (is_of_kind(alternative, pool) and can_stand(alternative, pool, held)):
            continue
        if alternative.locations and pool not in fleet.pools_in(alternative.locations):
            continue
        count, piece = pieces_needed(alternative, pool, held)
        topology = slices.in_pool(alternative, pool)
        if topology is not None and not slices.fits_in(reservation, topology, pool):
            continue
        if topology is None and piece.units > slices.units_each(reservation, pool):
            continue
        endless = alternative.duration_s == OPEN_ENDED_S and reservation.is_open_ended
        until_end = endless or alternative.duration_s == UNTIL_END
        duration_s = booking.span.length_s - overhead_s if until_end else alternative.duration_s
        found.append(
            Candidate(
                alternative=index,
                pool=pool,
                count=count,
                piece=piece,
                shape=shape_for(alternative, pool, held).name,
                topology=topology,
                duration_s=duration_s,
                length_s=duration_s + overhead_s,
                within=alternative.within,
                near=alternative.near,
                inside=booking,
                until_end=until_end,
            )
        )
    return tuple(found)
