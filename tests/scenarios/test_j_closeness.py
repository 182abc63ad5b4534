"""Group J: machines that stand together, apart, or as close as they can."""

from __future__ import annotations

from collections import Counter

import pytest

from dws.declared import fleetfile
from dws.model.demand import Alternative, Grouping
from dws.model.errors import InvalidArgument, NeverFits
from dws.model.request import HostLossPolicy, RequestState
from dws.model.topology import Fleet
from tests.scenarios.world import H, World, f1

S = RequestState

RACKS = """
[[zones]]
name = "z1"
[[pools]]
name = "gb200"
zone = "z1"
machine = "a3-highgpu-8g"
hosts = 12
levels = ["block", "rack"]
""" + "".join(
    f'[[pools.blocks]]\nname = "b{b}"\nhosts = 6\n'
    + "".join(f'[[pools.blocks.racks]]\nname = "r{b}{r}"\nhosts = 3\n' for r in (1, 2))
    for b in (1, 2)
)
SHARED = """
[[zones]]
name = "z1"
[[pools]]
name = "h100"
zone = "z1"
machine = "a3-highgpu-8g"
shared = true
hosts = 4
"""


def racks() -> Fleet:
    """Four racks of three hosts, two in each block."""
    return fleetfile.parse(RACKS)


def hosts(
    count: int, grouping: Grouping | None = None, machine: str = "a3-highgpu-8g", **more: object
) -> tuple[Alternative, ...]:
    return (Alternative(shape=machine, count=count, duration_s=2 * H, grouping=grouping, **more),)  # type: ignore[arg-type]


def by_domain(world: World, name: str, level: str) -> Counter[str]:
    pool = world.engine.books.fleet.pools[0]
    places = (pool.host_named(host) for host in world.hosts_of(name))
    return Counter(pool.domain_of(place, level) for place in places if place is not None)


def test_j01_hosts_of_one_rack_are_counted_by_rack() -> None:
    """O-J01 a level further down: a rack of three with one taken could be given out as three free hosts."""
    world = World(racks())
    for rack in range(4):
        world.submit(f"one{rack}", alternatives=hosts(1, Grouping(level="rack", together=1, at_most=1)))
        world.submit(f"rest{rack}", alternatives=hosts(2, within="rack"))
    for rack in range(4):
        world.release(f"one{rack}")
    world.submit("x", alternatives=hosts(3, within="rack"))
    assert world.state("x") is not S.ACTIVE
    assert "NO_GROUP_WITH_ENOUGH_FREE" in world.reason("x") and "'zone_free': 4" in world.reason("x")
    assert world.submit("two", alternatives=hosts(2)).state is S.ACTIVE
    world.check()


def test_j01_apart_is_at_most_so_many_in_each_domain() -> None:
    """Replicas that must survive the loss of a rack could be put into one."""
    world = World(racks())
    world.submit("spread", alternatives=hosts(4, Grouping(level="rack", at_most=1)))
    assert by_domain(world, "spread", "rack") == Counter({"r11": 1, "r12": 1, "r21": 1, "r22": 1})
    world.submit("pairs", alternatives=hosts(4, Grouping(level="rack", at_most=2), within="block"))
    assert sorted(by_domain(world, "pairs", "rack").values()) == [2, 2]
    assert len(by_domain(world, "pairs", "block")) == 1
    world.submit("waits", alternatives=hosts(3, Grouping(level="rack", at_most=1)))
    assert world.state("waits") is not S.ACTIVE
    told = world.reason("waits")
    assert "at most {at_most} in each {group_level}" in told and "'best': 2" in told and "'need': 3" in told
    with pytest.raises(NeverFits, match=r"asked for 5 hosts, at most 1 in each rack; gb200 has room for 4"):
        world.submit("five", alternatives=hosts(5, Grouping(level="rack", at_most=1)))
    world.check()


def test_j01_groups_are_together_and_all_of_them_near() -> None:
    """Pipelines of two hosts in one rack each could be torn, or lie in different blocks."""
    world = World(racks())
    twos = Grouping(level="rack", together=2)
    world.submit("pairs", alternatives=hosts(4, twos, within="block"))
    assert sorted(by_domain(world, "pairs", "rack").values()) == [2, 2]
    assert len(by_domain(world, "pairs", "block")) == 1
    with pytest.raises(InvalidArgument, match="3 do not come in groups of 2 in one rack"):
        world.submit("odd", alternatives=hosts(3, twos))
    with pytest.raises(NeverFits, match="asked for 6 hosts, each 2 in one rack, all in one block; the largest block of gb200 has room for 4"):
        world.submit("six", alternatives=hosts(6, twos, within="block"))
    with pytest.raises(InvalidArgument, match=r"grouping: no pool that fits has a level 'row' \(they have: block"):
        world.submit("row", alternatives=hosts(2, Grouping(level="row", at_most=1)))
    world.check()


