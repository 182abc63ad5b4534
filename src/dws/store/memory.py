"""The store in memory: for simulation, virtual time and tests.

Rows are the frozen model values themselves, in dictionaries with the indexes that the queries need. A
write changes them in place and notes how to undo it, so a transaction costs what it changes and a
failed one leaves no trace. One lock: a reader sees a commit, never half of one; readers of other
threads wait for the writer here, which they do not in SQL.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dws.engine.ports import (
    DocumentQuery,
    IdempotentReply,
    Reader,
    RequestQuery,
    ReservationQuery,
    Transaction,
)
from dws.model.booking import Booking, OwnerKind
from dws.model.document import Document
from dws.model.errors import FailedPrecondition
from dws.model.events import Event, NewEvent, SubjectKind
from dws.model.evolve import evolve
from dws.model.request import CapacityRequest, RequestState
from dws.model.reservation import Reservation
from dws.model.series import Series
from dws.model.topology import Fleet, HostState, HostStatus
from dws.model.usage import UsageRecord
from dws.model.work import WorkItem, WorkKind
from dws.store.rules import check_free, check_version, place_of
from dws.store.tables import Mortal, Subject, Tables

Undo = tuple[Callable[..., Any], tuple[Any, ...]]


class MemoryReader:
    """Reads of the present rows; valid while the store's lock is held."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def request(self, request_id: int) -> CapacityRequest | None:
        """The request of that id."""
        return self._tables.requests.get(request_id)

    def request_named(self, project: str, name: str) -> CapacityRequest | None:
        """The newest request of that name that is not deleted."""
        ids = self._tables.names.get((project, name))
        return self._tables.requests[ids[-1]] if ids else None

    def requests(self, query: RequestQuery) -> list[CapacityRequest]:
        """Requests in id order."""
        found: list[CapacityRequest] = []
        if query.limit < 1:
            return found
        for request_id in self._tables.candidates(query):
            request = self._tables.requests[request_id]
            if _matches(request, query):
                found.append(request)
                if len(found) == query.limit:
                    break
        return found

    def count_requests(self) -> dict[RequestState, int]:
        """How many requests there are in each state."""
        return {state: len(self._tables.by_state[state, False]) for state in RequestState}

    def reservation(self, reservation_id: int) -> Reservation | None:
        """The reservation of that id."""
        return self._tables.reservations.get(reservation_id)

    def reservation_named(self, project: str, name: str) -> Reservation | None:
        """The newest reservation of that name that is not deleted."""
        return self._tables.reservations.named(project, name)

    def reservations(self, query: ReservationQuery) -> list[Reservation]:
        """Reservations in id order."""
        return self._tables.reservations.select(query)

    def series(self, series_id: int) -> Series | None:
        """The series of that id."""
        return self._tables.series.get(series_id)

    def series_named(self, project: str, name: str) -> Series | None:
        """The newest series of that name."""
        return self._tables.series.named(project, name)

    def all_series(self, project: str = "") -> list[Series]:
        """Every series kept, of one project or of all, by id."""
        return self._tables.series.select(project)

    def document(self, document_id: int) -> Document | None:
        """The document of that id."""
        return self._tables.documents.get(document_id)

    def document_named(
        self, kind: str, project: str, scope: str, name: str, parent: str = ""
    ) -> Document | None:
        """The document of that name."""
        return self._tables.documents.named(kind, project, scope, name, parent)

    def documents(self, query: DocumentQuery) -> list[Document]:
        """Documents by scope, parent and name."""
        return self._tables.documents.select(query)

    def booking(self, booking_id: int) -> Booking | None:
        """The booking of that id."""
        return self._tables.bookings.get(booking_id)

    def open_bookings(self) -> list[Booking]:
        """Every booking not ENDED, by id."""
        return [self._tables.bookings[b] for b in sorted(self._tables.open)]

    def bookings_inside(self, booking_id: int) -> list[Booking]:
        """Every booking inside that one and not ENDED, by id."""
        return [b for b in self.open_bookings() if b.parent == booking_id]

    def fleet(self) -> Fleet | None:
        """The declared fleet."""
        return self._tables.fleet

    def host_statuses(self) -> list[HostStatus]:
        """Every host that is not simply READY, by (pool, unit)."""
        return [status for _, status in sorted(self._tables.hosts.items())]

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
        found: list[Event] = []
        if limit < 1:
            return found
        for event in self._tables.story.walk(subject_kind, subject, after, newest_first):
            if (
                (subject_kind is None or event.subject_kind is subject_kind)
                and (subject is None or event.subject == subject)
                and project in ("", event.project)
            ):
                found.append(event)
                if len(found) == limit:
                    break
        return found

    def last_seq(self) -> int:
        """The sequence number of the newest event."""
        return self._tables.story.last_seq

    def work(self, subject: int) -> list[WorkItem]:
        """Every item of a subject, by due time."""
        return self._tables.agenda.of(subject)

    def due_work(self, now: int, *, limit: int, kinds: Sequence[WorkKind] = ()) -> list[WorkItem]:
        """Items due at or before `now`."""
        due = self._tables.agenda.due(now)
        if kinds:
            due = [item for item in due if item.kind in kinds]
        return due[:limit] if limit > 0 else []

    def next_due(self) -> int | None:
        """The earliest due time of any item."""
        return self._tables.agenda.next_due()

    def idempotent(self, principal: str, method: str, call_id: str) -> IdempotentReply | None:
        """What was answered earlier to this call."""
        return self._tables.replies.get((principal, method, call_id))

    def usage(self, *, start: int, end: int, project: str = "", request: int = 0) -> list[UsageRecord]:
        """Closed usage records overlapping [start, end), in the order they were recorded."""
        records = self._tables.usage_of.get(request, []) if request else self._tables.usage
        return [r for r in records if r.start < end and r.end > start and project in ("", r.project)]

    def largest_id(self) -> int:
        """The largest id of any request, reservation, series, document or booking."""
        tables = self._tables
        return max(
            max(tables.requests, default=0),
            tables.reservations.largest_id(),
            tables.series.largest_id(),
            tables.documents.largest_id(),
            max(tables.bookings, default=0),
        )

    def ledger_version(self) -> int:
        """The version of the ledger."""
        return self._tables.ledger_version

    def meta(self, key: str) -> str | None:
        """A small named value."""
        return self._tables.meta.get(key)

    def peak(self, pool: str, cell: int, start: int, end: int) -> int:
        """The largest sum of counts booked in a cell at any instant of [start, end)."""
        steps: list[tuple[int, int]] = []
        for booked_from, booked_to, count in self._tables.counts.get((pool, cell), {}).values():
            if booked_from < end and booked_to > start and start < end:
                steps += ((booked_from if booked_from > start else start, count), (booked_to, -count))
        steps.sort()
        height = peak = 0
        for _, step in steps:
            height += step
            peak = max(peak, height)
        return peak


