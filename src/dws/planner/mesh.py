"""Which machine of a slice stands where, and so which rank it has.

The hosts of a pod lie on a line on which every slice is an aligned run: a curve, not the rows that people and
programs count by. Ranks go slice by slice and, within one, row by row:

    on the line   0 1 4 5      ranks of a 4x8 slice   0 1 2 3      of machines with 2x2 chips
                  2 3 6 7                             4 5 6 7

In three dimensions machines are counted by x, then y, then z. The cubes of a slice are joined by switches, so
the first of them on the line is the first corner of the slice, wherever it stands in the pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dws.model import tpu
from dws.model.topology import POD_LEVEL, Pool
from dws.model.tpu import Topology

Machine = tuple[int, ...]
"""The units of one machine, ascending."""
Place = tuple[int, ...]


def ranked(pool: Pool, topology: Topology, machines: Sequence[Machine]) -> Iterator[Machine]:
    """The machines of slices of a topology in the order of their ranks; each slice is as many of them as the
    next. `machines` are in the order of the line, and make whole slices of the pool."""
    per_unit = pool.shape.accelerators // pool.host_units
    size = max(1, topology.chips // (len(machines[0]) * per_unit))
    for pod in _by_pod(pool, machines):
        for first in range(0, len(pod), size):
            one = pod[first : first + size]
            places = _places(topology, [m[0] * per_unit for m in one])
            yield from (machine for _, machine in sorted(zip(places, one, strict=True)))


def _by_pod(pool: Pool, machines: Sequence[Machine]) -> list[list[Machine]]:
    """The machines of each pod."""
    pods: dict[int, list[Machine]] = {}
    number = pool.domains_by_cell(POD_LEVEL)
    for machine in machines:
        pods.setdefault(number[pool.cell_of(machine[0])], []).append(machine)
    return list(pods.values())


def _places(topology: Topology, chips: list[int]) -> list[Place]:
    """Where machines of one slice stand in it, by their first chips on the line."""
    if len(topology.sides) == 2:
        return [tpu.place(2, chip) for chip in chips]
    within = [tpu.place(3, chip % tpu.CUBE) for chip in chips]
    if not topology.cubes:
        return within
    cubes = {cube: n for n, cube in enumerate(dict.fromkeys(chip // tpu.CUBE for chip in chips))}
    _, b, c = (side // 4 for side in topology.sides)
    corners = [(n // (b * c), n // c % b, n % c) for n in (cubes[chip // tpu.CUBE] for chip in chips)]
    return [
        tuple(4 * i + j for i, j in zip(corner, place, strict=True))
        for corner, place in zip(corners, within, strict=True)
    ]
