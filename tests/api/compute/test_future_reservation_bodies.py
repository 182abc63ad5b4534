"""What a future reservation may be said to be: its machines, its names, its sharing, its end."""

from __future__ import annotations

from typing import Any

import pytest

from dws.model.time import DAY, HOUR
from dws.wire.timefmt import format_instant
from tests.api.compute.test_future_reservations import (
    ALL,
    MADE,
    SKU,
    announced,
    insert,
    made,
    message,
    state,
    window,
)
from tests.api.served import MONDAY_9, Served

BETA, ALPHA = ALL.replace("v1", "beta"), ALL.replace("v1", "alpha")
TEMPLATES = "/compute/v1/projects/research/global/instanceTemplates"


def created(served: Served, name: str = "block") -> str:
    """The name of the reservation that was made for it."""
    (link,) = served.owner.get(f"{ALL}/{name}").json()["status"]["autoCreatedReservations"]
    return str(link).rpartition("/")[2]


def test_the_reservation_has_the_name_it_is_given(fresh: Served) -> None:
    """Machines that name their reservation before it exists would never find it."""
    made(fresh, announced(reservationName="lecture"))
    assert created(fresh) == "lecture"
    assert fresh.owner.get(f"{MADE}/lecture").json()["status"] == "CREATING"
    assert fresh.owner.get(f"{MADE}/block").status_code == 404
    said = message(insert(fresh, announced("second", reservationName="lecture")), 409, "alreadyExists")
    assert "zones/us-central1-a/reservations/lecture' already exists" in said


def test_a_prefix_makes_names_of_the_day_and_a_number(fresh: Served) -> None:
    """A weekly script with one prefix would be refused the second time."""
    one = SKU | {"totalCount": "1"}
    for name, start in (("a", DAY), ("b", DAY), ("c", 2 * DAY)):
        more = {"namePrefix": "course", "specificSkuProperties": one, "timeWindow": window(start)}
        made(fresh, announced(name, **more))
    found = [created(fresh, name) for name in ("a", "b", "c")]
    assert found == ["course-20270112-1", "course-20270112-2", "course-20270113-1"]


def test_one_name_in_two_zones_is_two_blocks(fresh: Served) -> None:
    """Names are of a zone: the second would be refused."""
    made(fresh, announced())
    other = ALL.replace("us-central1-a", "us-central1-b")
    sku = {"totalCount": "1", "instanceProperties": {"machineType": "a2-highgpu-8g"}}
    seen = made(fresh, announced(specificSkuProperties=sku), other)
    assert seen["status"]["procurementStatus"] == "APPROVED"
    assert fresh.owner.get(f"{MADE.replace('central1-a', 'central1-b')}/block").json()["status"] == "CREATING"
    assert fresh.owner.post(f"{other}/block/cancel").is_success
    assert state(fresh) == "APPROVED"


@pytest.mark.parametrize(
    ("settings", "projects"),
    [
        ({"shareType": "SPECIFIC_PROJECTS", "projects": ["partner", "other"]}, ["other", "partner"]),
        (
            {"shareType": "SPECIFIC_PROJECTS", "projectMap": {"partner": {"projectId": "partner"}}},
            ["partner"],
        ),
        ({"shareType": "SPECIFIC_PROJECTS", "projects": ["projects/partner", "research"]}, ["partner"]),
        ({"shareType": "LOCAL"}, []),
    ],
)
def test_projects_share_it_in_either_shape(
    fresh: Served, settings: dict[str, Any], projects: list[str]
) -> None:
    """A partner would be turned away at the door of what was booked for it, or its version not show it."""
    seen = made(fresh, announced(shareSettings=settings), BETA)
    shown = {"shareType": "SPECIFIC_PROJECTS" if projects else "LOCAL"}
    if projects:
        shown |= {"projectMap": {p: {"projectId": p} for p in projects}}  # type: ignore[dict-item]
    assert fresh.owner.get(f"{ALL}/block").json()["shareSettings"] == shown
    if projects:
        shown["projects"] = projects  # type: ignore[assignment]
    assert seen["shareSettings"] == shown
    assert fresh.owner.get(f"{MADE.replace('v1', 'beta')}/block").json()["shareSettings"] == shown


@pytest.mark.parametrize(
    ("settings", "code", "reason"),
    [
        ({"shareType": "SPECIFIC_PROJECTS"}, 400, "required"),
        ({"shareType": "LOCAL", "projectMap": {"partner": {}}}, 400, "invalid"),
        ({"shareType": "SPECIFIC_PROJECTS", "projectMap": {"No Project": {}}}, 400, "invalid"),
        ({"shareType": "SPECIFIC_PROJECTS", "projectMap": {f"p{i}": {} for i in range(101)}}, 400, "invalid"),
    ],
)
@pytest.mark.parametrize("status", ["DRAFT", "SUBMITTED"])
def test_sharing_that_cannot_be_is_refused(
    served: Served, settings: dict[str, Any], code: int, reason: str, status: str
) -> None:
    """A draft would be kept that can never be submitted, or a block shared with nobody."""
    body = announced(shareSettings=settings, planningStatus=status, reservationMode="CALENDAR")
    assert "shareSettings" in message(insert(served, body), code, reason)
    assert served.owner.get(ALL).json()["items"] == []


