"""Reservations as Compute's clients see them: a document beside a reservation of the engine.

How many machines it has, how long, whose it is to use and what runs in it are read from the engine's
reservation and its booking; the document keeps what only its client said.

    ours    PENDING_APPROVAL   APPROVED, PROCURING   PROVISIONING, FULFILLED   ENDING     over
    theirs  not there yet      CREATING              READY                     DELETING   gone
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dws.api.compute_v1 import documents, reservation_layout, share_settings
from dws.api.compute_v1 import reservation_forms as forms
from dws.api.compute_v1.documents import Called
from dws.api.compute_v1.names import Scope, last, scope_of
from dws.api.compute_v1.reservation_layout import Layout
from dws.engine.ports import DocumentQuery, Reader, ReservationQuery
from dws.engine.write import Write
from dws.model.document import WITH_RESERVATION, Document
from dws.model.errors import AlreadyExists
from dws.model.names import DocumentId, derive_name
from dws.model.reservation import Reservation, ReservationState
from dws.wire.timefmt import format_instant

KIND: Final = "compute.reservation"
_THERE: Final = (
    ReservationState.APPROVED,
    ReservationState.PROCURING,
    ReservationState.PROVISIONING,
    ReservationState.FULFILLED,
    ReservationState.ENDING,
)
_REFERENCE: Final = re.compile(
    r"(?:(?:.*?/)?projects/(?P<project>[^/]+)/)?(?:zones/(?P<zone>[^/]+)/)?(?:reservations/)?(?P<name>[^/]+)"
    r"(?:/reservationBlocks/(?P<block>[^/]+)(?:/reservationSubBlocks/(?P<sub_block>[^/]+))?)?/?"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A reservation as somebody named it; what was left out is empty."""

    name: str
    project: str = ""
    zone: str = ""
    block: str = ""
    sub_block: str = ""


def parse(reference: str) -> Reference | None:
    """What a reference says, in whichever of its spellings; None when it is none.

    `R`, `projects/P/reservations/R`, `projects/P/zones/Z/reservations/R`, each also with
    `/reservationBlocks/B` and `/reservationSubBlocks/S` behind it, and as a URL of any host and version.
    """
    found = _REFERENCE.fullmatch(reference)
    return Reference(**{name: part or "" for name, part in found.groupdict().items()}) if found else None


def look_up(reader: Reader, project: str, zone: str, reference: str) -> Document | None:
    """The reservation in `zone` that work of `project` means; None when there is none that is not over, or
    it is not shared with the project."""
    named = parse(reference)
    if named is None or named.zone not in ("", zone):
        return None
    kept = standing(reader, named.project or project, f"zones/{zone}", named.name)
    behind = reader.reservation(kept.reservation) if kept is not None else None
    return kept if behind is not None and behind.hosts_max_of(project) is not None else None


def standing(reader: Reader, project: str, place: str, name: str) -> Document | None:
    """The reservation of that name in a zone that is not over, None when there is none. One that was not made
    through this door has no document; it is given the one it would have, by the engine's name."""
    kept = reader.document_named(KIND, project, place, name)
    if kept is not None and status(reader.reservation(kept.reservation)) is not None:
        return kept
    behind = reader.reservation_named(project, name)
    if behind is None or status(behind) is None or f"zones/{behind.zone}" != place:
        return None
    return None if _is_kept(reader, behind) else _as_kept(behind)


def _is_kept(reader: Reader, behind: Reservation) -> bool:
    return _kept_for(reader, behind) is not None


def _kept_for(reader: Reader, behind: Reservation) -> Document | None:
    return next(iter(reader.documents(DocumentQuery(kind=KIND, reservation=behind.id, limit=1))), None)


def _as_kept(behind: Reservation) -> Document:
    return Document(
        id=DocumentId(behind.id),
        kind=KIND,
        project=behind.project,
        scope=f"zones/{behind.zone}",
        name=behind.name,
        created_at=behind.created_at,
        body={"properties": {}, "future": ""},
        reservation=behind.id,
        ended_at=WITH_RESERVATION,
    )


def unkept(reader: Reader, query: DocumentQuery) -> list[Document]:
    """The reservations of a query's project that were not made through this door and are not over."""
    found: list[Document] = []
    asked = ReservationQuery(project=query.project, states=_THERE)
    while some := reader.reservations(asked):
        found += [_as_kept(behind) for behind in some if not _is_kept(reader, behind)]
        if len(some) < asked.limit:
            break
        asked = replace(asked, after=some[-1].id)
    return found


def put(w: Write, kept: Document, properties: dict[str, Any]) -> Document:
    """Keep what a client says of it now."""
    version = kept.version + 1 if w.tx.document(kept.id) is not None else 1
    changed = replace(kept, body=kept.body | {"properties": properties}, version=version)
    w.tx.put_document(changed)
    return changed


def keep(
    w: Write,
    project: str,
    place: str,
    name: str,
    body: dict[str, Any],
    *,
    reservation: int,
    future: str = "",
) -> Document:
    """Keep a reservation that stands for one of the engine's; an older one of its name that is over makes
    room. `body` is what its client said, of a reservation's fields; `future` the name of the future
    reservation it comes from, empty for none. Raises AlreadyExists."""
    before = w.tx.document_named(KIND, project, place, name)
    if before is not None:
        behind = w.tx.reservation(before.reservation)
        if behind is not None and not behind.state.is_terminal:
            raise AlreadyExists(f"The resource 'projects/{project}/{path_of(before)}' already exists")
        w.tx.drop_document(before.id)
    told = {"properties": body, "future": future}
    return documents.keep(
        w, KIND, project, place, name, told, reservation=reservation, ended_at=WITH_RESERVATION
    )


