"""Resize requests through the Compute door: asked for, waiting with a reason, there, given up, over."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from dws.api.compute_v1.resize_requests import state_of
from dws.backends.simulated.faults import Faults
from dws.engine.ports import DocumentQuery
from dws.model.evolve import evolve
from dws.model.request import RequestState
from tests.api.served import Served
from tests.conformance.compute.schema import faults

PROJECT = "/compute/v1/projects/research"
TEMPLATES = f"{PROJECT}/global/instanceTemplates"
ZONE = f"{PROJECT}/zones/us-central1-a"
REGION = f"{PROJECT}/regions/us-central1"
FLEX = {
    "machineType": "a3-highgpu-8g",
    "scheduling": {"provisioningModel": "FLEX_START", "maxRunDuration": {"seconds": "7200"}},
    "labels": {"team": "a"},
}


def make_group(served: Served, where: str = ZONE, properties: Any = FLEX, **more: Any) -> str:
    """A group `g` of template `t`; gives its path."""
    template = served.owner.post(TEMPLATES, json={"name": "t", "properties": properties})
    assert template.status_code in (200, 409), template.text
    body = {"name": "g", "instanceTemplate": "global/instanceTemplates/t", "targetSize": 0} | more
    done = served.owner.post(f"{where}/instanceGroupManagers", json=body)
    assert done.status_code == 200, done.text
    return f"{where}/instanceGroupManagers/g"


def ask(served: Served, group: str, name: str = "r1", **more: Any) -> httpx2.Response:
    """A resize request, for two instances unless said otherwise."""
    size = {} if "instances" in more else {"resizeBy": 2}
    return served.owner.post(f"{group}/resizeRequests", json={"name": name} | size | more)


def get(served: Served, path: str, schema: str = "") -> Any:
    """What is there, which must be as Google's schema has it."""
    answer = served.owner.get(path)
    assert answer.status_code == 200, answer.text
    if schema:
        assert faults("v1", schema, answer.json()) == []
    return answer.json()


RR = "InstanceGroupManagerResizeRequest"
IGM = "InstanceGroupManager"


def managed(served: Served, group: str) -> list[dict[str, Any]]:
    """The managed instances of a group."""
    answer = served.owner.post(f"{group}/listManagedInstances").json()
    assert faults("v1", "InstanceGroupManagersListManagedInstancesResponse", answer) == []
    return answer["managedInstances"]


@pytest.mark.parametrize("where", [ZONE, REGION])
def test_a_request_that_fits_succeeds_and_ends_with_its_run(fresh: Served, where: str) -> None:
    """Flex start would not start, or its instances outlive what was asked for."""
    group = make_group(fresh, where)
    done = ask(fresh, group).json()
    assert (done["status"], done["targetLink"].endswith("/instanceGroupManagers/g")) == ("DONE", True)
    fresh.advance("10m")
    found = get(fresh, f"{group}/resizeRequests/r1", RR)
    assert (found["state"], found["resizeBy"], found["status"]) == ("SUCCEEDED", 2, {})
    there = get(fresh, group, IGM)
    assert (there["targetSize"], there["status"]["isStable"], there["currentActions"]["none"]) == (2, True, 2)
    assert {m["currentAction"] for m in managed(fresh, group)} == {"NONE"}
    assert all("/zones/us-central1-a/instances/g-" in m["instance"] for m in managed(fresh, group))
    fresh.advance("3h")
    assert get(fresh, group, IGM)["targetSize"] == 0
    assert managed(fresh, group) == []
    assert get(fresh, f"{group}/resizeRequests/r1", RR)["state"] == "SUCCEEDED"


