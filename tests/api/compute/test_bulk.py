"""Bulk inserts through the Compute door: many instances in one call."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.api.compute.test_instances import FLEX, VMS, ZONE, insert
from tests.api.served import Served

PROJECT = "/compute/v1/projects/research"
REGION = f"{PROJECT}/regions/us-central1"
A3 = {"machineType": "a3-highgpu-8g"}


def bulk(served: Served, place: str = ZONE, **more: Any) -> httpx2.Response:
    """Insert two of a pattern, or what `more` says."""
    body = {"count": "2", "namePattern": "b-#", "instanceProperties": A3} | more
    body = {name: value for name, value in body.items() if value is not None}
    return served.owner.post(f"{place}/instances/bulkInsert", json=body)


def made(served: Served, place: str = ZONE, **more: Any) -> dict[str, Any]:
    """The operation of the whole, when it is done."""
    answer = bulk(served, place, **more)
    assert answer.status_code == 200, answer.text
    served.advance("5m")
    path = answer.json()["selfLink"].partition("/compute/")[2]
    found: dict[str, Any] = served.owner.get(f"/compute/{path}").json()
    return found


def names(served: Served, zone: str = ZONE) -> list[str]:
    """The instances of a zone that run."""
    found = served.owner.get(f"{zone}/instances").json()["items"]
    return [each["name"] for each in found if each["status"] == "RUNNING"]


def counted(served: Served, operation: dict[str, Any], zone: str = ZONE) -> list[str]:
    """The instances that gcloud would say were created: those of the zone's operations of the group that
    inserted one and are done."""
    wanted = f'operationGroupId eq ".*\\b{operation["operationGroupId"]}\\b.*"'
    found = served.owner.get(f"{zone}/operations", params={"filter": wanted}).json()["items"]
    return [
        each["targetLink"].rpartition("/instances/")[2]
        for each in found
        if each["operationType"] == "insert" and each["status"] == "DONE" and "error" not in each
    ]


def test_they_are_all_made_under_the_names_of_the_pattern(fresh: Served) -> None:
    """A cluster would come up with machines missing, or under names nobody can predict."""
    done = made(fresh, count="3", namePattern="w-##-gpu")
    assert (done["status"], done["operationType"]) == ("DONE", "bulkInsert")
    assert done["instancesBulkInsertOperationMetadata"]["perLocationStatus"] == {
        "zones/us-central1-a": {
            "status": "DONE",
            "targetVmCount": 3,
            "createdVmCount": 3,
            "failedToCreateVmCount": 0,
            "deletedVmCount": 0,
        }
    }
    assert names(fresh) == ["w-01-gpu", "w-02-gpu", "w-03-gpu"] == counted(fresh, done)
    fresh.owner.delete(f"{VMS}/w-01-gpu")
    made(fresh, count="1", namePattern="w-##-gpu")
    assert names(fresh) == ["w-02-gpu", "w-03-gpu", "w-04-gpu"], "behind the largest number there"


def test_all_of_them_or_none(fresh: Served) -> None:
    """Half a gang would hold machines it cannot use."""
    insert(fresh, "busy")
    insert(fresh, "busy-too")
    failed = made(fresh, count="3")
    assert failed["error"]["errors"][0]["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    status = failed["instancesBulkInsertOperationMetadata"]["perLocationStatus"]["zones/us-central1-a"]
    assert (status["createdVmCount"], status["failedToCreateVmCount"]) == (0, 3)
    assert names(fresh) == ["busy", "busy-too"]
    assert counted(fresh, failed) == []


def test_at_least_so_many_of_them(fresh: Served) -> None:
    """Who can use fewer would get none, or fewer than there are."""
    insert(fresh, "busy")
    done = made(fresh, count="6", minCount="2")
    assert names(fresh) == ["b-1", "b-2", "b-3", "busy"]
    assert counted(fresh, done) == ["b-1", "b-2", "b-3"]
    status = done["instancesBulkInsertOperationMetadata"]["perLocationStatus"]["zones/us-central1-a"]
    assert (status["createdVmCount"], status["failedToCreateVmCount"]) == (3, 3)
    assert "error" in made(fresh, count="6", minCount="2", namePattern="c-#")


def test_names_of_their_own_and_what_a_template_says(fresh: Served) -> None:
    """SkyPilot names its machines itself; a template's settings would be lost, or not be overridden."""
    template = {"name": "t", "properties": A3 | {"labels": {"a": "1", "b": "2"}, "description": "of t"}}
    assert fresh.owner.post(f"{PROJECT}/global/instanceTemplates", json=template).is_success
    done = made(
        fresh,
        count=None,
        namePattern=None,
        perInstanceProperties={"head": {"hostname": "head.example.com"}, "worker": {}},
        sourceInstanceTemplate="global/instanceTemplates/t",
        instanceProperties={"labels": {"b": "3"}},
    )
    assert counted(fresh, done) == ["head", "worker"] == names(fresh)
    head = fresh.owner.get(f"{VMS}/head").json()
    assert (head["labels"], head["description"]) == ({"a": "1", "b": "3"}, "of t")
    assert head["hostname"] == "head.example.com"


