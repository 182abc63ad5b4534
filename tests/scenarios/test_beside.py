"""Work without accelerators beside the accelerators of the same hosts: a second pool over them."""

from __future__ import annotations

import pytest

from dws.declared import fleetfile
from dws.engine.commands import PlanMaintenance
from dws.model.errors import FailedPrecondition, InvalidArgument, NotFound
from dws.model.request import HostLossPolicy, RequestState
from dws.model.topology import Fleet
from tests.scenarios.world import MONDAY_9, OPERATOR, H, World

S = RequestState

FIRST = """
[[zones]]
name = "z1"
[[pools]]
name = "h100"
zone = "z1"
machine = "a3-highgpu-8g"
shared = true
hosts = 2
[[pools.blocks]]
name = "b1"
hosts = 1
[[pools.blocks]]
name = "b2"
hosts = 1
"""
BESIDE = """
[[pools]]
name = "h100-cpu"
zone = "z1"
machine = "e2-medium"
beside = "h100"
per_host = 3
price = 0.05
"""


def both() -> Fleet:
    return fleetfile.parse(FIRST + BESIDE)


def ends(world: World, name: str, machine: str, hosts: int) -> None:
    world.submit(name, hosts=hosts, machine=machine, hours=4, on_host_loss=HostLossPolicy.END)
    assert world.state(name) is S.ACTIVE


def test_cpu_work_runs_beside_accelerators_and_takes_none_of_them() -> None:
    """A small service would keep eight accelerators idle, or run on a host that somebody else's pool counts."""
    world = World(both())
    ends(world, "train", "a3-highgpu-8g", 2)
    ends(world, "web", "e2-medium", 6)
    assert set(world.hosts_of("web")) == set(world.hosts_of("train"))
    world.submit("more", hosts=1, machine="e2-medium", hours=1)
    assert world.state("more") is not S.ACTIVE
    assert "e2-medium" in world.reason("more")
    world.submit("close", hosts=3, machine="e2-medium", hours=1, within="block")
    world.release("web")
    world.advance(minutes=1)
    assert len(set(world.hosts_of("close"))) == 1
    world.check()


@pytest.mark.parametrize("name", ["h100-0001", "h100/h100-0001", "h100-cpu/h100-0001"])
def test_a_lost_host_takes_both(name: str) -> None:
    """Half of what ran on a dead host would be kept as running, and promised on for ever."""
    world = World(both())
    ends(world, "train", "a3-highgpu-8g", 2)
    ends(world, "web", "e2-medium", 4)
    told = world.hosts("DOWN", name)
    assert {a.request.name for a in told.affected} == {"train", "web"} and told.hosts == ("h100-0001",)
    world.advance(minutes=1)
    assert {world.state("train"), world.state("web")} == {S.FAILED}
    world.submit("next", hosts=4, machine="e2-medium", hours=1)
    assert world.state("next") is not S.ACTIVE, "only one host is left"
    world.check()
    world.hosts("READY", name)
    world.advance(minutes=1)
    assert world.state("next") is S.ACTIVE
    world.check()


def test_what_the_backend_says_of_a_host_is_so_for_both() -> None:
    """A host that its backend lost would go on in the pool that the report did not name."""
    world = World(both())
    world.backend.host_down("h100-cpu", 1)  # type: ignore[attr-defined]
    world.advance(minutes=1)
    assert {(pool, place) for pool, place in world.engine.books.hosts} == {("h100", 1), ("h100-cpu", 1)}
    world.check()


def test_a_drained_host_takes_nothing_new_of_either() -> None:
    """A host could never be emptied: CPU work would go on arriving."""
    world = World(both())
    world.hosts("DRAINING", "h100-0002")
    ends(world, "three", "e2-medium", 3)
    assert set(world.hosts_of("three")) == {"h100-0001"}
    world.submit("one", hosts=1, machine="e2-medium", hours=1)
    assert world.state("one") is not S.ACTIVE
    world.check()


