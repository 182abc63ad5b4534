"""Future reservations through the Compute door: booked, lived through, cancelled, deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from dws.api.compute_v1 import future_reservations
from dws.engine.ports import DocumentQuery
from dws.model.time import DAY, HOUR
from dws.planner.options import PRESETS
from dws.wire.timefmt import format_instant
from tests.api.served import MONDAY_9, Served, serving

ZONE = "/compute/v1/projects/research/zones/us-central1-a"
ALL = f"{ZONE}/futureReservations"
MADE = f"{ZONE}/reservations"
SKU = {"totalCount": "2", "instanceProperties": {"machineType": "a3-highgpu-8g"}}


def window(start: int = DAY, length: int = 14 * DAY) -> dict[str, str]:
    """From so long after the start of the virtual clock, for so long."""
    start += MONDAY_9
    return {"startTime": format_instant(start), "endTime": format_instant(start + length)}


def announced(name: str = "block", **more: Any) -> dict[str, Any]:
    """What the announced command of gcloud sends."""
    return {
        "name": name,
        "specificSkuProperties": SKU,
        "timeWindow": window(),
        "autoDeleteAutoCreatedReservations": True,
        "specificReservationRequired": True,
    } | more


def insert(served: Served, body: dict[str, Any], at: str = ALL) -> httpx2.Response:
    return served.owner.post(at, json=body)


def made(served: Served, body: dict[str, Any], at: str = ALL) -> dict[str, Any]:
    """Insert, and give what is there then."""
    told = insert(served, body, at)
    assert told.status_code == 200, told.text
    assert (told.json()["status"], told.json()["operationType"]) == ("DONE", "insert")
    return served.owner.get(f"{at}/{body['name']}").json()


def state(served: Served, name: str = "block") -> str:
    """Its procurement status."""
    found: str = served.owner.get(f"{ALL}/{name}").json()["status"]["procurementStatus"]
    return found


def message(told: httpx2.Response, code: int, reason: str) -> str:
    """What an error of that code and reason says."""
    assert told.status_code == code, told.text
    error = told.json()["error"]
    assert error["errors"][0]["reason"] == reason
    return str(error["message"])


def test_the_announced_body_books_a_block_that_is_lived_through(fresh: Served) -> None:
    """Who follows the announcement would have a draft, or a block nobody gives or takes back."""
    seen = made(fresh, announced())
    assert seen["status"] == {
        "procurementStatus": "APPROVED",
        "lockTime": format_instant(MONDAY_9 + DAY - 900),
        "autoCreatedReservations": [f"{fresh.address}{MADE}/block"],
    }
    assert (seen["reservationMode"], seen["planningStatus"]) == ("CALENDAR", "SUBMITTED")
    assert seen["timeWindow"] == window()
    assert seen["specificSkuProperties"] == SKU
    assert seen["shareSettings"] == {"shareType": "LOCAL"}
    created = fresh.owner.get(f"{MADE}/block").json()
    assert (created["status"], created["specificReservationRequired"]) == ("CREATING", True)
    assert created["deleteAtTime"] == window()["endTime"]
    fresh.advance("23h50m")
    assert state(fresh) == "PROCURING"
    fresh.advance("10m")
    assert state(fresh) == "FULFILLED"
    assert fresh.owner.get(f"{ALL}/block").json()["status"]["fulfilledCount"] == "2"
    assert fresh.owner.get(f"{MADE}/block").json()["status"] == "READY"
    fresh.advance("13d23h59m")
    assert fresh.owner.get(f"{MADE}/block").json()["status"] == "READY"
    fresh.advance("1h")
    assert state(fresh) == "FULFILLED"
    assert "autoCreatedReservations" not in fresh.owner.get(f"{ALL}/block").json()["status"]
    assert fresh.owner.get(f"{MADE}/block").status_code == 404
    told = fresh.owner.delete(f"{ALL}/block")
    assert (told.status_code, told.json()["operationType"]) == (200, "delete")
    assert fresh.owner.get(f"{ALL}/block").status_code == 404


def test_the_record_is_forgotten_when_the_policy_says_so(fresh: Served) -> None:
    """Records of years would pile up, and their names never be free."""
    made(fresh, announced())
    fresh.advance("44d")
    assert state(fresh) == "FULFILLED"
    fresh.advance("3d")
    assert fresh.owner.get(f"{ALL}/block").status_code == 404
    assert fresh.owner.get(ALL).json()["items"] == []
    with fresh.engine.reading() as reader:
        assert reader.documents(DocumentQuery(kind=future_reservations.KIND, project="research")) == []
    again = made(fresh, announced(timeWindow=window(start=50 * DAY)))
    assert again["status"]["procurementStatus"] == "APPROVED"


@pytest.mark.parametrize(
    ("preset", "mode", "status"),
    [("seed", "CALENDAR", "APPROVED"), ("google", "DEFAULT", "DRAFTING")],
)
def test_what_says_no_mode_is_a_block_as_the_policy_has_it(
    tmp_path: Path, preset: str, mode: str, status: str
) -> None:
    """An owner who follows the announcement, or the service of today, would get the other's meaning."""
    with serving(tmp_path, policy=PRESETS[preset]) as served:
        seen = made(served, announced(timeWindow=window(start=10 * DAY)))
        assert (seen["reservationMode"], seen["status"]["procurementStatus"]) == (mode, status)