def test_the_reservation_is_deleted_when_it_is_told(fresh: Served) -> None:
    """Machines would be held beyond, or taken before, the time that was said."""
    early = {"autoCreatedReservationsDuration": {"seconds": 5 * DAY}}
    seen = made(fresh, announced(**early))
    assert seen["timeWindow"] == window()
    assert seen["autoCreatedReservationsDuration"] == {"seconds": str(5 * DAY)}
    deleted = fresh.owner.get(f"{MADE}/block").json()["deleteAtTime"]
    assert deleted == format_instant(MONDAY_9 + 6 * DAY)
    fresh.advance("6d1h")
    assert fresh.owner.get(f"{MADE}/block").status_code == 404
    assert made(fresh, announced("next", timeWindow=window(start=7 * DAY)))["timeWindow"]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"autoCreatedReservationsDeleteTime": "2027-02-01T00:00:00Z"}, "autoCreatedReservationsDeleteTime"),
        ({"autoCreatedReservationsDeleteTime": "2027-01-12T00:00:00Z"}, "autoCreatedReservationsDeleteTime"),
        ({"autoCreatedReservationsDuration": {"seconds": 0}}, "autoCreatedReservationsDuration"),
        (
            {
                "autoCreatedReservationsDuration": {"seconds": DAY},
                "autoCreatedReservationsDeleteTime": "2027-01-14T00:00:00Z",
            },
            "autoCreatedReservationsDuration",
        ),
        ({"autoDeleteAutoCreatedReservations": False}, "autoDeleteAutoCreatedReservations"),
        ({"timeWindow": window() | {"duration": {"seconds": HOUR}}}, "timeWindow.duration"),
        ({"timeWindow": {"startTime": window()["startTime"], "duration": {"seconds": -5}}}, "timeWindow.duration"),
        ({"timeWindow": {"startTime": "2027-01-12T09:00:00", "endTime": "2027-01-26T09:00:00Z"}}, "timeWindow.startTime"),
    ],
)  # fmt: skip
def test_an_end_that_cannot_be_is_refused(served: Served, more: dict[str, Any], field: str) -> None:
    """A block would end before it starts, or be held longer than it is paid for."""
    body = announced(reservationMode="CALENDAR", planningStatus="SUBMITTED", **more)
    assert f"'resource.{field}'" in message(insert(served, body), 400, "invalid")
    assert served.owner.get(ALL).json()["items"] == []


@pytest.mark.parametrize(
    "more",
    [
        {"autoCreatedReservationsDeleteTime": window()["startTime"]},
        {"autoCreatedReservationsDuration": {"seconds": 0}},
    ],
)
def test_a_block_that_goes_as_it_comes_is_refused(served: Served, more: dict[str, Any]) -> None:
    """Whoever asked for it would read of a length that they never said."""
    body = announced(reservationMode="CALENDAR", planningStatus="SUBMITTED", **more)
    assert "It must lie after the start, 2027-01-1" in message(insert(served, body), 400, "invalid")
    assert served.owner.get(ALL).json()["items"] == []


def test_in_default_mode_it_may_be_held_beyond_its_window(fresh: Served) -> None:
    """Who keeps machines for a while after the course would lose them with its last minute."""
    more = {"autoCreatedReservationsDeleteTime": "2027-02-01T09:00:00Z"}
    seen = made(fresh, announced(planningStatus="SUBMITTED", **more))
    assert (seen["reservationMode"], seen["timeWindow"]) == ("DEFAULT", window())
    kept = fresh.owner.get(f"{MADE.replace('v1', 'beta')}/block").json()
    assert (kept["deleteAtTime"], kept["reservationMode"]) == ("2027-02-01T09:00:00Z", "DEFAULT")


