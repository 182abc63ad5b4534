"""Every method of the Compute door against Google's own Discovery document: its place, and what it answers."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("googleapiclient", reason="not run: googleapiclient not found")

from dws.api.compute_v1.methods import METHODS
from dws.api.method import Method
from tests.api.served import Served
from tests.conformance.compute.answers import known
from tests.conformance.compute.schema import faults

VERSIONS = ("v1", "beta", "alpha")
READS = [m for m in METHODS if m.verb == "GET"]
VALUES = {"project": "research", "zone": "us-central1-a", "region": "us-central1"}
NAMES = {"image": "i", "family": "f", "machineType": "a3-highgpu-8g", "acceleratorType": "nvidia-h100-80gb"}


INSIDE = {"{+parentName}": "reservations/{}/reservationBlocks/{}"}
"""What a value stands for that may have slashes in it."""


def shape(path: str) -> str:
    """A path template without the names of its values."""
    for value, segments in INSIDE.items():
        path = path.replace(value, segments)
    return re.sub(r"\{[^}]*\}", "{}", path)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_a_method_is_where_the_service_has_it(method: Method) -> None:
    """Clients that were generated from the document would not find it."""
    there = [known(version)[method.id] for version in VERSIONS if method.id in known(version)]
    assert there, "the service has no such method"
    ours = method.path.partition("/projects/")[2]
    assert {(m["httpMethod"], shape(m["path"])) for m in there} == {(method.verb, shape(f"projects/{ours}"))}


@pytest.fixture(scope="module", autouse=True)
def kept(served: Served) -> None:
    """Something of each kind that is made from nothing."""
    for place in ("global", "regions/us-central1"):
        told = served.owner.post(
            f"/compute/v1/projects/research/{place}/instanceTemplates",
            json={"name": "kept", "properties": {"machineType": "a3-highgpu-8g"}},
        )
        assert told.status_code == 200, told.text


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", READS, ids=lambda m: m.id)
def test_what_is_read_fits_the_document(served: Served, method: Method, version: str) -> None:
    """A wrong type, or a field the service does not know, breaks generated clients; so does a strange error."""
    if method.id not in known(version):
        pytest.skip(f"{version} has no {method.id}")
    values = VALUES | NAMES
    path = re.sub(r"\{(\w+)[^}]*\}", lambda m: values.get(m[1], "kept"), method.path)
    path = path.replace("/kept/projects", f"/{version}/projects", 1)
    answer = served.owner.get(path)
    if answer.status_code == 200:
        assert faults(version, known(version)[method.id]["response"]["$ref"], answer.json()) == []
    else:
        error = answer.json()["error"]
        assert answer.status_code == 404, answer.text
        assert error["message"].startswith("The resource 'projects/research/")
        assert (error["status"], error["errors"][0]["reason"]) == ("NOT_FOUND", "notFound")
