"""Stopping an instance and starting it again.

One that is stopped gives its machine back and is paid for no longer; its record stays, TERMINATED. Starting
it asks for a machine anew, as inserting it did: a FLEX_START one waits as long as it may, any other comes now
or stays stopped. Its run, and the time it may last, begin again.

    RUNNING ─ stop ─▶ STOPPING ─▶ TERMINATED ─ start ─▶ PENDING … RUNNING, or TERMINATED when none came
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from dws.api.compute_v1 import documents, instances, operations, vm
from dws.api.compute_v1.documents import Called
from dws.api.compute_v1.instances import not_now
from dws.engine.write import Write
from dws.model.document import WITH_REQUEST, Document

ONE: Final = "zones/{zone}/instances/{instance}"


def stop(call: Called) -> dict[str, Any]:
    """Give the machine of an instance back and keep its record. Harmless when it is stopped already."""

    def work(w: Write) -> operations.Change:
        kept, state = _found(w, call, "stopped")
        request = w.tx.request(kept.request)
        path = vm.path_of(kept, request)
        if state in ("PENDING", "PROVISIONING") and kept.body["starts"] == 1:
            raise not_now(path, "stopped", f"it is {state} and has no machine yet; delete it")
        if not kept.body["stopped"]:
            vm.give_back(w, call.who, request, (kept.rank,))
            zone = f"zones/{vm.zone_of(kept, request)}"
            body = kept.body | {"stopped": True}
            kept = replace(kept, scope=zone, body=body, version=kept.version + 1, ended_at=0)  # it stays
            w.tx.put_document(kept)
        return operations.Change(type="stop", target=path, target_id=kept.id)

    return operations.run(call, documents.where(call), work)


def start(call: Called) -> dict[str, Any]:
    """Ask for a machine for a stopped instance. Its operation runs until the machine is there. Harmless
    when it is started already."""
    place = documents.where(call)

    def work(w: Write) -> operations.Change:
        kept, state = _found(w, call, "started")
        path = vm.path_of(kept, w.tx.request(kept.request))
        stays = kept.body["stopped"] or vm.at_end(kept) == "STOP"
        if state == "STOPPING" and not stays:
            raise not_now(path, "started", "it is being deleted, at the end of its run")
        if state in ("STOPPING", "TERMINATED"):
            properties = kept.body["properties"]
            demand, wait_s = instances.demand_of(call, properties, (call.path["zone"],))
            request = instances.ask(w, call, kept.name, properties, demand, wait_s)
            body = kept.body | {"stopped": False, "starts": kept.body["starts"] + 1}
            over = 0 if vm.at_end(kept) == "STOP" else WITH_REQUEST
            kept = replace(
                kept,
                scope=place,
                request=request.id,
                rank=0,
                body=body,
                version=kept.version + 1,
                ended_at=over,
            )
            w.tx.put_document(kept)
        return operations.Change(type="start", target=path, target_id=kept.id, request=kept.request)

    return operations.run(call, place, work)


def _found(w: Write, call: Called, verb: str) -> tuple[Document, str]:
    """The instance a path names, and its status. Raises NotFound, or FailedPrecondition for a group's."""
    kept = instances.look_up(w.tx, call)
    request = w.tx.request(kept.request)
    if kept.body["group"]:
        why = "it belongs to a group, whose instances run until they are deleted"
        raise not_now(vm.path_of(kept, request), verb, why)
    state = vm.status(kept, request)
    assert state is not None, "it was looked up just now"
    return kept, state


METHODS: Final = (
    documents.change(
        "instances.stop", "POST", f"{ONE}/stop", "Give an instance's machine back, and keep it.", stop
    ),
    documents.change("instances.start", "POST", f"{ONE}/start", "Start a stopped instance again.", start),
)