def test_its_machines_may_be_those_of_a_template(fresh: Served) -> None:
    """Who has a template would have to say everything again; or a later change of it would change the block."""
    scheduling = {"provisioningModel": "RESERVATION_BOUND"}
    properties = {"machineType": "a3-highgpu-8g", "scheduling": scheduling}
    assert fresh.owner.post(TEMPLATES, json={"name": "t", "properties": properties}).is_success
    template = fresh.owner.get(f"{TEMPLATES}/t").json()
    sku = {"totalCount": "2", "sourceInstanceTemplate": "global/instanceTemplates/t"}
    seen = made(fresh, announced(specificSkuProperties=sku))
    machine = {"instanceProperties": {"machineType": "a3-highgpu-8g"}}
    assert seen["specificSkuProperties"] == sku | machine
    assert seen["status"]["specificSkuProperties"] == {"sourceInstanceTemplateId": template["id"]}
    told = fresh.owner.get(f"{MADE}/block").json()["specificReservation"]
    assert told["instanceProperties"] == machine["instanceProperties"]
    assert fresh.owner.patch(f"{ALL}/block", json=seen).status_code == 200
    other = SKU | sku | {"instanceProperties": {"machineType": "e2-medium"}}
    said = message(insert(fresh, announced("other", specificSkuProperties=other)), 400, "invalid")
    assert "not both" in said
    lost = sku | {"sourceInstanceTemplate": "global/instanceTemplates/lost"}
    message(insert(fresh, announced("lost", specificSkuProperties=lost)), 404, "notFound")


def test_what_is_only_told_is_given_back(fresh: Served) -> None:
    """Terraform compares what it said with what it reads, and would want to make the block anew."""
    machine = {
        "machineType": "zones/us-central1-a/machineTypes/a3-highgpu-8g",
        "guestAccelerators": [{"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": 8}],
        "localSsds": [{"diskSizeGb": 375, "interface": "NVME"}],
        "minCpuPlatform": "Intel Sapphire Rapids",
    }
    told = {
        "deploymentType": "DENSE",
        "schedulingType": "GROUPED",
        "enableEmergentMaintenance": True,
        "commitmentInfo": {"commitmentName": "c", "commitmentPlan": "TWELVE_MONTH"},
        "description": "For the course",
    }
    sku = {"total_count": 2, "instance_properties": machine}
    body = announced(**told, specific_sku_properties=sku)
    del body["specificSkuProperties"]
    seen = made(fresh, body)
    assert {name: seen[name] for name in told} == told
    assert seen["specificSkuProperties"] == {
        "totalCount": "2",
        "instanceProperties": machine
        | {"machineType": "a3-highgpu-8g", "localSsds": [{"diskSizeGb": "375", "interface": "NVME"}]},
    }
    assert fresh.owner.get(f"{MADE.replace('v1', 'beta')}/block").json()["reservationMode"] == "CALENDAR"
    kept = fresh.owner.get(f"{MADE}/block").json()
    assert (kept["deploymentType"], kept["schedulingType"]) == ("DENSE", "GROUPED")
    assert (kept["description"], kept["enableEmergentMaintenance"]) == ("For the course", True)


def test_accelerators_that_its_machines_do_not_have_are_refused(served: Served) -> None:
    """Four accelerators a machine would be booked, and eight delivered and paid for."""
    accelerators = [{"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": 4}]
    machine = {"machineType": "a3-highgpu-8g", "guestAccelerators": accelerators}
    body = announced(specificSkuProperties=SKU | {"instanceProperties": machine})
    said = message(insert(served, body), 400, "invalid")
    assert "guestAccelerators" in said
    assert "has 8 of 'nvidia-h100-80gb'" in said


def test_a_field_of_alpha_is_shown_in_alpha_only(fresh: Served) -> None:
    """A typed client of v1 would fail on a word that it does not know."""
    body = announced(deploymentType="FLEXIBLE", protectionTier="STANDARD")
    seen = made(fresh, body, ALPHA)
    assert (seen["deploymentType"], seen["protectionTier"]) == ("FLEXIBLE", "STANDARD")
    seen = fresh.owner.get(f"{ALL}/block").json()
    assert "deploymentType" not in seen
    assert "protectionTier" not in seen


@pytest.mark.parametrize(
    ("aggregate", "field", "why"),
    [
        (
            {
                "vmFamily": "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT5LP",
                "reservedResources": [{"accelerator": {"acceleratorCount": 16}}],
            },
            "aggregateReservation.vmFamily",
            "No pool in zone 'us-central1-a' has TPUs",
        ),
        (
            {"vmFamily": "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT5LP"},
            "aggregateReservation.reservedResources",
            "not specified",
        ),
    ],
)
def test_chips_nobody_has_are_refused_in_words(
    served: Served, aggregate: dict[str, Any], field: str, why: str
) -> None:
    """A block of TPUs would be booked on GPUs, or refused without saying why."""
    body = announced(aggregateReservation=aggregate)
    del body["specificSkuProperties"]
    told = insert(served, body)
    assert told.status_code == 400
    assert field in told.json()["error"]["message"]
    assert why in told.json()["error"]["message"]
    message(insert(served, announced(aggregateReservation=aggregate)), 400, "invalid")


@pytest.mark.parametrize("name", ["", "Block", "9block", "a" * 64, "block-"])
def test_a_name_that_is_none_is_refused(served: Served, name: str) -> None:
    """A block would be made that no URL leads to."""
    assert "resource.name" in message(insert(served, announced(name)), 400, "invalid")
