"""TPU slices as pieces of a pod's line.

A slice below a cube, or of a plane, is one aligned run of hosts; one of several cubes is so many runs of a
cube each, anywhere within one pod; one smaller than a host is a fraction of it. What is asked for is a
topology and a type of chip, or a name such as `v5p-128`; a number of chips means the one slice that has as
many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from dws.model import catalog, tpu
from dws.model.demand import Alternative
from dws.model.errors import InvalidArgument
from dws.model.piece import Piece
from dws.model.reservation import Reservation
from dws.model.resources import MachineShape
from dws.model.topology import POD_LEVEL, Pool
from dws.model.tpu import Generation, Topology

VM_CHIPS: Final = 4
"""Chips of each machine of a slice of more than one host, where hosts have more."""


def wanted(alternative: Alternative) -> tuple[Generation, Topology] | None:
    """The generation and the topology asked for, None for what is no slice.

    Raises InvalidArgument, with the legal ones, for a topology or a name that is none.
    """
    accelerator = alternative.accelerator or _accelerator_of(alternative.shape)
    named = tpu.named(accelerator)
    if named is not None:
        generation, topology = named
        if not alternative.topology:
            return named
        asked = tpu.topology(generation, alternative.topology)
        if asked.chips != topology.chips:
            raise InvalidArgument(
                f"topology: '{asked}' has {asked.chips} chips, '{accelerator}' has {topology.chips}",
                field="topology",
            )
        return generation, asked
    found = tpu.generation_of(catalog.canonical_accelerator(accelerator) or accelerator)
    if found is not None and alternative.topology:
        return found, tpu.topology(found, alternative.topology)
    if alternative.topology:
        raise InvalidArgument(
            f"topology: '{alternative.topology}' goes with TPUs "
            f"({', '.join(g.name for g in tpu.GENERATIONS)}), not with "
            f"'{alternative.accelerator or alternative.shape}'",
            field="topology",
        )
    if found is not None and not alternative.shape:
        return found, tpu.of_size(found, alternative.count)
    return None


def number(alternative: Alternative) -> int:
    """How many slices are asked for: a number of chips is one."""
    is_told = alternative.topology or alternative.shape or tpu.named(alternative.accelerator)
    return alternative.count if is_told else 1


def smaller(alternative: Alternative, part: int) -> Alternative | None:
    """What is asked for in so many parts fewer slices, or as a slice of so many parts fewer chips; None when
    no slice has as few, or it is not a slice."""
    found = wanted(alternative)
    if found is None:
        return None
    generation, topology = found
    count = number(alternative)
    if count >= part:
        return replace(alternative, count=count // part)
    least = next((t for t in tpu.topologies(generation) if t.chips * part == topology.chips * count), None)
    return None if least is None else _of(alternative, generation, least, 1)


def of_other_kind(alternative: Alternative, topology: Topology, accelerator: str) -> Iterator[Alternative]:
    """As many slices of as many chips each of another type of TPU, where it has such slices."""
    generation = tpu.generation_of(accelerator)
    if generation is not None:
        same = (t for t in tpu.topologies(generation) if t.chips == topology.chips)
        yield from (_of(alternative, generation, t, number(alternative)) for t in islice(same, 1))


def _of(alternative: Alternative, generation: Generation, topology: Topology, count: int) -> Alternative:
    return replace(
        alternative, shape="", accelerator=generation.accelerator, topology=str(topology), count=count
    )


def in_pool(alternative: Alternative, pool: Pool) -> Topology | None:
    """The topology of the slices asked for that a pool of pods would serve; None for what is no slice, for
    what cannot be one, for another type of chip, and for one larger than a pod: a run of the line must not
    go on in the next pod."""
    if not pool.topology:
        return None
    try:
        found = wanted(alternative)
    except InvalidArgument:
        return None
    if found is None or found[0].accelerator != pool.shape.accelerator:
        return None
    return found[1] if _vm_shape(alternative, found[1], pool) is not None else None


def names_slice(alternative: Alternative) -> bool:
    """True when nothing but a slice will do, legal or not."""
    try:
        return bool(alternative.topology or tpu.named(alternative.accelerator))
    except InvalidArgument:
        return True


def vm_shape(alternative: Alternative, topology: Topology, pool: Pool) -> MachineShape:
    """The shape of the machines of a slice in a pool that serves it."""
    found = _vm_shape(alternative, topology, pool)
    assert found is not None, f"pool {pool.name} serves {topology}"
    return found


def _vm_shape(alternative: Alternative, topology: Topology, pool: Pool) -> MachineShape | None:
    """The machine asked for, or the documented one: one machine for what one host holds, else four chips
    each; the pool's own where its hosts are handed out whole."""
    per_host, fitting = pool.shape.accelerators, _fitting(topology, pool)
    if alternative.shape:
        return next((s for s in fitting if s.name == alternative.shape), None)
    usual = topology.chips if topology.chips <= per_host else VM_CHIPS
    return next((s for s in fitting if s.accelerators == usual), fitting[-1] if fitting else None)


