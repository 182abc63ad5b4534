"""Operations: the answer to every change, and what may be asked of one later.

An operation is a document. Most are done as soon as they are accepted; one that stands for a request (the
creation of an instance) is as far as that request is, read from it whenever somebody asks. Repeating a call
with its requestId answers with the operation it was answered with before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from dws.api.compute_v1 import documents
from dws.api.compute_v1.documents import Called
from dws.api.compute_v1.names import ROOT, Scope, scope_of
from dws.api.compute_v1.shortages import EXHAUSTED
from dws.api.method import Call, Method
from dws.engine.ports import Reader
from dws.engine.write import Write
from dws.model.access import Role
from dws.model.document import WITH_REQUEST, Document
from dws.model.errors import Conflict
from dws.model.names import DocumentId
from dws.model.request import CapacityRequest, RequestState
from dws.wire.timefmt import format_instant

KIND: Final = "compute.operation"
WAIT_S: Final = 20.0
WAITS: Final = 20
_FAILED: Final = frozenset({RequestState.FAILED, RequestState.EXPIRED, RequestState.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an operation did: its `type` (`insert`, `delete`, …), the path of its target below the project,
    and the target's id. `request` is the one whose delivery it waits for, 0 for none. Operations of one
    bulk insert have a `group`; the one of the whole says how many instances were `wanted` and `asked` for,
    those of its instances which: in a region the zone, and so the target, is open until it has a machine."""

    type: str
    target: str
    target_id: int
    request: int = 0
    group: str = ""
    instance: str = ""
    wanted: int = 0
    asked: int = 0


def run(call: Call[Any, Any], scope: str, act: Callable[[Write], Change]) -> dict[str, Any]:
    """Make a change in `scope` (`global`, `zones/Z`, `regions/R`), once for each requestId, and answer with
    its operation."""
    engine, who = call.engine, call.who
    name, digest = _name_of(call)

    def work(w: Write) -> Document:
        if name:
            before = w.tx.document_named(KIND, call.project, scope, name)
            if before is not None:
                if before.body["call"] != digest:
                    raise Conflict(
                        f"requestId '{call.call_id}' was used for another call", reason="requestIdReused"
                    )
                return before
        return record(w, call, scope, act(w), name=name, digest=digest)

    done = engine.transact(who, work, call.call_id)
    with engine.reading() as reader:
        return shown(scope_of(call), reader, done)


def record(
    w: Write, call: Call[Any, Any], scope: str, change: Change, *, name: str = "", digest: str = ""
) -> Document:
    """Keep the operation of a change."""
    number = w.ids.next(w.now)
    kept = Document(
        id=DocumentId(number),
        kind=KIND,
        project=call.project,
        scope=scope,
        name=name or f"operation-{number}",
        created_at=w.now,
        request=change.request,
        ended_at=WITH_REQUEST if change.request else w.now,
        body={
            "type": change.type,
            "target": change.target,
            "targetId": str(change.target_id),
            "user": call.who.name,
            "call": digest,
        }
        | _of_group(change),
    )
    w.tx.put_document(kept)
    return kept


def _of_group(change: Change) -> dict[str, Any]:
    """What is kept of an operation that belongs to a bulk insert."""
    if not change.group:
        return {}
    numbers = {"wanted": change.wanted, "asked": change.asked} if change.wanted else {}
    return {"group": change.group, "instance": change.instance} | numbers


def _name_of(call: Call[Any, Any]) -> tuple[str, str]:
    """The operation's name for a call with a requestId, and what the call says; empty without one."""
    if not call.call_id:
        return "", ""
    key = f"{call.who.name}\0{call.call_id}".encode()
    said = msgspec.json.encode([call.path, call.body], order="sorted")
    return f"operation-{hashlib.sha256(key).hexdigest()[:32]}", hashlib.sha256(said).hexdigest()[:32]


def shown(scope: Scope, reader: Reader, kept: Document) -> dict[str, Any]:
    """An operation as clients see it."""
    body = kept.body
    request = reader.request(kept.request) if kept.request else None
    at = _place_of(kept, request)
    target = f"{at}/instances/{body['instance']}" if body.get("instance") else body["target"]
    found: dict[str, Any] = {
        "kind": "compute#operation",
        "id": str(kept.id),
        "name": kept.name,
        "operationType": body["type"],
        "targetLink": scope.link(target),
        "targetId": body["targetId"],
        "status": "DONE",
        "progress": 100,
        "user": body["user"],
        "insertTime": format_instant(kept.created_at),
        "startTime": format_instant(kept.created_at),
        "selfLink": scope.link(f"{at}/operations/{kept.name}"),
    }
    where, _, place = at.partition("/")
    if place:
        found[where.removesuffix("s")] = scope.link(at)
    if body.get("group"):
        found["operationGroupId"] = body["group"]
    if body.get("wanted"):
        found["instancesBulkInsertOperationMetadata"] = _progress(kept, request)
    if request is not None and not request.deliveries:
        if request.state not in _FAILED:
            return found | {"status": "RUNNING", "progress": 0}
        return found | {"endTime": format_instant(request.ended_at)} | _failed(request)
    return found | {"endTime": format_instant(kept.created_at)}


