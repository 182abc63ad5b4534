"""Instances by themselves through the Compute door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dws.backends.simulated.faults import Faults
from dws.engine.ports import RequestQuery
from dws.model.access import SYSTEM
from dws.model.evolve import evolve
from dws.model.request import HostLossPolicy, RequestState
from dws.planner.options import DEFAULT_POLICY
from tests.api.compute.test_resize_requests import ask, make_group
from tests.api.served import Served, serving
from tests.conformance.compute.schema import faults

ZONE = "/compute/v1/projects/research/zones/us-central1-a"
VMS = f"{ZONE}/instances"
FLEX = {
    "provisioningModel": "FLEX_START",
    "maxRunDuration": {"seconds": 3600},
    "instanceTerminationAction": "DELETE",
}


def insert(
    served: Served, name: str, scheduling: dict[str, Any] | None = None, **more: Any
) -> httpx2.Response:
    machine = "zones/us-central1-a/machineTypes/a3-highgpu-8g"
    body = {"name": name, "machineType": machine, "scheduling": scheduling or {}} | more
    return served.owner.post(VMS, json=body)


def test_an_instance_runs_as_it_was_asked_for_until_its_end(fresh: Served) -> None:
    """It would run under another model than its owner pays for, or for ever."""
    done = insert(fresh, "v1", FLEX, labels={"team": "x"}).json()
    assert faults("v1", "Operation", done) == []
    fresh.advance("5m")
    found = fresh.owner.get(f"{VMS}/v1").json()
    assert faults("v1", "Instance", found) == []
    assert (found["status"], found["scheduling"]["provisioningModel"]) == ("RUNNING", "FLEX_START")
    assert found["labels"] == {"team": "x"}
    assert fresh.owner.get(VMS).json()["items"] == [found]
    assert fresh.owner.get(f"{ZONE}/operations/{done['name']}").json()["status"] == "DONE"
    fresh.advance("2h")
    assert fresh.owner.get(f"{VMS}/v1").status_code == 404


def test_an_ordinary_instance_runs_until_it_is_deleted(fresh: Served) -> None:
    """It would end by itself; or go on holding its machine when nobody wants it."""
    insert(fresh, "v1")
    fresh.advance("20d")
    assert fresh.owner.get(f"{VMS}/v1").json()["status"] == "RUNNING"
    assert insert(fresh, "v1").status_code == 409
    assert fresh.owner.delete(f"{VMS}/v1").json()["status"] == "DONE"
    assert fresh.owner.get(f"{VMS}/v1").status_code == 404
    assert insert(fresh, "v1").status_code == 200


def test_what_cannot_start_fails_its_operation(fresh: Served) -> None:
    """A client would wait for ever, or take a failure for an instance."""
    fresh.submit("all", alternatives=[{"accelerators": "h100:32", "duration": "4h"}])
    now, flex = insert(fresh, "now").json(), insert(fresh, "flex", FLEX).json()
    (told,) = now["error"]["errors"]
    assert (now["status"], now["httpErrorStatusCode"]) == ("DONE", 503)
    assert told["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    assert "needs 1 free host; a3 has 0 of 4 free now, 1 from Mon 11 Jan 13:00 UTC" in told["message"]
    assert fresh.owner.get(f"{VMS}/now").status_code == 404
    assert fresh.owner.get(f"{VMS}/flex").json()["status"] == "PENDING"
    fresh.advance("2m")
    assert "error" in fresh.owner.get(f"{ZONE}/operations/{flex['name']}").json()
    assert fresh.owner.get(f"{VMS}/flex").status_code == 404


@pytest.mark.parametrize(
    ("scheduling", "more", "words"),
    [
        ({"provisioningModel": "FLEX_START"}, {}, "resource.scheduling.maxRunDuration"),
        (FLEX, {"params": {"requestValidForDuration": {"seconds": -1}}}, "0, or between 1 second and 365 d"),
        ({}, {"machineType": "zones/us-central1-a/machineTypes/n9"}, "'n9' does not exist"),
        (FLEX, {"reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION"}}, "reservation"),
    ],
)
def test_a_wrong_instance_is_refused(
    served: Served, scheduling: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    """It would start as something its owner did not ask for."""
    refused = insert(served, "w", scheduling, **more)
    assert (refused.status_code, words in refused.text) == (400, True), refused.text
    assert served.owner.get(VMS).json()["items"] == []


def test_an_instance_is_made_like_its_template(fresh: Served) -> None:
    """Its machine, model or labels would be others than the template says."""
    properties = {"machineType": "a3-highgpu-8g", "scheduling": FLEX, "labels": {"a": "b"}}
    templates = "/compute/v1/projects/research/global/instanceTemplates"
    fresh.owner.post(templates, json={"name": "t", "properties": properties})
    where = f"{VMS}?sourceInstanceTemplate=https://host/compute/v1/projects/research/global/instanceTemplates/t"
    assert fresh.owner.post(where, json={"name": "v1", "labels": {"c": "d"}}).status_code == 200
    found = fresh.owner.get(f"{VMS}/v1").json()
    assert (found["labels"], found["scheduling"]["provisioningModel"]) == (
        {"a": "b", "c": "d"},
        "FLEX_START",
    )
    missing = fresh.owner.post(f"{where}2", json={"name": "v2"})
    assert missing.status_code == 404
    assert "'projects/research/global/instanceTemplates/t2' was not found" in missing.text


def test_what_a_body_says_of_a_template_leaves_the_rest_of_it(fresh: Served) -> None:
    """Who shortens the run of a template's machine would get one of another model, that never ends."""
    templates = "/compute/v1/projects/research/global/instanceTemplates"
    properties = {"machineType": "a3-highgpu-8g", "scheduling": FLEX}
    fresh.owner.post(templates, json={"name": "t", "properties": properties})
    body = {"name": "v1", "scheduling": {"maxRunDuration": {"seconds": 600}}}
    query = {"source_instance_template": "global/instanceTemplates/t"}
    assert fresh.owner.post(VMS, json=body, params=query).status_code == 200
    seen = fresh.owner.get(f"{VMS}/v1").json()["scheduling"]
    assert seen == FLEX | {"maxRunDuration": {"seconds": "600"}}


