"""What can be read from the database, on one connection in one transaction.

Every statement goes through `_run`, so that the database's errors become ours at the call that met
them. After trouble (locked, full, read-only) the transaction is void and says so again to every call:
SQLite may have rolled it back by itself, and what came after would be written on its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    case,
    func,
    literal,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.exc import DBAPIError

from dws.engine.ports import DocumentQuery, IdempotentReply, RequestQuery, ReservationQuery
from dws.model.booking import Booking, Stage
from dws.model.document import Document
from dws.model.errors import Unavailable
from dws.model.events import Event, SubjectKind
from dws.model.request import CapacityRequest, RequestState
from dws.model.reservation import Reservation
from dws.model.series import Series
from dws.model.topology import Fleet, HostStatus
from dws.model.usage import UsageRecord
from dws.model.work import WorkItem, WorkKind
from dws.store import rows
from dws.store.dialect import Phrase, has_label, meaning
from dws.store.schema import (
    booking,
    booking_count,
    counter,
    document,
    fleet,
    host_status,
    meta,
    recorded,
    reply,
    request,
    reservation,
    series,
    usage,
    work,
)

_ID: BindParameter[int] = bindparam("id")


def _newest_of_name(table: Table, *conditions: ColumnElement[bool]) -> Phrase:
    return Phrase(
        select(table.c.doc)
        .where(table.c.project == bindparam("project"), table.c.name == bindparam("name"), *conditions)
        .order_by(table.c.id.desc())
        .limit(1)
    )


_REQUEST = Phrase(select(request.c.doc).where(request.c.id == _ID))
_NAMED = _newest_of_name(request, request.c.deleted.is_(False))
_RESERVATION = Phrase(select(reservation.c.doc).where(reservation.c.id == _ID))
_RESERVATION_NAMED = _newest_of_name(reservation, reservation.c.deleted.is_(False))
_SERIES = Phrase(select(series.c.doc).where(series.c.id == _ID))
_SERIES_NAMED = _newest_of_name(series)
_DOCUMENT = Phrase(select(document.c.doc).where(document.c.id == _ID))
_DOCUMENT_NAMED = Phrase(
    select(document.c.doc).where(
        *(document.c[name] == bindparam(name) for name in ("kind", "project", "scope", "parent", "name"))
    )
)
_STATES = Phrase(
    select(request.c.state, func.count().label("count"))
    .where(request.c.deleted.is_(False))
    .group_by(request.c.state)
)
_BOOKING = Phrase(select(booking.c.doc).where(booking.c.id == _ID))
_OPEN_STAGES = [literal(stage.value) for stage in Stage if stage is not Stage.ENDED]
_OPEN = Phrase(select(booking.c.doc).where(booking.c.stage.in_(_OPEN_STAGES)).order_by(booking.c.id))
_INSIDE = Phrase(
    select(booking.c.doc)
    .where(booking.c.stage.in_(_OPEN_STAGES), booking.c.parent == bindparam("parent"))
    .order_by(booking.c.id)
)
_FLEET = Phrase(select(fleet.c.doc))
_STATUSES = Phrase(select(host_status).order_by(host_status.c.pool, host_status.c.unit))
_IN_DUE_ORDER = (work.c.due_at, work.c.kind, work.c.subject, work.c.tag)
_WORK = Phrase(select(work).where(work.c.subject == bindparam("subject")).order_by(*_IN_DUE_ORDER))
_DUE = (
    select(work).where(work.c.due_at <= bindparam("now")).order_by(*_IN_DUE_ORDER).limit(bindparam("limit"))
)
_NUMBERED = (request, reservation, series, document, booking)
_LARGEST = [Phrase(select(func.max(table.c.id))) for table in _NUMBERED]
_NEXT_DUE = Phrase(select(func.min(work.c.due_at)))
_REPLY = Phrase(
    select(reply).where(
        reply.c.principal == bindparam("principal"),
        reply.c.method == bindparam("method"),
        reply.c.call_id == bindparam("call_id"),
    )
)
_META = Phrase(select(meta.c.value).where(meta.c.key == bindparam("key")))
_COUNTER = Phrase(select(counter.c.value).where(counter.c.name == bindparam("name")))


def _peak_statement() -> Select[Any]:
    """A sweep: every booked span clipped to [start, end) is a step up and a step down; the peak is the
    highest running sum. Steps of one instant are taken together, so that a span that ends where the
    next begins does not count with it."""
    start: BindParameter[int] = bindparam("start")
    end: BindParameter[int] = bindparam("end")
    booked = (
        select(booking_count.c.start, booking_count.c.end, booking_count.c.count)
        .where(
            booking_count.c.pool == bindparam("pool"),
            booking_count.c.cell == bindparam("cell"),
            booking_count.c.start < end,
            booking_count.c.end > start,
        )
        .cte("booked")
    )
    begins = case((booked.c.start < start, start), else_=booked.c.start)
    steps = union_all(
        select(begins.label("at"), booked.c.count.label("step")),
        select(booked.c.end.label("at"), (-booked.c.count).label("step")),
    ).subquery("steps")
    instants = (select(steps.c.at, func.sum(steps.c.step).label("step")).group_by(steps.c.at)).subquery(
        "instants"
    )
    heights = select(func.sum(instants.c.step).over(order_by=instants.c.at).label("height")).subquery(
        "heights"
    )
    return select(func.coalesce(func.max(heights.c.height), 0))


_PEAK = Phrase(_peak_statement())


class SqlReader:
    """A consistent view: what was committed when the first statement ran."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._driver = cast("sqlite3.Connection", connection.connection.driver_connection)
        self._trouble: Unavailable | None = None

    @contextmanager
    def _asking(self) -> Iterator[None]:
        if self._trouble is not None:
            raise Unavailable(self._trouble.message)
        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            fault = meaning(error)
            if isinstance(fault, Unavailable):
                self._trouble = fault
            raise fault from error

    def _one(self, phrase: Phrase, **parameters: Any) -> Any:
        """The first column of the first row, None when there is none."""
        with self._asking():
            row = self._driver.execute(phrase.text, phrase.bound(parameters)).fetchone()
        return row[0] if row is not None else None

    def _all(self, statement: Phrase | Select[Any], **parameters: Any) -> list[rows.Row]:
        """Every row, by column name."""
        with self._asking():
            if isinstance(statement, Phrase):
                cursor = self._driver.execute(statement.text, statement.bound(parameters))
                names, found = [column[0] for column in cursor.description], cursor.fetchall()
            else:
                result = self._connection.execute(statement, parameters)
                names, found = list(result.keys()), list(result)
        return [dict(zip(names, values, strict=True)) for values in found]

    def request(self, request_id: int) -> CapacityRequest | None:
        """The request of that id."""
        doc = self._one(_REQUEST, id=request_id)
        return rows.read_request(doc) if doc is not None else None

    def request_named(self, project: str, name: str) -> CapacityRequest | None:
        """The newest request of that name that is not deleted."""
        doc = self._one(_NAMED, project=project, name=name)
        return rows.read_request(doc) if doc is not None else None

    def requests(self, query: RequestQuery) -> list[CapacityRequest]:
        """Requests in id order."""
        return [rows.read_request(row["doc"]) for row in self._all(_listing(query))]

    def count_requests(self) -> dict[RequestState, int]:
        """How many requests there are in each state."""
        counts = dict.fromkeys(RequestState, 0)
        for row in self._all(_STATES):
            counts[RequestState(row["state"])] = row["count"]
        return counts

    def reservation(self, reservation_id: int) -> Reservation | None:
        """The reservation of that id."""
        doc = self._one(_RESERVATION, id=reservation_id)
        return rows.read_reservation(doc) if doc is not None else None

    def reservation_named(self, project: str, name: str) -> Reservation | None:
        """The newest reservation of that name that is not deleted."""
        doc = self._one(_RESERVATION_NAMED, project=project, name=name)
        return rows.read_reservation(doc) if doc is not None else None

    def reservations(self, query: ReservationQuery) -> list[Reservation]:
        """Reservations in id order."""
        return [rows.read_reservation(row["doc"]) for row in self._all(_reservation_listing(query))]

    def series(self, series_id: int) -> Series | None:
        """The series of that id."""
        doc = self._one(_SERIES, id=series_id)
        return rows.read_series(doc) if doc is not None else None

    def series_named(self, project: str, name: str) -> Series | None:
        """The newest series of that name."""
        doc = self._one(_SERIES_NAMED, project=project, name=name)
        return rows.read_series(doc) if doc is not None else None

    def all_series(self, project: str = "") -> list[Series]:
        """Every series kept, of one project or of all, by id."""
        statement = select(series.c.doc).order_by(series.c.id)
        if project:
            statement = statement.where(series.c.project == project)
        return [rows.read_series(row["doc"]) for row in self._all(statement)]

    def document(self, document_id: int) -> Document | None:
        """The document of that id."""
        doc = self._one(_DOCUMENT, id=document_id)
        return rows.read_document(doc) if doc is not None else None

    def document_named(
        self, kind: str, project: str, scope: str, name: str, parent: str = ""
    ) -> Document | None:
        """The document of that name."""
        doc = self._one(
            _DOCUMENT_NAMED, kind=kind, project=project, scope=scope, parent=parent, name=name
        )
        return rows.read_document(doc) if doc is not None else None

    def documents(self, query: DocumentQuery) -> list[Document]:
        """Documents by scope, parent and name."""
        place = (document.c.scope, document.c.parent, document.c.name)
        statement = select(document.c.doc).where(document.c.kind == query.kind).order_by(*place)
        for column in ("project", "scope", "request", "reservation"):
            if value := getattr(query, column):
                statement = statement.where(document.c[column] == value)
        if query.parent is not None:
            statement = statement.where(document.c.parent == query.parent)
        if query.after is not None:
            statement = statement.where(tuple_(*place) > tuple_(*map(literal, query.after)))
        found = self._all(statement.limit(max(0, query.limit)))
        return [rows.read_document(row["doc"]) for row in found]

    def booking(self, booking_id: int) -> Booking | None:
        """The booking of that id."""
        doc = self._one(_BOOKING, id=booking_id)
        return rows.read_booking(doc) if doc is not None else None

    def open_bookings(self) -> list[Booking]:
        """Every booking not ENDED, by id."""
        return [rows.read_booking(row["doc"]) for row in self._all(_OPEN)]

    def bookings_inside(self, booking_id: int) -> list[Booking]:
        """Every booking inside that one and not ENDED, by id."""
        return [rows.read_booking(row["doc"]) for row in self._all(_INSIDE, parent=booking_id)]

    def fleet(self) -> Fleet | None:
        """The declared fleet."""
        doc = self._one(_FLEET)
        return rows.read_fleet(doc) if doc is not None else None

    def host_statuses(self) -> list[HostStatus]:
        """Every host that is not simply READY, by (pool, unit)."""
        return [rows.read_status(row) for row in self._all(_STATUSES)]

    def events(
        self,
        *,
        after: int = 0,
        limit: int = 500,
        subject_kind: SubjectKind | None = None,
        subject: int | None = None,
        project: str = "",
        newest_first: bool = False,
    ) -> list[Event]:
        """Events behind `after` in sequence order, or the last ones first."""
        statement = select(recorded).where(recorded.c.seq > after).limit(max(0, limit))
        if subject_kind is not None:
            statement = statement.where(recorded.c.subject_kind == subject_kind.value)
        if subject is not None:
            statement = statement.where(recorded.c.subject == subject)
        if project:
            statement = statement.where(recorded.c.project == project)
        order = recorded.c.seq.desc() if newest_first else recorded.c.seq
        return [rows.read_event(row) for row in self._all(statement.order_by(order))]

    def last_seq(self) -> int:
        """The sequence number of the newest event."""
        return self._counter("event")

    def work(self, subject: int) -> list[WorkItem]:
        """Every item of a subject, by due time."""
        return [rows.read_item(row) for row in self._all(_WORK, subject=subject)]

    def due_work(self, now: int, *, limit: int, kinds: Sequence[WorkKind] = ()) -> list[WorkItem]:
        """Items due at or before `now`."""
        statement = _DUE
        if kinds:
            statement = statement.where(work.c.kind.in_([kind.value for kind in kinds]))
        due = self._all(statement, now=now, limit=max(0, limit))
        return [rows.read_item(row) for row in due]

    def next_due(self) -> int | None:
        """The earliest due time of any item."""
        due: int | None = self._one(_NEXT_DUE)
        return due

    def idempotent(self, principal: str, method: str, call_id: str) -> IdempotentReply | None:
        """What was answered earlier to this call."""
        found = self._all(_REPLY, principal=principal, method=method, call_id=call_id)
        return rows.read_reply(found[0]) if found else None

    def usage(self, *, start: int, end: int, project: str = "", request: int = 0) -> list[UsageRecord]:
        """Closed usage records overlapping [start, end), in the order they were recorded."""
        statement = select(usage).where(usage.c.start < end, usage.c.end > start)
        if project:
            statement = statement.where(usage.c.project == project)
        if request:
            statement = statement.where(usage.c.request == request)
        return [rows.read_usage(row) for row in self._all(statement.order_by(usage.c.id))]

    def largest_id(self) -> int:
        """The largest id of any request, reservation, series, document or booking."""
        return max(self._one(largest) or 0 for largest in _LARGEST)

    def ledger_version(self) -> int:
        """The version of the ledger."""
        return self._counter("ledger")

    def _counter(self, name: str) -> int:
        return int(self._one(_COUNTER, name=name) or 0)

    def meta(self, key: str) -> str | None:
        """A small named value."""
        value: str | None = self._one(_META, key=key)
        return value

    def peak(self, pool: str, cell: int, start: int, end: int) -> int:
        """The largest sum of counts booked in a cell at any instant of [start, end)."""
        if start >= end:
            return 0
        return int(self._one(_PEAK, pool=pool, cell=cell, start=start, end=end))


