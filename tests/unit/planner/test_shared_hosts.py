"""The planner's loop where hosts are shared: which shape takes how much of which host."""

from __future__ import annotations

import random

import pytest

from dws.model.catalog import MACHINE_TYPES
from dws.model.demand import Alternative
from dws.model.errors import InvalidArgument
from dws.model.piece import Piece
from dws.model.request import CapacityRequest
from dws.model.topology import Domain, Fleet, HostState, Pool, Zone
from dws.planner import invariants
from dws.planner.backfill import plan
from dws.planner.options import PolicyOptions
from dws.planner.plan import Book, Start
from dws.planner.resolve import pieces_needed
from dws.planner.snapshot import FleetSnapshot, build
from tests.build import NOW, H, a_booking, a_request, a_status, an_alternative

FRACTIONS = tuple(MACHINE_TYPES[f"a3-highgpu-{k}g"] for k in (1, 2, 4))


def a_shared_pool(hosts: int = 4) -> Pool:
    """Hosts with eight accelerators each, two to a block."""
    blocks = tuple(Domain(level="block", name=f"b{i}", first=16 * i, size=16) for i in range(hosts // 2))
    return Pool(
        name="h100",
        zone="z1",
        shape=MACHINE_TYPES["a3-highgpu-8g"],
        backend="simulated",
        hosts=tuple(f"h{i}" for i in range(hosts)),
        domains=blocks,
        host_units=8,
        fractions=FRACTIONS,
    )


POOL = a_shared_pool()
FLEET = Fleet(zones=(Zone(name="z1"),), pools=(POOL,))


def of_shape(number: int, gpus: int, count: int = 1, hours: int = 1, within: str | None = None) -> CapacityRequest:
    shape = f"a3-highgpu-{gpus}g"
    return a_request(number, Alternative(shape=shape, count=count, duration_s=hours * H, within=within))


def hosts_of(seen: FleetSnapshot) -> dict[int, list[int]]:
    """For each request that starts, the host of each accelerator it gets."""
    made = plan(seen, PolicyOptions(), NOW)
    invariants.check(made, seen)
    return {
        d.request: [u // 8 for p in d.placement.parts for u in p.units]
        for d in made.decisions
        if isinstance(d, Start)
    }


def test_two_small_ones_share_a_host() -> None:
    """Two 2-GPU requests would each take a whole host away from 8-GPU work."""
    whole = [of_shape(n, 8) for n in (3, 4, 5)]
    got = hosts_of(build(FLEET, queue=[of_shape(1, 2), of_shape(2, 2), *whole]))
    assert set(got) == {1, 2, 3, 4, 5}
    assert set(got[1]) == set(got[2]) and len(got[1]) == 2


@pytest.mark.parametrize(("gpus", "count"), [(1, 6), (1, 3), (2, 2)])
def test_several_small_ones_go_where_some_run_already(gpus: int, count: int) -> None:
    """Six single GPUs would all be put on a free host, beside two that have three left each."""
    five = {cell: tuple(range(8 * cell, 8 * cell + 5)) for cell in (1, 3)}
    seen = build(FLEET, bookings=[a_booking(9, five, end=NOW + 9 * H)], queue=[of_shape(1, gpus, count=count)])
    assert set(hosts_of(seen)[1]) <= {1, 3}


def test_free_gpus_of_different_hosts_do_not_add_up() -> None:
    """A 4-GPU machine could be promised from two GPUs here and two there, which no machine can be."""
    six = {cell: tuple(range(8 * cell, 8 * cell + 6)) for cell in range(4)}
    seen = build(FLEET, bookings=[a_booking(9, six, end=NOW + 2 * H)], queue=[of_shape(1, 4), of_shape(2, 2, count=4)])
    made = {d.request: d for d in plan(seen, PolicyOptions(), NOW).decisions}
    assert isinstance(made[1], Book) and made[1].placement.start == NOW + 2 * H
    assert isinstance(made[2], Start), "four of two fit, one on each host"


def test_a_host_that_is_down_takes_all_its_accelerators_out() -> None:
    """Fractions could be started on a dead host, because only the first of its units was known to be out."""
    down = [a_status(host, HostState.DOWN) for host in (0, 1, 2)]
    got = hosts_of(build(FLEET, hosts=down, queue=[of_shape(n, 2) for n in range(1, 9)]))
    assert len(got) == 4 and {h for hosts in got.values() for h in hosts} == {3}


def test_all_within_one_host_or_block() -> None:
    """Machines that must be close together could be spread over the pool."""
    half = {cell: tuple(range(8 * cell, 8 * cell + 4)) for cell in (0, 1, 2)}
    seen = build(FLEET, bookings=[a_booking(9, half)], queue=[of_shape(1, 2, count=3, within="host")])
    assert hosts_of(seen) == {1: [3] * 6}
    got = hosts_of(build(FLEET, queue=[of_shape(1, 8, count=2, within="block")]))
    assert sorted({h // 2 for h in got[1]}) in ([0], [1]) and len(got[1]) == 16


@pytest.mark.parametrize(
    ("gpus", "count", "size"), [(1, 1, 1), (2, 1, 2), (3, 1, 4), (5, 1, 8), (8, 1, 8), (9, 2, 8), (16, 2, 8)]
)
def test_a_number_of_accelerators_picks_the_smallest_shape_that_has_them(gpus: int, count: int, size: int) -> None:
    """`h100:2` could take a whole host, or `h100:3` less than it needs."""
    assert pieces_needed(an_alternative(gpus=gpus), POOL) == (count, Piece(size=size))


def test_fractions_of_what_is_not_shared_are_refused() -> None:
    """A fleet could be declared that promises parts of hosts that are handed out whole."""
    with pytest.raises(InvalidArgument):
        Pool(name="p", zone="z", shape=POOL.shape, backend="b", hosts=("h",), fractions=FRACTIONS)
    with pytest.raises(InvalidArgument):
        Pool(name="p", zone="z", shape=POOL.shape, backend="b", hosts=("h",), host_units=3)


@pytest.mark.parametrize("seed", range(3))
def test_any_mix_is_planned_without_breaking_an_invariant(seed: int) -> None:
    """Some mix of shapes could be overbooked, torn over hosts, or make the planner fail."""
    rng = random.Random(seed)
    for _ in range(60):
        queue = [
            of_shape(n, rng.choice((1, 2, 4, 8)), rng.randint(1, 3), rng.randint(1, 4), rng.choice((None, "block")))
            for n in range(1, rng.randint(2, 25))
        ]
        down = [a_status(host, HostState.DOWN) for host in range(4) if rng.random() < 0.15]
        seen = build(FLEET, hosts=down, queue=queue)
        asked = {r.id: int(r.demand.alternatives[0].shape[-2]) for r in queue}
        for request, hosts in hosts_of(seen).items():
            assert all(hosts.count(h) % asked[request] == 0 for h in hosts), "whole machines on each host"