def test_a_deleted_instance_gives_its_machine_back(fresh: Served) -> None:
    """Machines would be held, and paid for, by instances that nobody can see."""
    for number in range(4):
        insert(fresh, f"v{number}")
    fresh.advance("5m")
    assert fresh.owner.delete(f"{VMS}/v0").json()["operationType"] == "delete"
    fresh.advance("5m")
    insert(fresh, "next")
    fresh.advance("5m")
    assert fresh.owner.get(f"{VMS}/next").json()["status"] == "RUNNING"


def test_an_instance_deleted_between_two_attempts_is_not_tried_again(fresh: Served) -> None:
    """It would start later, seen by nobody, and hold its machine."""
    backend = fresh.engine._backends["simulated"]
    backend.faults = Faults(silent_attempts=9, lose_releases=True)
    insert(fresh, "v1", FLEX, params={"requestValidForDuration": {"seconds": 7200}})
    for _ in range(60):
        (request,) = fresh.engine.list_requests(SYSTEM, RequestQuery()).items
        if request.request.requeue:
            break
        fresh.advance("10s")
    assert request.request.state is RequestState.ENDING
    assert fresh.owner.delete(f"{VMS}/v1").status_code == 200
    backend.faults = Faults()
    fresh.advance("2h")
    (request,) = fresh.engine.list_requests(SYSTEM, RequestQuery()).items
    assert (request.request.state, request.request.attempts) == (RequestState.CANCELLED, 1)


@pytest.fixture
def requeueing(tmp_path: Path) -> Iterator[Served]:
    """A server whose policy puts what lost a host back in line."""
    with serving(tmp_path, policy=evolve(DEFAULT_POLICY, on_host_loss=HostLossPolicy.REQUEUE)) as server:
        yield server


def test_what_was_done_stays_done_when_a_host_is_lost(requeueing: Served) -> None:
    """A client would see an operation or a resize request that was over begin again, and wait for it."""
    scheduling = FLEX | {"instanceTerminationAction": "STOP"}
    wait = {"requestValidForDuration": {"seconds": 7200}}
    done = insert(requeueing, "v1", scheduling, params=wait).json()
    group = make_group(requeueing)
    ask(requeueing, group, resizeBy=3)
    requeueing.advance("5m")
    backend = requeueing.engine._backends["simulated"]
    for unit in range(4):
        backend.host_down("a3", unit)
    requeueing.advance("5m")
    with requeueing.engine.reading() as reader:
        assert {each.state for each in reader.requests(RequestQuery())} == {RequestState.PENDING}
    operation = requeueing.owner.get(f"{ZONE}/operations/{done['name']}").json()
    assert (operation["status"], "error" in operation) == ("DONE", False)
    assert requeueing.owner.get(f"{group}/resizeRequests/r1").json()["state"] == "SUCCEEDED"
    assert requeueing.owner.get(f"{VMS}/v1").json()["status"] == "PENDING"
    requeueing.advance("3h")
    assert requeueing.owner.get(f"{VMS}/v1").json()["status"] == "TERMINATED"


def test_a_wait_said_among_the_scheduling_is_obeyed_and_not_shown(fresh: Served) -> None:
    """Typed clients would fail on a field that the public service never answers."""
    for number in range(4):
        insert(fresh, f"busy-{number}")
    told = insert(fresh, "v", FLEX | {"requestValidForDuration": {"seconds": "600"}})
    assert told.status_code == 200
    seen = fresh.owner.get(f"{VMS}/v").json()
    assert (seen["status"], "requestValidForDuration" in seen["scheduling"]) == ("PENDING", False)
    fresh.advance("11m")
    assert fresh.owner.get(f"{VMS}/v").status_code == 404