def _fitting(topology: Topology, pool: Pool) -> list[MachineShape]:
    """The shapes of the pool that a slice can be made of: one machine, or several of four chips or more."""
    chips, per_host = topology.chips, pool.shape.accelerators
    if chips > per_host and chips % per_host:
        return []
    if chips > pool.largest_group(POD_LEVEL) * pool.unit_weight:
        return []  # two pods side by side are no larger one
    several = min(VM_CHIPS, per_host) if chips >= per_host else chips
    return [s for s in pool.shapes if several <= s.accelerators <= chips and chips % s.accelerators == 0]


def pieces(alternative: Alternative, topology: Topology, pool: Pool) -> tuple[int, Piece]:
    """How many pieces of which kind the slices asked for come to in a pool that serves them."""
    piece = piece_of(topology, pool)
    return number(alternative) * piece.together, piece


def piece_of(topology: Topology, pool: Pool) -> Piece:
    """The piece that a slice is in a pool of pods, or, where it has several, each of its cubes."""
    per_host, size = pool.shape.accelerators, pool.host_units
    if topology.chips < per_host:
        return Piece(size=topology.chips)
    if topology.cubes > 1:
        return Piece(span=tpu.CUBE // per_host, size=size, level=POD_LEVEL, together=topology.cubes)
    return Piece(span=topology.chips // per_host, size=size)


def served(pool: Pool) -> tuple[Topology, ...]:
    """The topologies that a pool of pods serves, the smallest first; those of several cubes left out, which
    are whatever whole cubes are free."""
    generation = tpu.generation_of(pool.shape.accelerator)
    assert generation is not None, f"pool {pool.name} has pods"
    small = (t for t in tpu.topologies(generation) if t.cubes < 2)
    return tuple(t for t in small if _fitting(t, pool))


def offered(pool: Pool) -> str:
    """What slices of a pool of pods there can be, for people: the smaller ones, and the largest."""
    small = [str(t) for t in served(pool)]
    largest = str(largest_free(pool, [cell.size for cell in pool.cells]))
    return ", ".join(small) + ("" if largest in small else f" and whole cubes up to {largest}")


def largest_free(
    pool: Pool, idle: Sequence[int], cells: Sequence[int] | None = None
) -> Topology | None:
    """The largest slice that a pod has room for when cell c of the pool has `idle[c]` units, or that some of
    its `cells` have; None when none has any."""
    generation = tpu.generation_of(pool.shape.accelerator)
    assert generation is not None, f"pool {pool.name} has pods"
    groups = pool.groups(POD_LEVEL) if cells is None else (cells,)
    found = [t for t in served(pool) if any(pool.pieces_in(g, idle, piece_of(t, pool)) for g in groups)]
    if not found or not found[-1].cubes:
        return found[-1] if found else None
    most = max(pool.pieces_in(g, idle, piece_of(found[-1], pool)) for g in groups)
    whole = [t for t in tpu.topologies(generation) if 0 < t.cubes <= most]
    return next(t for t in whole if t.chips == whole[-1].chips)  # the most compact of that size


def noun(shape: str, topology: Topology | str | None, pool: Pool, number: int = 2) -> str:
    """What so many machines of a shape, or slices of a topology, are called in a pool."""
    if topology:
        return f"{topology} slice" if number == 1 else f"{topology} slices"
    return pool.noun(shape)


# --- in reservations --------------------------------------------------------------------------


def reserved(reservation: Reservation, pool: Pool) -> tuple[int, Piece]:
    """How many pieces of which kind a reservation is booked as in its pool."""
    if not reservation.topology:
        return reservation.count, pool.piece_held(reservation.shape)
    piece = piece_of(_topology_of(reservation, pool), pool)
    return reservation.count * piece.together, piece


def units_each(reservation: Reservation, pool: Pool) -> int:
    """Units of each of the hosts, machines or slices that a reservation counts."""
    count, piece = reserved(reservation, pool)
    return count * piece.units // reservation.count


def cost_micros(reservation: Reservation, pool: Pool) -> int:
    """What a reservation costs over its window."""
    units = reservation.count * units_each(reservation, pool)
    return pool.price_micros_per_hour * pool.unit_weight * units * reservation.window.length_s // 3600


def fits_in(reservation: Reservation, topology: Topology, pool: Pool) -> bool:
    """True when a slice of a topology is always there in one of the reservation's slices, or hosts."""
    if not reservation.topology:
        return topology.chips <= pool.piece_held(reservation.shape).units * pool.unit_weight
    return topology.chips <= _topology_of(reservation, pool).chips


def as_reserved(reservation: Reservation, pool: Pool, count: int, duration_s: int) -> Alternative:
    """The demand for so many of what a reservation is of, in the same place."""
    is_named = not reservation.topology or catalog.shape(reservation.shape) is not None
    return Alternative(
        count=count,
        duration_s=duration_s,
        shape=reservation.shape if is_named else "",
        accelerator="" if is_named else pool.shape.accelerator,
        locations=(reservation.zone,),
        within=reservation.within,
        topology=reservation.topology,
    )


def _topology_of(reservation: Reservation, pool: Pool) -> Topology:
    generation = tpu.generation_of(pool.shape.accelerator)
    assert generation is not None, f"pool {pool.name} serves {reservation.topology}"
    return tpu.topology(generation, reservation.topology)


def _accelerator_of(shape: str) -> str:
    found = catalog.shape(shape)
    return found.accelerator if found is not None else ""
