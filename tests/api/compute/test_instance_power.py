"""Instances stopped, started and told otherwise, through the Compute door."""

from __future__ import annotations

import base64
from typing import Any

import httpx2
import pytest

from dws.api.compute_v1.names import fingerprint_of
from dws.engine.ports import DocumentQuery, RequestQuery
from dws.model.access import SYSTEM
from dws.model.request import RequestState
from tests.api.compute.test_instances import FLEX, VMS, ZONE, insert
from tests.api.served import MONDAY_9, Served
from tests.conformance.compute.schema import faults

STAYS = FLEX | {"instanceTerminationAction": "STOP"}


def post(served: Served, name: str, verb: str, body: Any = None) -> httpx2.Response:
    """A verb on an instance."""
    return served.owner.post(f"{VMS}/{name}/{verb}", json=body)


def vm(served: Served, name: str) -> dict[str, Any]:
    """An instance, valid as the public service describes it."""
    found = served.owner.get(f"{VMS}/{name}")
    assert found.status_code == 200, found.text
    assert faults("v1", "Instance", found.json()) == []
    return dict(found.json())


def operation(served: Served, done: httpx2.Response) -> dict[str, Any]:
    """The operation of an answer, as it is now."""
    assert done.status_code == 200, done.text
    found = served.owner.get(f"{ZONE}/operations/{done.json()['name']}").json()
    assert faults("v1", "Operation", found) == []
    return dict(found)


def fill(served: Served) -> None:
    """Let somebody else have every machine that is free."""
    served.submit("all", alternatives=[{"accelerators": "h100:32", "duration": "4h"}], wait=0)


def test_a_stopped_instance_gives_its_machine_back_and_stays(fresh: Served) -> None:
    """Its owner would go on paying; others would not get the machine; or it would be gone for ever."""
    for number in range(4):
        insert(fresh, f"v{number}", {"provisioningModel": "STANDARD"})
    fresh.advance("5m")
    done = post(fresh, "v0", "stop")
    assert (done.json()["status"], done.json()["operationType"]) == ("DONE", "stop")
    fresh.advance("5m")
    stopped = vm(fresh, "v0")
    assert (stopped["status"], "resourceStatus" in stopped) == ("TERMINATED", False)
    assert stopped["lastStopTimestamp"] == "2027-01-11T09:05:00Z"
    first, second = (fresh.engine.usage(SYSTEM, start=at, end=at + 300) for at in (MONDAY_9, MONDAY_9 + 300))
    assert [sum(line.seconds for line in used) for used in (first, second)] == [1_200, 900]
    assert insert(fresh, "next").status_code == 200
    fresh.advance("1m")
    assert vm(fresh, "next")["status"] == "RUNNING"


def test_a_started_instance_runs_again_for_as_long_as_it_was_to(fresh: Served) -> None:
    """A stop could not be taken back, or the second run would end with the first one's time."""
    insert(fresh, "v1", STAYS)
    fresh.advance("50m")
    post(fresh, "v1", "stop")
    fresh.advance("5m")
    assert operation(fresh, post(fresh, "v1", "start"))["status"] == "DONE"
    again = vm(fresh, "v1")
    assert (again["status"], again["lastStartTimestamp"]) == ("RUNNING", "2027-01-11T09:55:00Z")
    assert again["resourceStatus"]["scheduling"] == {"terminationTimestamp": "2027-01-11T10:55:00Z"}
    fresh.advance("59m")
    assert vm(fresh, "v1")["status"] == "RUNNING"
    fresh.advance("5m")
    assert vm(fresh, "v1")["status"] == "TERMINATED"