def _matches(request: CapacityRequest, query: RequestQuery) -> bool:
    return (
        (query.include_deleted or not request.deleted)
        and query.project in ("", request.project)
        and (not query.projects or request.project in query.projects)
        and (not query.states or request.state in query.states)
        and query.array in ("", request.array)
        and all(request.labels.get(k) == v for k, v in query.labels.items())
    )


class MemoryTransaction(MemoryReader):
    """Writes in place, each with its undo."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self._undo: list[Undo] = []

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part that may fail alone."""
        mark = len(self._undo)
        try:
            yield
        except BaseException:
            self.undo_to(mark)
            raise

    def undo_to(self, mark: int) -> None:
        """Take back every change since `mark`, last one first."""
        while len(self._undo) > mark:
            undo, arguments = self._undo.pop()
            undo(*arguments)

    def put_request(self, request: CapacityRequest) -> None:
        """Insert or replace, by version."""
        old = self._tables.requests.get(request.id)
        check_version("request", request.id, request.version, old.version if old else None)
        self._exchange_request(old, request)

    def _exchange_request(self, old: CapacityRequest | None, new: CapacityRequest | None) -> None:
        self._tables.exchange_request(old, new)
        self._undo.append((self._tables.exchange_request, (new, old)))

    def put_reservation(self, reservation: Reservation) -> None:
        """Insert or replace, by version."""
        old = self.reservation(reservation.id)
        check_version("reservation", reservation.id, reservation.version, old.version if old else None)
        self._exchange_reservation(old, reservation)

    def _exchange_reservation(self, old: Reservation | None, new: Reservation | None) -> None:
        register = self._tables.reservations
        register.exchange(old, new)
        self._undo.append((register.exchange, (new, old)))

    def put_series(self, series: Series) -> None:
        """Insert or replace, by version."""
        old = self.series(series.id)
        check_version("series", series.id, series.version, old.version if old else None)
        self._exchange_series(old, series)

    def _exchange_series(self, old: Series | None, new: Series | None) -> None:
        register = self._tables.series
        register.exchange(old, new)
        self._undo.append((register.exchange, (new, old)))

    def put_document(self, document: Document) -> None:
        """Insert or replace, by version; one name is used once."""
        old = self.document(document.id)
        check_version("document", document.id, document.version, old.version if old else None)
        check_free(document, self.document_named(*place_of(document)))
        self._exchange_document(old, document)

    def drop_document(self, document_id: int) -> None:
        """Remove a document."""
        old = self.document(document_id)
        if old is not None:
            self._exchange_document(old, None)

    def _exchange_document(self, old: Document | None, new: Document | None) -> None:
        register = self._tables.documents
        register.exchange(old, new)
        self._undo.append((register.exchange, (new, old)))

    def put_booking(self, booking: Booking) -> None:
        """Insert or replace, by version; refuses what is booked already."""
        bookings = self._tables.bookings
        old = bookings.get(booking.id)
        check_version("booking", booking.id, booking.version, old.version if old else None)
        self._tables.lines.check(booking, old, bookings.get(booking.parent))
        self._exchange_booking(old, booking)

    def _exchange_booking(self, old: Booking | None, new: Booking | None) -> None:
        self._tables.exchange_booking(old, new)
        self._undo.append((self._tables.exchange_booking, (new, old)))

    def put_fleet(self, fleet: Fleet) -> None:
        """Replace the declared fleet."""
        self._set("fleet", fleet)

    def put_host_status(self, status: HostStatus) -> None:
        """Replace the status of a host; a READY, reachable one is forgotten."""
        plain = status.state is HostState.READY and not status.unreachable_since
        self._put(self._tables.hosts, (status.pool, status.unit), None if plain else status)

    def append(self, events: Iterable[NewEvent]) -> list[Event]:
        """Record events and return them with their numbers."""
        story = self._tables.story
        recorded = [story.append(event) for event in events]
        self._undo.append((story.take_back, (len(recorded),)))
        return recorded

    def schedule(self, items: Iterable[WorkItem]) -> None:
        """Insert or replace items by key, without a lease."""
        for item in items:
            if item.lease_token or item.lease_until:
                item = evolve(item, lease_token="", lease_until=0)
            self._put_item(item)

    def _put_item(self, item: WorkItem) -> None:
        agenda = self._tables.agenda
        old = agenda.put(item)
        if old is None:
            self._undo.append((agenda.remove, (item.key,)))
        else:
            self._undo.append((agenda.put, (old,)))

    def unschedule(self, subject: int, kinds: Sequence[WorkKind] = (), tag: str | None = None) -> None:
        """Remove a subject's items."""
        agenda = self._tables.agenda
        keys = agenda.keys(subject)
        if not keys:
            return
        for key in tuple(keys):
            if (not kinds or key[0] in kinds) and (tag is None or tag == key[2]):
                self._undo.append((agenda.put, (agenda.remove(key),)))

    def lease_work(self, *, now: int, process_now: int, until: int, token: str, limit: int) -> list[WorkItem]:
        """Take due items that call a backend and whose lease is free or over."""
        free = [
            evolve(item, lease_token=token, lease_until=until)
            for item in self._tables.agenda.due(now)
            if item.kind.calls_backend and (not item.lease_token or item.lease_until <= process_now)
        ][: max(0, limit)]
        for item in free:
            self._put_item(item)
        return free

    def leased(self, item: WorkItem) -> bool:
        """True when the item is still there under the token it carries."""
        present = self._tables.agenda.get(item.key)
        return present is not None and bool(item.lease_token) and present.lease_token == item.lease_token

    def clear_leases(self) -> None:
        """Forget every lease."""
        self.schedule([item for item in self._tables.agenda.all() if item.lease_token])

    def put_usage(self, records: Iterable[UsageRecord]) -> None:
        """Append usage records."""
        added = self._tables.add_usage(records)
        self._undo.append((self._tables.take_back_usage, (added,)))

    def put_idempotent(self, reply: IdempotentReply) -> None:
        """Remember an answer."""
        self._exchange_reply(self.idempotent(reply.principal, reply.method, reply.call_id), reply)

    def _exchange_reply(self, old: IdempotentReply | None, new: IdempotentReply | None) -> None:
        self._tables.exchange_reply(old, new)
        self._undo.append((self._tables.exchange_reply, (new, old)))

    def put_meta(self, key: str, value: str) -> None:
        """Set a small named value."""
        self._put(self._tables.meta, key, value)

    def bump_ledger_version(self) -> int:
        """Grow the ledger's version by one and return it."""
        self._set("ledger_version", self._tables.ledger_version + 1)
        return self._tables.ledger_version

    def forget_before(self, instant: int, *, limit: int) -> int:
        """Drop requests, reservations, series and documents that ended before `instant`, the earliest
        first, with what belongs to them."""
        over = self._tables.ended_before(instant)[: max(0, limit)]
        with self.savepoint():
            gone = self._tables.story.forget([self._forget(record) for record in over])
            self._undo.append((self._tables.story.remember, (gone,)))
        return len(over)

    def _forget(self, record: Mortal) -> Subject:
        """Drop a record with its bookings and replies; returns whose events go too."""
        if isinstance(record, Series):
            self._exchange_series(record, None)
            kind = SubjectKind.SERIES
        elif isinstance(record, Document):
            self._exchange_document(record, None)
            kind = SubjectKind.DOCUMENT
        elif isinstance(record, Reservation):
            self._exchange_reservation(record, None)
            self._forget_bookings(OwnerKind.RESERVATION, record.id)
            for kept in self._tables.documents.over_with_reservation(record.id):
                self._exchange_document(kept, None)
            kind = SubjectKind.RESERVATION
        else:
            self._exchange_request(record, None)
            self._forget_bookings(OwnerKind.REQUEST, record.id)
            for kept in self._tables.documents.over_with(record.id):
                self._exchange_document(kept, None)
            kind = SubjectKind.REQUEST
        for reply in self._tables.replies_to(record.id):
            self._exchange_reply(reply, None)
        return (kind, record.id)

    def _forget_bookings(self, kind: OwnerKind, owner: int) -> None:
        for booking in self._tables.bookings_of(kind, owner):
            self._tables.lines.check_gone(booking)
            self._exchange_booking(booking, None)

    def _set(self, field: str, value: object) -> None:
        self._undo.append((setattr, (self._tables, field, getattr(self._tables, field))))
        setattr(self._tables, field, value)

    def _put(self, table: dict[Any, Any], key: object, value: object | None) -> None:
        self._undo.append((_put, (table, key, table.get(key))))
        _put(table, key, value)


