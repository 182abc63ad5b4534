"""The real gcloud against the Compute door: what it prints is what the fleet has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.served import Served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="not run: gcloud not found"),
]

Gcloud = Callable[..., Any]


@pytest.fixture
def gcloud(served: Served, tmp_path: Path) -> Gcloud:
    """Runs `gcloud … --format=json` with a configuration of its own and no way to another server."""
    nowhere = "http://127.0.0.1:9/"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{served.address}/",
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        "CLOUDSDK_CORE_PROJECT": "research",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "true",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        "HTTPS_PROXY": nowhere,
        "NO_PROXY": "127.0.0.1",
    }

    def run(*words: str, fails: bool = False, plain: bool = False) -> Any:
        done = subprocess.run(
            ["gcloud", *words, "--format=json"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stderr
        if fails:
            return done.stderr
        return done.stdout if plain else json.loads(done.stdout)

    return run


def test_zones_are_listed(gcloud: Gcloud) -> None:
    """`gcloud compute zones list` is the first thing a user tries: it would not show our zones."""
    zones = {z["name"]: z for z in gcloud("compute", "zones", "list")}
    assert {"us-central1-a", "us-central1-b", "us-east5-a", "local"} == zones.keys()
    assert zones["us-central1-a"]["status"] == "UP"
    assert zones["us-central1-a"]["region"].endswith("/regions/us-central1")
    assert zones["local"]["status"] == "DOWN"


def test_machine_types_are_listed_over_all_zones(gcloud: Gcloud) -> None:
    """gcloud asks for the aggregated list: without it no machine type could be found."""
    found = {(m["zone"].rpartition("/")[2], m["name"]) for m in gcloud("compute", "machine-types", "list")}
    assert found == {
        ("us-central1-a", "a3-highgpu-8g"),
        ("us-central1-b", "a2-highgpu-8g"),
        ("us-central1-b", "e2-medium"),
    }


def test_machine_types_of_one_zone_are_listed(gcloud: Gcloud) -> None:
    """With --zones gcloud asks the zone itself, in another call than without."""
    found = gcloud("compute", "machine-types", "list", "--zones=us-central1-a")
    assert [(m["name"], m["guestCpus"], m["memoryMb"]) for m in found] == [
        ("a3-highgpu-8g", 208, 1872 * 1024)
    ]


def test_the_server_understands_gclouds_filters(gcloud: Gcloud) -> None:
    """gcloud rewrites --filter into Compute's old grammar: a refusal would fail the command."""
    found = gcloud("compute", "machine-types", "list", "--filter=name=e2-medium AND zone:us-central1-b")
    assert [m["name"] for m in found] == ["e2-medium"]
    found = gcloud("compute", "machine-types", "list", "--filter=name ~ ^a3")
    assert [m["name"] for m in found] == ["a3-highgpu-8g"]


def test_a_machine_type_is_described(gcloud: Gcloud) -> None:
    """Users look up how many accelerators a machine has."""
    told = gcloud("compute", "machine-types", "describe", "a3-highgpu-8g", "--zone=us-central1-a")
    built_in = {"guestAcceleratorCount": 8, "guestAcceleratorType": "nvidia-h100-80gb"}
    assert told["accelerators"] == [built_in]


def test_accelerator_types_and_regions_are_listed(gcloud: Gcloud) -> None:
    """The rest of the catalogue."""
    found = {
        (a["name"], a["maximumCardsPerInstance"]) for a in gcloud("compute", "accelerator-types", "list")
    }
    assert found == {("nvidia-h100-80gb", 8), ("nvidia-tesla-a100", 8)}
    assert {r["name"] for r in gcloud("compute", "regions", "list")} == {"us-central1", "us-east5", "local"}


def test_alpha_and_beta_see_the_same(gcloud: Gcloud) -> None:
    """gcloud's tracks use other paths: half of flex-start's commands are in beta."""
    for track in ("alpha", "beta"):
        assert len(gcloud(track, "compute", "zones", "list")) == 4


def test_what_is_not_there_is_said_in_gclouds_words(gcloud: Gcloud) -> None:
    """A user who mistypes a zone would see a crash instead of the message."""
    told = gcloud("compute", "zones", "describe", "us-mars1-a", fails=True)
    assert "The resource 'projects/research/zones/us-mars1-a' was not found" in told