def test_a_region_has_them_in_the_zone_with_room(fresh: Served) -> None:
    """They would be looked for in a zone without such machines, or be spread over zones."""
    done = made(fresh, REGION, instanceProperties={"machineType": "a2-highgpu-8g"})
    zone_b = ZONE.replace("-a", "-b")
    assert list(done["instancesBulkInsertOperationMetadata"]["perLocationStatus"]) == ["zones/us-central1-b"]
    assert names(fresh, zone_b) == ["b-1", "b-2"] == counted(fresh, done, zone_b)
    assert counted(fresh, done) == [], "nothing in the other zone"
    one = fresh.owner.get(f"{zone_b}/operations").json()["items"][0]
    assert one["zone"].endswith("zones/us-central1-b")
    link = one["selfLink"].partition("/compute/")[2]
    assert fresh.owner.get(f"/compute/{link}").json() == one
    assert fresh.owner.post(f"/compute/{link}/wait").json()["status"] == "DONE"
    listed = fresh.owner.get(f"{REGION}/operations").json()["items"]
    assert [each["operationType"] for each in listed] == ["bulkInsert"]
    everywhere = fresh.owner.get(f"{PROJECT}/aggregated/operations").json()["items"]
    assert len(everywhere["zones/us-central1-b"]["operations"]) == 2
    assert fresh.owner.delete(f"/compute/{link}").is_success
    assert len(fresh.owner.get(f"{zone_b}/operations").json()["items"]) == 1


def test_a_location_policy_is_obeyed(fresh: Served) -> None:
    """They would run where their owner must not run anything."""
    a2 = {"machineType": "a2-highgpu-8g"}
    deny = {"locations": {"zones/us-central1-b": {"preference": "DENY"}}}
    refused = bulk(fresh, REGION, instanceProperties=a2, locationPolicy=deny)
    assert refused.status_code == 400 and "us-central1-a" in refused.text
    few = {"locations": {"zones/us-central1-a": {"constraints": {"maxCount": "1"}}}}
    assert bulk(fresh, REGION, locationPolicy=few).status_code == 400
    only = {"zones": [{"zone": "zones/us-central1-a"}], "targetShape": "ANY_SINGLE_ZONE"}
    made(fresh, REGION, locationPolicy=only)
    assert names(fresh) == ["b-1", "b-2"]


def test_flex_start_waits_together(fresh: Served) -> None:
    """A gang would not wait for its machines, or come one by one."""
    insert(fresh, "busy")
    for other in ("busy-2", "busy-3"):
        insert(fresh, other)
    waiting = bulk(fresh, instanceProperties=A3 | {"scheduling": FLEX}).json()
    assert waiting["status"] == "RUNNING"
    assert [each["status"] for each in fresh.owner.get(VMS).json()["items"][:2]] == ["PENDING"] * 2
    fresh.owner.delete(f"{VMS}/busy")
    fresh.advance("5m")
    assert names(fresh)[:2] == ["b-1", "b-2"]


@pytest.mark.parametrize("place", [ZONE, REGION], ids=["zonal", "regional"])
def test_a_name_is_used_once_in_a_zone(fresh: Served, place: str) -> None:
    """Two machines would answer to one name, or one would take the other's place."""
    insert(fresh, "b-1")
    taken = bulk(fresh, place, count=None, namePattern=None, perInstanceProperties={"b-0": {}, "b-1": {}})
    assert taken.status_code == 409 and "zones/us-central1-a/instances/b-1" in taken.text
    assert "b-0" not in fresh.owner.get(VMS).text
    made(fresh, place, count="1", namePattern="c-#")
    assert insert(fresh, "c-1").status_code == 409, "a regional one is in this zone"


def test_a_repeated_call_makes_nothing_twice(fresh: Served) -> None:
    """A retry after a lost answer would double the cluster."""
    body = {"count": "1", "namePattern": "b-#", "instanceProperties": A3}
    same = {"requestId": "2f1ad4f7-2a0b-4f3b-9f0e-000000000001"}
    first, second = (
        fresh.owner.post(f"{ZONE}/instances/bulkInsert", json=body, params=same).json() for _ in range(2)
    )
    assert first["name"] == second["name"]
    assert first["operationGroupId"] == second["operationGroupId"]
    fresh.advance("5m")
    assert names(fresh) == ["b-1"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"count": "0"}, "count"),
        ({"minCount": "3"}, "minCount"),
        ({"namePattern": "b"}, "namePattern"),
        ({"namePattern": "b-#-#"}, "namePattern"),
        ({"namePattern": "B-#"}, "namePattern"),
        ({"namePattern": None}, "namePattern"),
        ({"perInstanceProperties": {"a": {}}}, "namePattern"),
        ({"namePattern": None, "perInstanceProperties": {"a": {}}}, "count"),
        ({"instanceProperties": {}}, "instanceProperties"),
        ({"instanceProperties": {"labels": {"a": "b"}}}, "instanceProperties.machineType"),
        ({"instanceProperties": {"machineType": "h9-none"}}, "instanceProperties.machineType"),
        ({"sourceInstanceTemplate": "global/instanceTemplates/none"}, "instanceTemplates/none"),
        ({"locationPolicy": {"targetShape": "ANY"}}, "locationPolicy"),
        ({"instanceFlexibilityPolicy": {"instanceSelections": {"a": {}}}}, "instanceFlexibilityPolicy"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(served: Served, wrong: dict[str, Any], field: str) -> None:
    """A mistake would be found out when the cluster is up."""
    answer = bulk(served, **wrong)
    assert answer.status_code in (400, 404) and field in answer.json()["error"]["message"], answer.text
    assert served.owner.get(VMS).json()["items"] == []
