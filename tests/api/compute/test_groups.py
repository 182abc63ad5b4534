"""Instance groups through the Compute door: made, sized, shown the same everywhere, given back."""

from __future__ import annotations

from typing import Any

import pytest

from dws.engine.ports import DocumentQuery
from tests.api.compute.test_resize_requests import (
    FLEX,
    IGM,
    PROJECT,
    REGION,
    TEMPLATES,
    ZONE,
    ask,
    get,
    make_group,
    managed,
)
from tests.api.served import Served

TIMED = {"machineType": "a3-highgpu-8g", "scheduling": {"maxRunDuration": {"seconds": "7200"}}}
BULK = {"targetSizePolicy": {"mode": "BULK"}}


@pytest.mark.parametrize("where", [ZONE, REGION])
def test_a_group_is_found_wherever_clients_look(fresh: Served, where: str) -> None:
    """`gcloud compute instance-groups managed list` asks for four lists; one missing and it fails."""
    group = make_group(fresh, where, description="ours")
    found = get(fresh, group, IGM)
    assert (found["baseInstanceName"], found["description"], found["targetSize"]) == ("g", "ours", 0)
    assert found["instanceTemplate"].endswith("/projects/research/global/instanceTemplates/t")
    assert found["status"]["isStable"] is True
    assert get(fresh, f"{where}/instanceGroupManagers")["items"] == [found]
    everywhere = get(
        fresh, f"{PROJECT}/aggregated/instanceGroupManagers", "InstanceGroupManagerAggregatedList"
    )
    assert everywhere["items"][where.removeprefix(f"{PROJECT}/")] == {"instanceGroupManagers": [found]}
    (its_set,) = get(fresh, f"{where}/instanceGroups", "InstanceGroupList")["items"]
    assert (its_set["name"], its_set["size"]) == ("g", 0)
    assert get(fresh, f"{where}/autoscalers", "AutoscalerList")["items"] == []
    assert fresh.owner.get(f"{where}/autoscalers/a").status_code == 404


def test_a06_group_deleted_while_a_resize_request_is_queued(fresh: Served) -> None:
    """What nobody can see any more would start, and run up a bill."""
    group = make_group(fresh)
    ask(fresh, group, "first", resizeBy=3)
    ask(fresh, group, "second", resizeBy=3)
    fresh.advance("10m")
    done = fresh.owner.delete(group).json()
    assert (done["status"], done["operationType"]) == ("DONE", "delete")
    fresh.advance("5h")
    assert fresh.owner.get(group).status_code == 404
    requests = fresh.owner.get("/dws/v1/projects/research/requests").json()["items"]
    assert {r["state"] for r in requests} == {"CANCELLED", "COMPLETED"}
    again = make_group(fresh)
    assert (get(fresh, again)["targetSize"], get(fresh, f"{again}/resizeRequests")["items"]) == (0, [])


def test_a07_a_partial_update_does_not_clear_what_was_not_sent(fresh: Served) -> None:
    """An update of one field would wipe the others."""
    group = make_group(fresh, description="ours", namedPorts=[{"name": "http", "port": 80}])
    before = get(fresh, group)
    done = fresh.owner.patch(group, json={"description": "theirs"})
    assert done.json()["operationType"] == "patch"
    after = get(fresh, group, IGM)
    assert after["description"] == "theirs"
    changed = {key for key in after if after[key] != before[key]}
    assert changed == {"description", "fingerprint"}
    assert fresh.owner.patch(group, json={"targetSizePolicy": {"mode": "BULK"}}).status_code == 400


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"targetSize": 2}, "grows by resize requests only"),
        ({"instanceLifecyclePolicy": {"defaultActionOnFailure": "REPAIR"}}, "must be DO_NOTHING"),
        ({"distributionPolicy": {"targetShape": "EVEN"}}, "must be ANY_SINGLE_ZONE"),
        ({"instanceTemplate": ""}, "'resource.instanceTemplate' not specified"),
        ({"targetSize": -1}, "'resource.targetSize'"),
        ({"name": "G"}, "resource.name"),
    ],
)
def test_what_flex_start_does_not_allow_is_refused(fresh: Served, more: dict[str, Any], words: str) -> None:
    """A group that can never do what it was made for would be made all the same."""
    fresh.owner.post(TEMPLATES, json={"name": "t", "properties": FLEX})
    body = {"name": "g", "instanceTemplate": "global/instanceTemplates/t"} | more
    refused = fresh.owner.post(f"{ZONE}/instanceGroupManagers", json=body)
    assert refused.status_code == 400
    assert words in refused.json()["error"]["message"]
    assert get(fresh, f"{ZONE}/instanceGroupManagers")["items"] == []