@pytest.mark.parametrize(
    ("said", "mode", "status"),
    [
        ({"reservationMode": "CALENDAR"}, "CALENDAR", "DRAFTING"),
        ({"reservationMode": "CALENDAR", "planningStatus": "SUBMITTED"}, "CALENDAR", "APPROVED"),
        ({"planningStatus": "SUBMITTED"}, "DEFAULT", "APPROVED"),
        ({"planningStatus": "DRAFT"}, "DEFAULT", "DRAFTING"),
        ({"planningStatus": "PLANNING_STATUS_UNSPECIFIED"}, "CALENDAR", "APPROVED"),
        ({"autoDeleteAutoCreatedReservations": None}, "DEFAULT", "DRAFTING"),
        ({"timeWindow": {"startTime": "2027-01-12T09:00:00Z"}}, "DEFAULT", "DRAFTING"),
    ],
)
def test_a_mode_or_a_status_means_what_it_says(
    fresh: Served, said: dict[str, Any], mode: str, status: str
) -> None:
    """Who asks for a draft by name would book, and pay for, a block."""
    seen = made(fresh, announced(**said))
    assert (seen["reservationMode"], seen["status"]["procurementStatus"]) == (mode, status)


def test_it_is_listed_in_its_zone_and_over_all(fresh: Served) -> None:
    """Nobody would find what was booked."""
    seen = made(fresh, announced())
    assert fresh.owner.get(ALL).json()["items"] == [seen]
    everywhere = fresh.owner.get("/compute/v1/projects/research/aggregated/futureReservations").json()[
        "items"
    ]
    assert everywhere["zones/us-central1-a"]["futureReservations"] == [seen]
    found = fresh.owner.get(ALL, params={"filter": "status.procurementStatus=APPROVED"}).json()["items"]
    assert found == [seen]
    found = fresh.owner.get(ALL, params={"filter": "status.procurementStatus=DRAFTING"}).json()["items"]
    assert found == []


def test_a_cancelled_one_keeps_its_name_until_it_is_deleted(fresh: Served) -> None:
    """A script that books again would take the record of what was given up for a new block."""
    made(fresh, announced())
    assert "cannot be deleted" in message(
        fresh.owner.delete(f"{ALL}/block"), 400, "resourceInUseByAnotherResource"
    )
    told = fresh.owner.post(f"{ALL}/block/cancel")
    assert (told.status_code, told.json()["operationType"]) == (200, "cancel")
    assert state(fresh) == "CANCELLED"
    assert fresh.owner.get(f"{MADE}/block").status_code == 404
    assert "already exists" in message(insert(fresh, announced()), 409, "alreadyExists")
    assert "CANCELLED" in message(fresh.owner.post(f"{ALL}/block/cancel"), 400, "failedPrecondition")
    assert fresh.owner.delete(f"{ALL}/block").status_code == 200
    assert made(fresh, announced())["status"]["procurementStatus"] == "APPROVED"


