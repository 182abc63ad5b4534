"""Resize requests: flex start for a group. "N more instances, together, for this long, as soon as they fit."

ours     PENDING, BOOKED, PROVISIONING   ACTIVE, ENDING, COMPLETED   CANCELLED    FAILED, EXPIRED
theirs   ACCEPTED                        SUCCEEDED                   CANCELLED    FAILED
"""

from __future__ import annotations

from typing import Any, Final

from dws.api.compute_v1 import documents, group_members, group_size, groups, limits, operations, vm
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.forms import (
    DURATION,
    OUTPUT_ONLY,
    Form,
    anything,
    int32,
    invalid,
    many,
    seconds,
    text,
)
from dws.api.compute_v1.group_members import RESIZE_REQUEST as KIND
from dws.api.compute_v1.lists import ListQuery
from dws.api.compute_v1.names import Scope, check_resource_name, scope_of
from dws.api.compute_v1.shortages import EXHAUSTED, shortage
from dws.api.method import Call
from dws.engine.ports import Reader
from dws.engine.write import Write
from dws.model.document import WITH_REQUEST, Document
from dws.model.errors import InvalidArgument
from dws.model.request import CapacityRequest, EndReason, RequestState
from dws.wire.timefmt import format_instant

FORM: Final = Form(
    {
        "name": text,
        "description": anything,
        "resizeBy": int32,
        "count": int32,
        "instances": many(Form({"name": text}, frozenset({"fingerprint", "status", "preservedState"}))),
        "requestedRunDuration": DURATION,
    },
    ignored=OUTPUT_ONLY | {"state", "queuingPolicy"},
)
_STATES: Final = {
    RequestState.PENDING: "ACCEPTED",
    RequestState.BOOKED: "ACCEPTED",
    RequestState.PROVISIONING: "ACCEPTED",
    RequestState.ACTIVE: "SUCCEEDED",
    RequestState.ENDING: "SUCCEEDED",
    RequestState.COMPLETED: "SUCCEEDED",
    RequestState.CANCELLED: "CANCELLED",
    RequestState.FAILED: "FAILED",
    RequestState.EXPIRED: "FAILED",
}


def insert(call: Called) -> dict[str, Any]:
    """Ask for more instances."""
    body = FORM.read(call.body)
    name = check_resource_name(body.get("name"))
    told = body.get("instances", [])
    names = [check_resource_name(each.get("name"), "resource.instances.name") for each in told]
    count = _count(body, names)
    run_s = seconds(body.get("requestedRunDuration"))
    limits.check_resize_by(call.engine.policy, count)
    limits.check_run(call.engine.policy, run_s, "requestedRunDuration")

    def work(w: Write) -> operations.Change:
        group = groups.find(w.tx, call)
        path = f"{group_members.path_of(group)}/resizeRequests/{name}"
        if w.tx.document_named(KIND, group.project, group.scope, name, group.name) is not None:
            raise scope_of(call).exists(path)
        group_size.check_takes_resize_requests(w, group, count)
        request = group_members.ask(w, call, group, count=count, names=names, run_s=run_s)
        documents.keep(
            w,
            KIND,
            group.project,
            group.scope,
            name,
            body | {"resizeBy": count},
            parent=group.name,
            request=request.id,
            ended_at=WITH_REQUEST,
        )
        # clients append the name of the resize request by themselves
        return operations.Change(type="insert", target=group_members.path_of(group), target_id=group.id)

    return operations.run(call, documents.where(call), work)


def _count(body: dict[str, Any], names: list[str]) -> int:
    if ("resizeBy" in body or "count" in body) == bool(names):
        raise InvalidArgument(
            "Invalid value for field 'resource.resizeBy': give exactly one of resizeBy and instances.",
            field="resource.resizeBy",
        )
    if len(set(names)) != len(names):
        raise invalid("instances", names, "A name is given twice.")
    return int(body.get("resizeBy", body.get("count", len(names))))


def _found(call: Called, reader: Reader) -> tuple[Document, CapacityRequest | None]:
    group = groups.find(reader, call)
    kept = documents.find(reader, call, COLLECTION, call.path["resizeRequest"], group.name)
    return kept, reader.request(kept.request)


def cancel(call: Called) -> dict[str, Any]:
    """Stop wanting what has not been delivered yet."""

    def work(w: Write) -> operations.Change:
        kept, request = _found(call, w.tx)
        state = state_of(request)
        if state != "ACCEPTED":
            raise InvalidArgument(
                f"Resize request '{kept.name}' is in state {state} and cannot be cancelled; only one in "
                "CREATING or ACCEPTED can.",
                reason="resourceNotReady",
            )
        vm.give_back(w, call.who, request)
        return operations.Change(type="cancel", target=_path(kept), target_id=kept.id)

    return operations.run(call, documents.where(call), work)


