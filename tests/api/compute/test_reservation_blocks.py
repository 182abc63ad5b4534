"""Blocks and sub-blocks of a reservation through the Compute door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dws.engine.commands import ChangeHosts
from dws.model.access import SYSTEM
from dws.model.topology import HostState
from tests.api.compute.test_reservations import ALL, HOUR, booked
from tests.api.served import MONDAY_9, Served, serving

FLEET = """\
[[zones]]
name = "us-central1-a"

[[pools]]
name = "a3"
zone = "us-central1-a"
machine = "a3-highgpu-8g"
hosts = 6

[[pools.blocks]]
name = "b1"
hosts = 4

[[pools.blocks.subblocks]]
name = "s1"
hosts = 2

[[pools.blocks.subblocks]]
name = "s2"
hosts = 2

[[pools.blocks]]
name = "b2"
hosts = 2
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Served]:
    """Four hosts in two sub-blocks of b1, two in b2; r1 has all of them."""
    with serving(tmp_path, fleet=FLEET) as server:
        booked(server, "r1", hosts=6)
        yield server


def blocks(world: Served, path: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.owner.get(f"{ALL}/r1/reservationBlocks{path}").json()["items"]
    return found


def test_where_a_reservation_lies_and_what_of_it_is_in_use(world: Served) -> None:
    """Whoever places work block by block (GKE, xpk) would not know where there is room."""
    inside = [{"accelerators": "h100:24", "duration": "1h", "within": "block"}]
    world.submit("inside", alternatives=inside, reservation="r1")
    b1, b2 = blocks(world)
    assert (b1["name"], b1["count"], b1["inUseCount"], b1["inUseHostCount"]) == ("b1", 4, 3, 3)
    assert (b1["reservationSubBlockCount"], b1["reservationSubBlockInUseCount"]) == (2, 2)
    assert (b2["name"], b2["count"], b2["inUseCount"], b2["reservationSubBlockCount"]) == ("b2", 2, 0, 0)
    assert b1["physicalTopology"] == {"cluster": "a3", "block": "b1"}
    assert b1["status"] == "READY"
    s1, s2 = blocks(world, "/b1/reservationSubBlocks")
    assert [(s["name"], s["count"], s["inUseCount"]) for s in (s1, s2)] == [("s1", 2, 2), ("s2", 2, 1)]
    assert s2["physicalTopology"] == {"cluster": "a3", "block": "b1", "subBlock": "s2"}
    one = f"{ALL}/r1/reservationBlocks/b1"
    for version in ("v1", "beta", "alpha"):
        seen = world.owner.get(one.replace("v1", version)).json()["resource"]
        assert (seen["name"], seen["inUseCount"]) == ("b1", 3)
    assert world.owner.get(one).json() == {"resource": b1}
    assert world.owner.get(f"{one}/reservationSubBlocks/s2").json() == {"resource": s2}
    assert blocks(world, "?filter=name=b2") == [b2]


def test_a_lost_host_degrades_its_block_alone(world: Served) -> None:
    """A health check would send work into the block with the broken host."""
    host = world.engine.fleet(SYSTEM).pools[0].pool.hosts[2]
    world.engine.change_hosts(
        SYSTEM, ChangeHosts(hosts=(host,), state=HostState.DOWN, reason="broken", confirm=True)
    )
    b1, b2 = blocks(world)
    assert b1["count"] == 4, "what is reserved stays reserved"
    assert b1["healthInfo"] == {
        "healthStatus": "DEGRADED",
        "healthySubBlockCount": 1,
        "degradedSubBlockCount": 1,
    }
    assert b2["healthInfo"]["healthStatus"] == "HEALTHY"
    s1, s2 = blocks(world, "/b1/reservationSubBlocks")
    assert s1["healthInfo"]["healthStatus"] == "HEALTHY"
    assert s2["healthInfo"] == {
        "healthStatus": "DEGRADED",
        "healthyHostCount": 1,
        "degradedHostCount": 1,
    }


def test_machines_that_share_hosts_are_counted_in_their_block(tmp_path: Path) -> None:
    """A fraction of a host would be counted as a host, or in the block of another."""
    shared = FLEET.replace("hosts = 6", "hosts = 6\nshared = true")
    with serving(tmp_path, fleet=shared) as world:
        booked(world, "r1", hosts=6)
        inside = [{"machine": "a3-highgpu-1g", "count": 3, "duration": "1h"}]
        world.submit("inside", alternatives=inside, reservation="r1")
        host = world.engine.fleet(SYSTEM).pools[0].pool.hosts[5]
        world.engine.change_hosts(
            SYSTEM, ChangeHosts(hosts=(host,), state=HostState.DOWN, reason="broken", confirm=True)
        )
        seen = {b["name"]: b for b in blocks(world)}
        assert sum(b["inUseCount"] for b in seen.values()) == 3
        assert sum(b["inUseHostCount"] for b in seen.values()) == 1
        assert [seen[name]["count"] for name in ("b1", "b2")] == [4, 2]
        assert [seen[name]["healthInfo"]["healthStatus"] for name in ("b1", "b2")] == ["HEALTHY", "DEGRADED"]


def test_there_are_none_before_the_start(fresh: Served) -> None:
    """A client would aim work at hosts that are not drawn yet, or the list be an error."""
    booked(fresh, "later", start=MONDAY_9 + HOUR)
    assert fresh.owner.get(f"{ALL}/later/reservationBlocks").json()["items"] == []
    for path in ("/later/reservationBlocks/b1", "/nothing/reservationBlocks"):
        assert fresh.owner.get(f"{ALL}{path}").status_code == 404
    booked(fresh, "now")
    (block,) = fresh.owner.get(f"{ALL}/now/reservationBlocks").json()["items"]
    below = f"{ALL}/now/reservationBlocks/{block['name']}/reservationSubBlocks"
    assert fresh.owner.get(below).json()["items"] == []
    assert fresh.owner.get(f"{below}/s1").status_code == 404
