"""Slices of TPU pods, declared in a fleet file, are planned as whole blocks of hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dws.declared import demo, fleetfile
from dws.model.catalog import canonical_accelerator
from dws.model.demand import Alternative, Demand
from dws.model.errors import InvalidArgument
from dws.model.topology import Fleet
from dws.planner import admission, advise, invariants
from dws.planner.backfill import plan
from dws.planner.options import PolicyOptions
from dws.planner.plan import Start
from dws.planner.snapshot import build
from tests.build import NOW, H, a_booking, a_request

TEXT = """
[[zones]]
name = "z"
[[pools]]
name = "v5e"
zone = "z"
machine = "ct5lp-hightpu-8t"
topology = "16x16"
shared = true
[[pools]]
name = "v5p"
zone = "z"
machine = "ct5p-hightpu-4t"
topology = "4x4x8"
pods = 2
"""


def the_fleet() -> Fleet:
    return fleetfile.parse(TEXT)


def hosts_of(accelerator: str, count: int = 1, topology: str = "") -> list[str]:
    fleet = the_fleet()
    wanted = Alternative(accelerator=accelerator, count=count, topology=topology, duration_s=H)
    seen = build(fleet, queue=[a_request(1, wanted)])
    made = plan(seen, PolicyOptions(), NOW)
    invariants.check(made, seen)
    start = next(d for d in made.decisions if isinstance(d, Start))
    pool = fleet.pool(start.placement.pool)
    return [pool.hosts[pool.host_of(u)] for p in start.placement.parts for u in p.units]


def test_a_pod_is_written_as_it_is_read() -> None:
    """A fleet with pods changes when it is exported and applied again."""
    fleet = the_fleet()
    assert fleetfile.parse(fleetfile.dump(fleet)) == fleet
    assert [len(p.hosts) for p in fleet.pools] == [32, 64]


def test_hosts_are_named_row_by_row() -> None:
    """The operator's names are put on the wrong hosts of the mesh."""
    text = TEXT.replace('topology = "16x16"', 'topology = "4x8"\nhosts = ["a", "b", "c", "d"]')
    fleet = fleetfile.parse(text)
    assert fleet.pool("v5e").hosts == ("a", "c", "b", "d")
    assert fleetfile.parse(fleetfile.dump(fleet)) == fleet


@pytest.mark.parametrize(
    ("accelerator", "count", "topology", "hosts"),
    [
        ("v5litepod-1", 1, "", 1),
        ("v5e", 1, "2x2", 1),
        ("v5e", 1, "2x4", 1),
        ("v5litepod-16", 1, "", 2),
        ("v5e", 32, "", 4),
        ("v5e", 2, "4x8", 8),
        ("v5p-128", 1, "", 16),
        ("v5p", 1, "2x2x4", 4),
        ("v5p", 2, "4x4x8", 64),
    ],
)
def test_a_slice_is_so_many_hosts(accelerator: str, count: int, topology: str, hosts: int) -> None:
    """A slice gets fewer or more hosts than its topology has."""
    assert len(set(hosts_of(accelerator, count, topology))) == hosts


def test_a_slice_of_two_cubes_lies_in_one_pod() -> None:
    """Cubes of different pods, which no optical switch joins, are handed out as one slice."""
    assert len({host[:5] for host in hosts_of("v5p", 1, "4x4x8")}) == 1


def test_one_host_of_a_pod_comes_from_a_cube_that_is_in_use() -> None:
    """The smallest slice would break a whole cube, beside one that is broken already."""
    fleet = the_fleet()
    pool = fleet.pool("v5p")
    seen = build(
        fleet,
        bookings=[a_booking(9, {16: (16,)}, pool="v5p", end=NOW + 9 * H)],
        queue=[a_request(1, Alternative(accelerator="v5p", count=1, topology="2x2x1", duration_s=H))],
    )
    (start,) = (d for d in plan(seen, PolicyOptions(), NOW).decisions if isinstance(d, Start))
    (unit,) = (u for p in start.placement.parts for u in p.units)
    assert pool.hosts[unit].startswith("v5p-1-c002")


def test_a_4x4_is_a_square() -> None:
    """The hosts of a slice are not neighbours."""
    assert set(hosts_of("v5litepod-16")) == {"v5e-1-r00-c00", "v5e-1-r02-c00"}