def test_a_group_needs_a_template_that_is_there(fresh: Served) -> None:
    """It could never grow."""
    body = {"name": "g", "instanceTemplate": "global/instanceTemplates/no"}
    refused = fresh.owner.post(f"{ZONE}/instanceGroupManagers", json=body)
    assert (refused.status_code, "instanceTemplates/no' was not found" in refused.text) == (404, True)


def test_a_plain_group_has_the_size_it_is_told(fresh: Served) -> None:
    """`gcloud compute instance-groups managed resize` would not resize."""
    group = make_group(fresh, properties=TIMED, targetSize=1)
    fresh.advance("10m")
    assert fresh.owner.post(f"{group}/resize?size=3").json()["operationType"] == "resize"
    assert get(fresh, group)["targetSize"] == 3
    fresh.advance("10m")
    there = fresh.owner.post(f"{ZONE}/instanceGroups/g/listInstances", json={}).json()
    assert [i["status"] for i in there["items"]] == ["RUNNING"] * 3
    fresh.owner.post(f"{group}/resize?size=1")
    fresh.advance("10m")
    assert (get(fresh, group)["targetSize"], len(managed(fresh, group))) == (1, 1)
    assert fresh.owner.post(f"{group}/resize").status_code == 400


def test_the_size_is_not_changed_by_hand_while_a_resize_request_waits(fresh: Served) -> None:
    """What was asked for by request would be taken away by a script that sets sizes."""
    group = make_group(fresh, properties=TIMED)
    ask(fresh, group, resizeBy=40)
    refused = fresh.owner.post(f"{group}/resize?size=0")
    assert refused.status_code in (400, 412)
    assert "resize request 'r1' is ACCEPTED" in refused.json()["error"]["message"]


def test_instances_are_given_back_one_by_one(fresh: Served) -> None:
    """A user could only give all back, or none."""
    group = make_group(fresh)
    ask(fresh, group, resizeBy=3)
    first = managed(fresh, group)[0]
    ask(fresh, group, "r2", resizeBy=4)
    waits = next(m for m in managed(fresh, group) if m["currentAction"] == "CREATING")
    early = fresh.owner.post(f"{group}/deleteInstances", json={"instances": [waits["instance"]]})
    assert (early.status_code, "cancel the whole request" in early.text) == (400, True)
    fresh.advance("10m")
    assert fresh.owner.post(f"{group}/deleteInstances", json={"instances": [first["instance"]]}).is_success
    assert get(fresh, group)["targetSize"] == 2 + 4
    fresh.advance("10m")
    assert first["name"] not in {m["name"] for m in managed(fresh, group)}
    stranger = fresh.owner.post(f"{group}/deleteInstances", json={"instances": ["zones/z/instances/x"]})
    assert (stranger.status_code, "'x'" in stranger.text) == (400, True)


def test_bulk_mode_asks_for_all_at_once_and_zero_cancels(fresh: Served) -> None:
    """A bulk group would come up in parts; or one that waits could not be given up."""
    group = make_group(fresh, **BULK)
    assert fresh.owner.post(f"{group}/resize?size=40").is_success
    found = get(fresh, group, IGM)
    bulk = found["status"]["bulkInstanceOperation"]
    assert (found["targetSize"], bulk["inProgress"]) == (40, True)
    assert "will never start" in bulk["lastProgressCheck"]["error"]["errors"][0]["message"]
    assert fresh.owner.post(f"{group}/resize?size=2").status_code in (400, 412)
    assert ask(fresh, group).status_code == 400
    assert fresh.owner.post(f"{group}/resize?size=0").is_success
    names = {"instances": [{"name": "a"}, {"name": "b"}]}
    assert fresh.owner.post(f"{group}/createInstances", json=names).is_success
    fresh.advance("10m")
    found = get(fresh, group, IGM)
    assert (found["targetSize"], found["status"]["bulkInstanceOperation"]) == (2, {"inProgress": False})
    assert {m["name"] for m in managed(fresh, group)} == {"a", "b"}


def test_instances_of_a_plain_group_stay_until_they_are_given_back(fresh: Served) -> None:
    """They would end by themselves, though nobody said when."""
    group = make_group(fresh, properties={"machineType": "a3-highgpu-8g"})
    assert fresh.owner.post(f"{group}/resize?size=1").status_code == 200
    fresh.advance("20d")
    assert [m["instanceStatus"] for m in managed(fresh, group)] == ["RUNNING"]
    assert fresh.owner.post(f"{group}/resize?size=0").status_code == 200
    fresh.advance("5m")
    assert managed(fresh, group) == []


