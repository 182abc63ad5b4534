"""Instance templates through the Compute door: kept as said, found under every name, used once."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.api.served import Served

PROJECT = "/compute/v1/projects/research"
GLOBAL = f"{PROJECT}/global/instanceTemplates"
REGIONAL = f"{PROJECT}/regions/us-central1/instanceTemplates"
FLEX = {
    "machineType": "a3-highgpu-8g",
    "scheduling": {"provisioningModel": "FLEX_START", "maxRunDuration": {"seconds": 7200}},
    "labels": {"Team_x": "a"},
    "disks": [{"boot": True, "initializeParams": {"diskSizeGb": "10"}}],
}


def insert(served: Served, name: str = "t1", where: str = GLOBAL, **properties: Any) -> httpx2.Response:
    return served.owner.post(where, json={"name": name, "properties": FLEX | properties})


@pytest.mark.parametrize("where", [GLOBAL, REGIONAL])
def test_a_template_comes_back_as_it_was_said(fresh: Served, where: str) -> None:
    """Groups would be made of something else than what their owner wrote."""
    done = insert(fresh, where=where).json()
    assert (done["status"], done["operationType"]) == ("DONE", "insert")
    assert done["targetLink"].endswith(f"{where.removeprefix(PROJECT)}/t1")
    found = fresh.owner.get(f"{where}/t1").json()
    assert found["id"] == done["targetId"]
    duration = {"seconds": "7200"}
    scheduling = {"provisioningModel": "FLEX_START", "maxRunDuration": duration}
    assert found["properties"] == FLEX | {"scheduling": scheduling}
    assert fresh.owner.get(where).json()["items"] == [found]
    scope = where.removeprefix(f"{PROJECT}/").removesuffix("/instanceTemplates")
    everywhere = fresh.owner.get(f"{PROJECT}/aggregated/instanceTemplates?includeAllScopes=True").json()
    assert everywhere["items"][scope] == {"instanceTemplates": [found]}


def test_a_template_is_the_same_in_every_version(fresh: Served) -> None:
    """gcloud alpha would not find what gcloud made."""
    insert(fresh)
    for version in ("alpha", "beta"):
        found = fresh.owner.get(GLOBAL.replace("v1", version) + "/t1").json()
        assert f"/compute/{version}/" in found["selfLink"]


def test_snake_case_and_loose_numbers_are_understood(fresh: Served) -> None:
    """Python scripts that write fields as the library spells them would be refused."""
    body = {"machine_type": "m", "scheduling": {"max_run_duration": {"seconds": "60"}}}
    assert fresh.owner.post(GLOBAL, json={"name": "s", "properties": body}).status_code == 200
    found = fresh.owner.get(f"{GLOBAL}/s").json()["properties"]
    assert found == {"machineType": "m", "scheduling": {"maxRunDuration": {"seconds": "60"}}}


@pytest.mark.parametrize(
    ("body", "status", "reason", "words"),
    [
        ({"name": "t", "properties": {}}, 400, "required", "'resource.properties.machineType' not specified"),
        ({"name": "T!", "properties": FLEX}, 400, "invalid", "'resource.name': 'T!'. Must be a match"),
        ({"name": "t", "properties": FLEX | {"x": 1}}, 400, "invalid", 'Unknown name "x" at \'properties\''),
        ({"name": "t", "properties": FLEX | {"labels": 3}}, 400, "invalid", "'resource.properties.labels': '3'"),
        (
            {"name": "t", "properties": {"scheduling": {"provisioningModel": "FLEX"}}},
            400,
            "invalid",
            "'resource.properties.scheduling.provisioningModel': 'FLEX'. It must be one of FLEX_START",
        ),
        (
            {"name": "t", "properties": {"scheduling": {"maxRunDuration": {"seconds": "1h"}}}},
            400,
            "invalid",
            "maxRunDuration.seconds': '1h'. A whole number is needed",
        ),
        ([1], 400, "invalid", "array"),
    ],
)
def test_a_wrong_body_says_what_is_wrong(
    served: Served, body: Any, status: int, reason: str, words: str
) -> None:
    """A misspelt field would be ignored, or an error say nothing its reader could use."""
    refused = served.owner.post(GLOBAL, json=body)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["errors"][0]["reason"]) == (status, status, reason)
    assert words in error["message"]
    assert served.owner.get(GLOBAL).json()["items"] == []


def test_a_name_is_used_once_and_free_again_after_deletion(fresh: Served) -> None:
    """Two templates of one name; or one that can never be made again."""
    insert(fresh)
    twice = insert(fresh)
    assert twice.status_code == 409
    assert twice.json()["error"]["message"] == (
        "The resource 'projects/research/global/instanceTemplates/t1' already exists"
    )
    assert fresh.owner.delete(f"{GLOBAL}/t1").json()["operationType"] == "delete"
    gone = fresh.owner.get(f"{GLOBAL}/t1")
    assert gone.status_code == 404
    assert "'projects/research/global/instanceTemplates/t1' was not found" in gone.text
    assert fresh.owner.delete(f"{GLOBAL}/t1").status_code == 404
    assert insert(fresh).status_code == 200


def test_a_repeated_call_changes_nothing(fresh: Served) -> None:
    """A retry after a lost answer would fail, though the first one had worked."""
    body = {"name": "t1", "properties": FLEX}
    first = fresh.owner.post(f"{GLOBAL}?requestId=9c5b94b1-35ad-49bb-b118-8e8fc24abf80", json=body)
    again = fresh.owner.post(f"{GLOBAL}?requestId=9c5b94b1-35ad-49bb-b118-8e8fc24abf80", json=body)
    assert again.json() == first.json()
    other = fresh.owner.post(
        f"{GLOBAL}?requestId=9c5b94b1-35ad-49bb-b118-8e8fc24abf80", json=body | {"name": "t2"}
    )
    assert (other.status_code, other.json()["error"]["errors"][0]["reason"]) == (409, "requestIdReused")


def test_operations_are_found_by_name_and_listed(fresh: Served) -> None:
    """A client that waits for its change would wait for ever."""
    done = insert(fresh).json()
    where = f"{PROJECT}/global/operations"
    assert fresh.owner.post(f"{where}/{done['name']}/wait").json() == done
    assert fresh.owner.get(f"{where}/{done['name']}").json() == done
    assert fresh.owner.get(where).json()["items"] == [done]
    assert fresh.owner.delete(f"{where}/{done['name']}").status_code == 200
    assert fresh.owner.get(f"{where}/{done['name']}").status_code == 404
    assert fresh.owner.get(f"{GLOBAL}/t1").status_code == 200


def test_who_may_only_look_changes_nothing(fresh: Served) -> None:
    """Templates could be made or removed by anybody."""
    insert(fresh)
    missing = fresh.owner.get(f"{PROJECT}/regions/nowhere/instanceTemplates")
    assert (missing.status_code, "regions/nowhere' was not found" in missing.text) == (404, True)
