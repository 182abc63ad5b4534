"""Advice for the calendar through the Compute door: the soonest window, and why not elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from dws.planner.options import PRESETS
from tests.api.served import MONDAY_9, Served, serving

DAY, HOUR = 86_400, 3_600
REGION = "/compute/beta/projects/research/regions/us-central1"
RESERVATIONS = "/dws/v1/projects/research/reservations"
TWO = {"specificSkuResources": {"machineType": "a3-highgpu-8g", "instanceCount": "2"}}


def at(hours: float) -> str:
    """An instant so many hours from the world's start, Monday at nine."""
    days, rest = divmod(int((9 + hours) * HOUR), DAY)
    return f"2027-01-{11 + days:02}T{rest // HOUR:02}:{rest % HOUR // 60:02}:00Z"


def ask(served: Served, target: dict[str, Any] = TWO, **more: Any) -> httpx2.Response:
    """Ask for advice, in the form of gcloud; what is no part of a specification is of its time range."""
    spec = {"deploymentType": "DENSE", "targetResources": target}
    policy = more.pop("locationPolicy", None)
    spec |= {"locationPolicy": policy} if policy else {}
    body = {"futureResourcesSpecs": {"spec": spec | {"timeRangeSpec": more}}}
    return served.owner.post(f"{REGION}/advice/calendarMode", json=body)


def told(served: Served, target: dict[str, Any] = TWO, **more: Any) -> dict[str, Any]:
    """The recommendation."""
    answer = ask(served, target, **more)
    assert answer.status_code == 200, answer.text
    (one,) = answer.json()["recommendations"]
    return one["recommendationsPerSpec"]["spec"]


def book(served: Served, name: str, start: float, end: float, machines: int = 4) -> None:
    """A reservation of the a3 machines, from then until then, in hours."""
    body = {
        "name": name,
        "machine": "a3-highgpu-8g",
        "count": machines,
        "start": at(start),
        "end": at(end),
    }
    answer = served.owner.post(RESERVATIONS, json=body)
    assert answer.status_code == 200, answer.text


def test_e18_the_soonest_window_that_is_long_enough(fresh: Served) -> None:
    """Nobody would find a free window without trying one after the other; or would be sent to a later one."""
    book(fresh, "r1", 2, 10)
    book(fresh, "r2", 13, 40)
    seen = told(fresh, minDuration=f"{4 * HOUR}s", maxDuration=f"{6 * HOUR}s")
    assert (seen["location"], seen["startTime"], seen["endTime"]) == ("zones/us-central1-a", at(40), at(46))
    seen = told(fresh, minDuration=f"{2 * HOUR}s", maxDuration=f"{6 * HOUR}s", startTimeNotEarlierThan=at(1))
    assert (seen["startTime"], seen["endTime"]) == (at(10), at(13))
    assert seen["otherLocations"] == {
        "zones/us-central1-b": {
            "status": "NOT_SUPPORTED",
            "details": "The zone has no pool of what is asked for.",
        }
    }


def test_e18_what_is_advised_can_be_booked_and_is_not_held(fresh: Served) -> None:
    """The advice would be of no use, or take capacity from others."""
    before = fresh.last_seq()
    seen = told(fresh, minDuration=f"{DAY}s", maxDuration=f"{3 * DAY}s", startTimeNotEarlierThan=at(5))
    assert fresh.last_seq() == before
    body = {"name": "r", "machine": "a3-highgpu-8g", "count": 2}
    body |= {"start": seen["startTime"], "end": seen["endTime"]}
    assert fresh.owner.post(RESERVATIONS, json=body).status_code == 200


def test_the_end_is_held_to_its_bounds(fresh: Served) -> None:
    """Who needs the machines until Friday would be told a window that is over on Thursday."""
    book(fresh, "r1", 20, 30)
    bounds = {"minDuration": f"{HOUR}s", "maxDuration": f"{12 * HOUR}s"}
    seen = told(fresh, **bounds, endTimeNotEarlierThan=at(19), endTimeNotLaterThan=at(24))
    assert (seen["startTime"], seen["endTime"]) == (at(7), at(19))
    seen = told(fresh, **bounds, endTimeNotEarlierThan=at(24), endTimeNotLaterThan=at(40))
    assert (seen["startTime"], seen["endTime"]) == (at(30), at(40))
    seen = told(fresh, endTimeNotEarlierThan=at(24), endTimeNotLaterThan=at(28))
    assert "location" not in seen
    lost = seen["otherLocations"]["zones/us-central1-a"]
    assert lost["status"] == "NO_CAPACITY"
    assert "needs 2 hosts; a3 has 0 of 4 free for the whole window" in lost["details"]


def test_zones_that_are_denied_or_come_later_say_so(fresh: Served) -> None:
    """A user would not know that another zone has it too, or that their own policy is in the way."""
    medium = {"specificSkuResources": {"machineType": "e2-medium", "instanceCount": 2}}
    hour = {"minDuration": f"{HOUR}s", "maxDuration": f"{HOUR}s"}
    seen = told(fresh, medium, **hour)
    assert seen["location"] == "zones/us-central1-b"
    denied = {"locations": {"zones/us-central1-b": {"preference": "DENY"}}}
    seen = told(fresh, medium, **hour, locationPolicy=denied)
    assert "location" not in seen
    assert seen["otherLocations"]["zones/us-central1-b"] == {
        "status": "CONDITIONS_NOT_MET",
        "details": "The location policy denies this zone.",
    }
    allowed = {"locations": {"zones/us-central1-a": {"preference": "ALLOW"}}}
    assert told(fresh, medium, **hour, locationPolicy=allowed)["location"] == "zones/us-central1-b"