def test_maintenance_is_of_the_host() -> None:
    """CPU work would be promised on a host that is switched off by then."""
    world = World(both())
    plan = PlanMaintenance(
        name="fans", hosts=("h100-0001",), start=MONDAY_9 + H, end=MONDAY_9 + 3 * H, confirm=True
    )
    world.engine.plan_maintenance(OPERATOR, plan)
    assert [m.name for m in world.engine.maintenance(OPERATOR)] == ["fans"]
    world.submit("long", hosts=4, machine="e2-medium", hours=2)
    assert world.state("long") is not S.ACTIVE
    assert world.expected_start("long") == MONDAY_9 + 3 * H
    world.check()
    world.advance(hours=1)
    assert set(world.engine.books.hosts) == {("h100", 0), ("h100-cpu", 0)}
    world.check()
    world.advance(hours=2)
    assert world.state("long") is S.ACTIVE and not world.engine.books.hosts
    assert world.engine.maintenance(OPERATOR) == ()
    world.check()
    again = PlanMaintenance(
        name="disk", hosts=("h100-0002",), start=MONDAY_9 + 9 * H, end=MONDAY_9 + 10 * H, confirm=True
    )
    world.engine.plan_maintenance(OPERATOR, again)
    world.engine.cancel_maintenance(OPERATOR, "disk")
    with pytest.raises(NotFound):
        world.engine.cancel_maintenance(OPERATOR, "disk")
    world.check()


def test_maintenance_that_touches_only_what_is_beside_is_not_planned_unnoticed() -> None:
    """The window would be confirmed as touching nobody, and end a service."""
    world = World(both())
    ends(world, "web", "e2-medium", 6)
    plan = PlanMaintenance(
        name="fans", hosts=("h100-0001",), start=MONDAY_9 + H, end=MONDAY_9 + 3 * H, confirm=True
    )
    with pytest.raises(FailedPrecondition, match="touch web"):
        world.engine.plan_maintenance(OPERATOR, plan)


def test_a_pool_that_is_new_beside_another_has_its_hosts_as_they_are() -> None:
    """Work would be started on a host that has been dead since yesterday."""
    world = World(fleetfile.parse(FIRST))
    world.hosts("DOWN", "h100-0001")
    world.engine.apply_fleet(OPERATOR, both(), confirm=True)
    world.submit("four", hosts=4, machine="e2-medium", hours=1)
    assert world.state("four") is not S.ACTIVE
    ends(world, "three", "e2-medium", 3)
    assert set(world.hosts_of("three")) == {"h100-0002"}
    world.check()


def test_the_file_says_it_in_two_lines_and_is_written_as_it_is_read() -> None:
    """An exported fleet would list the hosts twice, which no file may."""
    fleet = both()
    assert fleetfile.parse(fleetfile.dump(fleet)) == fleet
    second = fleet.pools[1]
    assert (second.hosts, second.host_units, second.size) == (fleet.pools[0].hosts, 3, 6)
    assert [(d.level, d.first, d.size) for d in second.domains] == [("block", 0, 3), ("block", 3, 3)]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('beside = "h1000"', r"pools\[1\]\.beside|no pool 'h1000' with hosts of its own is declared above"),
        ('machine = "a3-highgpu-8g"', "has accelerators; what runs beside those of 'h100' has none"),
        ("per_host = 0", "per_host: 0 must lie between 1 and 32768"),
        ("per_host = 3\nhosts = 2", "hosts"),
    ],
)
def test_a_mistake_is_told_with_its_line(said: str, told: str) -> None:
    """A second pool would be laid over hosts that it does not have."""
    key = said.split(" ")[0]
    lines = [said if line.startswith(f"{key} =") else line for line in BESIDE.splitlines()]
    with pytest.raises(InvalidArgument, match=told) as refused:
        fleetfile.parse(FIRST + "\n".join(lines))
    assert refused.value.message.startswith("fleet.toml:")