def test_j03_an_impossible_slice_is_refused_with_the_legal_ones() -> None:
    """What can never be built is queued, or refused without a hint."""
    for accelerator, topology, told in (
        ("v5e", "3x3", "it has 1x1"),
        ("v5e", "1x8", "of 8 chips it has 2x4"),
        ("h100", "4x4", "goes with TPUs"),
        ("v5p-100", "", "near are"),
        ("v6e", "4x4", "no pod of this fleet"),
        ("v5p", "4x8x8", "no pod of this fleet"),
    ):
        wanted = Alternative(accelerator=accelerator, count=1, topology=topology, duration_s=H)
        with pytest.raises(InvalidArgument, match=told):
            admission.check(Demand(alternatives=(wanted,)), the_fleet(), PolicyOptions(), NOW)


def test_a_slice_of_several_machines_has_four_chips_in_each_or_a_host() -> None:
    """A slice could come as sixteen machines of a chip, which no program is started on."""
    fleet = the_fleet()
    options = PolicyOptions()
    for shape, topology, is_legal in (
        ("ct5lp-hightpu-1t", "4x4", False),
        ("ct5lp-hightpu-1t", "2x2", False),
        ("ct5lp-hightpu-1t", "1x1", True),
        ("ct5lp-hightpu-4t", "2x2", True),
        ("ct5lp-hightpu-4t", "2x4", True),
        ("ct5lp-hightpu-8t", "2x4", True),
        ("ct5lp-hightpu-4t", "8x8", True),
        ("ct5lp-hightpu-8t", "2x2", False),
    ):
        wanted = Demand(alternatives=(Alternative(shape=shape, topology=topology, count=1, duration_s=H),))
        if is_legal:
            admission.check(wanted, fleet, options, NOW)
        else:
            with pytest.raises(InvalidArgument, match="no pod of this fleet serves"):
                admission.check(wanted, fleet, options, NOW)


def test_the_bound_on_instances_counts_the_machines_of_a_slice() -> None:
    """One slice of sixteen machines would pass where sixteen machines do not."""
    options = PolicyOptions(instances_max=15)
    for wanted in (
        Alternative(accelerator="v5p-128", count=1, duration_s=H),
        Alternative(accelerator="v5litepod-64", count=1, duration_s=H),
        Alternative(accelerator="v5e", count=4, topology="4x4", duration_s=H),
    ):
        with pytest.raises(InvalidArgument, match="means 16 instances, at most 15"):
            admission.check(Demand(alternatives=(wanted,)), the_fleet(), options, NOW)


def test_nobody_who_wants_gpus_is_offered_tpus() -> None:
    """A quote could name what the program does not run on, because it is free and cheap."""
    fleet = demo.demo_fleet()
    for accelerator, kinds in (("h100", {"a100"}), ("v5p", {"v5e", "v6e"})):
        mine = next(p for p in fleet.pools if p.shape.accelerator == canonical_accelerator(accelerator))
        shut = replace(
            fleet,
            pools=tuple(replace(p, unavailable="" if p.shape != mine.shape else "no power") for p in fleet.pools),
        )
        wanted = Demand(alternatives=(Alternative(accelerator=accelerator, count=16, duration_s=H),))
        told = advise.quote(build(shut), PolicyOptions(), NOW, wanted, project="p", priority=0)
        offered = {fleet.pool(o.pool).shape.accelerator for o in told.options}
        assert offered == {canonical_accelerator(kind) for kind in kinds}


def test_a_slice_is_never_larger_than_its_pod() -> None:
    """A plane is put together of two small pods, which no link joins."""
    fleet = fleetfile.parse(TEXT.replace('topology = "16x16"', 'topology = "4x4"\npods = 2'))
    for accelerator, topology, count in (("v5e", "4x8", 1), ("v5litepod-32", "", 1), ("v5e", "", 32)):
        wanted = Alternative(accelerator=accelerator, count=count, topology=topology, duration_s=H)
        with pytest.raises(InvalidArgument, match=r"no pod of this fleet serves '.*v5e has .*, 4x4\)"):
            admission.check(Demand(alternatives=(wanted,)), fleet, PolicyOptions(), NOW)
        seen = build(fleet, queue=[a_request(1, wanted)])
        assert not plan(seen, PolicyOptions(), NOW).decisions
