"""A fleet that is applied keeps what reservations count on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from dws.model.errors import FailedPrecondition
from dws.model.topology import Fleet, Zone
from dws.planner.options import PolicyOptions
from tests.scenarios.world import ANN, MONDAY_9, OPERATOR, H, World, a_gpu_pool, f2


def a_fleet(h100: Mapping[str, int], a100: int = 2) -> Fleet:
    pools = [a_gpu_pool("h100", sum(h100.values()), h100)] if h100 else []
    if a100:
        pools.append(a_gpu_pool("a100", a100, {"b3": a100}, machine="a2-highgpu-8g"))
    return Fleet(zones=(Zone(name="z1"),), pools=tuple(pools))


def a_world() -> World:
    world = World(f2(), PolicyOptions(warning_leads_s=()))
    world.reserve("r", hosts=3, start=MONDAY_9 + 5 * H, hours=2)
    return world


@pytest.mark.parametrize(
    "h100",
    [{}, {"b1": 2}, {"b1": 2, "b2": 1}, {"b1": 1, "b2": 3}, {"b2": 4}],
    ids=["gone", "a block less", "a host less", "moved", "one block"],
)
def test_a_pool_with_a_reservation_does_not_get_smaller(h100: dict[str, int]) -> None:
    """A booked window would lose its hosts by a change of a file."""
    world = a_world()
    before = world.everything()
    for confirm in (False, True):
        with pytest.raises(FailedPrecondition, match="pool h100 holds reservation 'r'"):
            world.engine.apply_fleet(OPERATOR, a_fleet(h100), confirm=confirm)
    assert world.everything() == before


@pytest.mark.parametrize("h100", [{"b1": 2, "b2": 3}, {"b1": 2, "b2": 2, "b4": 4}], ids=["a host", "a block"])
def test_a_pool_with_a_reservation_may_grow_at_its_end(h100: dict[str, int]) -> None:
    """A fleet could not be enlarged while anything is booked."""
    world = a_world()
    world.engine.apply_fleet(OPERATOR, a_fleet(h100), confirm=True)
    world.reserve("s", hosts=sum(h100.values()) - 3, start=MONDAY_9 + 5 * H, hours=2)
    world.check()


def test_another_pool_may_go_and_the_same_one_once_nothing_is_booked() -> None:
    """A reservation would keep hosts in the fleet that it has nothing to do with."""
    world = a_world()
    world.engine.apply_fleet(OPERATOR, a_fleet({"b1": 2, "b2": 2}, a100=0), confirm=True)
    world.engine.cancel_reservation(ANN, "p", "r")
    world.engine.apply_fleet(OPERATOR, a_fleet({"b1": 2}, a100=0), confirm=True)
    world.check()


def test_hosts_of_an_open_reservation_keep_their_place() -> None:
    """Work would run on with another host's name."""
    world = a_world()
    world.advance(hours=5)
    pool = a_gpu_pool("h100", 4, {"b1": 2, "b2": 2})
    hosts = ("new", *pool.hosts[1:])
    renamed = Fleet(zones=(Zone(name="z1"),), pools=(replace(pool, hosts=hosts),))
    with pytest.raises(FailedPrecondition, match="h100/h100-h1 would vanish or change position"):
        world.engine.apply_fleet(OPERATOR, renamed, confirm=True)

