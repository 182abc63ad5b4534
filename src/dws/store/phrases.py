"""What a write transaction says to the database, each statement compiled once."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
    tuple_,
    union_all,
    update,
)

from dws.model.document import UNLESS_DELIVERED, WITH_REQUEST, WITH_RESERVATION
from dws.model.events import SubjectKind
from dws.model.request import RequestState
from dws.model.reservation import ReservationState
from dws.model.work import WorkKind
from dws.store.dialect import Phrase, upsert
from dws.store.schema import (
    booking,
    booking_count,
    booking_part,
    counter,
    document,
    fleet,
    host_status,
    meta,
    recorded,
    reply,
    reply_subject,
    request,
    reservation,
    series,
    usage,
    work,
)

PUT_REQUEST = Phrase(upsert(request))
PUT_RESERVATION = Phrase(upsert(reservation))
PUT_SERIES = Phrase(upsert(series))
PUT_DOCUMENT = Phrase(upsert(document))
DROP_DOCUMENT = Phrase(delete(document).where(document.c.id == bindparam("of")))
VERSION = Phrase(select(request.c.version).where(request.c.id == bindparam("id")))
NEWEST = Phrase(select(func.max(request.c.id)))
ADD_EVENT = Phrase(insert(recorded))
SUBJECT_SEQ = Phrase(
    select(func.max(recorded.c.subject_seq)).where(
        recorded.c.subject_kind == bindparam("kind"), recorded.c.subject == bindparam("subject")
    )
)
TOLD_OF = Phrase(
    select(func.max(recorded.c.subject)).where(recorded.c.subject_kind == SubjectKind.REQUEST.value)
)
PUT_COUNTER = Phrase(upsert(counter))
PUT_ITEM = Phrase(upsert(work))
_OF_KIND = (work.c.subject == bindparam("of"), work.c.kind == bindparam("of_kind"))
DROP_KIND = Phrase(delete(work).where(*_OF_KIND))
DROP_TAG = Phrase(delete(work).where(*_OF_KIND, work.c.tag == bindparam("of_tag")))
ITEM = Phrase(select(work.c.lease_token).where(*_OF_KIND, work.c.tag == bindparam("of_tag")))
CLEAR_LEASES = Phrase(update(work).where(work.c.lease_token != "").values(lease_token="", lease_until=0))
FREE = Phrase(
    select(work)
    .where(
        work.c.due_at <= bindparam("now"),
        work.c.kind.in_([literal(kind.value) for kind in WorkKind if kind.calls_backend]),
        (work.c.lease_token == "") | (work.c.lease_until <= bindparam("process_now")),
    )
    .order_by(work.c.due_at, work.c.kind, work.c.subject, work.c.tag)
    .limit(bindparam("limit"))
)
PUT_REPLY = Phrase(upsert(reply))
_CALL = tuple_(reply.c.principal, reply.c.method, reply.c.call_id)
NO_SUBJECTS = Phrase(
    delete(reply_subject).where(
        reply_subject.c.principal == bindparam("of_principal"),
        reply_subject.c.method == bindparam("of_method"),
        reply_subject.c.call_id == bindparam("of_call"),
    )
)
ADD_SUBJECT = Phrase(insert(reply_subject))
ADD_USAGE = Phrase(insert(usage), [column.name for column in usage.c if column.name != "id"])
PUT_BOOKING = Phrase(upsert(booking))
PUT_PART = Phrase(upsert(booking_part))
DROP_PART = Phrase(
    delete(booking_part).where(
        booking_part.c.booking == bindparam("of"), booking_part.c.unit == bindparam("of_unit")
    )
)
DROP_COUNTS = Phrase(delete(booking_count).where(booking_count.c.booking == bindparam("of")))
ADD_COUNT = Phrase(insert(booking_count))
HOLDER = Phrase(
    select(booking_part.c.booking, booking_part.c.start, booking_part.c.end)
    .where(
        booking_part.c.parent == bindparam("parent"),
        booking_part.c.pool == bindparam("pool"),
        booking_part.c.unit == bindparam("unit"),
        booking_part.c.end > bindparam("start"),
        booking_part.c.start < bindparam("end"),
        booking_part.c.booking != bindparam("booking"),
    )
    .limit(1)
)
PUT_FLEET = Phrase(upsert(fleet))
PUT_STATUS = Phrase(upsert(host_status))
DROP_STATUS = Phrase(
    delete(host_status).where(
        host_status.c.pool == bindparam("of_pool"), host_status.c.unit == bindparam("of_unit")
    )
)
PUT_META = Phrase(upsert(meta))


_ENDS = [literal(state.value) for state in RequestState if state.is_terminal]
_STANDS = [literal(0), literal(UNLESS_DELIVERED)]
_RESERVATION_ENDS = [literal(state.value) for state in ReservationState if state.is_terminal]


def _over(table: Table, kind: SubjectKind, *conditions: ColumnElement[bool]) -> Select[Any]:
    return select(table.c.id, table.c.ended_at, literal(kind.value).label("kind")).where(
        *conditions, table.c.ended_at > 0, table.c.ended_at < bindparam("instant")
    )


OVER = Phrase(
    union_all(
        _over(
            request,
            SubjectKind.REQUEST,
            request.c.state.in_(_ENDS),
            ~select(document.c.id)
            .where(document.c.request == request.c.id, document.c.ended_at.in_(_STANDS))
            .exists(),
        ),
        _over(reservation, SubjectKind.RESERVATION, reservation.c.state.in_(_RESERVATION_ENDS)),
        _over(series, SubjectKind.SERIES),
        _over(document, SubjectKind.DOCUMENT),
    )
    .order_by("ended_at", "id", "kind")
    .limit(bindparam("limit"))
)
MAY_STAY = Phrase(
    select(document.c.id, request.c.doc)
    .select_from(document.join(request, document.c.request == request.c.id))
    .where(
        document.c.ended_at == literal(UNLESS_DELIVERED),
        request.c.state.in_(_ENDS),
        request.c.ended_at > 0,
        request.c.ended_at < bindparam("instant"),
    )
)
"""Subjects and owners of bookings have the same names of kinds; a series or document owns none."""
_GONE: BindParameter[int] = bindparam("gone")
_KIND: BindParameter[str] = bindparam("kind")
FORGET = tuple(
    Phrase(statement)
    for statement in (
        delete(recorded).where(recorded.c.subject_kind == _KIND, recorded.c.subject == _GONE),
        delete(booking).where(booking.c.owner_kind == _KIND, booking.c.owner == _GONE),
        delete(reply).where(
            _CALL.in_(
                select(reply_subject.c.principal, reply_subject.c.method, reply_subject.c.call_id).where(
                    reply_subject.c.subject == _GONE
                )
            )
        ),
        delete(request).where(request.c.id == _GONE, literal(SubjectKind.REQUEST.value) == _KIND),
        delete(reservation).where(reservation.c.id == _GONE, literal(SubjectKind.RESERVATION.value) == _KIND),
        delete(series).where(series.c.id == _GONE, literal(SubjectKind.SERIES.value) == _KIND),
        delete(document).where(document.c.id == _GONE, literal(SubjectKind.DOCUMENT.value) == _KIND),
        delete(document).where(
            document.c.request == _GONE,
            document.c.ended_at == literal(WITH_REQUEST),
            literal(SubjectKind.REQUEST.value) == _KIND,
        ),
        delete(document).where(
            document.c.reservation == _GONE,
            document.c.ended_at == literal(WITH_RESERVATION),
            literal(SubjectKind.RESERVATION.value) == _KIND,
        ),
    )
)