def test_j06_near_stands_as_close_as_it_can_and_starts_no_later() -> None:
    """A gang that would like one rack could be spread although a rack is free, or wait for one."""
    world = World(racks())
    world.submit("taken", alternatives=hosts(2, Grouping(level="rack", at_most=1), within="block"))
    world.submit("plain", alternatives=hosts(2, near=True))
    assert len(by_domain(world, "plain", "rack")) == 1
    assert world.submit("three", alternatives=hosts(3, near=True)).state is S.ACTIVE
    assert len(by_domain(world, "three", "rack")) == 1
    five = world.submit("five", alternatives=hosts(5, near=True))
    assert five.state is S.ACTIVE, "a wish does not wait"
    other = World(racks())
    other.submit("one", alternatives=hosts(1, within="block/b1"))
    other.submit("there", alternatives=hosts(2, near=True, within="block/b2"))
    assert by_domain(other, "there", "block") == Counter({"b2": 2}), "near is inside what is named"
    assert len(by_domain(other, "there", "rack")) == 1
    world.check()


def test_fractions_stand_apart_on_different_hosts() -> None:
    """Two halves of a host would be lost together although their owner asked for different hosts."""
    world = World(fleetfile.parse(SHARED))
    apart = Grouping(level="host", at_most=1)
    world.submit("small", alternatives=hosts(3, apart, machine="a3-highgpu-2g"))
    assert len(set(world.hosts_of("small"))) == 3
    whole = World(racks())
    assert whole.submit("whole", alternatives=hosts(2, apart)).state is S.ACTIVE, "hosts are different anyway"
    world.check()


def test_a_spare_stands_as_the_lost_one_did() -> None:
    """In place of a lost host one in another's rack would be taken, and a later loss take both."""
    world = World(racks())
    spread = hosts(3, Grouping(level="rack", at_most=1))
    world.submit("spread", alternatives=spread, on_host_loss=HostLossPolicy.REPLACE)
    world.advance(minutes=1)
    pairs = hosts(4, Grouping(level="rack", together=2), within="block")
    world.submit("pairs", alternatives=pairs, on_host_loss=HostLossPolicy.REPLACE)
    world.advance(minutes=1)
    world.hosts("DOWN", world.hosts_of("spread")[0])
    assert max(by_domain(world, "spread", "rack").values()) == 1 and len(world.hosts_of("spread")) == 3
    world.check()
    lost = world.hosts_of("pairs")[0]
    world.hosts("DOWN", lost)
    if world.state("pairs") is S.ACTIVE:
        assert sorted(by_domain(world, "pairs", "rack").values()) == [2, 2]
    world.check()


def test_cubes_are_not_grouped_twice() -> None:
    """Two rules about the same pods would be accepted and one of them not kept."""
    text = SHARED.replace("a3-highgpu-8g", "ct5p-hightpu-4t").replace("shared = true\nhosts = 4", 'topology = "4x4x8"')
    world = World(fleetfile.parse(text))
    cubes = Alternative(
        accelerator="v5p", topology="4x4x8", count=1, duration_s=H, grouping=Grouping(level="cube", at_most=1)
    )
    with pytest.raises(InvalidArgument, match="a 4x4x8 slice is 2 cubes that stand together in a pod already"):
        world.submit("cubes", alternatives=(cubes,))


def test_work_stands_in_the_very_block_that_it_names() -> None:
    """It would stand in another; or a spare for it, when a host of its block is lost."""
    world = World(f1())
    world.submit("long", hosts=1, hours=5, within="block/b2", on_host_loss=HostLossPolicy.REPLACE)
    world.submit("both", hosts=2, hours=1, within="block/b2")
    assert [host[-1] for host in world.hosts_of("long")] == ["3"]
    reason = world.engine.forecast()[world.request("both").id].reason
    assert (reason.facts["where"], reason.facts["best"], reason.facts["total"]) == ("b2 of h100", 1, 2)
    world.hosts("DOWN", world.hosts_of("long")[0])
    world.advance(minutes=1)
    assert [host[-1] for host in world.hosts_of("long")] == ["4"]
    world.hosts("DOWN", world.hosts_of("long")[0])
    world.advance(minutes=1)
    assert world.state("long") is S.FAILED, "what is free in the other block is no spare"
    with pytest.raises(InvalidArgument, match="no pool that fits has a level 'block/b3'"):
        world.submit("nowhere", hosts=1, within="block/b3")
    world.check()