def _listing(query: RequestQuery) -> Select[Any]:
    """The statement for a query; each condition has an index that begins with it, labels excepted."""
    conditions = [has_label(key, value) for key, value in query.labels.items()]
    if query.array:
        conditions.append(request.c.array == query.array)
    return _page(request, query, conditions)


def _reservation_listing(query: ReservationQuery) -> Select[Any]:
    conditions: list[ColumnElement[bool]] = []
    if query.series:
        conditions.append(reservation.c.series == query.series)
    if query.ends_after:
        conditions.append(reservation.c.end > query.ends_after)
    return _page(reservation, query, conditions)


def _page(
    table: Table, query: RequestQuery | ReservationQuery, conditions: list[ColumnElement[bool]]
) -> Select[Any]:
    """A page of documents that meet these conditions and those that all queries have."""
    conditions = [literal(True), *conditions]
    if not query.include_deleted:
        conditions.append(table.c.deleted.is_(False))
    if query.project:
        conditions.append(table.c.project == query.project)
    if query.projects:
        conditions.append(table.c.project.in_(query.projects))
    if query.states:
        conditions.append(table.c.state.in_([state.value for state in query.states]))
    if query.after is not None:
        conditions.append(table.c.id < query.after if query.newest_first else table.c.id > query.after)
    order = table.c.id.desc() if query.newest_first else table.c.id
    return select(table.c.doc).where(and_(*conditions)).order_by(order).limit(max(0, query.limit))
