"""What is said of an instance, changed later: labels, metadata, tags, and what its next run is like.

Labels, metadata and tags are replaced whole, by a caller who has seen what is there: each has a fingerprint,
and one that is out of date changes nothing. Scheduling and machine type are of a run, so they may change only
while there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from dws.api.compute_v1 import documents, instances, operations, vm
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.forms import Form, named, text
from dws.api.compute_v1.instance_forms import METADATA, SCHEDULING, TAGS
from dws.api.compute_v1.instance_power import ONE
from dws.api.errors import ConditionNotMet
from dws.api.method import Call, Query
from dws.engine.write import Write
from dws.model.document import Document
from dws.model.names import check_labels
from dws.model.request import CapacityRequest

LABELS: Final = Form({"labels": named(text), "labelFingerprint": text})
NEW_METADATA: Final = Form({**METADATA.fields, "fingerprint": text}, ignored=frozenset({"kind"}))
NEW_TAGS: Final = Form({**TAGS.fields, "fingerprint": text})
MACHINE_TYPE: Final = Form({"machineType": text})


class ProtectionQuery(Query):
    """Whether an instance is to be protected."""

    deletion_protection: bool = True


def set_labels(call: Called) -> dict[str, Any]:
    """Replace the labels of an instance. Raises ConditionNotMet when they are others than the caller saw."""
    told = LABELS.read(call.body)
    labels = check_labels(told.get("labels", {}))
    return _replace(call, "setLabels", "labels", labels, told.get("labelFingerprint", ""))


def set_metadata(call: Called) -> dict[str, Any]:
    """Replace the metadata of an instance; a script among it is that of its next run."""
    metadata = NEW_METADATA.read(call.body)
    seen = metadata.pop("fingerprint", "")
    return _replace(call, "setMetadata", "metadata", metadata, seen)


def set_tags(call: Called) -> dict[str, Any]:
    """Replace the network tags of an instance."""
    tags = NEW_TAGS.read(call.body)
    seen = tags.pop("fingerprint", "")
    return _replace(call, "setTags", "tags", tags, seen)


def set_scheduling(call: Called) -> dict[str, Any]:
    """Change what the next run of a stopped instance is like; what is not sent stays."""
    told = SCHEDULING.read(call.body)

    def changed(properties: dict[str, Any]) -> dict[str, Any]:
        kept = properties.get("scheduling", {})
        if {"maxRunDuration", "terminationTime"} & told.keys():  # one end takes the place of the other
            kept = {name: value for name, value in kept.items() if name not in _ENDS}
        return {"scheduling": kept | told}

    return _for_next_run(call, "setScheduling", changed)


_ENDS: Final = ("maxRunDuration", "terminationTime")


def set_machine_type(call: Called) -> dict[str, Any]:
    """Change the machine type of a stopped instance."""
    told = MACHINE_TYPE.read(call.body)
    return _for_next_run(call, "setMachineType", lambda _: {"machineType": told.get("machineType", "")})


def set_deletion_protection(call: Call[None, ProtectionQuery]) -> dict[str, Any]:
    """Protect an instance against deletion, or no longer."""
    protected = call.query.deletion_protection
    return _change(call, "setDeletionProtection", lambda _kept, _: {"deletionProtection": protected})


def _replace(call: Called, verb: str, part: str, value: dict[str, Any], told: str) -> dict[str, Any]:
    def changed(kept: Document, _: CapacityRequest | None) -> dict[str, Any]:
        if told != vm.fingerprint_in(kept.body["properties"], part):
            word = "Labels" if part == "labels" else "Supplied"
            raise ConditionNotMet(
                f"{word} fingerprint either invalid or resource {part} have changed: read the instance again "
                f"and send the fingerprint of its {part}.",
                field="labelFingerprint" if part == "labels" else "fingerprint",
            )
        return {part: value}

    return _change(call, verb, changed)


def _for_next_run(
    call: Called, verb: str, changed: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    def checked(kept: Document, request: CapacityRequest | None) -> dict[str, Any]:
        state = vm.status(kept, request)
        if state != "TERMINATED":
            raise instances.not_now(vm.path_of(kept, request), "changed so", f"it is {state}; stop it first")
        part = changed(kept.body["properties"])
        instances.demand_of(call, kept.body["properties"] | part, (call.path["zone"],))
        return part

    return _change(call, verb, checked)


def _change(
    call: Called, verb: str, changed: Callable[[Document, CapacityRequest | None], dict[str, Any]]
) -> dict[str, Any]:
    """Change a part of what is said of an instance."""

    def work(w: Write) -> operations.Change:
        kept = instances.look_up(w.tx, call)
        request = w.tx.request(kept.request)
        body = kept.body | {"properties": kept.body["properties"] | changed(kept, request)}
        w.tx.put_document(replace(kept, body=body, version=kept.version + 1))
        target = vm.path_of(kept, request)
        return operations.Change(type=verb, target=target, target_id=kept.id)

    return operations.run(call, documents.where(call), work)


METHODS: Final = (
    *(
        documents.change(f"instances.{verb}", "POST", f"{ONE}/{verb}", summary, handler, body=Body)
        for verb, summary, handler in (
            ("setLabels", "Replace the labels of an instance.", set_labels),
            ("setMetadata", "Replace the metadata of an instance.", set_metadata),
            ("setTags", "Replace the network tags of an instance.", set_tags),
            ("setScheduling", "Change what its next run is like.", set_scheduling),
            ("setMachineType", "Change the machine type of a stopped instance.", set_machine_type),
        )
    ),
    documents.change(
        "instances.setDeletionProtection",
        "POST",
        f"{ONE}/setDeletionProtection",
        "Protect an instance against deletion, or no longer.",
        set_deletion_protection,
        query=ProtectionQuery,
    ),
)
