"""Where the machines of a slice stand in it, and so their ranks."""

from __future__ import annotations

import re

import pytest

from dws.declared import fleetfile
from dws.model.topology import Pool
from dws.model.tpu import Topology
from dws.planner import mesh

NAMES = {2: re.compile(r"-r(\d+)-c(\d+)"), 3: re.compile(r"-c(\d+)-x(\d)y(\d)z(\d)")}


def a_pod(machine: str, topology: str, pods: int = 1, *, shared: bool = False) -> Pool:
    text = f'[[zones]]\nname = "z"\n[[pools]]\nname = "p"\nzone = "z"\nmachine = "{machine}"\n'
    text += f'topology = "{topology}"\npods = {pods}\nshared = {str(shared).lower()}\n'
    return fleetfile.parse(text).pool("p")


def ranked(pool: Pool, sides: tuple[int, ...], units: range, size: int = 1) -> list[tuple[int, ...]]:
    """What stands in the names of the hosts, in the order of ranks."""
    machines = [tuple(units[i : i + size]) for i in range(0, len(units), size)]
    found = mesh.ranked(pool, Topology(sides), machines)
    pattern = NAMES[len(sides)]
    return [tuple(map(int, pattern.search(pool.hosts[pool.host_of(m[0])]).groups())) for m in found]  # type: ignore[union-attr]


@pytest.mark.parametrize("first", [0, 8, 40])
def test_a_plane_is_counted_row_by_row(first: int) -> None:
    """Neighbours by rank would not be neighbours in the mesh, and collectives would take the long way."""
    pool = a_pod("ct5lp-hightpu-4t", "16x16")
    places = ranked(pool, (4, 8), range(first, first + 8))
    row, column = places[0]
    assert places == [(row + r, column + c) for r in (0, 2) for c in (0, 2, 4, 6)]


def test_two_machines_of_one_host_are_counted_by_their_own_places() -> None:
    """Both machines of a host would have ranks side by side, whatever row they begin."""
    pool = a_pod("ct5lp-hightpu-8t", "4x4", shared=True)
    machines = [tuple(range(i, i + 4)) for i in range(0, 16, 4)]
    found = list(mesh.ranked(pool, Topology((4, 4)), machines))
    assert [(pool.hosts[pool.host_of(m[0])][-3:], m[0] % 8) for m in found] == [
        ("c00", 0), ("c00", 4), ("c00", 0), ("c00", 4),
    ]  # fmt: skip
    assert [pool.host_of(m[0]) for m in found] == [0, 0, 1, 1]
    assert ranked(pool, (4, 4), range(16), size=4) == [(0, 0), (0, 0), (2, 0), (2, 0)]


def test_cubes_are_put_together_in_the_order_of_the_line_and_counted_by_x_y_z() -> None:
    """Ranks of a slice of several cubes would run through one cube after the other."""
    pool = a_pod("ct5p-hightpu-4t", "4x8x8")
    places = ranked(pool, (4, 4, 8), range(16, 48))
    assert len(places) == 32
    assert places[:8] == [(2, 0, 0, z) for z in range(4)] + [(3, 0, 0, z) for z in range(4)]
    assert places[8:12] == [(2, 0, 2, z) for z in range(4)]
    assert places[16][1:] == (2, 0, 0)


def test_slices_come_one_after_the_other_and_each_in_one_pod() -> None:
    """The machines of two slices would be mixed, or a slice would have cubes of two pods."""
    pool = a_pod("ct5p-hightpu-4t", "4x4x8", pods=3)
    units = [*range(32), *range(64, 96)]
    found = list(mesh.ranked(pool, Topology((4, 4, 8)), [(u,) for u in units]))
    assert {m[0] for m in found[:32]} == set(range(32))
    assert {m[0] for m in found[32:]} == set(range(64, 96))
    small = list(mesh.ranked(pool, Topology((2, 2, 2)), [(u,) for u in (4, 5, 8, 9)]))
    assert [{m[0] for m in small[:2]}, {m[0] for m in small[2:]}] == [{4, 5}, {8, 9}]
