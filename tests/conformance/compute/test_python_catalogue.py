"""google-cloud-compute, as shipped, changes something and waits for it."""

from __future__ import annotations

import pytest

from tests.api.served import Served

compute_v1 = pytest.importorskip("google.cloud.compute_v1", reason="not run: google-cloud-compute not found")

from google.auth.credentials import AnonymousCredentials  # noqa: E402


def test_result_of_an_insert_comes_without_asking_another_server(served: Served) -> None:
    """The library asks for unfinished operations at Google's own address, whatever it was told."""
    client = compute_v1.InstanceTemplatesClient(
        credentials=AnonymousCredentials(), client_options={"api_endpoint": served.address}
    )
    template = compute_v1.InstanceTemplate(
        name="from-python", properties=compute_v1.InstanceProperties(machine_type="a3-highgpu-8g")
    )
    client.insert(project="research", instance_template_resource=template).result(timeout=5)
    assert client.get(project="research", instance_template="from-python").properties.machine_type == (
        "a3-highgpu-8g"
    )
    client.delete(project="research", instance_template="from-python").result(timeout=5)
    assert [t.name for t in client.list(project="research")] == []
