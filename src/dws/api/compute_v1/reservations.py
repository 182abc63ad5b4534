"""Reservations as Compute's clients see them: a document beside a reservation of the engine.

How many machines it has, how long, whose it is to use and what runs in it are read from the engine's
reservation and its booking; the document keeps what only its client said.

    ours    PENDING_APPROVAL   APPROVED, PROCURING   PROVISIONING, FULFILLED   ENDING     over
    theirs  not there yet      CREATING              READY                     DELETING   gone
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from dws.api.compute_v1 import documents, reservation_layout
from dws.api.compute_v1.documents import Called
from dws.api.compute_v1.names import Scope, last, scope_of
from dws.api.compute_v1.reservation_layout import Layout
from dws.engine.ports import Reader
from dws.engine.write import Write
from dws.model.demand import OPEN_ENDED_S
from dws.model.document import WITH_RESERVATION, Document
from dws.model.errors import AlreadyExists
from dws.model.names import derive_name
from dws.model.reservation import Reservation, ReservationState
from dws.wire.timefmt import format_instant

KIND: Final = "compute.reservation"
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
    kept = reader.document_named(KIND, named.project or project, f"zones/{zone}", named.name)
    behind = reader.reservation(kept.reservation) if kept is not None else None
    if behind is None or status(behind) is None or behind.hosts_max_of(project) is None:
        return None
    return kept


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
            raise AlreadyExists(f"The resource 'projects/{project}/{_path(before)}' already exists")
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
    if behind is None or behind.state.is_terminal or behind.state is ReservationState.PENDING_APPROVAL:
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
        "selfLink": scope.link(_path(kept)),
        "status": state,
        "specificReservationRequired": behind.terms.specific_only,
        "shareSettings": _share_settings(scope, behind),
        "resourceStatus": _resource_status(layout),
    }
    if behind.window.length_s != OPEN_ENDED_S:
        found["deleteAtTime"] = format_instant(behind.window.end)
    if layout.blocks and "deploymentType" not in kept.body["properties"]:
        found["deploymentType"] = "DENSE"
    if scope.version != "v1":
        found["reservationMode"] = "CALENDAR" if kept.body["future"] else "DEFAULT"
    return found | _told(scope, kept.body["properties"]) | _size(kept, behind, layout)


def _told(scope: Scope, properties: dict[str, Any]) -> dict[str, Any]:
    """What only its client said, as far as the version it is asked in knows it."""
    derived = ("shareSettings", "specificReservation", "aggregateReservation", "deleteAfterDuration")
    found = {name: value for name, value in properties.items() if name not in derived}
    if scope.version == "v1" and found.get("deploymentType") == "FLEXIBLE":
        del found["deploymentType"]
    return found


def _size(kept: Document, behind: Reservation, layout: Layout) -> dict[str, Any]:
    """How many machines of which kind it is for, and how many of them run."""
    properties = kept.body["properties"]
    told = properties.get("specificReservation", {}) or properties.get("specificSkuProperties", {})
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


def _share_settings(scope: Scope, behind: Reservation) -> dict[str, Any]:
    shares = [share.project for share in behind.terms.shares]
    if not shares:
        return {"shareType": "LOCAL"}
    found: dict[str, Any] = {
        "shareType": "SPECIFIC_PROJECTS",
        "projectMap": {project: {"projectId": project} for project in shares},
    }
    return found | ({"projects": shares} if scope.version != "v1" else {})


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


def _path(kept: Document) -> str:
    return f"{kept.scope}/reservations/{kept.name}"


def find(reader: Reader, call: Called) -> Document:
    """The reservation a path names. Raises NotFound in the words clients look for."""
    kept = documents.find(reader, call, COLLECTION, call.path["reservation"])
    if status(reader.reservation(kept.reservation)) is None:
        raise scope_of(call).not_found(_path(kept))
    return kept


def get(call: Called) -> dict[str, Any]:
    """One reservation."""
    with call.engine.reading() as reader:
        found = shown(scope_of(call), reader, find(reader, call))
        assert found is not None, "find found it"
        return found


COLLECTION: Final = documents.Collection(kind=KIND, name="reservations", word="reservation", show=shown)
METHODS: Final = documents.reads(COLLECTION, get, scopes=("zones/{zone}",))
