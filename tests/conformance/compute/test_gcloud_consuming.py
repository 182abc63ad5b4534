"""The real gcloud runs instances in a block: refused before its start, waiting for it, in it, gone at its end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.served import Served, serving
from tests.conformance.compute.conftest import Gcloud
from tests.conformance.compute.test_gcloud_calendar import ANNOUNCED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="not run: gcloud not found"),
]
ZONE = "--zone=us-central1-a"
MACHINE = "--machine-type=a3-highgpu-8g"
VM = ("compute", "instances")
MANAGED = ("compute", "instance-groups", "managed")
INSIDE = (
    "--reservation-affinity=specific",
    "--reservation=my-calendarblock",
    "--provisioning-model=RESERVATION_BOUND",
)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as server:
        yield server


def test_a_block_of_fourteen_days_is_used_from_its_start_to_its_end(served: Served, gcloud: Gcloud) -> None:
    """The commands of the public guide, one after the other, would not run anything in what was booked."""
    gcloud(*ANNOUNCED.split())
    create = (*VM, "create", "own", ZONE, MACHINE, *INSIDE)
    stop, delete = (f"--instance-termination-action={word}" for word in ("STOP", "DELETE"))
    assert "it requires reservation to be in READY state" in gcloud(*create, stop, fails=True)
    gcloud("compute", "instance-templates", "create", "t", MACHINE, *INSIDE, delete)
    gcloud(*MANAGED, "create", "g", "--template=t", "--size=0", ZONE)
    requests = (*MANAGED, "resize-requests")
    gcloud(*requests, "create", "g", ZONE, "--resize-request=r1", "--resize-by=1")
    told = gcloud(*requests, "describe", "g", ZONE, "--resize-request=r1")
    (error,) = told["status"]["lastAttempt"]["error"]["errors"]
    facts = error["errorDetails"][0]["errorInfo"]["metadatas"]
    assert (told["state"], error["code"]) == ("ACCEPTED", "RESERVATION_NOT_READY")
    assert facts["estimatedAvailabilityTime"] == "2027-01-12T09:00:00Z"

    served.advance("24h")
    served.advance("1m")
    (made,) = gcloud(*create, stop)
    assert (made["status"], made["scheduling"]["provisioningModel"]) == ("RUNNING", "RESERVATION_BOUND")
    assert made["resourceStatus"]["scheduling"] == {"terminationTimestamp": "2027-01-26T09:00:00Z"}
    consumed = made["resourceStatus"]["reservationConsumptionInfo"]["consumedReservation"]
    assert consumed == "projects/research/zones/us-central1-a/reservations/my-calendarblock"
    assert gcloud(*requests, "describe", "g", ZONE, "--resize-request=r1")["state"] == "SUCCEEDED"
    (reservation,) = gcloud("compute", "reservations", "list")
    assert reservation["specificReservation"]["inUseCount"] == "2"
    full = gcloud(*VM, "create", "more", ZONE, MACHINE, *INSIDE, stop, fails=True)
    assert "Specified reservation 'my-calendarblock' does not have available resources" in full

    served.advance("14d")
    (left,) = gcloud(*VM, "list")
    assert (left["name"], left["status"]) == ("own", "TERMINATED")
    assert gcloud("compute", "reservations", "list") == []
    (group,) = gcloud(*MANAGED, "list")
    assert group["targetSize"] == 0
    assert "do not exist" in gcloud(*VM, "start", "own", ZONE, fails=True)
