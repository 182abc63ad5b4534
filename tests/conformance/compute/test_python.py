"""Google's Python libraries, unmodified, against the Compute door; every answer against their document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.api.served import Served, serving
from tests.conformance.compute.schema import faults

compute_v1 = pytest.importorskip("google.cloud.compute_v1", reason="not run: google-cloud-compute not found")
discovery = pytest.importorskip("googleapiclient.discovery", reason="not run: googleapiclient not found")

from google.api_core.exceptions import BadRequest, NotFound  # noqa: E402
from google.auth.credentials import AnonymousCredentials  # noqa: E402

VERSIONS = ("v1", "beta", "alpha")


def gapic(kind: Any, served: Served) -> Any:
    """A client of google-cloud-compute."""
    options = {"api_endpoint": served.address}
    return kind(credentials=AnonymousCredentials(), client_options=options)


@pytest.fixture
def api(served: Served) -> Any:
    """A client of google-api-python-client."""
    built = discovery.build(
        "compute",
        "v1",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": f"{served.address}/compute/v1/"},
        static_discovery=True,
    )
    with built:
        yield built


def test_google_cloud_compute_lists_zones(served: Served) -> None:
    """The typed library would not parse our zones."""
    zones = list(gapic(compute_v1.ZonesClient, served).list(project="research"))
    assert [z.name for z in zones] == ["local", "us-central1-a", "us-central1-b", "us-east5-a"]
    assert [z.status for z in zones] == ["DOWN", "UP", "UP", "UP"]


def test_google_cloud_compute_pages_through_machine_types(served: Served) -> None:
    """A page token would lose or repeat an item."""
    client = gapic(compute_v1.MachineTypesClient, served)
    asked = compute_v1.ListMachineTypesRequest(project="research", zone="us-central1-b", max_results=1)
    pages = list(client.list(request=asked).pages)
    assert [[m.name for m in page.items] for page in pages] == [["a2-highgpu-8g"], ["e2-medium"]]


def test_google_cloud_compute_aggregates(served: Served) -> None:
    """Scopes without machine types would break the aggregated list."""
    client = gapic(compute_v1.MachineTypesClient, served)
    found = {
        scope: [m.name for m in part.machine_types] for scope, part in client.aggregated_list(project="x")
    }
    assert found["zones/us-central1-a"] == ["a3-highgpu-8g"]
    assert found["zones/us-east5-a"] == []


def test_google_cloud_compute_raises_its_own_errors(served: Served) -> None:
    """Programs catch these classes: the envelope would not be recognised."""
    client = gapic(compute_v1.ZonesClient, served)
    with pytest.raises(NotFound, match="was not found"):
        client.get(project="research", zone="us-mars1-a")
    with pytest.raises(BadRequest, match="position 5"):
        list(client.list(request={"project": "research", "filter": "name ~ 3"}))


def test_googleapiclient_lists_zones_and_machine_types(api: Any) -> None:
    """Most scripts use this library; SkyPilot does."""
    zones = api.zones().list(project="research", orderBy="name", maxResults=2).execute()
    assert [z["name"] for z in zones["items"]] == ["local", "us-central1-a"]
    found = api.machineTypes().list(project="research", zone="us-central1-a").execute()
    assert [m["name"] for m in found["items"]] == ["a3-highgpu-8g"]


def test_googleapiclient_filters_as_people_write(api: Any) -> None:
    """AIP-160 filters: OR, parentheses, inequality."""
    wanted = '(name = "us-central1-a") OR (name = "us-east5-a") AND (status != DOWN)'
    zones = api.zones().list(project="research", filter=wanted).execute()
    assert [z["name"] for z in zones["items"]] == ["us-central1-a", "us-east5-a"]


def test_googleapiclient_reads_the_error_reason(api: Any) -> None:
    """SkyPilot takes its failure codes from errors[0].reason."""
    with pytest.raises(Exception, match="was not found") as caught:
        api.zones().get(project="research", zone="us-mars1-a").execute()
    assert caught.value.error_details == [  # type: ignore[attr-defined]
        {
            "message": "The resource 'projects/research/zones/us-mars1-a' was not found",
            "domain": "global",
            "reason": "notFound",
        }
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("", "Project"),
        ("/zones", "ZoneList"),
        ("/zones/us-central1-a", "Zone"),
        ("/regions", "RegionList"),
        ("/regions/us-central1", "Region"),
        ("/zones/us-central1-b/machineTypes", "MachineTypeList"),
        ("/zones/us-central1-a/machineTypes/a3-highgpu-8g", "MachineType"),
        (
            "/aggregated/machineTypes?includeAllScopes=True&returnPartialSuccess=True",
            "MachineTypeAggregatedList",
        ),
        ("/zones/us-central1-b/acceleratorTypes", "AcceleratorTypeList"),
        ("/zones/us-central1-a/acceleratorTypes/nvidia-h100-80gb", "AcceleratorType"),
        ("/aggregated/acceleratorTypes?alt=json&prettyPrint=false", "AcceleratorTypeAggregatedList"),
    ],
)
def test_answers_fit_the_discovery_document(served: Served, version: str, path: str, schema: str) -> None:
    """A wrong type or an invented field breaks clients that were generated from the document."""
    answer = served.anyone.get(f"/compute/{version}/projects/research{path}")
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert faults(version, schema, told) == []
    assert told["kind"] == f"compute#{schema[0].lower()}{schema[1:]}"
    assert f"/compute/{version}/projects/research" in told["selfLink"]


def test_google_cloud_compute_asks_for_calendar_advice(served: Served) -> None:
    """The typed library would not find where and when to book."""
    spec = {
        "target_resources": {
            "specific_sku_resources": {"machine_type": "a3-highgpu-8g", "instance_count": 2}
        },
        "time_range_spec": {"min_duration": "86400s", "max_duration": "172800s"},
    }
    told = gapic(compute_v1.AdviceClient, served).calendar_mode(
        project="research",
        region="us-central1",
        calendar_mode_advice_request_resource={"future_resources_specs": {"spec": spec}},
    )
    seen = told.recommendations[0].recommendations_per_spec["spec"]
    assert seen.location == "zones/us-central1-a"
    assert (seen.start_time, seen.end_time) == ("2027-01-11T09:00:00Z", "2027-01-13T09:00:00Z")
    assert seen.other_locations["zones/us-central1-b"].status == "NOT_SUPPORTED"


def test_google_cloud_compute_asks_for_capacity_advice(served: Served) -> None:
    """The typed library would not learn where flex start has machines now."""
    told = gapic(compute_v1.AdviceClient, served).capacity(
        project="research",
        region="us-central1",
        capacity_advice_request_resource={
            "size": 3,
            "instance_properties": {"scheduling": {"provisioning_model": "FLEX_START"}},
            "instance_flexibility_policy": {
                "instance_selections": {"a": {"machine_types": ["a3-highgpu-8g"]}}
            },
            "distribution_policy": {"target_shape": "ANY_SINGLE_ZONE"},
        },
    )
    (one,) = told.recommendations
    assert one.scores.obtainability == 1.0
    (shard,) = one.shards
    assert (shard.zone, shard.machine_type, shard.instance_count) == ("us-central1-a", "a3-highgpu-8g", 3)


def test_googleapiclient_asks_alpha_how_long_it_would_wait(served: Served) -> None:
    """Scripts would not learn of the wait, which only alpha has a field for."""
    built = discovery.build(
        "compute",
        "alpha",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": f"{served.address}/compute/alpha/"},
        static_discovery=True,
    )
    scheduling = {"provisioningModel": "FLEX_START", "maxRunDuration": "3600s"}
    body = {
        "size": 4,
        "instanceProperties": {"scheduling": scheduling},
        "instanceFlexibilityPolicy": {"instanceSelections": {"a": {"machineTypes": ["a3-highgpu-8g"]}}},
    }
    with built:
        told = built.advice().capacity(project="research", region="us-central1", body=body).execute()
    assert told["recommendations"][0]["scores"] == {"obtainability": 1.0, "estimatedWaitDuration": "0s"}


def test_google_cloud_compute_inserts_in_bulk(tmp_path: Path) -> None:
    """Clusters that are made by program would not come up, or their names not be known."""
    with serving(tmp_path) as served:
        told = gapic(compute_v1.InstancesClient, served).bulk_insert_unary(
            project="research",
            zone="us-central1-a",
            bulk_insert_instance_resource_resource={
                "count": 2,
                "per_instance_properties": {"head": {}, "worker": {}},
                "instance_properties": {"machine_type": "a3-highgpu-8g"},
            },
        )
        served.advance("5m")
        operations = gapic(compute_v1.ZoneOperationsClient, served)
        done = operations.wait(project="research", zone="us-central1-a", operation=told.name)
        assert done.status == compute_v1.Operation.Status.DONE
        metadata = done.instances_bulk_insert_operation_metadata.per_location_status
        assert metadata["zones/us-central1-a"].created_vm_count == 2
        found = operations.list(
            request={
                "project": "research",
                "zone": "us-central1-a",
                "filter": f"operationGroupId={told.operation_group_id}",
            }
        )
        assert {op.operation_type for op in found} == {"insert", "bulkInsert"}
        regional = gapic(compute_v1.RegionInstancesClient, served).bulk_insert_unary(
            project="research",
            region="us-central1",
            bulk_insert_instance_resource_resource={
                "count": 1,
                "name_pattern": "r-#",
                "instance_properties": {"machine_type": "a2-highgpu-8g"},
            },
        )
        served.advance("5m")
        regions = gapic(compute_v1.RegionOperationsClient, served)
        assert regions.get(project="research", region="us-central1", operation=regional.name).progress == 100
        instance = gapic(compute_v1.InstancesClient, served).get(
            project="research", zone="us-central1-b", instance="r-1"
        )
        assert instance.status == "RUNNING"
