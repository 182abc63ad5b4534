"""Machine types through the Compute door: everything a zone serves, and nothing else, can be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.compute.test_instances import VMS, ZONE
from tests.api.served import Served, serving

FLEET = """\
[[zones]]
name = "us-central1-a"

[[pools]]
name = "a3"
zone = "us-central1-a"
machine = "a3-highgpu-8g"
hosts = 2
shared = true

[[pools]]
name = "v5e"
zone = "us-central1-a"
machine = "ct5lp-hightpu-4t"
topology = "4x4"
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Served]:
    """Two hosts that are shared by parts of them, and a TPU pod of four hosts."""
    with serving(tmp_path, fleet=FLEET) as server:
        yield server


def test_parts_of_shared_hosts_and_tpu_machines_are_listed(world: Served) -> None:
    """Terraform and SkyPilot look a type up before they use it: what is there could not be asked for."""
    found = {each["name"]: each for each in world.owner.get(f"{ZONE}/machineTypes").json()["items"]}
    assert list(found) == sorted(found)
    parts = {f"a3-highgpu-{n}g" for n in (1, 2, 4, 8)}
    assert parts <= set(found) and "ct5lp-hightpu-4t" in found
    built_in = [{"guestAcceleratorType": "nvidia-h100-80gb", "guestAcceleratorCount": 1}]
    assert found["a3-highgpu-1g"]["accelerators"] == built_in
    assert world.owner.get(f"{ZONE}/machineTypes/a3-highgpu-2g").json() == found["a3-highgpu-2g"]
    (h100,) = [
        each
        for each in world.owner.get(f"{ZONE}/acceleratorTypes").json()["items"]
        if each["name"] == "nvidia-h100-80gb"
    ]
    assert h100["maximumCardsPerInstance"] == 8


def test_every_type_that_is_listed_can_be_used(world: Served) -> None:
    """A type would be shown that no instance can be of."""
    types = [each["name"] for each in world.owner.get(f"{ZONE}/machineTypes").json()["items"]]
    for name in types:
        body = {"name": f"of-{name}", "machineType": f"zones/us-central1-a/machineTypes/{name}"}
        assert world.owner.post(VMS, json=body).status_code == 200
        world.advance("5m")
        assert world.owner.get(f"{VMS}/of-{name}").json()["status"] == "RUNNING", name
        world.owner.delete(f"{VMS}/of-{name}")
        world.advance("5m")


def test_eight_parts_share_a_host(world: Served) -> None:
    """A part of a host would take all of it: a fleet of two hosts would hold two small machines."""
    body = {
        "count": "12",
        "namePattern": "part-##",
        "instanceProperties": {"machineType": "a3-highgpu-1g"},
    }
    assert world.owner.post(f"{ZONE}/instances/bulkInsert", json=body).status_code == 200
    world.advance("5m")
    found = world.owner.get(VMS).json()["items"]
    assert [each["status"] for each in found] == ["RUNNING"] * 12
    hosts = {each["resourceStatus"]["physicalHost"] for each in found}
    assert len(hosts) == 2
