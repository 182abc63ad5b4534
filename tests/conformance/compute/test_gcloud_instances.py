"""The real gcloud with instances: made, stopped, told otherwise, started, listed by filters, read, removed."""

from __future__ import annotations

import shutil

import pytest

from tests.api.served import Served
from tests.conformance.compute.conftest import Gcloud

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="not run: gcloud not found"),
]
ZONE = "--zone=us-central1-b"
VM = ("compute", "instances")


def test_an_instance_is_stopped_told_otherwise_and_started(gcloud: Gcloud) -> None:
    """The everyday commands of whoever has an instance would fail, or say that they worked when they had
    not."""
    said = ("--machine-type=e2-medium", "--labels=team=a", "--metadata=k=v", "--tags=one")
    (made,) = gcloud(*VM, "create", "v1", ZONE, *said)
    assert (made["status"], made["labels"], made["tags"]["items"]) == ("RUNNING", {"team": "a"}, ["one"])
    gcloud(*VM, "stop", "v1", ZONE, plain=True)
    gcloud(*VM, "set-machine-type", "v1", ZONE, "--machine-type=a2-highgpu-8g", plain=True)
    gcloud(*VM, "set-scheduling", "v1", ZONE, "--no-restart-on-failure", plain=True)
    stopped = gcloud(*VM, "describe", "v1", ZONE)
    assert (stopped["status"], stopped["scheduling"]["automaticRestart"]) == ("TERMINATED", False)
    gcloud(*VM, "start", "v1", ZONE, plain=True)
    gcloud(*VM, "add-labels", "v1", ZONE, "--labels=tier=gold", plain=True)
    gcloud(*VM, "remove-labels", "v1", ZONE, "--labels=team", plain=True)
    gcloud(*VM, "add-metadata", "v1", ZONE, "--metadata=more=yes", plain=True)
    gcloud(*VM, "remove-metadata", "v1", ZONE, "--keys=k", plain=True)
    gcloud(*VM, "add-tags", "v1", ZONE, "--tags=two", plain=True)
    gcloud(*VM, "remove-tags", "v1", ZONE, "--tags=one", plain=True)
    seen = gcloud(*VM, "describe", "v1", ZONE)
    assert (seen["status"], seen["machineType"].rpartition("/")[2]) == ("RUNNING", "a2-highgpu-8g")
    assert (seen["labels"], seen["tags"]["items"]) == ({"tier": "gold"}, ["two"])
    assert seen["metadata"]["items"] == [{"key": "more", "value": "yes"}]
    assert "v1 is up" in gcloud(*VM, "get-serial-port-output", "v1", ZONE, plain=True)
    gcloud(*VM, "update", "v1", ZONE, "--deletion-protection", plain=True)
    refused = gcloud(*VM, "delete", "v1", ZONE, fails=True)
    assert "protected against deletion" in refused
    gcloud(*VM, "update", "v1", ZONE, "--no-deletion-protection", plain=True)
    gcloud(*VM, "delete", "v1", ZONE, plain=True)
    assert gcloud(*VM, "list") == []


def test_lists_are_filtered_ordered_and_cut(served: Served, gcloud: Gcloud) -> None:
    """A script that lists what it wants by a filter would get everything, or nothing."""
    where = "/compute/v1/projects/research/zones/us-central1-a/instances"
    for name, team in (("b1", "a"), ("a1", "b"), ("c1", "a")):
        machine = "zones/us-central1-a/machineTypes/a3-highgpu-8g"
        body = {"name": name, "machineType": machine, "labels": {"team": team}}
        assert served.owner.post(where, json=body).is_success
        served.advance("1m")

    def names(*words: str) -> list[str]:
        told = ("--zones=us-central1-a", *words)
        return [each["name"] for each in gcloud(*VM, "list", *told)]

    assert names("--filter=labels.team=a AND status=RUNNING") == ["b1", "c1"]
    assert names("--filter=name~^[ab] AND NOT labels.team=b") == ["b1"]
    assert names("--filter=name=(a1 c1) AND zone:us-central1-a") == ["a1", "c1"]
    assert names("--filter=labels.team:* AND scheduling.provisioningModel=SPOT") == []
    assert names("--sort-by=~creationTimestamp") == ["c1", "a1", "b1"]
    assert names("--limit=2", "--page-size=1") == ["a1", "b1"]
    assert [each["name"] for each in gcloud(*VM, "list", "--filter=labels.team=b")] == ["a1"]
    started = gcloud("compute", "operations", "list", "--filter=operationType=insert AND status=DONE")
    assert {each["targetLink"].rpartition("/")[2] for each in started} >= {"a1", "b1", "c1"}