def test_one_that_waits_says_why_and_until_when(fresh: Served) -> None:
    """ "Pending" without a reason: nobody could tell a busy fleet from a wrong request."""
    group = make_group(fresh)
    ask(fresh, group, "first", resizeBy=3)
    ask(fresh, group, "second", resizeBy=3)
    found = get(fresh, f"{group}/resizeRequests/second", RR)
    (error,) = found["status"]["lastAttempt"]["error"]["errors"]
    facts = error["errorDetails"][0]["errorInfo"]["metadatas"]
    assert (found["state"], error["code"]) == ("ACCEPTED", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    assert facts["estimatedAvailabilityTime"].startswith("2027-01-11T1")
    assert error["message"].startswith("us-central1-a: needs 3 free hosts")
    there = get(fresh, group, IGM)
    assert (there["targetSize"], there["status"]["isStable"]) == (6, False)
    sets = get(fresh, f"{ZONE}/instanceGroups/g", "InstanceGroup")
    fresh.advance("10m")
    sets = get(fresh, f"{ZONE}/instanceGroups/g", "InstanceGroup")
    assert sets["size"] == 3
    errors = get(fresh, f"{group}/listErrors", "InstanceGroupManagersListErrorsResponse")
    assert len(errors["items"]) == 3
    fresh.advance("5h")
    assert get(fresh, f"{group}/resizeRequests/second", RR)["state"] == "SUCCEEDED"


def test_one_larger_than_the_fleet_waits_and_says_what_would_fit(fresh: Served) -> None:
    """The public service takes it; a user would wait for ever without being told."""
    group = make_group(fresh)
    assert ask(fresh, group, resizeBy=40).status_code == 200
    found = get(fresh, f"{group}/resizeRequests/r1", RR)
    (error,) = found["status"]["lastAttempt"]["error"]["errors"]
    assert found["state"] == "ACCEPTED"
    assert "will never start" in error["message"]
    assert "ask for at most 4 hosts" in error["message"]
    info = error["errorDetails"][0]["errorInfo"]
    assert info["metadatas"]["estimatedAvailabilityTime"] == "9999-12-31T23:59:59.997Z"


def test_cancel_while_it_waits_and_never_after(fresh: Served) -> None:
    """What nobody wants any more would start; or running work be cancelled by mistake (also A05)."""
    group = make_group(fresh)
    ask(fresh, group, "first", resizeBy=4)
    ask(fresh, group, "second", resizeBy=4)
    early = fresh.owner.delete(f"{group}/resizeRequests/second")
    assert (early.status_code, "cancel it first" in early.text) == (400, True)
    done = fresh.owner.post(f"{group}/resizeRequests/second/cancel")
    assert done.json()["targetLink"].endswith("/resizeRequests/second")
    assert get(fresh, f"{group}/resizeRequests/second", RR)["state"] == "CANCELLED"
    assert get(fresh, group, IGM)["targetSize"] == 4
    fresh.advance("10m")
    for name in ("first", "second"):
        late = fresh.owner.post(f"{group}/resizeRequests/{name}/cancel")
        assert (late.status_code, "cannot be cancelled" in late.text) == (400, True)
    assert fresh.owner.delete(f"{group}/resizeRequests/first").status_code == 200
    assert get(fresh, group, IGM)["targetSize"] == 4  # the record goes, the instances stay
    names = [r["name"] for r in get(fresh, f"{group}/resizeRequests")["items"]]
    assert names == ["second"]
    accepted = get(fresh, f"{group}/resizeRequests?filter=state eq ACCEPTED")
    assert accepted["items"] == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"resizeBy": 0}, "between 1 and 4096"),
        ({"resizeBy": 4097}, "between 1 and 4096"),
        ({"resizeBy": 2, "instances": [{"name": "a"}]}, "exactly one of resizeBy and instances"),
        ({"instances": [{"name": "a"}, {"name": "a"}]}, "given twice"),
        ({"instances": []}, "exactly one of resizeBy and instances"),
        ({"requestedRunDuration": {"seconds": 8 * 86400}}, "requestedRunDuration.seconds': '691200'"),
        ({"name": "Bad"}, "resource.name"),
        ({"size": 3}, 'Unknown name "size"'),
    ],
)
def test_a_wrong_request_changes_nothing(fresh: Served, more: dict[str, Any], words: str) -> None:
    """A mistake would be queued for days instead of being told."""
    group = make_group(fresh)
    refused = ask(fresh, group, **more)
    assert refused.status_code == 400
    assert words in refused.json()["error"]["message"]
    assert get(fresh, f"{group}/resizeRequests")["items"] == []
    assert get(fresh, group)["targetSize"] == 0


def test_names_are_used_once_and_instances_carry_theirs(fresh: Served) -> None:
    """Two requests under one name (also A02); or a client that named its instances would not find them."""
    group = make_group(fresh)
    assert ask(fresh, group, instances=[{"name": "left"}, {"name": "right"}]).status_code == 200
    again = ask(fresh, group)
    assert again.status_code == 409
    assert "resizeRequests/r1' already exists" in again.text
    assert ask(fresh, group, "r2", instances=[{"name": "left"}]).status_code == 409
    assert sorted(m["name"] for m in managed(fresh, group)) == ["left", "right"]


