"""The real gcloud makes many instances in one call, and counts them by their operations."""

from __future__ import annotations

import shutil

import pytest

from tests.api.served import Served
from tests.conformance.compute.conftest import Gcloud

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="not run: gcloud not found"),
]
BULK = ("compute", "instances", "bulk", "create")


def test_bulk_create_in_a_zone_and_in_a_region(served: Served, gcloud: Gcloud) -> None:
    """gcloud would say that nothing was created, or count the instances of another call."""
    made = gcloud(
        *BULK, "--zone=us-central1-a", "--machine-type=a3-highgpu-8g", "--count=2", "--name-pattern=b-#"
    )
    assert (made["createdInstanceCount"], made["failedInstanceCount"]) == (2, 0)
    assert [each["name"] for each in made["instances"]] == ["b-1", "b-2"]
    told = gcloud(
        *BULK,
        "--region=us-central1",
        "--machine-type=a2-highgpu-8g",
        "--predefined-names=head,worker",
        "--location-policy=us-central1-a=deny",
    )
    assert sorted(each["name"] for each in told["instances"]) == ["head", "worker"]
    assert {each["zone"].rpartition("/")[2] for each in told["instances"]} == {"us-central1-b"}
    listed = gcloud("compute", "instances", "list")
    assert {each["name"]: each["zone"].rpartition("/")[2] for each in listed} == {
        "b-1": "us-central1-a",
        "b-2": "us-central1-a",
        "head": "us-central1-b",
        "worker": "us-central1-b",
    }
    failed = gcloud(
        *BULK,
        "--zone=us-central1-a",
        "--machine-type=a3-highgpu-8g",
        "--count=3",
        "--name-pattern=c-#",
        plain=True,
    )
    assert '"createdInstanceCount": 0' in failed and '"failedInstanceCount": 3' in failed
