"""What a zone's groups can, a region's can; and operations of every scope."""

from __future__ import annotations

import pytest

from tests.api.compute.test_resize_requests import PROJECT, REGION, ZONE, ask, get, make_group, managed
from tests.api.served import Served

PLAIN = {"machineType": "a3-highgpu-8g"}


def test_a_regional_group_is_sized_read_and_given_back(fresh: Served) -> None:
    """A script would work in a zone, and fail in a region at its first change."""
    group = make_group(fresh, REGION, PLAIN)
    assert fresh.owner.patch(group, json={"description": "ours"}).is_success
    assert fresh.owner.post(f"{group}/resize?size=1").is_success
    names = {"instances": [{"name": "by-name"}]}
    assert fresh.owner.post(f"{group}/createInstances", json=names).is_success
    fresh.advance("10m")
    assert get(fresh, f"{REGION}/instanceGroups/g", "InstanceGroup")["size"] == 2
    there = fresh.owner.post(f"{REGION}/instanceGroups/g/listInstances", json={}).json()["items"]
    assert [each["status"] for each in there] == ["RUNNING"] * 2
    (named,) = [each["instance"] for each in there if each["instance"].endswith("/by-name")]
    assert fresh.owner.post(f"{group}/deleteInstances", json={"instances": [named]}).is_success
    fresh.advance("10m")
    assert "by-name" not in {m["name"] for m in managed(fresh, group)}
    assert (get(fresh, group)["description"], get(fresh, group)["targetSize"]) == ("ours", 1)
    assert fresh.owner.delete(group).is_success
    assert get(fresh, f"{REGION}/instanceGroupManagers")["items"] == []


def test_a_regional_resize_request_is_listed_given_up_and_put_away(fresh: Served) -> None:
    """What a region's group waits for could not be found, or not be given up."""
    group = make_group(fresh, REGION)
    ask(fresh, group, resizeBy=40)
    (listed,) = get(fresh, f"{group}/resizeRequests")["items"]
    assert (listed["name"], listed["state"]) == ("r1", "ACCEPTED")
    for order in ("", "?orderBy=creationTimestamp desc"):  # errors have neither a time nor an id of their own
        assert len(get(fresh, f"{group}/listErrors{order}")["items"]) == 40
    assert fresh.owner.post(f"{group}/resizeRequests/r1/cancel").is_success
    assert get(fresh, f"{group}/listErrors")["items"] == []
    assert fresh.owner.delete(f"{group}/resizeRequests/r1").is_success
    assert get(fresh, f"{group}/resizeRequests")["items"] == []


@pytest.mark.parametrize("where", [ZONE, REGION, f"{PROJECT}/global"])
def test_an_operation_is_found_where_its_change_was_made_and_forgotten_there(
    fresh: Served, where: str
) -> None:
    """A client that waits for a change would ask in vain; or old operations could not be cleared away."""
    if where == ZONE:
        done = make_group(fresh) and fresh.owner.delete(f"{ZONE}/instanceGroupManagers/g").json()
    else:
        body = {"name": "t", "properties": PLAIN}
        done = fresh.owner.post(f"{where}/instanceTemplates", json=body).json()
    path = f"{where}/operations/{done['name']}"
    assert done["selfLink"].endswith(path)
    assert get(fresh, path) == done
    assert done in get(fresh, f"{where}/operations")["items"]
    gone = fresh.owner.delete(path)
    assert (gone.status_code, gone.json()) == (200, {})
    assert fresh.owner.get(path).status_code == 404
