"""Changing future reservations: drafts become blocks, blocks move, and nothing changes that was not named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from dws.model.time import DAY
from dws.planner.options import PRESETS
from tests.api.compute.test_future_reservations import ALL, MADE, SKU, announced, made, message, state, window
from tests.api.served import Served, serving


def patch(served: Served, body: dict[str, Any], mask: str = "", name: str = "block") -> httpx2.Response:
    """Change one as gcloud does, which has changes in beta and alpha only."""
    at = ALL.replace("v1", "beta")
    return served.owner.patch(f"{at}/{name}", json=body, params={"updateMask": mask} if mask else {})


def draft(name: str = "block", **more: Any) -> dict[str, Any]:
    """A draft that could be submitted as it is."""
    return announced(name, reservationMode="CALENDAR", planningStatus="DRAFT", **more)


def test_a_draft_reserves_nothing_until_it_is_submitted(fresh: Served) -> None:
    """Plans would take machines from others, or submitting them would book nothing."""
    seen = made(fresh, draft())
    assert seen["status"] == {"procurementStatus": "DRAFTING"}
    assert (seen["timeWindow"], seen["specificSkuProperties"]) == (window(), SKU)
    assert fresh.owner.get(MADE).json()["items"] == []
    message(fresh.owner.post(f"{ALL}/block/cancel"), 400, "failedPrecondition")
    told = patch(fresh, {"planningStatus": "SUBMITTED"}, "planningStatus")
    assert (told.status_code, told.json()["operationType"]) == (200, "update")
    assert state(fresh) == "APPROVED"
    assert fresh.owner.get(f"{MADE}/block").json()["status"] == "CREATING"
    said = message(patch(fresh, {"planningStatus": "DRAFT"}, "planningStatus"), 400, "failedPrecondition")
    assert "its 'planningStatus' cannot change any more" in said


def test_a_change_without_a_mask_leaves_what_it_does_not_say(fresh: Served) -> None:
    """A draft whose size is changed would lose its machine type; and a mask in snake_case would be no mask."""
    before = made(fresh, draft())
    assert patch(fresh, {"specificSkuProperties": {"totalCount": 1}}).status_code == 200
    sku = before["specificSkuProperties"] | {"totalCount": "1"}
    assert fresh.owner.get(f"{ALL}/block").json() == before | {"specificSkuProperties": sku}
    body = {"description": "told", "specificSkuProperties": {"totalCount": 3}}
    at, mask = ALL.replace("v1", "beta"), {"update_mask": "description"}
    assert fresh.owner.patch(f"{at}/block", json=body, params=mask).status_code == 200
    seen = fresh.owner.get(f"{ALL}/block").json()
    assert (seen["description"], seen["specificSkuProperties"]) == ("told", sku)


def test_a_draft_that_does_not_fit_stays_a_draft(fresh: Served) -> None:
    """A refusal would lose what somebody had worked out."""
    made(fresh, announced("first", specificSkuProperties=SKU | {"totalCount": "4"}))
    before = made(fresh, draft())
    told = patch(fresh, {"planningStatus": "SUBMITTED"}, "planningStatus")
    assert "nearest windows" in message(told, 409, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    assert fresh.owner.get(f"{ALL}/block").json() == before
    assert fresh.owner.delete(f"{ALL}/block").status_code == 200


def test_a_draft_may_lack_what_submitting_needs(fresh: Served) -> None:
    """Nobody could begin with a plan that is not complete; or half of one would be booked."""
    assert made(fresh, {"name": "block"})["reservationMode"] == "DEFAULT"
    said = message(patch(fresh, {"planningStatus": "SUBMITTED"}, "planningStatus"), 400, "required")
    assert "resource.timeWindow.startTime" in said
    body = {"specificSkuProperties": SKU, "timeWindow": window(), "planningStatus": "SUBMITTED"}
    assert patch(fresh, body).status_code == 200
    seen = fresh.owner.get(f"{ALL}/block").json()
    assert (seen["status"]["procurementStatus"], seen["specificSkuProperties"]) == ("APPROVED", SKU)


def test_a07_only_what_the_mask_names_changes(fresh: Served) -> None:
    """Clients send more than they mean: a stray window or description would overwrite the real one."""
    made(fresh, draft(description="for the course", namePrefix="course"))
    stray = {
        "description": "stray",
        "timeWindow": {"duration": {}},
        "specificSkuProperties": {"totalCount": "3"},
        "namePrefix": "a-name-that-is-too-long",
    }
    assert patch(fresh, stray, "specificSkuProperties.totalCount").status_code == 200
    seen = fresh.owner.get(f"{ALL}/block").json()
    assert seen["specificSkuProperties"] == SKU | {"totalCount": "3"}
    assert (seen["description"], seen["timeWindow"], seen["namePrefix"]) == (
        "for the course",
        window(),
        "course",
    )
    spelt_by_gcloud = "specific_sku_properties.intanceProperties.maintenanceInterval,name_prefix"
    body = {"specificSkuProperties": {"instanceProperties": {"maintenanceInterval": "PERIODIC"}}}
    assert patch(fresh, body, spelt_by_gcloud).status_code == 200
    seen = fresh.owner.get(f"{ALL.replace('v1', 'beta')}/block").json()
    machine = seen["specificSkuProperties"]["instanceProperties"]
    assert machine == {"machineType": "a3-highgpu-8g", "maintenanceInterval": "PERIODIC"}
    assert "namePrefix" not in seen


@pytest.mark.parametrize(
    ("mask", "field"),
    [
        ("specificSkuProperties.totalCount", "specificSkuProperties.totalCount"),
        ("timeWindow.startTime", "timeWindow.startTime"),
        (
            "specificSkuProperties.instanceProperties.machineType",
            "specificSkuProperties.instanceProperties.machineType",
        ),
    ],
)
@pytest.mark.parametrize("body", [draft(), announced()])
def test_a_named_field_without_its_value_is_refused(
    fresh: Served, body: dict[str, Any], mask: str, field: str
) -> None:
    """gcloud names a total count it does not send: the block would become empty."""
    before = made(fresh, body)
    assert f"resource.{field}" in message(patch(fresh, {}, mask), 400, "required")
    assert fresh.owner.get(f"{ALL}/block").json() == before


def test_another_end_takes_the_place_of_a_duration(fresh: Served) -> None:
    """A window said in one way could not be changed in the other."""
    length = {"startTime": window()["startTime"], "duration": {"seconds": "604800"}}
    seen = made(fresh, draft(timeWindow=length))
    assert seen["timeWindow"] == length | {"endTime": window(length=7 * DAY)["endTime"]}
    end = {"timeWindow": {"endTime": window()["endTime"]}}
    assert patch(fresh, end, "timeWindow.endTime").status_code == 200
    assert fresh.owner.get(f"{ALL}/block").json()["timeWindow"] == window()
    back = {"timeWindow": {"duration": {"seconds": "86400"}}}
    assert patch(fresh, back, "timeWindow.duration").status_code == 200
    assert fresh.owner.get(f"{ALL}/block").json()["timeWindow"] == length | {
        "endTime": window(length=DAY)["endTime"],
        "duration": {"seconds": "86400"},
    }


def test_e13_what_is_submitted_changes_until_it_is_locked(fresh: Served) -> None:
    """An owner who lets reservations change would not see them change; or a locked one would."""
    made(fresh, announced())
    body = {
        "specificSkuProperties": {"totalCount": "3"},
        "timeWindow": {"endTime": window(length=7 * DAY)["endTime"]},
        "shareSettings": {"shareType": "SPECIFIC_PROJECTS", "projects": ["partner"]},
        "description": "smaller and longer",
    }
    mask = "specificSkuProperties.totalCount,timeWindow.endTime,shareSettings,description"
    told = patch(fresh, body, mask)
    assert told.status_code == 200, told.text
    seen = fresh.owner.get(f"{ALL}/block").json()
    assert seen["specificSkuProperties"]["totalCount"] == "3"
    assert seen["timeWindow"] == window(length=7 * DAY)
    assert seen["description"] == "smaller and longer"
    assert seen["shareSettings"] == {
        "shareType": "SPECIFIC_PROJECTS",
        "projectMap": {"partner": {"projectId": "partner"}},
    }
    assert seen["status"]["amendmentStatus"] == "AMENDMENT_APPROVED"
    created = fresh.owner.get(f"{MADE}/block").json()
    assert created["specificReservation"]["count"] == "3"
    assert created["shareSettings"] == seen["shareSettings"]
    fresh.advance("23h50m")
    before = fresh.owner.get(f"{ALL}/block").json()
    told = patch(fresh, {"specificSkuProperties": {"totalCount": "2"}}, "specificSkuProperties.totalCount")
    assert "locked" in message(told, 400, "reservationLocked")
    assert fresh.owner.get(f"{ALL}/block").json() == before


def test_an_update_is_refused_where_the_policy_says_never(tmp_path: Path) -> None:
    """An owner whose blocks are final would have them moved all the same."""
    with serving(tmp_path, policy=PRESETS["seed"]) as served:
        made(served, announced())
        before = served.owner.get(f"{ALL}/block").json()
        body = {"specificSkuProperties": {"totalCount": "1"}}
        told = patch(served, body, "specificSkuProperties.totalCount")
        assert "reservation_amend = never" in message(told, 400, "amendNotAllowed")
        assert served.owner.get(f"{ALL}/block").json() == before


@pytest.mark.parametrize("field", ["reservationMode", "reservationName", "deploymentType", "schedulingType"])
def test_what_it_was_submitted_as_it_stays(fresh: Served, field: str) -> None:
    """A client would believe that it had changed what is long agreed."""
    before = made(fresh, announced())
    value = {"reservationMode": "DEFAULT", "deploymentType": "DENSE", "schedulingType": "GROUPED"}
    told = patch(fresh, {field: value.get(field, "other")}, field)
    assert f"'{field}' cannot change any more" in message(told, 400, "failedPrecondition")
    assert fresh.owner.get(f"{ALL}/block").json() == before


@pytest.mark.parametrize("mask", ["colour", "timeWindow.colour", "status"])
def test_a_mask_without_a_known_field_is_refused(fresh: Served, mask: str) -> None:
    """A misspelt change would be taken for done."""
    made(fresh, draft())
    assert "updateMask" in message(patch(fresh, {}, mask), 400, "invalid")


def test_one_that_is_read_and_sent_back_changes_nothing(fresh: Served) -> None:
    """Read, change, write: clients that send everything back would be refused."""
    made(fresh, announced(timeWindow={"startTime": window()["startTime"], "duration": {"seconds": 86400}}))
    before = fresh.owner.get(f"{ALL}/block").json()
    assert patch(fresh, before).status_code == 200
    assert patch(fresh, before | {"description": "told"}).status_code == 200
    after = fresh.owner.get(f"{ALL}/block").json()
    assert after.pop("description") == "told"
    assert after.pop("status")["procurementStatus"] == "APPROVED"
    before.pop("status")
    assert after == before
