"""Google's Python libraries reserve machines from now on, change what they have and give it back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.served import Served

compute_v1 = pytest.importorskip("google.cloud.compute_v1", reason="not run: google-cloud-compute not found")
discovery = pytest.importorskip("googleapiclient.discovery", reason="not run: googleapiclient not found")

from google.api_core.exceptions import Conflict, NotFound  # noqa: E402
from google.auth.credentials import AnonymousCredentials  # noqa: E402

WHERE = {"project": "research", "zone": "us-central1-a"}


@pytest.fixture
def client(served: Served) -> Any:
    """A client of google-cloud-compute."""
    options = {"api_endpoint": served.address}
    return compute_v1.ReservationsClient(credentials=AnonymousCredentials(), client_options=options)


def test_google_cloud_compute_reserves_changes_and_gives_back(client: Any) -> None:
    """`result()` would look for the operation at Google, or a typed field be lost."""
    machine = compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties(
        machine_type="a3-highgpu-8g"
    )
    wanted = compute_v1.Reservation(
        name="typed",
        specific_reservation=compute_v1.AllocationSpecificSKUReservation(
            count=2, instance_properties=machine
        ),
        specific_reservation_required=True,
        share_settings=compute_v1.ShareSettings(
            share_type="SPECIFIC_PROJECTS",
            project_map={"partner": compute_v1.ShareSettingsProjectConfig(project_id="partner")},
        ),
    )
    client.insert(**WHERE, reservation_resource=wanted).result()
    found = client.get(**WHERE, reservation="typed")
    assert (found.status, found.specific_reservation.count, found.specific_reservation.assured_count) == (
        "READY",
        2,
        2,
    )
    assert list(found.share_settings.project_map) == ["partner"]
    size = compute_v1.ReservationsResizeRequest(specific_sku_count=3)
    client.resize(**WHERE, reservation="typed", reservations_resize_request_resource=size).result()
    change = compute_v1.UpdateReservationRequest(
        **WHERE,
        reservation="typed",
        paths="enableEmergentMaintenance",
        reservation_resource=compute_v1.Reservation(name="typed", enable_emergent_maintenance=True),
    )
    client.update(request=change).result()
    found = client.get(**WHERE, reservation="typed")
    assert (found.specific_reservation.count, found.enable_emergent_maintenance) == (3, True)
    with pytest.raises(Conflict, match="does not have enough resources"):
        wanted.name = "too-many"
        client.insert(**WHERE, reservation_resource=wanted)
    listed = {
        place: [r.name for r in part.reservations]
        for place, part in client.aggregated_list(project="research")
    }
    assert listed["zones/us-central1-a"] == ["typed"]
    client.delete(**WHERE, reservation="typed").result()
    with pytest.raises(NotFound):
        client.get(**WHERE, reservation="typed")


def test_google_api_client_reserves_with_loose_numbers_and_snake_case(served: Served) -> None:
    """Bodies are sent as their writers wrote them: a number as a number would be refused."""
    built = discovery.build(
        "compute",
        "beta",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": f"{served.address}/compute/beta/"},
        static_discovery=True,
    )
    with built as api:
        reservations = api.reservations()
        machine = {"machine_type": "projects/research/zones/us-central1-a/machineTypes/a3-highgpu-8g"}
        body = {
            "name": "loose",
            "specific_reservation": {"count": 1, "instance_properties": machine},
            "shareSettings": {"shareType": "SPECIFIC_PROJECTS", "projects": ["partner", "lab"]},
            "deleteAfterDuration": {"seconds": 3600},
        }
        assert reservations.insert(**WHERE, body=body).execute()["status"] == "DONE"
        found = reservations.get(**WHERE, reservation="loose").execute()
        assert found["shareSettings"]["projects"] == ["lab", "partner"]
        assert found["deleteAtTime"] == "2027-01-11T10:00:00Z"
        left = {"shareSettings": {"shareType": "SPECIFIC_PROJECTS"}}
        reservations.update(
            **WHERE, reservation="loose", paths=["shareSettings.projectMap.lab", "deleteAtTime"], body=left
        ).execute()
        found = reservations.get(**WHERE, reservation="loose").execute()
        assert found["shareSettings"]["projects"] == ["partner"]
        assert "deleteAtTime" not in found
        reservations.resize(**WHERE, reservation="loose", body={"specificSkuCount": 2}).execute()
        (row,) = reservations.list(**WHERE, filter="specificReservation.count = 2").execute()["items"]
        assert row["name"] == "loose"
        reservations.delete(**WHERE, reservation="loose").execute()
