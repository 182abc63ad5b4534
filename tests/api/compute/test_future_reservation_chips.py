"""Blocks of TPU chips through the Compute door: so many chips are slices of a pod."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dws.bootstrap import Settings, System, open_system
from tests.api.compute.test_calendar_advice import told as advised
from tests.api.compute.test_future_reservation_states import NATIVE
from tests.api.compute.test_future_reservations import (
    ALL,
    MADE,
    announced,
    insert,
    made,
    message,
    state,
    window,
)
from tests.api.served import MONDAY_9, Served, serving

V5E = "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT5LP"
V5P = "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT5P"
EAST = ALL.replace("us-central1-a", "us-east5-a")


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Served]:
    """The demo fleet: a v5e pod of 16x16 in us-central1-a, a v5p pod of eight cubes in us-east5-a."""
    with serving(tmp_path, demo(tmp_path)) as served:
        yield served


def demo(folder: Path) -> System:
    """The demo fleet, Monday at nine."""
    settings = Settings(
        db="memory:", state_dir=folder / "state", fleet="demo", clock="virtual", start=MONDAY_9
    )
    system = open_system(settings)
    system.start()
    return system


def chips(count: int, family: str = V5E, **more: Any) -> dict[str, Any]:
    """What gcloud sends with --tpu-version and --chip-count."""
    body = announced(**more)
    del body["specificSkuProperties"]
    resources = [{"accelerator": {"acceleratorCount": count}}]
    return body | {
        "aggregateReservation": {
            "vmFamily": family,
            "workloadType": "BATCH",
            "reservedResources": resources,
        }
    }


def test_a_block_of_chips_is_lived_through(pods: Served) -> None:
    """TPUs could be looked up in the calendar, and not be booked."""
    body = chips(16)
    seen = made(pods, body)
    assert seen["aggregateReservation"] == body["aggregateReservation"]
    assert seen["status"]["procurementStatus"] == "APPROVED"
    assert "specificSkuProperties" not in seen
    pods.advance("1d")
    assert pods.owner.get(f"{ALL}/block").json()["status"]["fulfilledCount"] == "16"
    kept = pods.owner.get(f"{MADE}/block").json()
    assert kept["status"] == "READY"
    unused = {"inUseResources": [{"accelerator": {"acceleratorCount": 0}}]}
    assert kept["aggregateReservation"] == body["aggregateReservation"] | unused
    pods.advance("15d")
    assert state(pods) == "FULFILLED"
    assert pods.owner.delete(f"{ALL}/block").status_code == 200


@pytest.mark.parametrize(
    ("at", "family", "count", "slices"),
    [
        (ALL, V5E, 8, (1, "2x4")),
        (ALL, V5E, 256, (1, "16x16")),
        (ALL, V5E, 48, (3, "4x4")),
        (EAST, V5P, 256, (1, "4x8x8")),
        (EAST, V5P, 192, (1, "4x4x12")),
    ],
)
def test_chips_are_the_fewest_slices_that_come_to_as_many(
    pods: Served, at: str, family: str, count: int, slices: tuple[int, str]
) -> None:
    """Chips that do not stand together would be booked, where people ask for a slice."""
    made(pods, chips(count, family), at)
    native = pods.owner.get(f"{NATIVE}/block").json()
    assert (native["count"], native["topology"]) == slices


@pytest.mark.parametrize(
    ("at", "family", "count", "code", "why"),
    [
        (EAST, V5P, 6, 400, "aggregateReservation.reservedResources"),
        (ALL, V5E, 512, 409, "does not have enough resources"),
        (ALL, V5P, 16, 400, "No pool in zone 'us-central1-a' has TPUs of that family"),
        (ALL, "VM_FAMILY_CLOUD_TPU_POD_SLICE_TPU7X", 16, 400, "No pool in zone"),
    ],
)
def test_chips_that_cannot_be_are_refused(
    pods: Served, at: str, family: str, count: int, code: int, why: str
) -> None:
    """A number of chips that no slice has, or no pod, would be booked as something else."""
    told = insert(pods, chips(count, family), at)
    assert told.status_code == code, told.text
    assert why in told.json()["error"]["message"]
    assert pods.owner.get(at).json()["items"] == []


def test_what_is_advised_for_chips_can_be_booked(pods: Served) -> None:
    """Advice would name a zone in which the booking is refused, or none where there is one."""
    made(pods, chips(256, name="first"))
    wanted = {"aggregateResources": {"vmFamily": V5E, "acceleratorCount": "48", "workloadType": "BATCH"}}
    seen = advised(pods, wanted, minDuration="1209600s", maxDuration="1209600s")
    assert seen["location"] == "zones/us-central1-a"
    span = {"startTime": seen["startTime"], "endTime": seen["endTime"]}
    assert span == window(start=15 * 86_400)
    said = message(insert(pods, chips(48)), 409, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    assert f"{span['startTime']} to {span['endTime']}" in said
    assert made(pods, chips(48, timeWindow=span))["status"]["procurementStatus"] == "APPROVED"
