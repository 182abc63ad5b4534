"""Rows and model values, one into the other.

Documents are JSON of the frozen dataclasses themselves; decoding makes the same values again. A body
of an event is decoded by its kind.
"""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec

from dws.engine.ports import IdempotentReply
from dws.model.booking import Booking
from dws.model.document import Document
from dws.model.events import Event, EventBody, SubjectKind
from dws.model.request import CapacityRequest
from dws.model.reservation import Reservation
from dws.model.series import Series
from dws.model.topology import Fleet, HostState, HostStatus
from dws.model.usage import UsageKind, UsageRecord
from dws.model.work import WorkItem, WorkKind

Row = dict[str, Any]

_encode = msgspec.json.Encoder().encode
read_request = msgspec.json.Decoder(CapacityRequest).decode
read_reservation = msgspec.json.Decoder(Reservation).decode
read_document = msgspec.json.Decoder(Document).decode
read_series = msgspec.json.Decoder(Series).decode
read_booking = msgspec.json.Decoder(Booking).decode
read_fleet = msgspec.json.Decoder(Fleet).decode
_read_subjects = msgspec.json.Decoder(tuple[int, ...]).decode
_BODIES: Final = {body.__name__: msgspec.json.Decoder(body) for body in get_args(EventBody)}


def document(value: object) -> str:
    """A value as JSON text."""
    return _encode(value).decode()


def request_row(request: CapacityRequest) -> Row:
    """Columns and document of a request."""
    return {
        "id": request.id,
        "project": request.project,
        "name": request.name,
        "principal": request.principal,
        "state": request.state.value,
        "deleted": request.deleted,
        "priority": request.priority,
        "array": request.array,
        "submitted_at": request.submitted_at,
        "promised_start": request.promised_start,
        "ended_at": request.ended_at,
        "version": request.version,
        "labels": document(request.labels),
        "doc": document(request),
    }


def reservation_row(reservation: Reservation) -> Row:
    """Columns and document of a reservation."""
    return {
        "id": reservation.id,
        "project": reservation.project,
        "name": reservation.name,
        "state": reservation.state.value,
        "deleted": reservation.deleted,
        "pool": reservation.pool,
        "start": reservation.window.start,
        "end": reservation.window.end,
        "series": reservation.series,
        "created_at": reservation.created_at,
        "ended_at": reservation.ended_at,
        "version": reservation.version,
        "doc": document(reservation),
    }


def series_row(series: Series) -> Row:
    """Columns and document of a series."""
    return {
        "id": series.id,
        "project": series.project,
        "name": series.name,
        "state": series.state.value,
        "ended_at": series.ended_at,
        "version": series.version,
        "doc": document(series),
    }


def document_row(kept: Document) -> Row:
    """Columns and document of a door's document."""
    return {
        "id": kept.id,
        "kind": kept.kind,
        "project": kept.project,
        "scope": kept.scope,
        "parent": kept.parent,
        "name": kept.name,
        "request": kept.request,
        "reservation": kept.reservation,
        "ended_at": kept.ended_at,
        "version": kept.version,
        "doc": document(kept),
    }


def booking_row(booking: Booking) -> Row:
    """Columns and document of a booking."""
    return {
        "id": booking.id,
        "parent": booking.parent,
        "pool": booking.pool,
        "stage": booking.stage.value,
        "owner_kind": booking.owner_kind.value,
        "owner": booking.owner,
        "start": booking.span.start,
        "end": booking.span.end,
        "version": booking.version,
        "doc": document(booking),
    }


def fleet_row(fleet: Fleet) -> Row:
    """The one row of the declared fleet."""
    return {"id": 1, "version": fleet.version, "doc": document(fleet)}


def status_row(status: HostStatus) -> Row:
    """Columns of a host's status."""
    return {
        "pool": status.pool,
        "unit": status.unit,
        "state": status.state.value,
        "reason": status.reason,
        "actor": status.actor,
        "since": status.since,
        "until": status.until,
        "unreachable_since": status.unreachable_since,
    }


def read_status(row: Row) -> HostStatus:
    """The status a row tells."""
    return HostStatus(**{**row, "state": HostState(row["state"])})


def event_row(event: Event) -> Row:
    """Columns of an event, its body as a document."""
    return {
        "seq": event.seq,
        "subject_kind": event.subject_kind.value,
        "subject": event.subject,
        "subject_seq": event.subject_seq,
        "at": event.at,
        "kind": event.kind,
        "actor": event.actor,
        "project": event.project,
        "name": event.name,
        "reason": event.reason,
        "call_id": event.call_id,
        "body": document(event.body),
    }


def read_event(row: Row) -> Event:
    """The event a row tells."""
    values = dict(row)
    values["body"] = _BODIES[values.pop("kind")].decode(values["body"])
    values["subject_kind"] = SubjectKind(values["subject_kind"])
    return Event(**values)


def item_row(item: WorkItem) -> Row:
    """Columns of a work item."""
    return {
        "subject": item.subject,
        "kind": item.kind.value,
        "tag": item.tag,
        "due_at": item.due_at,
        "attempt": item.attempt,
        "lease_token": item.lease_token,
        "lease_until": item.lease_until,
    }


def read_item(row: Row) -> WorkItem:
    """The work item a row tells."""
    return WorkItem(**{**row, "kind": WorkKind(row["kind"])})


def reply_row(reply: IdempotentReply) -> Row:
    """Columns of an answer."""
    return {
        "principal": reply.principal,
        "method": reply.method,
        "call_id": reply.call_id,
        "body_hash": reply.body_hash,
        "subjects": document(reply.subjects),
        "at": reply.at,
    }


def reply_subject_rows(reply: IdempotentReply) -> list[Row]:
    """One row for every subject an answer named."""
    return [
        {
            "subject": subject,
            "principal": reply.principal,
            "method": reply.method,
            "call_id": reply.call_id,
        }
        for subject in sorted(set(reply.subjects))
    ]


def read_reply(row: Row) -> IdempotentReply:
    """The answer a row tells."""
    return IdempotentReply(**{**row, "subjects": _read_subjects(row["subjects"])})


def usage_row(record: UsageRecord) -> Row:
    """Columns of a usage record."""
    return {
        "request": record.request,
        "request_name": record.request_name,
        "project": record.project,
        "principal": record.principal,
        "pool": record.pool,
        "shape": record.shape,
        "accelerator": record.accelerator,
        "accelerators": record.accelerators,
        "rank": record.rank,
        "start": record.start,
        "end": record.end,
        "price_micros_per_hour": record.price_micros_per_hour,
        "kind": record.kind.value,
        "reservation": record.reservation,
    }


def read_usage(row: Row) -> UsageRecord:
    """The usage record a row tells."""
    values = {**row, "kind": UsageKind(row["kind"])}
    del values["id"]
    return UsageRecord(**values)
