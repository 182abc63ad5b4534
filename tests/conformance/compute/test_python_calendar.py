"""Google's Python libraries book blocks of the calendar, as shipped: `result()` and all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import BadRequest, Conflict, NotFound
from google.auth.credentials import AnonymousCredentials

from tests.api.served import Served, serving
from tests.conformance.compute.test_python import VERSIONS, compute_v1, discovery, gapic

WHERE = {"project": "research", "zone": "us-central1-a"}
START, END = "2027-01-12T09:00:00Z", "2027-01-26T09:00:00Z"
SKU = {"totalCount": "2", "instanceProperties": {"machineType": "a3-highgpu-8g"}}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as server:
        yield server


def block(name: str, count: int = 2) -> Any:
    """A block of the calendar in the library's own types."""
    return compute_v1.FutureReservation(
        name=name,
        planning_status="SUBMITTED",
        reservation_mode="CALENDAR",
        auto_delete_auto_created_reservations=True,
        specific_reservation_required=True,
        time_window=compute_v1.FutureReservationTimeWindow(start_time=START, end_time=END),
        specific_sku_properties=compute_v1.FutureReservationSpecificSKUProperties(
            total_count=count,
            instance_properties=compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties(
                machine_type="a3-highgpu-8g"
            ),
        ),
        share_settings=compute_v1.ShareSettings(
            share_type="SPECIFIC_PROJECTS",
            project_map={"partner": compute_v1.ShareSettingsProjectConfig(project_id="partner")},
        ),
    )


def test_google_cloud_compute_books_changes_and_cancels(served: Served) -> None:
    """Programs wait with `result()`: it would leave the machine, or not raise when nothing was booked."""
    client = gapic(compute_v1.FutureReservationsClient, served)
    client.insert(**WHERE, future_reservation_resource=block("block")).result(timeout=10)
    seen = client.get(**WHERE, future_reservation="block")
    assert seen.status.procurement_status == "APPROVED"
    assert seen.specific_sku_properties.total_count == 2
    assert dict(seen.share_settings.project_map).keys() == {"partner"}
    seen.specific_sku_properties.total_count = 3
    change = compute_v1.UpdateFutureReservationRequest(
        **WHERE,
        future_reservation="block",
        future_reservation_resource=seen,
        update_mask="specificSkuProperties.totalCount",
    )
    client.update(request=change).result(timeout=10)
    (listed,) = client.list(**WHERE)
    assert listed.specific_sku_properties.total_count == 3
    found = {
        place: [r.name for r in part.future_reservations]
        for place, part in client.aggregated_list(project="research")
    }
    assert found["zones/us-central1-a"] == ["block"]
    with pytest.raises(Conflict, match="nearest windows with room: 2027-01-26T09:00:00Z"):
        client.insert(**WHERE, future_reservation_resource=block("late", count=4))
    with pytest.raises(BadRequest, match="cannot be deleted"):
        client.delete(**WHERE, future_reservation="block")
    client.cancel(**WHERE, future_reservation="block").result(timeout=10)
    assert client.get(**WHERE, future_reservation="block").status.procurement_status == "CANCELLED"
    client.delete(**WHERE, future_reservation="block").result(timeout=10)
    with pytest.raises(NotFound, match="was not found"):
        client.get(**WHERE, future_reservation="block")


@pytest.mark.parametrize("version", VERSIONS)
def test_googleapiclient_books_and_reads_in_every_version(served: Served, version: str) -> None:
    """Scripts written for one version would find other blocks than those of another."""
    api = discovery.build(
        "compute",
        version,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": f"{served.address}/compute/{version}/"},
        static_discovery=True,
    )
    body = {
        "name": "block",
        "specificSkuProperties": SKU,
        "timeWindow": {"startTime": START, "endTime": END},
        "autoDeleteAutoCreatedReservations": True,
        "specificReservationRequired": True,
        "namePrefix": "course",
    }
    with api:
        blocks = api.futureReservations()
        operation = blocks.insert(**WHERE, body=body).execute()
        waited = api.zoneOperations().wait(**WHERE, operation=operation["name"]).execute()
        assert (waited["status"], waited["operationType"]) == ("DONE", "insert")
        seen = blocks.get(**WHERE, futureReservation="block").execute()
        assert seen["status"]["procurementStatus"] == "APPROVED"
        made = api.reservations().get(**WHERE, reservation="course-20270112-1").execute()
        assert (made["status"], made["specificReservation"]["count"]) == ("CREATING", "2")
        blocks.update(
            **WHERE, futureReservation="block", updateMask="description", body={"description": "told"}
        ).execute()
        assert blocks.list(**WHERE).execute()["items"][0]["description"] == "told"
        with pytest.raises(Exception, match="does not have enough resources available") as caught:
            blocks.insert(
                **WHERE, body=body | {"name": "late", "specificSkuProperties": SKU | {"totalCount": 4}}
            ).execute()
        (detail,) = caught.value.error_details  # type: ignore[attr-defined]
        assert detail["reason"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