def delete(call: Called) -> dict[str, Any]:
    """Put the record of one that is over away; its instances stay."""

    def work(w: Write) -> operations.Change:
        kept, request = _found(call, w.tx)
        if state_of(request) == "ACCEPTED":
            raise InvalidArgument(
                f"Resize request '{kept.name}' is in state ACCEPTED and cannot be deleted; cancel it first.",
                reason="resourceInUseByAnotherResource",
            )
        w.tx.drop_document(kept.id)
        return operations.Change(type="delete", target=_path(kept), target_id=kept.id)

    return operations.run(call, documents.where(call), work)


def get(call: Called) -> dict[str, Any]:
    """One resize request, with why it waits and when it is expected to start."""
    with call.engine.reading() as reader:
        kept, request = _found(call, reader)
        answer = shown(scope_of(call), reader, kept)
    if request is None or not request.state.is_waiting:
        return answer
    forecast = call.engine.forecast().get(request.id)
    if forecast is None:  # started in between
        return answer
    return answer | {"status": {"lastAttempt": {"error": {"errors": [shortage(request, forecast)]}}}}


def list_them(call: Call[None, ListQuery]) -> dict[str, Any]:
    """The resize requests of a group."""
    with call.engine.reading() as reader:
        group = groups.find(reader, call)
    path = f"{group_members.path_of(group)}/resizeRequests"
    found, token = documents.page(call, COLLECTION, path, group.scope, group.name)
    word = "instanceGroupManagerResizeRequest"
    if group.scope.startswith("regions/"):
        word = "regionInstanceGroupManagerResizeRequest"
    return documents.listed(call, word, path, ([item for _, item in found], token))


def state_of(request: CapacityRequest | None) -> str:
    """The public service's word for how far it is."""
    if request is None:
        return "SUCCEEDED"
    if request.deliveries:
        return "SUCCEEDED"
    if request.state is RequestState.ENDING and request.requeue:  # an attempt failed; there will be another
        return "ACCEPTED"
    state = _STATES[request.state]
    return "CANCELLED" if state == "SUCCEEDED" else state  # given back before it was all there


def shown(scope: Scope, reader: Reader, kept: Document) -> dict[str, Any]:
    """A resize request as clients see it."""
    request = reader.request(kept.request)
    state = state_of(request)
    where, _, _ = kept.scope.partition("/")
    found: dict[str, Any] = {
        "kind": "compute#instanceGroupManagerResizeRequest",
        "id": str(kept.id),
        "creationTimestamp": format_instant(kept.created_at),
        "description": "",
        "state": state,
        "status": {},
        where.removesuffix("s"): scope.link(kept.scope),
        "selfLink": scope.link(_path(kept)),
    } | kept.body
    if state == "FAILED" and request is not None:
        turned_away = request.demand.reservation > 0 and request.end_reason is EndReason.WAIT_LIMIT
        code = "RESERVATION_NOT_FOUND" if turned_away else "LIMIT_EXCEEDED"
        error = {"code": code, "message": request.end_message or request.last_failure}
        found["status"] = {"error": {"errors": [error]}}
    elif state == "ACCEPTED" and request is not None and request.last_failure:
        error = {"code": EXHAUSTED, "message": request.last_failure}
        found["status"] = {"lastAttempt": {"error": {"errors": [error]}}}
    found.pop("count", None)
    return found


def _path(kept: Document) -> str:
    return f"{kept.scope}/instanceGroupManagers/{kept.parent}/resizeRequests/{kept.name}"


COLLECTION: Final = documents.Collection(
    kind=KIND, name="resizeRequests", word="resizeRequest", show=shown, parent="instanceGroupManagers"
)
_PLACES: Final = (
    ("instanceGroupManagerResizeRequests", f"zones/{{zone}}/{groups.ONE}/resizeRequests"),
    ("regionInstanceGroupManagerResizeRequests", f"regions/{{region}}/{groups.ONE}/resizeRequests"),
)
METHODS: Final = (
    *(
        documents.read(f"{title}.{name}", f"{place}{tail}", summary, handler)
        for title, place in _PLACES
        for name, tail, summary, handler in (
            ("list", "", "The resize requests of a group.", list_them),
            ("get", "/{resizeRequest}", "One of them.", get),
        )
    ),
    *(
        documents.change(f"{title}.{name}", verb, f"{place}{tail}", summary, handler, body=request)
        for title, place in _PLACES
        for name, verb, tail, summary, request, handler in (
            ("insert", "POST", "", "Ask for more instances of a group, together.", Body, insert),
            ("cancel", "POST", "/{resizeRequest}/cancel", "Stop wanting them.", None, cancel),
            ("delete", "DELETE", "/{resizeRequest}", "Put its record away.", None, delete),
        )
    ),
)
