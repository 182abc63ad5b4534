"""A write transaction on the database.

Requests, events, work, replies and usage are collected (`Pending`) and sent together; reads see them
all the same. Bookings are sent at once, because the database's own refusal belongs to the call. Under
SQLite nobody else writes meanwhile, so versions are compared by reading them first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sqlalchemy import Connection

from dws.engine.ports import IdempotentReply, RequestQuery
from dws.model.booking import Booking
from dws.model.document import Document
from dws.model.errors import DoubleBooking
from dws.model.events import Event, NewEvent, SubjectKind
from dws.model.request import CapacityRequest, RequestState
from dws.model.reservation import Reservation
from dws.model.series import Series
from dws.model.topology import Fleet, HostState, HostStatus
from dws.model.usage import UsageRecord
from dws.model.work import WorkItem, WorkKind
from dws.store import phrases as say
from dws.store import rows
from dws.store.dialect import Phrase
from dws.store.pending import Counter, Pending
from dws.store.reading import SqlReader
from dws.store.rules import check_free, check_version, counts_of, numbered, place_of, units_of
from dws.store.schema import TWICE


class SqlTransaction(SqlReader):
    """One atomic write; see `dws.engine.ports.Transaction`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._frames = [Pending(is_real=True)]
        self._newest: int | None = None
        self._told_of: int | None = None

    # --- savepoints and sending ---------------------------------------------------------------

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part that may fail alone. The database hears of it only when something inside is sent."""
        name = f"part_{len(self._frames)}"
        frame = Pending()
        self._frames.append(frame)
        try:
            yield
        except BaseException:
            self._frames.pop()
            if frame.is_real and self._trouble is None:
                self._say(f"ROLLBACK TO {name}")
                self._say(f"RELEASE {name}")
            raise
        self._frames.pop()
        if frame.is_real:
            self._say(f"RELEASE {name}")
        self._frames[-1].merge(frame)

    def _settle(self) -> None:
        """Make every open savepoint real, having sent what was written before it."""
        for depth, frame in enumerate(self._frames):
            if not frame.is_real:
                self._send(self._frames[depth - 1])
                self._say(f"SAVEPOINT part_{depth}")
                frame.is_real = True

    def flush(self) -> None:
        """Send everything written so far."""
        self._settle()
        self._send(self._frames[-1])

    def finish(self) -> None:
        """Last act before the commit. Raises Unavailable when there was trouble, whoever caught it."""
        with self._asking():
            self.flush()

    def _send(self, frame: Pending) -> None:
        self._many(say.PUT_REQUEST, [rows.request_row(r) for r in frame.requests.values()])
        self._many(say.ADD_EVENT, [rows.event_row(e) for e in frame.events])
        drops = [{"of": s, "of_kind": k.value, "of_tag": t} for s, k, t in frame.drops]
        self._many(say.DROP_KIND, [d for d in drops if d["of_tag"] is None])
        self._many(say.DROP_TAG, [d for d in drops if d["of_tag"] is not None])
        items = [rows.item_row(i) for own in frame.items.values() for i in own.values()]
        self._many(say.PUT_ITEM, items)
        self._send_replies(list(frame.replies.values()))
        self._many(say.ADD_USAGE, [rows.usage_row(r) for r in frame.usage])
        counters = [{"name": n, "value": frame.counters[n]} for n in frame.unsent_counters]
        self._many(say.PUT_COUNTER, counters)
        frame.sent()

    def _send_replies(self, replies: list[IdempotentReply]) -> None:
        self._many(say.PUT_REPLY, [rows.reply_row(r) for r in replies])
        calls = [{"of_principal": r.principal, "of_method": r.method, "of_call": r.call_id} for r in replies]
        self._many(say.NO_SUBJECTS, calls)
        self._many(say.ADD_SUBJECT, [row for r in replies for row in rows.reply_subject_rows(r)])

    def _say(self, text: str) -> None:
        with self._asking():
            self._driver.execute(text)

    def _many(self, phrase: Phrase, parameters: Sequence[rows.Row]) -> None:
        """Send a statement for every set of parameters."""
        if parameters:
            with self._asking():
                self._driver.executemany(phrase.text, [phrase.bound(p) for p in parameters])

    def _now(self, phrase: Phrase, *parameters: rows.Row) -> None:
        """Send one statement at once."""
        self._settle()
        self._many(phrase, parameters)

    # --- requests -----------------------------------------------------------------------------

    def put_request(self, request: CapacityRequest) -> None:
        """Insert or replace, by version."""
        check_version("request", request.id, request.version, self._stored_version(request.id))
        self._frames[-1].put_request(request)
        if request.version == 1:
            self._newest = max(self._newest_id(), request.id)

    def _stored_version(self, request_id: int) -> int | None:
        written = self._written(request_id)
        if written is not None:
            return written.version
        if request_id > self._newest_id():
            return None
        version: int | None = self._one(say.VERSION, id=request_id)
        return version

    def _newest_id(self) -> int:
        """No request has a larger id; ids grow, so a new request needs no search."""
        if self._newest is None:
            self.flush()
            self._newest = int(self._one(say.NEWEST) or 0)
        return self._newest

    def _written(self, request_id: int) -> CapacityRequest | None:
        for frame in reversed(self._frames):
            if request_id in frame.requests:
                return frame.requests[request_id]
        return None

    def request(self, request_id: int) -> CapacityRequest | None:
        """The request of that id."""
        return self._written(request_id) or super().request(request_id)

    def request_named(self, project: str, name: str) -> CapacityRequest | None:
        """The newest request of that name that is not deleted."""
        if any((project, name) in frame.names for frame in self._frames):
            self.flush()
        return super().request_named(project, name)

    def requests(self, query: RequestQuery) -> list[CapacityRequest]:
        """Requests in id order."""
        self.flush()
        return super().requests(query)

    def count_requests(self) -> dict[RequestState, int]:
        """How many requests there are in each state."""
        self.flush()
        return super().count_requests()

    # --- reservations, series, bookings, hosts, fleet -----------------------------------------

    def put_reservation(self, reservation: Reservation) -> None:
        """Insert or replace, by version."""
        old = self.reservation(reservation.id)
        check_version("reservation", reservation.id, reservation.version, old.version if old else None)
        self._now(say.PUT_RESERVATION, rows.reservation_row(reservation))

    def put_series(self, series: Series) -> None:
        """Insert or replace, by version."""
        old = self.series(series.id)
        check_version("series", series.id, series.version, old.version if old else None)
        self._now(say.PUT_SERIES, rows.series_row(series))

    def put_document(self, document: Document) -> None:
        """Insert or replace, by version; one name is used once."""
        old = self.document(document.id)
        check_version("document", document.id, document.version, old.version if old else None)
        check_free(document, self.document_named(*place_of(document)))
        self._now(say.PUT_DOCUMENT, rows.document_row(document))

    def drop_document(self, document_id: int) -> None:
        """Remove a document."""
        self._now(say.DROP_DOCUMENT, {"of": document_id})

    def put_booking(self, booking: Booking) -> None:
        """Insert or replace, by version; the database refuses what is booked already."""
        old = self.booking(booking.id)
        check_version("booking", booking.id, booking.version, old.version if old else None)
        with self.savepoint():
            self._now(say.PUT_BOOKING, rows.booking_row(booking))
            self._put_counts(old, booking)
            self._put_parts(old, booking)

    def _put_counts(self, old: Booking | None, new: Booking) -> None:
        before, after = _count_rows(old), _count_rows(new)
        if before != after:
            if before:
                self._now(say.DROP_COUNTS, {"of": new.id})
            self._many(say.ADD_COUNT, after)

    def _put_parts(self, old: Booking | None, new: Booking) -> None:
        before, after = _part_rows(old), _part_rows(new)
        gone = [{"of": new.id, "of_unit": unit} for unit in before if unit not in after]
        changed = [row for unit, row in after.items() if before.get(unit) != row]
        try:
            self._many(say.DROP_PART, gone)
            self._many(say.PUT_PART, changed)
        except DoubleBooking as refused:
            raise DoubleBooking(self._story_of(refused, new, changed)) from refused

    def _story_of(self, refused: DoubleBooking, new: Booking, parts: list[rows.Row]) -> str:
        """Which unit the database refused, and whose it is."""
        if refused.message == TWICE:
            for part in parts:
                for held in self._all(say.HOLDER, **part):
                    return (
                        f"unit {part['unit']} of pool {new.pool} is in booking {held['booking']} "
                        f"[{held['start']}, {held['end']}); booking {new.id} cannot have it within "
                        f"[{new.span.start}, {new.span.end})"
                    )
        return f"{refused.message} (writing booking {new.id} in pool {new.pool})"

    def put_fleet(self, fleet: Fleet) -> None:
        """Replace the declared fleet."""
        self._now(say.PUT_FLEET, rows.fleet_row(fleet))

    def put_host_status(self, status: HostStatus) -> None:
        """Replace the status of a host; a READY, reachable one is forgotten."""
        if status.state is HostState.READY and not status.unreachable_since:
            self._now(say.DROP_STATUS, {"of_pool": status.pool, "of_unit": status.unit})
        else:
            self._now(say.PUT_STATUS, rows.status_row(status))

    # --- events -------------------------------------------------------------------------------

    def append(self, events: Iterable[NewEvent]) -> list[Event]:
        """Record events and return them with their numbers."""
        top = self._frames[-1]
        recorded_now = []
        for new in events:
            own = self._seq_of(new.subject_kind, new.subject) + 1
            event = numbered(new, self._counted("event") + 1, own)
            top.events.append(event)
            top.subject_seqs[new.subject_kind, new.subject] = own
            self._count("event", event.seq)
            recorded_now.append(event)
        return recorded_now

    def _seq_of(self, kind: SubjectKind, subject: int) -> int:
        """The last number of a subject. A request newer than all that were told of needs no search."""
        for frame in reversed(self._frames):
            known = frame.subject_seqs.get((kind, subject))
            if known is not None:
                return known
        if self._told_of is None:
            self._told_of = int(self._one(say.TOLD_OF) or 0)
        if kind is SubjectKind.REQUEST and subject > self._told_of:
            return 0
        return int(self._one(say.SUBJECT_SEQ, kind=kind.value, subject=subject) or 0)

    def _counted(self, name: Counter) -> int:
        for frame in reversed(self._frames):
            if name in frame.counters:
                return frame.counters[name]
        value = self._frames[0].counters[name] = self._counter(name)
        return value

    def _count(self, name: Counter, value: int) -> None:
        top = self._frames[-1]
        top.counters[name] = value
        top.unsent_counters.add(name)

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
        self.flush()
        return super().events(
            after=after,
            limit=limit,
            subject_kind=subject_kind,
            subject=subject,
            project=project,
            newest_first=newest_first,
        )

    def last_seq(self) -> int:
        """The sequence number of the newest event."""
        return self._counted("event")

    def ledger_version(self) -> int:
        """The version of the ledger."""
        return self._counted("ledger")

    def bump_ledger_version(self) -> int:
        """Grow the ledger's version by one and return it."""
        self._count("ledger", self._counted("ledger") + 1)
        return self._counted("ledger")

    def largest_id(self) -> int:
        """The largest id of any request, reservation, series, document or booking."""
        self.flush()
        return super().largest_id()

    # --- work ---------------------------------------------------------------------------------

    def schedule(self, items: Iterable[WorkItem]) -> None:
        """Insert or replace items by key, without a lease."""
        for item in items:
            if item.lease_token or item.lease_until:
                item = replace(item, lease_token="", lease_until=0)
            self._frames[-1].schedule(item)

    def unschedule(self, subject: int, kinds: Sequence[WorkKind] = (), tag: str | None = None) -> None:
        """Remove a subject's items."""
        for kind in kinds or WorkKind:
            self._frames[-1].drop((subject, kind, tag))

    def work(self, subject: int) -> list[WorkItem]:
        """Every item of a subject, by due time."""
        self.flush()
        return super().work(subject)

    def due_work(self, now: int, *, limit: int, kinds: Sequence[WorkKind] = ()) -> list[WorkItem]:
        """Items due at or before `now`."""
        self.flush()
        return super().due_work(now, limit=limit, kinds=kinds)

    def next_due(self) -> int | None:
        """The earliest due time of any item."""
        self.flush()
        return super().next_due()

    def lease_work(self, *, now: int, process_now: int, until: int, token: str, limit: int) -> list[WorkItem]:
        """Take due items that call a backend and whose lease is free or over."""
        self.flush()
        free = self._all(say.FREE, now=now, process_now=process_now, limit=max(0, limit))
        taken = [replace(rows.read_item(row), lease_token=token, lease_until=until) for row in free]
        self._many(say.PUT_ITEM, [rows.item_row(item) for item in taken])
        return taken

    def leased(self, item: WorkItem) -> bool:
        """True when the item is still there under the token it carries."""
        for frame in reversed(self._frames):
            moved = (item.kind, item.tag) in frame.items.get(item.subject, {})
            if moved or frame.drops_item(item):
                return False
        token = self._one(say.ITEM, of=item.subject, of_kind=item.kind.value, of_tag=item.tag)
        return bool(item.lease_token) and token == item.lease_token

    def clear_leases(self) -> None:
        """Forget every lease."""
        self._now(say.CLEAR_LEASES, {})

    # --- replies, usage, meta, retention ------------------------------------------------------

    def put_idempotent(self, reply: IdempotentReply) -> None:
        """Remember an answer."""
        self._frames[-1].replies[reply.principal, reply.method, reply.call_id] = reply

    def idempotent(self, principal: str, method: str, call_id: str) -> IdempotentReply | None:
        """What was answered earlier to this call."""
        for frame in reversed(self._frames):
            if known := frame.replies.get((principal, method, call_id)):
                return known
        return super().idempotent(principal, method, call_id)

    def put_usage(self, records: Iterable[UsageRecord]) -> None:
        """Append usage records."""
        self._frames[-1].usage.extend(records)

    def usage(self, *, start: int, end: int, project: str = "", request: int = 0) -> list[UsageRecord]:
        """Closed usage records overlapping [start, end), in the order they were recorded."""
        self.flush()
        return super().usage(start=start, end=end, project=project, request=request)

    def put_meta(self, key: str, value: str) -> None:
        """Set a small named value."""
        self._now(say.PUT_META, {"key": key, "value": value})

    def forget_before(self, instant: int, *, limit: int) -> int:
        """Drop requests, reservations, series and documents that ended before `instant`, the earliest
        first, with what belongs to them."""
        with self.savepoint():
            self.flush()
            for row in self._all(say.MAY_STAY, instant=instant):
                if not rows.read_request(row["doc"]).was_delivered:
                    self._now(say.DROP_DOCUMENT, {"of": row["id"]})
            over = self._all(say.OVER, instant=instant, limit=max(0, limit))
            for phrase in say.FORGET:
                self._many(phrase, [{"gone": row["id"], "kind": row["kind"]} for row in over])
        return len(over)


def _count_rows(booking: Booking | None) -> list[rows.Row]:
    if booking is None:
        return []
    return [
        {
            "booking": booking.id,
            "cell": cell,
            "pool": booking.pool,
            "start": booking.span.start,
            "end": booking.span.end,
            "count": count,
        }
        for cell, count in counts_of(booking)
    ]


def _part_rows(booking: Booking | None) -> dict[int, rows.Row]:
    if booking is None:
        return {}
    return {
        unit: {
            "booking": booking.id,
            "unit": unit,
            "parent": booking.parent,
            "pool": booking.pool,
            "start": start,
            "end": booking.span.end,
        }
        for unit, start in units_of(booking)
    }