@pytest.mark.parametrize("wait", ["23h50m", "2d"])
def test_it_cannot_be_cancelled_once_it_is_locked(fresh: Served, wait: str) -> None:
    """What others plan around could vanish at the last minute."""
    made(fresh, announced())
    fresh.advance(wait)
    before = fresh.owner.get(f"{ALL}/block").json()
    assert "lock time" in message(fresh.owner.post(f"{ALL}/block/cancel"), 400, "failedPrecondition")
    assert fresh.owner.get(f"{ALL}/block").json() == before


def test_e02_no_room_names_the_nearest_windows_and_changes_nothing(fresh: Served) -> None:
    """Who is refused would have to guess when to come back."""
    made(fresh, announced(specificSkuProperties=SKU | {"totalCount": "4"}))
    said = message(
        insert(fresh, announced("late", specificSkuProperties=SKU | {"totalCount": "1"})),
        409,
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
    )
    assert "nearest windows with room: 2027-01-26T09:00:00Z to 2027-02-09T09:00:00Z" in said
    assert fresh.owner.get(f"{ALL}/late").status_code == 404
    said = message(
        insert(fresh, announced("large", specificSkuProperties=SKU | {"totalCount": "5"})),
        409,
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
    )
    assert "needs 5 hosts; the largest pool of a3 has 4" in said
    assert [each["name"] for each in fresh.owner.get(MADE).json()["items"]] == ["block"]


@pytest.mark.parametrize(
    ("more", "field", "why"),
    [
        (
            {"timeWindow": {"startTime": "tomorrow", "endTime": "2027-02-01T00:00:00Z"}},
            "timeWindow.startTime",
            "RFC 3339",
        ),
        ({"timeWindow": window(length=-HOUR)}, "timeWindow.endTime", "after the start"),
        ({"timeWindow": window(start=90 * DAY)}, "timeWindow.startTime", "56 days ahead"),
        ({"timeWindow": window(start=-HOUR)}, "timeWindow.startTime", "in the past"),
        ({"timeWindow": window(length=91 * DAY)}, "timeWindow.endTime", "90 days"),
        (
            {"specificSkuProperties": SKU | {"totalCount": "0"}},
            "specificSkuProperties.totalCount",
            "At least 1",
        ),
        (
            {"specificSkuProperties": SKU | {"instanceProperties": {"machineType": "a9-mega"}}},
            "specificSkuProperties.instanceProperties.machineType",
            "does not exist in zone",
        ),
        ({"reservationName": "r", "namePrefix": "p"}, "namePrefix", "not both"),
        ({"namePrefix": "a-name-that-is-too-long"}, "namePrefix", "20 characters"),
        ({"planningStatus": "READY"}, "planningStatus", "SUBMITTED"),
        ({"shareSettings": {"shareType": "ORGANIZATION"}}, "shareSettings.shareType", "no organisation"),
        (
            {
                "reservationMode": "CALENDAR",
                "planningStatus": "SUBMITTED",
                "specificReservationRequired": False,
            },
            "specificReservationRequired",
            "needs true",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(
    served: Served, more: dict[str, Any], field: str, why: str
) -> None:
    """A client's mistake would be booked, or refused without saying what is wrong."""
    said = message(insert(served, announced(**more)), 400, "invalid")
    assert f"'resource.{field}'" in said
    assert why in said
    assert served.owner.get(ALL).json()["items"] == []
    assert served.owner.get(MADE).json()["items"] == []
