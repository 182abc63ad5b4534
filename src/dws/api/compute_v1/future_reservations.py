"""Future reservations: capacity from then until then, as Compute's clients ask for it.

A draft is a document and no more. Submitting it books a reservation of the engine, from its start to the
time at which the reservation made for it is deleted; that one is kept beside it at once. How far it is, is
read from the engine's.

    ours    none      PENDING_APPROVAL … FULFILLED   ENDING, ENDED         CANCELLED, DECLINED
    theirs  DRAFTING  the same words                 FULFILLED, or FAILED  the same words
                                                     if it never opened
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from dws.api.compute_v1 import (
    documents,
    operations,
    reservations,
    reserved_machines,
    share_settings,
    tpu_families,
)
from dws.api.compute_v1 import future_reservation_bookings as bookings
from dws.api.compute_v1 import future_reservation_forms as forms
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.names import Scope, check_resource_name, scope_of
from dws.engine import reservations as native
from dws.engine.ports import Reader
from dws.engine.write import Write
from dws.model.document import WITH_RESERVATION, Document
from dws.model.errors import FailedPrecondition
from dws.model.events import ReservationDegraded, SubjectKind
from dws.model.reservation import Reservation, ReservationState
from dws.wire.timefmt import format_instant

KIND: Final = "compute.futureReservation"
_OVER: Final = frozenset({ReservationState.ENDING, ReservationState.ENDED})
_NOT_LOCKED: Final = frozenset({ReservationState.PENDING_APPROVAL, ReservationState.APPROVED})


def insert(call: Called) -> dict[str, Any]:
    """Keep a draft, or book what is submitted."""
    scope, place = scope_of(call), documents.where(call)
    told = forms.with_mode(forms.read(call.body), call.engine.policy)
    name = check_resource_name(told.pop("name", None))

    def work(w: Write) -> operations.Change:
        path = f"{place}/futureReservations/{name}"
        before = w.tx.document_named(KIND, scope.project, place, name)
        if before is not None and shown(scope, w.tx, before) is not None:
            raise scope.exists(path)
        if before is not None:
            w.tx.drop_document(before.id)
        kept = documents.keep(w, KIND, scope.project, place, name, {})
        put(w, call, kept, told)
        return operations.Change(type="insert", target=path, target_id=kept.id)

    return operations.run(call, place, work)


def put(w: Write, call: Called, kept: Document, told: dict[str, Any]) -> None:
    """Keep what is said of one that is no more than a draft, and book it when it is submitted."""
    machine, template = reserved_machines.machine_of(w.tx, call, told, bookings.SKU)
    bookings.terms_of(told, call.project)
    body = {"told": told, "machine": machine, "template": template, "created": "", "amended": False}
    reservation = over = 0
    if told["planningStatus"] == "SUBMITTED":
        zone = kept.scope.partition("/")[2]
        booked, body["created"] = bookings.book(w, call, zone, kept.name, told, machine)
        reservation, over = booked.id, WITH_RESERVATION
    version = kept.version + 1
    w.tx.put_document(replace(kept, body=body, reservation=reservation, ended_at=over, version=version))


def cancel(call: Called) -> dict[str, Any]:
    """Give up what has not been locked yet; its record stays until it is deleted."""

    def work(w: Write) -> operations.Change:
        kept = find(w.tx, call)
        behind = w.tx.reservation(kept.reservation)
        if behind is None or behind.state not in _NOT_LOCKED:
            raise FailedPrecondition(
                f"{says(w, kept, behind)} cannot be cancelled; only one in PENDING_APPROVAL or APPROVED "
                "can, before its lock time." + (" A draft is deleted instead." if behind is None else "")
            )
        native.cancel(w, call.who, call.project, str(behind.id))
        return operations.Change(type="cancel", target=path_of(kept), target_id=kept.id)

    return operations.run(call, documents.where(call), work)


def delete(call: Called) -> dict[str, Any]:
    """Put away a draft, or the record of one that is over."""

    def work(w: Write) -> operations.Change:
        kept = find(w.tx, call)
        behind = w.tx.reservation(kept.reservation)
        if behind is not None and not behind.state.is_terminal:
            raise FailedPrecondition(
                f"{says(w, kept, behind)} cannot be deleted; only a draft, or one that was cancelled or "
                "declined or whose window is over, can.",
                reason="resourceInUseByAnotherResource",
            )
        if behind is not None and not behind.deleted:
            native.delete(w, call.who, call.project, str(behind.id))
        created = kept.body["created"]
        made = w.tx.document_named(reservations.KIND, kept.project, kept.scope, created)
        if made is not None and made.reservation == kept.reservation:
            w.tx.drop_document(made.id)
        w.tx.drop_document(kept.id)
        return operations.Change(type="delete", target=path_of(kept), target_id=kept.id)

    return operations.run(call, documents.where(call), work)


def says(w: Write, kept: Document, behind: Reservation | None) -> str:
    """How far it is, as the beginning of a sentence on what cannot be done with it."""
    return f"Future reservation '{kept.name}' is in state {status(w.tx, behind)} and"


def find(reader: Reader, call: Called) -> Document:
    """The future reservation a path names. Raises NotFound in the words clients look for."""
    kept = documents.find(reader, call, COLLECTION, call.path["futureReservation"])
    if kept.reservation and reader.reservation(kept.reservation) is None:
        raise scope_of(call).not_found(path_of(kept))
    return kept


def get(call: Called) -> dict[str, Any]:
    """One future reservation."""
    with call.engine.reading() as reader:
        found = shown(scope_of(call), reader, find(reader, call))
        assert found is not None, "find found it"
        return found


# --- how one is shown -------------------------------------------------------------------------


def status(reader: Reader, behind: Reservation | None) -> str:
    """How far it is, in the public service's words; `behind` is None for a draft."""
    if behind is None:
        return "DRAFTING"
    if behind.state not in _OVER:
        return str(behind.state)
    if behind.opened_at:
        return "FULFILLED"
    return "FAILED" if _lacked(reader, behind) >= behind.count else "FAILED_PARTIALLY_FULFILLED"