def test_a_started_instance_that_finds_no_machine_stays_stopped(fresh: Served) -> None:
    """It would disappear with all that was said of it; or its operation would end in success."""
    insert(fresh, "v1")
    insert(fresh, "f1", FLEX | {"maxRunDuration": {"seconds": 36_000}})
    fresh.advance("5m")
    for name in ("v1", "f1"):
        post(fresh, name, "stop")
    fresh.advance("5m")
    fill(fresh)
    started, flex = post(fresh, "v1", "start"), post(fresh, "f1", "start")
    failed = operation(fresh, started)
    assert failed["error"]["errors"][0]["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    assert (vm(fresh, "v1")["status"], vm(fresh, "f1")["status"]) == ("TERMINATED", "PENDING")
    fresh.advance("2m")
    assert "error" in operation(fresh, flex)
    assert vm(fresh, "f1")["status"] == "TERMINATED"
    fresh.advance("4h")
    assert operation(fresh, post(fresh, "v1", "start"))["status"] == "DONE"
    assert vm(fresh, "v1")["status"] == "RUNNING"


def test_a_start_that_waits_can_be_stopped(fresh: Served) -> None:
    """It could not be taken back, and would start when nobody wants it any more."""
    insert(fresh, "v1", STAYS)
    fresh.advance("5m")
    post(fresh, "v1", "stop")
    fresh.advance("5m")
    fill(fresh)
    started = post(fresh, "v1", "start")
    assert post(fresh, "v1", "stop").status_code == 200
    assert vm(fresh, "v1")["status"] == "TERMINATED"
    assert operation(fresh, started)["error"]["errors"][0]["code"] == "OPERATION_CANCELED_BY_USER"


def test_stopping_and_starting_twice_changes_nothing(fresh: Served) -> None:
    """A repeated command would fail, or ask for a second machine."""
    insert(fresh, "v1")
    assert operation(fresh, post(fresh, "v1", "start"))["status"] == "DONE"
    post(fresh, "v1", "stop")
    fresh.advance("5m")
    assert operation(fresh, post(fresh, "v1", "stop"))["status"] == "DONE"
    assert vm(fresh, "v1")["status"] == "TERMINATED"
    assert len(fresh.engine.list_requests(SYSTEM, RequestQuery()).items) == 1


def test_what_has_no_machine_yet_cannot_be_stopped(fresh: Served) -> None:
    """It would be lost in silence, or start after its owner stopped it."""
    fill(fresh)
    insert(fresh, "v1", FLEX)
    refused = post(fresh, "v1", "stop")
    assert (refused.status_code, "it is PENDING" in refused.text) == (400, True)
    assert vm(fresh, "v1")["status"] == "PENDING"
    assert post(fresh, "absent", "stop").status_code == 404


def test_a_groups_instance_is_not_stopped_by_itself(fresh: Served) -> None:
    """Its group would count a machine that it no longer has."""
    templates = "/compute/v1/projects/research/global/instanceTemplates"
    properties = {"machineType": "a3-highgpu-8g", "scheduling": FLEX}
    fresh.owner.post(templates, json={"name": "t", "properties": properties})
    group = {"name": "g", "instanceTemplate": "global/instanceTemplates/t"}
    fresh.owner.post(f"{ZONE}/instanceGroupManagers", json=group)
    wish = {"name": "r", "resizeBy": 1}
    fresh.owner.post(f"{ZONE}/instanceGroupManagers/g/resizeRequests", json=wish)
    (member,) = fresh.owner.get(VMS).json()["items"]
    for verb in ("stop", "start"):
        refused = post(fresh, member["name"], verb)
        assert (refused.status_code, "belongs to a group" in refused.text) == (400, True)
    assert vm(fresh, member["name"])["status"] == "RUNNING"


def test_a_machine_says_where_it_is(fresh: Served) -> None:
    """Programs that place their ranks by what is near could not."""
    insert(fresh, "v1")
    told = vm(fresh, "v1")["resourceStatus"]
    host = told["physicalHostTopology"].pop("host")
    assert told["physicalHostTopology"] == {"cluster": "a3", "block": "b1"}
    assert told["physicalHost"] == f"/a3/b1/{host}"
    assert "scheduling" not in told


# --- what is said of it -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "word", "part", "value"),
    [
        ("setLabels", "labelFingerprint", "labels", {"labels": {"a": "b"}}),
        ("setMetadata", "fingerprint", "metadata", {"items": [{"key": "k", "value": "v"}]}),
        ("setTags", "fingerprint", "tags", {"items": ["x"]}),
    ],
)
def test_a_part_is_replaced_by_who_has_seen_it(
    fresh: Served, verb: str, word: str, part: str, value: dict[str, Any]
) -> None:
    """Two people would overwrite each other's changes."""
    insert(fresh, "v1")
    seen = vm(fresh, "v1")
    mark = seen[word] if word in seen and part == "labels" else seen[part][word]
    assert operation(fresh, post(fresh, "v1", verb, value | {word: mark}))["operationType"] == verb
    changed = vm(fresh, "v1")
    assert (changed["labels"] if part == "labels" else changed[part]["items"]) == next(iter(value.values()))
    for stale in ({word: mark}, {}):
        refused = post(fresh, "v1", verb, value | stale)
        assert refused.status_code == 412
        assert refused.json()["error"]["errors"][0]["reason"] == "conditionNotMet"
    assert vm(fresh, "v1") == changed


