"""The table of the public service's schemas, and what is made of it: bodies read, answers cut to a version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("googleapiclient", reason="not run: googleapiclient not found")

from dws.api.compute_v1 import schemas
from dws.api.compute_v1.methods import METHODS
from dws.model.errors import InvalidArgument
from tests.api.compute.test_instances import VMS, insert
from tests.api.served import Served, serving
from tests.conformance.compute.answers import known
from tests.conformance.compute.schema import document, faults


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as server:
        yield server


@pytest.mark.parametrize("version", schemas.VERSIONS)
def test_the_table_says_what_the_documents_say(version: str) -> None:
    """A body that the public service takes would be refused, or one taken that it refuses."""
    for schema in schemas._table()["schemas"]:
        told = document(version)["schemas"].get(schema)
        fields = {name for name, _ in schemas._fields(schema, version)} - schemas._OURS.get(schema, {}).keys()
        if told is None or not fields:  # it lies within a schema, or only another version uses it
            continue
        assert fields == told["properties"].keys() - {"warning", "warnings"}, f"{schema}: run tools.schemas"


def test_every_method_that_takes_a_body_is_in_the_table() -> None:
    """Its bodies would be kept unread, and typed clients could not read them back."""
    resources = {method.id.split(".")[1] for method in METHODS if method.request is not None}
    in_table = {name.split(".")[1] for name in schemas._table()["methods"]}
    assert resources <= in_table, "name them in tools/schemas.py"


PARTS = {
    "disks": [{"boot": True, "diskSizeGb": "10", "initializeParams": {"labels": {"a": "b"}}}],
    "networkInterfaces": [{"accessConfigs": [{"type": "ONE_TO_ONE_NAT"}], "nicType": "GVNIC"}],
    "serviceAccounts": [{"email": "e", "scopes": ["s"]}],
    "shieldedInstanceConfig": {"enableSecureBoot": False},
    "advancedMachineFeatures": {"threadsPerCore": 1},
    "confidentialInstanceConfig": {"enableConfidentialCompute": False},
}


def test_parts_that_mean_nothing_here_are_given_back_as_they_are_understood(fresh: Served) -> None:
    """Terraform compares what it sent with what it reads: it would plan a change for ever."""
    snake = {"disk_size_gb": 10, "boot": "true", "initialize_params": {"labels": {"a": "b"}}}
    assert insert(fresh, "v1", **PARTS | {"disks": [snake]}).status_code == 200
    found = fresh.owner.get(f"{VMS}/v1").json()
    assert faults("v1", "Instance", found) == []
    for name in PARTS.keys() - {"networkInterfaces"}:
        assert found[name] == PARTS[name]


@pytest.mark.parametrize(
    ("part", "at"),
    [
        ({"disks": [{"foo": 1}]}, "Unknown name \"foo\" at 'disks[0]'"),
        ({"disks": {"boot": True}}, "resource.disks"),
        ({"disks": [{"boot": "maybe"}]}, "resource.disks[0].boot"),
        ({"disks": [{"diskSizeGb": "ten"}]}, "resource.disks[0].diskSizeGb"),
        ({"disks": [{"type": "FLOPPY"}]}, "resource.disks[0].type"),
        ({"disks": [{"initializeParams": {"labels": {"a": 1}}}]}, "initializeParams.labels.a"),
        ({"networkInterfaces": [{"accessConfigs": [{"natIP": 7}]}]}, "accessConfigs[0].natIP"),
        ({"serviceAccounts": [{"scopes": "all"}]}, "resource.serviceAccounts[0].scopes"),
        ({"shieldedInstanceConfig": {"enableSecureBoot": 3}}, "shieldedInstanceConfig.enableSecureBoot"),
        ({"scheduling": {"nodeAffinities": [{"values": [1]}]}}, "nodeAffinities[0].values[0]"),
    ],
)
def test_what_typed_clients_could_not_read_back_is_refused(
    served: Served, part: dict[str, Any], at: str
) -> None:
    """One instance with a wrong part would break every list that a typed client reads."""
    told = insert(served, "wrong", **part)
    assert (told.status_code, at in told.json()["error"]["message"]) == (400, True), told.text


ONLY = {  # a field that only one version, or two, know
    "alpha": {"scheduling": {"latencyTolerant": True}},
    "beta": {"scheduling": {"maintenanceFreezeDurationHours": 3}},
}


@pytest.mark.parametrize("version", ONLY)
def test_what_a_version_does_not_know_is_not_shown_in_it(fresh: Served, version: str) -> None:
    """A stable client would be given fields that it does not know, made by somebody who tries new ones."""
    (name,) = ONLY[version]["scheduling"]
    assert insert(fresh, "v1", **ONLY[version]).status_code == 400
    machine = "zones/us-central1-a/machineTypes/a3-highgpu-8g"
    body = {"name": "v1", "machineType": machine} | ONLY[version]
    assert fresh.owner.post(VMS.replace("v1", version, 1), json=body).status_code == 200
    for seen_in in schemas.VERSIONS:
        found = fresh.owner.get(f"{VMS.replace('v1', seen_in, 1)}/v1").json()
        (listed,) = fresh.owner.get(VMS.replace("v1", seen_in, 1)).json()["items"]
        knows = name in document(seen_in)["schemas"]["Scheduling"]["properties"]
        assert (name in found.get("scheduling", {})) is knows
        assert listed == found
        assert faults(seen_in, "Instance", found) == []


def test_a_method_that_a_version_does_not_have_is_not_there(served: Served) -> None:
    """A client would come to rely on what the public service does not have there."""
    for method in METHODS:
        for version in schemas.VERSIONS:
            if method.id not in known(version):
                path = method.path.replace("{version=v1|beta|alpha}", version)
                told = served.owner.request(method.verb, path.replace("{", "").replace("}", ""))
                assert told.status_code == 404, f"{version} {method.id}"


def test_a_word_that_only_another_version_has_is_left_out() -> None:
    """A typed client fails over a word that its version has not."""
    told = {"reservationAffinity": {"key": "k", "consumeReservationType": "SPECIFIC_THEN_ANY_RESERVATION"}}
    assert schemas.shown("Instance", "v1", told) == {"reservationAffinity": {"key": "k"}}
    assert schemas.shown("Instance", "beta", told) == told
    with pytest.raises(InvalidArgument, match="consumeReservationType"):
        schemas.form("Instance", "v1").read(told)
    assert schemas.form("Instance", "beta").read(told) == told


def test_what_is_cut_is_a_copy() -> None:
    """What is kept would lose, for every version, what one does not know."""
    told = {"items": [{"scheduling": {"latencyTolerant": True, "preemptible": False}}]}
    assert schemas.shown("InstanceList", "v1", told) == {"items": [{"scheduling": {"preemptible": False}}]}
    assert told["items"][0]["scheduling"]["latencyTolerant"] is True