def is_free(reader: Reader, project: str, zone: str, name: str) -> bool:
    """True when no reservation in the zone that is not over has that name, however it was made."""
    holder = reader.reservation_named(project, name)
    if holder is not None and not holder.state.is_terminal and holder.zone == zone:
        return False
    kept = reader.document_named(KIND, project, f"zones/{zone}", name)
    behind = reader.reservation(kept.reservation) if kept is not None else None
    return behind is None or behind.state.is_terminal


def native_name(reader: Reader, project: str, zone: str, name: str) -> str:
    """The engine's name for one that is to be made: the same, unless one in another zone has it; the
    engine's names are of a project."""
    holder = reader.reservation_named(project, name)
    if holder is None or holder.state.is_terminal:
        return name
    return derive_name(name, zone)


def status(behind: Reservation | None) -> str | None:
    """Its status; None when it is no more, or still to be approved."""
    if behind is None or behind.state not in _THERE:
        return None
    if behind.state is ReservationState.ENDING:
        return "DELETING"
    return "READY" if behind.state.is_open else "CREATING"


def shown(scope: Scope, reader: Reader, kept: Document) -> dict[str, Any] | None:
    """A reservation as clients see it; None when it is no more."""
    behind = reader.reservation(kept.reservation)
    state = status(behind)
    if behind is None or state is None:
        return None
    layout = reservation_layout.of(reader, behind)
    found: dict[str, Any] = {
        "kind": "compute#reservation",
        "id": str(kept.id),
        "name": kept.name,
        "creationTimestamp": format_instant(kept.created_at),
        "description": behind.description,
        "zone": scope.link(kept.scope),
        "selfLink": scope.link(path_of(kept)),
        "status": state,
        "specificReservationRequired": behind.terms.specific_only,
        "shareSettings": share_settings.shown([s.project for s in behind.terms.shares], scope.version),
        "resourceStatus": _resource_status(layout),
    }
    if not behind.is_open_ended:
        found["deleteAtTime"] = format_instant(behind.window.end)
    if layout.blocks and "deploymentType" not in kept.body["properties"]:
        found["deploymentType"] = "DENSE"
    if scope.version != "v1":
        found["reservationMode"] = kept.body["properties"].get("reservationMode", "DEFAULT")
    return found | _told(kept.body["properties"]) | _size(kept, behind, layout)


def _told(properties: Mapping[str, Any]) -> dict[str, Any]:
    """What only its client said."""
    return {name: value for name, value in properties.items() if name not in forms.DERIVED}


def _size(kept: Document, behind: Reservation, layout: Layout) -> dict[str, Any]:
    """How many machines of which kind it is for, and how many of them run."""
    properties = kept.body["properties"]
    if chips := properties.get("aggregateReservation"):
        used = layout.in_use * layout.pool.shape_named(behind.shape).accelerators
        in_use = [{"accelerator": {"acceleratorCount": used}}]
        return {"aggregateReservation": chips | {"inUseResources": in_use}}
    told = properties.get("specificReservation", {})
    machine = {"machineType": behind.shape} | told.get("instanceProperties", {})
    machine["machineType"] = last(machine["machineType"])
    specific = {
        "count": str(behind.count),
        "assuredCount": str(behind.count - behind.short if behind.state.is_open else 0),
        "inUseCount": str(layout.in_use),
        "instanceProperties": machine,
    }
    template = told.get("sourceInstanceTemplate")
    return {"specificReservation": specific | ({"sourceInstanceTemplate": template} if template else {})}


def _resource_status(layout: Layout) -> dict[str, Any]:
    degraded = sum(1 for block in layout.blocks if block.degraded)
    health = "DEGRADED" if layout.degraded else "HEALTHY"
    users = {project: str(count) for project, count in sorted(layout.users.items())}
    return {
        "reservationBlockCount": len(layout.blocks),
        "healthInfo": {
            "healthStatus": health,
            "healthyBlockCount": len(layout.blocks) - degraded,
            "degradedBlockCount": degraded,
        },
        "specificSkuAllocation": {"utilizations": users},
    }


def path_of(kept: Document) -> str:
    """Its path below the project."""
    return f"{kept.scope}/reservations/{kept.name}"


def consumed(reader: Reader, behind: Reservation, host: int) -> dict[str, str]:
    """How an instance on a host of a reservation says in which it runs, and in which block of it."""
    fleet = reader.fleet()
    assert fleet is not None, "who has a reservation has a fleet"
    path = f"projects/{behind.project}/{path_of(_kept_for(reader, behind) or _as_kept(behind))}"
    found, pool = {"consumedReservation": path}, fleet.pool(behind.pool)
    words = (("Block", "reservationBlocks"), ("SubBlock", "reservationSubBlocks"))
    for (word, collection), level in zip(words, reservation_layout.levels(pool), strict=False):
        if not (name := pool.domain_of(host, level)):
            break
        path = f"{path}/{collection}/{name}"
        found[f"consumedReservation{word}"] = path
    return found


def find(reader: Reader, call: Called) -> Document:
    """The reservation a path names. Raises NotFound in the words clients look for."""
    scope, place, name = scope_of(call), documents.where(call), call.path["reservation"]
    kept = standing(reader, scope.project, place, name)
    if kept is None:
        raise scope.not_found(f"{place}/reservations/{name}")
    return kept


def get(call: Called) -> dict[str, Any]:
    """One reservation."""
    with call.engine.reading() as reader:
        found = shown(scope_of(call), reader, find(reader, call))
        assert found is not None, "find found it"
        return found


COLLECTION: Final = documents.Collection(
    kind=KIND, name="reservations", word="reservation", show=shown, unkept=unkept
)
METHODS: Final = documents.reads(COLLECTION, get, scopes=("zones/{zone}",))
