"""Google's Python libraries, unmodified, with instances: changed one by one, listed by filters and in pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.served import Served, serving
from tests.conformance.compute.test_skypilot_order import client

compute_v1 = pytest.importorskip("google.cloud.compute_v1", reason="not run: google-cloud-compute not found")
pytest.importorskip("googleapiclient.discovery", reason="not run: googleapiclient not found")

from google.api_core.exceptions import BadRequest, Conflict, PreconditionFailed  # noqa: E402
from google.auth.credentials import AnonymousCredentials  # noqa: E402

ZONE = {"project": "research", "zone": "us-central1-b"}
V1 = ZONE | {"instance": "v1"}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as server:
        yield server


@pytest.fixture
def instances(fresh: Served) -> Any:
    """The typed library's client."""
    options = {"api_endpoint": fresh.address}
    return compute_v1.InstancesClient(credentials=AnonymousCredentials(), client_options=options)


def machine(name: str = "e2-medium") -> str:
    """A machine type as programs name it."""
    return f"zones/us-central1-b/machineTypes/{name}"


def make(instances: Any, name: str, **more: Any) -> None:
    """An instance, once it is there."""
    body = compute_v1.Instance(name=name, machine_type=machine(), **more)
    instances.insert(**ZONE, instance_resource=body).result(timeout=5)


def test_google_cloud_compute_changes_an_instance(instances: Any) -> None:
    """Programs written with the typed library would raise, or wait for ever, at the first change."""
    make(instances, "v1", labels={"team": "a"})
    seen = instances.get(**V1)
    assert (seen.status, dict(seen.labels)) == ("RUNNING", {"team": "a"})
    labels = compute_v1.InstancesSetLabelsRequest(labels={"b": "c"}, label_fingerprint=seen.label_fingerprint)
    instances.set_labels(**V1, instances_set_labels_request_resource=labels).result(timeout=5)
    with pytest.raises(PreconditionFailed, match="fingerprint"):
        instances.set_labels(**V1, instances_set_labels_request_resource=labels)
    metadata = compute_v1.Metadata(
        items=[compute_v1.Items(key="k", value="v")], fingerprint=seen.metadata.fingerprint
    )
    instances.set_metadata(**V1, metadata_resource=metadata).result(timeout=5)
    tags = compute_v1.Tags(items=["one"], fingerprint=seen.tags.fingerprint)
    instances.set_tags(**V1, tags_resource=tags).result(timeout=5)
    told = compute_v1.InstancesSetMachineTypeRequest(machine_type=machine("a2-highgpu-8g"))
    with pytest.raises(BadRequest, match="stop it first"):
        instances.set_machine_type(**V1, instances_set_machine_type_request_resource=told)
    instances.stop(**V1).result(timeout=5)
    assert instances.get(**V1).status in ("STOPPING", "TERMINATED")


def test_google_cloud_compute_starts_a_stopped_instance_as_another_machine(
    fresh: Served, instances: Any
) -> None:
    """What is said between a stop and a start would be lost."""
    make(instances, "v1")
    instances.stop(**V1).result(timeout=5)
    fresh.advance("5m")
    told = compute_v1.InstancesSetMachineTypeRequest(machine_type=machine("a2-highgpu-8g"))
    instances.set_machine_type(**V1, instances_set_machine_type_request_resource=told).result(timeout=5)
    instances.start(**V1).result(timeout=5)
    seen = instances.get(**V1)
    assert (seen.status, seen.machine_type.rpartition("/")[2]) == ("RUNNING", "a2-highgpu-8g")
    output = instances.get_serial_port_output(**V1)
    assert "v1 is up" in output.contents
    assert output.next_ == len(output.contents.encode())
    assert instances.get_serial_port_output(request=V1 | {"start": output.next_}).contents == ""
    protect = {"project": "research", "zone": "us-central1-b", "resource": "v1"}
    instances.set_deletion_protection(request=protect | {"deletion_protection": True}).result(timeout=5)
    with pytest.raises(BadRequest, match="protected against deletion"):
        instances.delete(**V1)
    instances.set_deletion_protection(request=protect | {"deletion_protection": False}).result(timeout=5)
    instances.delete(**V1).result(timeout=5)
    fresh.advance("5m")
    assert list(instances.list(**ZONE)) == []


def test_google_cloud_compute_lists_by_both_grammars_in_order_and_in_pages(
    fresh: Served, instances: Any
) -> None:
    """A program would miss an instance, or see one twice."""
    for name, team in (("b1", "a"), ("a1", "b")):
        make(instances, name, labels={"team": team})
        fresh.advance("1m")

    def names(**query: Any) -> list[str]:
        return [each.name for each in instances.list(request=ZONE | query)]

    assert names(filter="labels.team = a") == names(filter='name eq "b.*"') == ["b1"]
    assert names(filter="(labels.team = a) OR (name = a1)") == ["a1", "b1"]
    assert names(order_by="creationTimestamp desc", max_results=1) == ["a1", "b1"]
    pages = list(instances.list(request=ZONE | {"max_results": 1}).pages)
    assert [[each.name for each in page.items] for page in pages] == [["a1"], ["b1"]]
    everywhere = dict(instances.aggregated_list(request={"project": "research", "filter": "labels.team = b"}))
    assert [each.name for each in everywhere["zones/us-central1-b"].instances] == ["a1"]
    with pytest.raises(BadRequest, match="orderBy"):
        names(order_by="machineType")
    with pytest.raises(Conflict, match="already exists"):
        make(instances, "a1")


@pytest.mark.parametrize("version", ["v1", "beta", "alpha"])
def test_googleapiclient_changes_lists_and_cuts(fresh: Served, version: str) -> None:
    """SkyPilot and most scripts use this library: they look for labels, ask for fields, and follow pages."""
    api = client(fresh, version).instances()
    for name in ("b1", "a1"):
        body = {"name": name, "machine_type": machine(), "labels": {"skypilot-cluster-name": name}}
        done = api.insert(**ZONE, body=body, requestId=f"11111111-0000-0000-0000-0000000000{name}").execute()
        again = api.insert(**ZONE, body=body, requestId=f"11111111-0000-0000-0000-0000000000{name}").execute()
        assert done["id"] == again["id"]
        fresh.advance("1m")
    wanted = '((labels.skypilot-cluster-name = "b1") AND (status = "RUNNING"))'
    found = api.list(**ZONE, filter=wanted, fields="items(name,labels),nextPageToken").execute()
    assert found == {"items": [{"name": "b1", "labels": {"skypilot-cluster-name": "b1"}}]}
    asked = api.list(**ZONE, maxResults=1, orderBy="creationTimestamp desc")
    names = []
    while asked is not None:
        page = asked.execute()
        names += [each["name"] for each in page["items"]]
        asked = api.list_next(asked, page)
    assert names == ["a1", "b1"]
    seen = api.get(**ZONE, instance="b1", fields="labelFingerprint,metadata/fingerprint").execute()
    assert seen.keys() == {"labelFingerprint", "metadata"}
    body = {"labels": {"a": "b"}, "labelFingerprint": seen["labelFingerprint"]}
    assert api.setLabels(**ZONE, instance="b1", body=body).execute()["status"] == "DONE"
    assert api.stop(**ZONE, instance="b1").execute()["operationType"] == "stop"
    fresh.advance("5m")
    assert api.get(**ZONE, instance="b1").execute()["status"] == "TERMINATED"
    assert api.start(**ZONE, instance="b1").execute()["status"] == "DONE"
    console = api.getSerialPortOutput(**ZONE, instance="b1", port=1).execute()
    assert "b1 is up" in console["contents"]