STOPS = {
    "machineType": "a3-highgpu-8g",
    "scheduling": {"maxRunDuration": {"seconds": "7200"}, "instanceTerminationAction": "STOP"},
}


def test_instances_of_a_group_stop_at_the_end_where_their_template_says_so(fresh: Served) -> None:
    """What their owner wanted to find stopped would be gone; or still hold machines that others wait for."""
    group = make_group(fresh, properties=STOPS)
    ask(fresh, group)
    fresh.advance("3h")
    assert [m["instanceStatus"] for m in managed(fresh, group)] == ["TERMINATED"] * 2
    found = get(fresh, group, IGM)
    assert (found["targetSize"], found["status"]["isStable"]) == (2, True)
    fresh.submit("all", alternatives=[{"accelerators": "h100:32", "duration": "1h"}])
    assert fresh.get("all")["state"] == "ACTIVE" or fresh.get("all")["state"] == "PROVISIONING"
    first, second = managed(fresh, group)
    assert fresh.owner.post(f"{group}/deleteInstances", json={"instances": [first["instance"]]}).is_success
    assert managed(fresh, group) == [second]
    assert fresh.owner.delete(group).is_success
    assert get(fresh, f"{ZONE}/instances")["items"] == []


def test_flex_start_instances_of_a_group_cannot_stop(fresh: Served) -> None:
    """The public service deletes them; a template that says otherwise would be believed."""
    scheduling = FLEX["scheduling"] | {"instanceTerminationAction": "STOP"}  # type: ignore[operator]
    fresh.owner.post(TEMPLATES, json={"name": "t", "properties": FLEX | {"scheduling": scheduling}})
    body = {"name": "g", "instanceTemplate": "global/instanceTemplates/t"}
    refused = fresh.owner.post(f"{ZONE}/instanceGroupManagers", json=body)
    assert (refused.status_code, "instanceTerminationAction DELETE" in refused.text) == (400, True)


def test_an_instance_of_a_group_can_be_deleted_like_any_other(fresh: Served) -> None:
    """`gcloud compute instances delete` would be refused for it; or the group would want it back."""
    group = make_group(fresh)
    ask(fresh, group)
    fresh.advance("10m")
    first, second = managed(fresh, group)
    assert fresh.owner.delete(f"{ZONE}/instances/{first['name']}").json()["operationType"] == "delete"
    fresh.advance("5m")
    assert (managed(fresh, group), get(fresh, group)["targetSize"]) == ([second], 1)
    ask(fresh, group, "r2", resizeBy=3)
    fresh.advance("5m")
    assert get(fresh, f"{group}/resizeRequests/r2")["state"] == "SUCCEEDED"


def test_instances_of_a_regional_group_are_listed_in_their_zone(fresh: Served) -> None:
    """`gcloud compute instances list` would leave out what its owner pays for."""
    group = make_group(fresh, REGION)
    ask(fresh, group, resizeBy=3)
    fresh.advance("10m")
    fresh.owner.post(
        f"{ZONE}/instances", json={"name": "z", "machineType": "zones/us-central1-a/machineTypes/a3-highgpu-8g"}
    )
    fresh.advance("10m")
    names = {m["name"] for m in managed(fresh, group)} | {"z"}
    assert {i["name"] for i in get(fresh, f"{ZONE}/instances", "InstanceList")["items"]} == names
    everywhere = get(fresh, f"{PROJECT}/aggregated/instances", "InstanceAggregatedList")["items"]
    assert {i["name"] for i in everywhere["zones/us-central1-a"]["instances"]} == names
    assert get(fresh, f"{PROJECT}/zones/us-central1-b/instances")["items"] == []
    newest = get(fresh, f"{ZONE}/instances?orderBy=creationTimestamp%20desc")["items"]
    assert newest[0]["name"] == "z"
    paged, token = [], ""
    while True:
        page = get(fresh, f"{ZONE}/instances?maxResults=1&pageToken={token}")
        paged += [i["name"] for i in page["items"]]
        if not (token := page.get("nextPageToken", "")):
            break
    assert (len(paged), set(paged)) == (4, names)


def test_what_is_over_is_forgotten_with_its_request(fresh: Served) -> None:
    """Records of every instance there ever was would fill the disk."""
    group = make_group(fresh)
    ask(fresh, group)
    fresh.advance("40d")
    assert get(fresh, f"{group}/resizeRequests")["items"] == []
    with fresh.engine.reading() as reader:
        kinds = ("instance", "groupRequest", "resizeRequest", "instanceGroupManager")
        left = [len(reader.documents(DocumentQuery(kind=f"compute.{kind}"))) for kind in kinds]
    assert left == [0, 0, 0, 1]