def test_more_than_there_is_has_no_window(fresh: Served) -> None:
    """A request that can never be booked would look as if one only had to wait."""
    seen = told(fresh, {"specificSkuResources": {"machineType": "a3-highgpu-8g", "instanceCount": 5}})
    assert "location" not in seen
    assert seen["otherLocations"]["zones/us-central1-a"] == {
        "status": "NO_CAPACITY",
        "details": "needs 5 hosts; the largest pool of a3 has 4",
    }


def test_chips_of_a_family_that_is_not_there_are_not_supported(fresh: Served) -> None:
    """gcloud's --tpu-version would end in an internal error."""
    for family in ("VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT5LP", "VM_FAMILY_CLOUD_TPU_POD_SLICE_TPU7X"):
        chips = {"vmFamily": family, "acceleratorCount": "16", "workloadType": "BATCH"}
        seen = told(fresh, {"aggregateResources": chips})
        assert {each["status"] for each in seen["otherLocations"].values()} == {"NOT_SUPPORTED"}


def test_lengths_and_starts_the_owner_does_not_allow_are_conditions(tmp_path: Path) -> None:
    """The advice would be refused when it is booked; or a range with possible windows in it be refused."""
    with serving(tmp_path, policy=PRESETS["google"]) as served:
        seen = told(served, minDuration=f"{HOUR}s", maxDuration=f"{2 * DAY}s")
        assert (seen["startTime"], seen["endTime"]) == (at(87), at(87 + 48)), "after 87 hours' notice"
        lost = told(served, maxDuration=f"{HOUR}s")["otherLocations"]["zones/us-central1-a"]
        assert lost == {
            "status": "CONDITIONS_NOT_MET",
            "details": "Reservations last between 1 day and 90 days.",
        }
        lost = told(served, startTimeNotLaterThan=at(80))["otherLocations"]["zones/us-central1-a"]
        assert lost["status"] == "CONDITIONS_NOT_MET" and "notice" in lost["details"]


def test_of_fixed_lengths_the_soonest_in_the_range_is_advised(tmp_path: Path) -> None:
    """A length would be advised that the owner has no blocks of, or a later block than there is."""
    with serving(tmp_path, policy=PRESETS["seed"]) as served:
        seen = told(served, minDuration=f"{6 * DAY}s", maxDuration=f"{15 * DAY}s")
        assert (seen["startTime"], seen["endTime"]) == (at(0), at(14 * 24))
        lost = told(served, maxDuration=f"{6 * DAY}s")["otherLocations"]["zones/us-central1-a"]
        assert lost["details"] == "Reservations last 7 days or 14 days."
        book(served, "r1", 8 * 24, 15 * 24)
        seen = told(served)
        assert (seen["startTime"], seen["endTime"]) == (at(0), at(7 * 24))


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"minDuration": "7200s", "maxDuration": "3600s"}, "minDuration"),
        ({"minDuration": {"seconds": 7200}}, "minDuration"),
        ({"minDuration": "-1s"}, "minDuration"),
        ({"startTimeNotEarlierThan": "tomorrow"}, "startTimeNotEarlierThan"),
        ({"startTimeNotEarlierThan": at(9), "startTimeNotLaterThan": at(8)}, "startTimeNotEarlierThan"),
        ({"endTimeNotEarlierThan": at(9), "endTimeNotLaterThan": at(8)}, "endTimeNotEarlierThan"),
        ({"startTimeNotEarlierThan": at(9), "endTimeNotLaterThan": at(8)}, "endTimeNotLaterThan"),
        (
            {"startTimeNotLaterThan": at(1), "maxDuration": "60s", "endTimeNotEarlierThan": at(8)},
            "endTimeNotEarlierThan",
        ),
        ({"locationPolicy": {"locations": {"zones/us-east5-a": {"preference": "DENY"}}}}, "locations"),
        ({"target": {}}, "targetResources"),
        ({"target": {"specificSkuResources": {"machineType": "a3-highgpu-8g"}}}, "instanceCount"),
        (
            {"target": {"specificSkuResources": {"machineType": "m", "instanceCount": "0"}}},
            "instanceCount",
        ),
        ({"colour": "red"}, 'Unknown name "colour"'),
    ],
)
def test_a_contradiction_is_refused_by_its_field(served: Served, wrong: dict[str, Any], field: str) -> None:
    """A typo would be answered as if there were no capacity."""
    answer = ask(served, **{"target": TWO} | wrong)
    assert answer.status_code == 400 and field in answer.json()["error"]["message"], answer.text


def test_exactly_one_specification(served: Served) -> None:
    """The second of two would be left out without a word."""
    spec = {"targetResources": TWO, "timeRangeSpec": {}}
    for specs in ({}, {"a": spec, "b": spec}):
        answer = served.owner.post(f"{REGION}/advice/calendarMode", json={"futureResourcesSpecs": specs})
        assert answer.status_code == 400 and "futureResourcesSpecs" in answer.text
    there = served.owner.post(f"{REGION}/advice/calendarMode", json={"futureResourcesSpecs": {"a": spec}})
    assert list(there.json()["recommendations"][0]["recommendationsPerSpec"]) == ["a"]
    nowhere = REGION.replace("us-central1", "us-mars1")
    answer = served.owner.post(f"{nowhere}/advice/calendarMode", json={"futureResourcesSpecs": {"a": spec}})
    assert answer.status_code == 404


assert MONDAY_9 == 1_799_658_000, "at() counts from there"
