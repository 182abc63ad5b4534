"""The real gcloud reserves machines from now on, and what xpk and SkyPilot ask it about reservations."""

from __future__ import annotations

import shutil

import pytest

from tests.api.served import Served
from tests.conformance.compute.conftest import Gcloud

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="not run: gcloud not found"),
]
RESERVATIONS = ("compute", "reservations")
HERE = "--zone=us-central1-a"


def test_machines_are_reserved_grown_and_given_back(gcloud: Gcloud, served: Served) -> None:
    """The first command of whoever wants machines for good would fail."""
    (made,) = gcloud(
        *RESERVATIONS,
        "create",
        "mine",
        HERE,
        "--vm-count=2",
        "--machine-type=a3-highgpu-8g",
        "--require-specific-reservation",
    )
    assert (made["name"], made["status"], made["specificReservationRequired"]) == ("mine", "READY", True)
    rows = gcloud(*RESERVATIONS, "list", "--filter=name=mine")
    assert [(r["specificReservation"]["count"], r["specificReservation"]["inUseCount"]) for r in rows] == [
        ("2", "0")
    ]
    grown = gcloud(*RESERVATIONS, "update", "mine", HERE, "--vm-count=3", plain=True)
    assert '"count": "3"' in grown
    full = gcloud(*RESERVATIONS, "update", "mine", HERE, "--vm-count=9", fails=True)
    assert "does not have enough resources available to fulfill the request" in full
    seen = gcloud(*RESERVATIONS, "describe", "mine", HERE)
    assert seen["specificReservation"]["count"] == "3"
    taken = gcloud(
        *RESERVATIONS, "create", "more", HERE, "--vm-count=2", "--machine-type=a3-highgpu-8g", fails=True
    )
    assert "does not have enough resources available" in taken
    served.submit("work", alternatives=[{"accelerators": "h100:8", "duration": "1h"}], reservation="mine")
    used = gcloud(*RESERVATIONS, "delete", "mine", HERE, fails=True)
    assert "is already being used by 'projects/research/requests/work'" in used
    served.owner.post("/dws/v1/projects/research/requests/work:release")
    gcloud(*RESERVATIONS, "delete", "mine", HERE)
    assert "was not found" in gcloud(*RESERVATIONS, "describe", "mine", HERE, fails=True)


def test_projects_share_one_and_it_ends_when_told(gcloud: Gcloud, served: Served) -> None:
    """A team could not let another in, or would pay for machines it has forgotten."""
    here = ("beta", *RESERVATIONS)
    (made,) = gcloud(
        *here,
        "create",
        "shared",
        HERE,
        "--vm-count=1",
        "--machine-type=a3-highgpu-8g",
        "--share-setting=projects",
        "--share-with=partner",
        "--delete-after-duration=2h",
    )
    assert made["shareSettings"]["shareType"] == "SPECIFIC_PROJECTS"
    gcloud(*RESERVATIONS, "update", "shared", HERE, "--add-share-with=lab,ops", plain=True)
    seen = gcloud(*RESERVATIONS, "describe", "shared", HERE)
    assert sorted(seen["shareSettings"]["projectMap"]) == ["lab", "ops", "partner"]
    number = gcloud("compute", "project-info", "describe", "--project=lab")["id"]
    gcloud(*RESERVATIONS, "update", "shared", HERE, f"--remove-share-with={number}", plain=True)
    seen = gcloud(*RESERVATIONS, "describe", "shared", HERE)
    assert sorted(seen["shareSettings"]["projectMap"]) == ["ops", "partner"]
    assert seen["deleteAtTime"]
    gcloud(*here, "update", "shared", HERE, "--disable-auto-delete", plain=True)
    assert "deleteAtTime" not in gcloud(*RESERVATIONS, "describe", "shared", HERE)
    gcloud(*here, "update", "shared", HERE, "--delete-at-time=2099-01-01T00:00:00Z", fails=True)
    gcloud("alpha", *RESERVATIONS, "update", "shared", HERE, "--scheduling-type=GROUPED", plain=True)
    assert gcloud("alpha", *RESERVATIONS, "describe", "shared", HERE)["schedulingType"] == "GROUPED"
    gcloud(*RESERVATIONS, "delete", "shared", HERE)


def test_xpk_and_skypilot_find_what_is_ready(gcloud: Gcloud, served: Served) -> None:
    """They would say that there is no such reservation, and start somewhere else."""
    gcloud(*RESERVATIONS, "create", "found", HERE, "--vm-count=1", "--machine-type=a3-highgpu-8g")
    seen = gcloud(
        "beta",
        *RESERVATIONS,
        "describe",
        "found",
        HERE,
        "--format=json(specificReservation,aggregateReservation,status,deploymentType,resourcePolicies)",
    )
    assert seen.keys() == {"specificReservation", "status", "deploymentType"}
    assert (seen["status"], seen["deploymentType"]) == ("READY", "DENSE")
    assert seen["specificReservation"]["instanceProperties"]["machineType"] == "a3-highgpu-8g"
    for machine, names in (("a3-highgpu-8g", ["found"]), ("a2-highgpu-8g", [])):
        wanted = f"specificReservation.instanceProperties.machineType={machine} AND status=READY"
        form = "--format=json(name, zone, specificReservation.count, specificReservation.inUseCount)"
        rows = gcloud(*RESERVATIONS, "list", f"--filter={wanted}", form)
        assert [r["name"] for r in rows] == names
    gcloud(*RESERVATIONS, "delete", "found", HERE)


def test_one_that_dws_made_is_listed_and_given_back(gcloud: Gcloud, served: Served) -> None:
    """Machines reserved on the command line would be out of reach for gcloud."""
    block = {"name": "by-hand", "machine": "a3-highgpu-8g", "count": 1, "start": "in 0s", "duration": "1d"}
    assert served.owner.post("/dws/v1/projects/research/reservations", json=block).status_code == 200
    (row,) = gcloud(*RESERVATIONS, "list")
    assert (row["name"], row["status"]) == ("by-hand", "READY")
    gcloud(*RESERVATIONS, "delete", "by-hand", HERE)
    assert gcloud(*RESERVATIONS, "list") == []