def _put(table: dict[Any, Any], key: object, value: object | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


class _Reading:
    """The read view as a context. Written out, because a generator costs more than most reads."""

    def __init__(self, store: MemoryStore) -> None:
        self._lock = store.lock
        self._reader = MemoryReader(store.tables)

    def __enter__(self) -> Reader:
        self._lock.acquire()
        return self._reader

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class _Writing:
    """A transaction as a context: kept when the block ends, undone when an exception leaves it."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._transaction = MemoryTransaction(store.tables)

    def __enter__(self) -> Transaction:
        self._store.lock.acquire()
        if self._store.is_written:
            self._store.lock.release()
            raise RuntimeError("a transaction is open in this thread already")
        self._store.is_written = True
        return self._transaction

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._transaction.undo_to(0)
        self._store.is_written = False
        self._store.lock.release()


class MemoryStore:
    """A `Store` that keeps everything in this process and nothing beyond it."""

    def __init__(self) -> None:
        self.tables = Tables()
        self.lock = threading.RLock()
        self.is_written = False
        self._reading = _Reading(self)

    def begin(self) -> AbstractContextManager[Transaction]:
        """Open a write transaction."""
        return _Writing(self)

    def read(self) -> AbstractContextManager[Reader]:
        """Open a read view; writers wait until it is closed."""
        return self._reading

    def backup(self, path: str) -> None:
        """Raises FailedPrecondition: there is nothing that would outlive this process."""
        raise FailedPrecondition(
            f"this server keeps its ledger in memory and cannot write {path}; "
            "start it with a database (--db sqlite:///FILE) to have backups"
        )

    def close(self) -> None:
        """Nothing to release."""
