"""The largest free slice that people are told of, against every block of the mesh."""

from __future__ import annotations

import random
import re

import pytest

from dws.declared import fleetfile
from dws.model.topology import Pool
from dws.model.tpu import Topology
from dws.planner import slices

PLANES = [(2, 2), (2, 4), (4, 4), (4, 8), (8, 8)]
PARTS = [(2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4), (4, 4, 4)]


def a_pool(machine: str, topology: str, pods: int) -> Pool:
    text = f'[[zones]]\nname = "z"\n[[pools]]\nname = "p"\nzone = "z"\nmachine = "{machine}"\n'
    return fleetfile.parse(f'{text}topology = "{topology}"\npods = {pods}\n').pool("p")


def places(pool: Pool) -> list[tuple[int, ...]]:
    """(pod, row, column) or (pod, cube, x, y, z) of each host, as its name says."""
    return [tuple(map(int, re.findall(r"\d+", host))) for host in pool.hosts]


def largest(free: set[tuple[int, ...]], every: list[tuple[int, ...]], sides: list[tuple[int, ...]]) -> int:
    """Chips of the largest aligned block whose hosts are all free."""
    found = 0
    for shape in sides:
        first = len(every[0]) - len(shape)
        blocks: dict[tuple[int, ...], list[bool]] = {}
        for place in every:
            at = zip(place[first:], shape, strict=True)
            blocks.setdefault((*place[:first], *(p // s for p, s in at)), []).append(place in free)
        if any(all(hosts) for hosts in blocks.values()):
            found = Topology(shape).chips
    return found


@pytest.mark.parametrize("seed", range(150))
def test_no_larger_slice_is_free_than_the_one_that_is_told(seed: int) -> None:
    """Somebody would wait for a slice that is told to be free, or ask for a smaller one in vain."""
    dice = random.Random(seed)
    if dice.random() < 0.5:
        pool, sides = a_pool("ct5lp-hightpu-4t", "8x8", 2), PLANES
    else:
        pool, sides = a_pool("ct5p-hightpu-4t", "4x4x8", 2), PARTS
    share = dice.choice((0.05, 0.2, 0.5, 0.9))
    idle = [int(dice.random() > share) for _ in pool.hosts]
    if dice.random() < 0.5:  # a part of the line in one piece
        at, size = dice.randrange(len(idle)), dice.choice((4, 8, 16, 32))
        idle[at - at % size : at - at % size + size] = [1] * size
    every = places(pool)
    free = {place for place, units in zip(every, idle, strict=True) if units}
    expected = largest(free, every, sides)
    if expected == 64 and sides is PARTS:
        cubes = [[p in free for p in every if p[:2] == (pod, cube)] for pod in (1, 2) for cube in (1, 2)]
        whole = [all(hosts) for hosts in cubes]
        expected *= max(sum(whole[:2]), sum(whole[2:]), 1)
    told = slices.largest_free(pool, idle)
    assert (told.chips if told is not None else 0) == expected