def _lacked(reader: Reader, behind: Reservation) -> int:
    """How many machines one lacked when it ended that never had all of them, which only its story tells."""
    story = reader.events(subject_kind=SubjectKind.RESERVATION, subject=behind.id, newest_first=True)
    short = (each.body.short for each in story if isinstance(each.body, ReservationDegraded))
    return next(short, 0)


def shown(scope: Scope, reader: Reader, kept: Document) -> dict[str, Any] | None:
    """A future reservation as clients see it; None when it has been over so long that it is forgotten."""
    behind = reader.reservation(kept.reservation)
    if behind is None and kept.reservation:
        return None
    told = as_it_is(kept, behind)
    found: dict[str, Any] = {
        "kind": "compute#futureReservation",
        "id": str(kept.id),
        "name": kept.name,
        "creationTimestamp": format_instant(kept.created_at),
        "zone": scope.link(kept.scope),
        "selfLink": scope.link(path_of(kept)),
        "selfLinkWithId": scope.link(f"{kept.scope}/futureReservations/{kept.id}"),
        "status": _status(scope, reader, kept, behind),
    } | told
    if "specificSkuProperties" in told:
        machine = {"instanceProperties": kept.body["machine"]}
        found["specificSkuProperties"] = told["specificSkuProperties"] | machine
    projects = [share.project for share in bookings.terms_of(told, kept.project).shares]
    return found | {"shareSettings": share_settings.shown(projects, scope.version)}


def as_it_is(kept: Document, behind: Reservation | None) -> dict[str, Any]:
    """What was said of it, with what the engine has of it in the place of what was asked for."""
    told: dict[str, Any] = dict(kept.body["told"])
    if told.get("timeWindow"):
        told["timeWindow"] = _window(told, behind)
    if behind is None:
        return told
    if "specificSkuProperties" in told:
        told["specificSkuProperties"] = told["specificSkuProperties"] | {"totalCount": str(behind.count)}
    if behind.description or "description" in told:
        told["description"] = behind.description
    told["specificReservationRequired"] = behind.terms.specific_only
    told["shareSettings"] = share_settings.shown([share.project for share in behind.terms.shares])
    return told


def _window(told: dict[str, Any], behind: Reservation | None) -> dict[str, Any]:
    """From when to when; the engine's own, unless the reservation made for it is deleted at another time."""
    window = told["timeWindow"]
    if not forms.is_timed(window):
        return dict(window)
    asked = forms.window_of(told)
    start, end = asked.start, asked.end
    if behind is not None:
        start = behind.window.start
        end = behind.window.end if asked.held_until == asked.end else end
    found = {"startTime": format_instant(start), "endTime": format_instant(end)}
    return found | ({"duration": {"seconds": str(end - start)}} if "duration" in window else {})


def _status(scope: Scope, reader: Reader, kept: Document, behind: Reservation | None) -> dict[str, Any]:
    found: dict[str, Any] = {"procurementStatus": status(reader, behind)}
    if kept.body["template"]:
        found["specificSkuProperties"] = {"sourceInstanceTemplateId": str(kept.body["template"])}
    if behind is None:
        return found
    if behind.state is not ReservationState.PENDING_APPROVAL and not behind.state.is_terminal:
        found["lockTime"] = format_instant(behind.lock_at)
    if behind.state.is_open:
        found["fulfilledCount"] = str(_fulfilled(kept.body["told"], behind))
    if kept.body["amended"]:
        found["amendmentStatus"] = "AMENDMENT_APPROVED"
    if reservations.status(behind) is not None:
        found["autoCreatedReservations"] = [scope.link(f"{kept.scope}/reservations/{kept.body['created']}")]
    return found


def _fulfilled(told: dict[str, Any], behind: Reservation) -> int:
    """How many machines, or chips, of an open one are there."""
    if not (behind.opened_at or behind.short):
        return 0
    there = behind.count - behind.short
    if "aggregateReservation" not in told:
        return there
    return tpu_families.chips_of(told["aggregateReservation"])[1] * there // behind.count


def path_of(kept: Document) -> str:
    """Its path below the project."""
    return f"{kept.scope}/futureReservations/{kept.name}"


COLLECTION: Final = documents.Collection(
    kind=KIND, name="futureReservations", word="futureReservation", show=shown
)
ALL: Final = "zones/{zone}/futureReservations"
ONE: Final = f"{ALL}/{{futureReservation}}"
METHODS: Final = (
    *documents.reads(COLLECTION, get, scopes=("zones/{zone}",)),
    documents.change(
        "futureReservations.insert", "POST", ALL, "Keep a draft, or book a window.", insert, body=Body
    ),
    documents.change(
        "futureReservations.cancel", "POST", f"{ONE}/cancel", "Give up what has not been locked.", cancel
    ),
    documents.change(
        "futureReservations.delete", "DELETE", ONE, "Put away a draft, or what is over.", delete
    ),
)
