"""An instance that ends at an instant, `scheduling.terminationTime`, however long that makes its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dws.model.access import SYSTEM
from dws.planner.options import PRESETS
from tests.api.compute.test_instances import VMS, ZONE, insert
from tests.api.compute.test_resize_requests import TEMPLATES
from tests.api.served import Served, serving

GROUPS = f"{ZONE}/instanceGroupManagers"
ELEVEN = "2027-01-11T11:00:00Z"
"""Two hours from the start of the clock."""


def ending(at: str = ELEVEN, **more: Any) -> dict[str, Any]:
    return {"terminationTime": at, "instanceTerminationAction": "DELETE"} | more


def test_it_ends_then_whenever_it_started(fresh: Served) -> None:
    """It would run on by as long as it took to start, into what others were promised."""
    insert(fresh, "now", ending())
    insert(fresh, "busy-1", {"maxRunDuration": {"seconds": "3600"}, "instanceTerminationAction": "DELETE"})
    insert(fresh, "busy-2")
    insert(fresh, "busy-3")
    wait = {"requestValidForDuration": {"seconds": "7000"}}
    told = insert(fresh, "later", ending(provisioningModel="FLEX_START"), params=wait)
    assert told.status_code == 200, told.text
    fresh.advance("75m")
    for name in ("now", "later"):
        seen = fresh.owner.get(f"{VMS}/{name}").json()
        assert seen["status"] == "RUNNING"
        assert seen["resourceStatus"]["scheduling"] == {"terminationTimestamp": ELEVEN}
        assert seen["scheduling"]["terminationTime"] == ELEVEN
    fresh.advance("44m")
    assert fresh.owner.get(f"{VMS}/later").json()["status"] == "RUNNING"
    fresh.advance("3m")
    for name in ("now", "later"):
        assert fresh.owner.get(f"{VMS}/{name}").status_code == 404
    assert fresh.engine.verify(SYSTEM).faults == ()


def test_one_that_stops_then_stays(fresh: Served) -> None:
    """Its disks would be gone; or it would start again into an end that lies behind."""
    insert(fresh, "v", {"terminationTime": ELEVEN, "instanceTerminationAction": "STOP"})
    fresh.advance("125m")
    assert fresh.owner.get(f"{VMS}/v").json()["status"] == "TERMINATED"
    again = fresh.owner.post(f"{VMS}/v/start")
    assert again.status_code == 400 and "past" in again.text
    later = {"terminationTime": "2027-01-11T13:00:00Z"}
    assert fresh.owner.post(f"{VMS}/v/setScheduling", json=later).status_code == 200
    assert fresh.owner.post(f"{VMS}/v/start").status_code == 200
    fresh.advance("5m")
    seen = fresh.owner.get(f"{VMS}/v").json()
    assert seen["resourceStatus"]["scheduling"]["terminationTimestamp"] == "2027-01-11T13:00:00Z"


def test_one_that_gets_no_machine_before_its_end_never_comes(fresh: Served) -> None:
    """It would start when nobody wants it any more."""
    for number in range(4):
        insert(fresh, f"busy-{number}")
    wait = {"requestValidForDuration": {"seconds": "30000"}}
    operation = insert(fresh, "late", ending(provisioningModel="FLEX_START"), params=wait).json()
    fresh.advance("3h")
    fresh.owner.delete(f"{VMS}/busy-0")
    fresh.advance("5m")
    assert fresh.owner.get(f"{VMS}/late").status_code == 404
    path = operation["selfLink"].partition("/compute/")[2]
    assert "error" in fresh.owner.get(f"/compute/{path}").json()


def test_a_group_ends_then(fresh: Served) -> None:
    """A group's instances would run on, for their template says when they end."""
    properties = {"machineType": "a3-highgpu-8g", "scheduling": ending()}
    assert fresh.owner.post(TEMPLATES, json={"name": "t", "properties": properties}).is_success
    body = {"name": "g", "instanceTemplate": "global/instanceTemplates/t", "targetSize": 0}
    assert fresh.owner.post(GROUPS, json=body).is_success
    assert fresh.owner.post(f"{GROUPS}/g/resizeRequests", json={"name": "r", "resizeBy": 2}).is_success
    fresh.advance("10m")
    found = fresh.owner.get(VMS).json()["items"]
    ends = [each["resourceStatus"]["scheduling"]["terminationTimestamp"] for each in found]
    assert ends == [ELEVEN] * 2
    fresh.advance("2h")
    assert fresh.owner.get(VMS).json()["items"] == []
    late = fresh.owner.post(f"{GROUPS}/g/resizeRequests", json={"name": "r2", "resizeBy": 2})
    assert late.status_code == 400 and "terminationTime" in late.text


@pytest.mark.parametrize(
    "wrong",
    [
        ending("2027-01-11T08:59:59Z"),
        ending("2027-01-11T09:05:00Z"),
        ending("2027-01-18T09:00:01Z"),
        ending("tomorrow"),
        ending(maxRunDuration={"seconds": "3600"}),
    ],
    ids=["past", "too soon", "beyond the longest run", "no instant", "both"],
)
def test_an_end_that_cannot_be_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """It would start only to be killed, or run longer than the owner allows."""
    with serving(tmp_path, policy=PRESETS["google"]) as served:
        answer = insert(served, "v", wrong)
        assert answer.status_code == 400 and "terminationTime" in answer.text, answer.text
        assert served.owner.get(VMS).json()["items"] == []