def test_a_fingerprint_survives_being_decoded() -> None:
    """gcloud sends one back in the alphabet of URLs: every third change of labels would be refused."""
    for number in range(100):
        mark = fingerprint_of({"a": str(number)})
        assert base64.urlsafe_b64encode(base64.urlsafe_b64decode(mark)).decode() == mark


def test_changing_one_part_leaves_the_marks_of_the_others(fresh: Served) -> None:
    """SkyPilot sets labels while others set metadata: its change would be refused for nothing."""
    insert(fresh, "v1")
    before = vm(fresh, "v1")
    post(fresh, "v1", "setMetadata", {"items": [], "fingerprint": before["metadata"]["fingerprint"]})
    post(fresh, "v1", "stop")
    labels = {"labels": {"a": "b"}, "labelFingerprint": before["labelFingerprint"]}
    assert post(fresh, "v1", "setLabels", labels).status_code == 200


def test_the_next_run_is_as_it_is_told_to_be(fresh: Served) -> None:
    """It would run on as before, or change while it runs."""
    insert(fresh, "v1", STAYS)
    told = {"maxRunDuration": {"seconds": 7200}}
    refused = post(fresh, "v1", "setScheduling", told)
    assert (refused.status_code, "stop it first" in refused.text) == (400, True)
    post(fresh, "v1", "stop")
    fresh.advance("5m")
    assert post(fresh, "v1", "setMachineType", {"machineType": "n9"}).status_code == 400
    assert post(fresh, "v1", "setScheduling", told).status_code == 200
    post(fresh, "v1", "start")
    again = vm(fresh, "v1")
    assert again["scheduling"]["provisioningModel"] == "FLEX_START"
    assert again["resourceStatus"]["scheduling"]["terminationTimestamp"] == "2027-01-11T11:05:00Z"


def test_a_stopped_instance_starts_as_another_machine(fresh: Served) -> None:
    """A larger machine would take a new instance, or the old type would be started again."""
    vms = VMS.replace("us-central1-a", "us-central1-b")
    body = {"name": "v1", "machineType": "zones/us-central1-b/machineTypes/e2-medium"}
    assert fresh.owner.post(vms, json=body).status_code == 200
    fresh.advance("1m")
    wanted = {"machineType": "zones/us-central1-b/machineTypes/a2-highgpu-8g"}
    assert fresh.owner.post(f"{vms}/v1/setMachineType", json=wanted).status_code == 400
    fresh.owner.post(f"{vms}/v1/stop")
    fresh.advance("1m")
    assert fresh.owner.post(f"{vms}/v1/setMachineType", json=wanted).status_code == 200
    fresh.owner.post(f"{vms}/v1/start")
    fresh.advance("1m")
    again = fresh.owner.get(f"{vms}/v1").json()
    assert (again["status"], again["machineType"].rpartition("/")[2]) == ("RUNNING", "a2-highgpu-8g")
    (request,) = fresh.engine.list_requests(SYSTEM, RequestQuery(states=(RequestState.ACTIVE,))).items
    assert request.request.grant is not None
    assert request.request.grant.pool == "a2"


def test_a_protected_instance_is_not_deleted(fresh: Served) -> None:
    """A word meant to keep it would be kept and not obeyed."""
    insert(fresh, "v1", deletionProtection=True)
    assert vm(fresh, "v1")["deletionProtection"] is True
    assert fresh.owner.delete(f"{VMS}/v1").status_code == 400
    post(fresh, "v1", "setDeletionProtection?deletionProtection=false")
    assert fresh.owner.delete(f"{VMS}/v1").status_code == 200


def test_a_stopped_instance_is_there_when_others_are_long_forgotten(fresh: Served) -> None:
    """Who stops an instance for a holiday would come back to nothing."""
    insert(fresh, "v1", FLEX)
    insert(fresh, "v2", FLEX)
    fresh.advance("5m")
    post(fresh, "v1", "stop")
    fresh.advance("40d")
    assert vm(fresh, "v1")["status"] == "TERMINATED"
    assert fresh.owner.get(f"{VMS}/v2").status_code == 404
    with fresh.engine.reading() as reader:
        kept = reader.documents(DocumentQuery(kind="compute.instance"))
        assert [each.name for each in kept] == ["v1"]
        assert [each.id for each in reader.requests(RequestQuery())] == [kept[0].request]