def _place_of(kept: Document, request: CapacityRequest | None) -> str:
    """Where an operation is: that of an instance in a region in its zone, once it has one."""
    if kept.body.get("instance") and request is not None and request.grant is not None:
        return f"zones/{request.grant.zone}"
    return kept.scope


def _progress(kept: Document, request: CapacityRequest | None) -> dict[str, Any]:
    """How far a bulk insert is, in the zone it is in: all of its instances come together."""
    wanted, asked = kept.body["wanted"], kept.body["asked"]
    come = request is None or request.deliveries > 0
    over = not come and request is not None and request.state in _FAILED
    zones = [request.grant.zone] if request is not None and request.grant is not None else []
    if not zones and request is not None:
        zones = list(request.demand.alternatives[0].locations)
    failed = wanted - asked if come else wanted if over else 0
    status = {
        "status": "DONE" if come or over else "CREATING",
        "targetVmCount": wanted,
        "createdVmCount": asked if come else 0,
        "failedToCreateVmCount": failed,
        "deletedVmCount": 0,
    }
    return {"perLocationStatus": {f"zones/{zone}": status for zone in zones}}


def _why(request: CapacityRequest) -> tuple[str, str]:
    if request.state is RequestState.CANCELLED:
        return "OPERATION_CANCELED_BY_USER", "The instance was deleted or stopped before it had a machine."
    zone = ", ".join(request.demand.alternatives[0].locations)
    said = request.end_message or request.last_failure or "there was no free capacity in time"
    return (
        EXHAUSTED,
        f"The zone '{zone}' does not have enough resources available to fulfill the request: {said}",
    )


def _failed(request: CapacityRequest) -> dict[str, Any]:
    code, message = _why(request)
    exhausted = code == EXHAUSTED
    return {
        "error": {"errors": [{"code": code, "message": message}]},
        "httpErrorStatusCode": 503 if exhausted else 409,
        "httpErrorMessage": "SERVICE UNAVAILABLE" if exhausted else "CONFLICT",
    }


# --- what may be asked of one -----------------------------------------------------------------


def _find(reader: Reader, call: Called) -> Document:
    """The operation a path names; one in a zone may be kept in its region. Raises NotFound."""
    name, around = call.path["operation"], documents.region_around(call, documents.where(call))
    kept = reader.document_named(KIND, scope_of(call).project, around, name) if around else None
    request = reader.request(kept.request) if kept is not None else None
    if kept is not None and _place_of(kept, request) == documents.where(call):
        return kept
    return documents.find(reader, call, COLLECTION, name)


def get(call: Called) -> dict[str, Any]:
    """One operation."""
    with call.engine.reading() as reader:
        return shown(scope_of(call), reader, _find(reader, call))


def wait(call: Called) -> dict[str, Any]:
    """One operation, once it is done; as it is when that takes longer than a client waits."""
    engine = call.engine
    for _ in range(WAITS):
        seen = engine.last_seq()
        answer = get(call)
        if answer["status"] == "DONE" or engine.is_virtual:
            return answer
        engine.wait_for_events(seen, WAIT_S / WAITS)
    return get(call)


def delete(call: Called) -> None:
    """Forget an operation; what it did stays."""

    def work(w: Write) -> None:
        w.tx.drop_document(_find(w.tx, call).id)

    call.engine.transact(call.who, work)


COLLECTION: Final = documents.Collection(
    kind=KIND, name="operations", word="operation", show=shown, prefixed=True, in_regions=True
)
METHODS: Final = (
    *documents.reads(COLLECTION, get, scopes=("zones/{zone}", "regions/{region}", "global")),
    *(
        Method(
            id=f"compute.{title}Operations.{verb}",
            verb=http,
            path=f"{ROOT}/{where}/operations/{{operation}}{tail}",
            summary=summary,
            role=role,
            lenient=True,
            handler=handler,
        )
        for title, where in (("zone", "zones/{zone}"), ("region", "regions/{region}"), ("global", "global"))
        for verb, http, tail, summary, role, handler in (
            ("wait", "POST", "/wait", "Wait until an operation is done.", Role.VIEWER, wait),
            ("delete", "DELETE", "", "Forget an operation.", Role.USER, delete),
        )
    ),
)
