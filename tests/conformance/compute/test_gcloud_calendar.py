"""The real gcloud books blocks of the calendar: makes, lists, changes, cancels and deletes them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from dws.model.time import DAY
from dws.wire.timefmt import format_instant
from tests.api.compute.test_future_reservation_chips import demo
from tests.api.served import MONDAY_9, Served, serving
from tests.conformance.compute.conftest import Gcloud

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="not run: gcloud not found"),
]
ZONE = "--zone=us-central1-a"
START, END = "2027-01-12T09:00:00Z", "2027-01-26T09:00:00Z"
RESERVATIONS = "/compute/v1/projects/research/zones/us-central1-a/reservations"
WINDOW = (f"--start-time={START}", f"--end-time={END}")
AUTO = "--auto-delete-auto-created-reservations"
MACHINES = ("--machine-type=a3-highgpu-8g", "--total-count=2")

ANNOUNCED = """alpha compute future-reservations create my-calendarblock --zone=us-central1-a
    --machine-type=a3-highgpu-8g --total-count=2 --start-time=2027-01-12T09:00:00Z
    --end-time=2027-01-26T09:00:00Z --auto-delete-auto-created-reservations
    --require-specific-reservation"""


@pytest.fixture
def served(tmp_path: Any) -> Iterator[Served]:
    with serving(tmp_path, demo(tmp_path)) as server:
        yield server


def commands(track: str) -> tuple[str, ...]:
    return (track, "compute", "future-reservations")


def test_the_announced_command_books_a_block_of_fourteen_days(served: Served, gcloud: Gcloud) -> None:
    """What was announced, typed as it was announced, would not book a block that comes and goes."""
    told = gcloud(*ANNOUNCED.split())
    (block,) = told if isinstance(told, list) else [told]
    assert block["status"]["procurementStatus"] == "APPROVED"
    seen = []
    for wait in ("0s", "23h50m", "10m", "13d23h59m", "1h"):
        served.advance(wait)
        told = served.owner.get(f"{RESERVATIONS}/my-calendarblock").json()
        shown = gcloud(*commands("alpha"), "describe", "my-calendarblock", ZONE)
        seen.append((shown["status"]["procurementStatus"], told.get("status")))
    assert seen == [
        ("APPROVED", "CREATING"),
        ("PROCURING", "CREATING"),
        ("FULFILLED", "READY"),
        ("FULFILLED", "READY"),
        ("FULFILLED", None),
    ]
    gcloud(*commands("alpha"), "delete", "my-calendarblock", ZONE, plain=True)
    assert gcloud(*commands("alpha"), "list") == []


def test_alpha_changes_and_cancels(served: Served, gcloud: Gcloud) -> None:
    """The alpha commands wait at another version than they ask: they would wait for ever."""
    fr = commands("alpha")
    gcloud(*fr, "create", "plan", ZONE, *MACHINES, *WINDOW, AUTO, "--planning-status=DRAFT")
    gcloud(*fr, "update", "plan", ZONE, "--planning-status=SUBMITTED")
    gcloud(*fr, "cancel", "plan", ZONE, plain=True)
    (listed,) = gcloud(*fr, "list")
    assert listed["status"] == {"procurementStatus": "CANCELLED"}


def test_beta_plans_a_draft_submits_and_cancels_it(served: Served, gcloud: Gcloud) -> None:
    """The commands people have in their scripts would fail, or change what they do not name."""
    fr = commands("beta")
    gcloud(
        *(*fr, "create", "plan", ZONE, *MACHINES, *WINDOW, "--planning-status=DRAFT"),
        *("--reservation-mode=CALENDAR", "--name-prefix=course", AUTO),
        *("--require-specific-reservation", "--share-setting=projects", "--share-with=partner,other"),
        *("--deployment-type=DENSE", "--scheduling-type=GROUPED", "--description=For the course"),
    )
    (listed,) = gcloud(*fr, "list")
    assert listed["status"] == {"procurementStatus": "DRAFTING"}
    assert sorted(listed["shareSettings"]["projects"]) == ["other", "partner"]
    assert (listed["namePrefix"], listed["deploymentType"]) == ("course", "DENSE")
    gcloud(*fr, "update", "plan", ZONE, "--total-count=3", "--machine-type=a3-highgpu-8g")
    gcloud(*fr, "update", "plan", ZONE, "--duration=604800", "--clear-share-settings")
    said = gcloud(*fr, "update", "plan", ZONE, "--total-count=4", fails=True)
    assert "specificSkuProperties.totalCount" in said
    seen = gcloud(*fr, "describe", "plan", ZONE)
    assert seen["specificSkuProperties"]["totalCount"] == "3"
    assert seen["timeWindow"]["endTime"] == format_instant(MONDAY_9 + 8 * DAY)
    assert (seen["shareSettings"], seen["description"]) == ({"shareType": "LOCAL"}, "For the course")
    gcloud(*fr, "update", "plan", ZONE, "--planning-status=SUBMITTED")
    seen = gcloud(*fr, "describe", "plan", ZONE)
    assert seen["status"]["procurementStatus"] == "APPROVED"
    (made,) = seen["status"]["autoCreatedReservations"]
    assert made.endswith("/reservations/course-20270112-1")
    assert gcloud(*fr, "list", "--zones=us-central1-a")[0]["name"] == "plan"
    gcloud(*fr, "cancel", "plan", ZONE, plain=True)
    assert gcloud(*fr, "describe", "plan", ZONE)["status"]["procurementStatus"] == "CANCELLED"
    gcloud(*fr, "delete", "plan", ZONE, plain=True)
    assert gcloud(*fr, "list") == []


def test_gcloud_prints_why_a_block_is_refused(served: Served, gcloud: Gcloud) -> None:
    """gcloud checks no times itself, so a mistake would be booked; and who is refused would learn nothing."""
    book = (*commands("beta"), "create", "block", ZONE, AUTO)
    said = gcloud(*book, *MACHINES, "--start-time=tomorrow", f"--end-time={END}", fails=True)
    assert "Invalid value for field 'resource.timeWindow.startTime': 'tomorrow'" in said
    said = gcloud(*book, *MACHINES, f"--start-time={END}", f"--end-time={START}", fails=True)
    assert "'resource.timeWindow.endTime'" in said
    said = gcloud(*book, "--machine-type=a3-highgpu-8g", "--total-count=17", *WINDOW, fails=True)
    assert "needs 17 hosts; the largest pool of a3-a has 16" in said
    said = gcloud(*book, "--tpu-version=V5P", "--chip-count=16", *WINDOW, fails=True)
    assert "No pool in zone 'us-central1-a' has TPUs of that family" in said
    assert gcloud(*commands("beta"), "list") == []


def test_gcloud_books_chips(served: Served, gcloud: Gcloud) -> None:
    """The flags for TPUs would be accepted, and nothing of use be booked."""
    chips = ("--tpu-version=V5E", "--chip-count=16", "--workload-type=BATCH", "--deployment-type=FLEXIBLE")
    told = ("--reservation-mode=CALENDAR", "--planning-status=SUBMITTED", AUTO)
    gcloud(*commands("beta"), "create", "chips", ZONE, *chips, *WINDOW, *told)
    served.advance("1d")
    seen = gcloud(*commands("beta"), "describe", "chips", ZONE)
    assert (seen["status"]["procurementStatus"], seen["status"]["fulfilledCount"]) == ("FULFILLED", "16")
    assert seen["deploymentType"] == "FLEXIBLE"
    kept = served.owner.get(f"{RESERVATIONS}/chips").json()
    assert kept["aggregateReservation"]["reservedResources"] == [{"accelerator": {"acceleratorCount": 16}}]


@pytest.mark.parametrize("track", ["beta", "alpha"])
def test_an_endpoint_that_names_v1_serves_every_track(served: Served, gcloud_v1: Gcloud, track: str) -> None:
    """Whoever gave the endpoint in its longer form could share no block: v1 does not know how gcloud says it."""
    fr, shared = commands(track), ("--share-setting=projects", "--share-with=partner")
    gcloud_v1(*fr, "create", track, ZONE, *MACHINES, *WINDOW, *shared, AUTO)
    seen = gcloud_v1(*fr, "describe", track, ZONE)
    assert seen["shareSettings"]["projectMap"] == {"partner": {"projectId": "partner"}}
    assert seen["planningStatus"] == "SUBMITTED"
    assert "/compute/v1/" in seen["selfLink"]
    gcloud_v1(*fr, "cancel", track, ZONE, plain=True)
    gcloud_v1(*fr, "delete", track, ZONE, plain=True)
