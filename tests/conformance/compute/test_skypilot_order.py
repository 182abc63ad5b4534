"""The calls of SkyPilot's flex start, in its order, by the library it uses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.served import Served

discovery = pytest.importorskip("googleapiclient.discovery", reason="not run: googleapiclient not found")

from google.auth.credentials import AnonymousCredentials  # noqa: E402

ZONE = {"project": "research", "zone": "us-central1-a"}
REGION = {"project": "research", "region": "us-central1"}
GROUP = ZONE | {"instanceGroupManager": "sky-mig"}
TEMPLATE = {
    "name": "sky-it",
    "properties": {
        "machineType": "a3-highgpu-8g",
        "labels": {"ray-cluster-name": "c"},
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
    },
}


def client(served: Served, version: str) -> Any:
    """The library's client for a version of the API."""
    return discovery.build(
        "compute",
        version,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": f"{served.address}/compute/{version}/"},
        static_discovery=True,
    )


def test_a_cluster_comes_up_and_goes_down(served: Served) -> None:
    """SkyPilot's managed groups would not work: it inserts under beta and waits under v1, and knows what is
    absent by the words of the error."""
    v1, beta = client(served, "v1"), client(served, "beta")
    groups, requests = v1.instanceGroupManagers(), beta.instanceGroupManagerResizeRequests()
    with pytest.raises(
        Exception, match=r"The resource 'projects/research/zones/us-central1-a/instanceGroupManagers"
    ):
        groups.get(**GROUP).execute()
    done = v1.regionInstanceTemplates().insert(**REGION, body=TEMPLATE).execute()
    v1.regionOperations().wait(**REGION, operation=done["name"]).execute()
    body = {
        "name": "sky-mig",
        "instanceTemplate": "projects/research/regions/us-central1/instanceTemplates/sky-it",
        "target_size": 0,
        "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"},
        "updatePolicy": {"type": "OPPORTUNISTIC"},
    }
    done = groups.insert(**ZONE, body=body).execute()
    v1.zoneOperations().wait(**ZONE, operation=done["name"]).execute()
    wish = {"name": "sky-mig", "resizeBy": 2, "requestedRunDuration": {"seconds": 3600}}
    done = requests.insert(**GROUP, body=wish).execute()
    v1.zoneOperations().wait(**ZONE, operation=done["name"]).execute()
    assert groups.get(**GROUP).execute()["status"]["isStable"] is True
    there = groups.listManagedInstances(**GROUP).execute()["managedInstances"]
    assert [m["instanceStatus"] for m in there] == ["RUNNING"] * 2
    wish |= {"name": "more", "resizeBy": 4}
    requests.insert(**GROUP, body=wish).execute()
    assert groups.get(**GROUP).execute()["status"]["isStable"] is False
    waiting = requests.list(**GROUP, filter="state eq ACCEPTED").execute()["items"]
    assert [r["name"] for r in waiting] == ["more"]
    requests.cancel(**GROUP, resizeRequest="more").execute()
    groups.delete(**GROUP).execute()
    v1.regionInstanceTemplates().delete(**REGION, instanceTemplate="sky-it").execute()
    assert groups.list(**ZONE).execute().get("items", []) == []