def test_a_plain_template_needs_a_run_duration(fresh: Served) -> None:
    """The older way to ask, without a provisioning model, is still what SkyPilot sends."""
    group = make_group(fresh, properties={"machineType": "a3-highgpu-8g"})
    refused = ask(fresh, group)
    assert refused.status_code in (400, 412)
    assert ask(fresh, group, requestedRunDuration={"seconds": 3600}).status_code == 200
    fresh.advance("30m")
    assert get(fresh, group)["targetSize"] == 2
    fresh.advance("1h")
    assert managed(fresh, group) == []


def test_what_is_not_there_is_not_found(fresh: Served) -> None:
    """SkyPilot tells "absent" from "broken" by these words."""
    missing = fresh.owner.get(f"{ZONE}/instanceGroupManagers/no/resizeRequests")
    assert missing.status_code == 404
    assert (
        "The resource 'projects/research/zones/us-central1-a/instanceGroupManagers/no' was not found"
        in (missing.json()["error"]["message"])
    )
    group = make_group(fresh)
    assert fresh.owner.get(f"{group}/resizeRequests/no").status_code == 404
    assert fresh.owner.post(f"{group}/resizeRequests/no/cancel").status_code == 404


def test_a_failed_attempt_that_is_tried_again_is_not_over(fresh: Served) -> None:
    """A client would take what is still coming for cancelled, and ask for it twice."""
    ask(fresh, make_group(fresh), resizeBy=40)
    with fresh.engine.reading() as reader:
        (kept,) = reader.documents(DocumentQuery(kind="compute.resizeRequest"))
        request = reader.request(kept.request)
    assert request is not None
    ending = evolve(request, state=RequestState.ENDING, requeue=True)
    assert state_of(ending) == "ACCEPTED"
    assert state_of(evolve(ending, requeue=False)) == "CANCELLED"


def test_a08_what_an_attempt_failed_with_is_told_whole(fresh: Served) -> None:
    """O-A08: a client would choke on it; or see an empty error where nothing failed."""
    said = 'the "north" rack\nhas no power: K\u00fchlung ausgefallen'
    backend = fresh.engine._backends["simulated"]
    backend.faults = Faults(refuse=said)
    group = make_group(fresh)
    ask(fresh, group)
    fresh.advance("1m")
    for found in (
        get(fresh, f"{group}/resizeRequests/r1", RR),
        get(fresh, f"{group}/resizeRequests")["items"][0],
    ):
        (error,) = found["status"]["lastAttempt"]["error"]["errors"]
        assert (found["state"], bool(error["code"]), said in error["message"]) == ("ACCEPTED", True, True)
    backend.faults = Faults(reject=said)
    fresh.advance("2h")
    found = get(fresh, f"{group}/resizeRequests/r1", RR)
    (error,) = found["status"]["error"]["errors"]
    assert (found["state"], bool(error["code"]), said in error["message"]) == ("FAILED", True, True)
    backend.faults = Faults()
    ask(fresh, group, "r2")
    fresh.advance("5m")
    found = get(fresh, f"{group}/resizeRequests/r2", RR)
    assert (found["state"], found["status"]) == ("SUCCEEDED", {})


def test_a09_instances_are_of_the_model_that_was_asked_for(fresh: Served) -> None:
    """O-A09: flex start asked for, standard instances paid for."""
    scheduling = {
        "provisioningModel": "FLEX_START",
        "maxRunDuration": {"seconds": "7200"},
        "instanceTerminationAction": "DELETE",
    }
    group = make_group(fresh, properties=FLEX | {"scheduling": scheduling})
    ask(fresh, group)
    fresh.advance("5m")
    template = get(fresh, f"{TEMPLATES}/t", "InstanceTemplate")
    assert template["properties"]["scheduling"] == scheduling
    assert get(fresh, group, IGM)["instanceTemplate"].endswith("/global/instanceTemplates/t")
    there = get(fresh, f"{ZONE}/instances", "InstanceList")["items"]
    assert [each["scheduling"] for each in there] == [scheduling] * 2
    ends = {each["resourceStatus"]["scheduling"]["terminationTimestamp"] for each in there}
    assert ends == {"2027-01-11T11:00:00Z"}
