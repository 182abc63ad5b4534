"""The rows of the store in memory, with their indexes.

Every change has the shape `exchange(old, new)`, so its undo is the same call with the two turned
round. `Story` is the table of events.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import TypeVar

from dws.engine.ports import IdempotentReply, RequestQuery
from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.document import Document
from dws.model.events import Event, NewEvent, SubjectKind
from dws.model.request import CapacityRequest, RequestState
from dws.model.reservation import Reservation
from dws.model.series import Series
from dws.model.topology import Fleet, HostStatus
from dws.model.usage import UsageRecord
from dws.store.agenda import Agenda
from dws.store.documents import DocumentRegister
from dws.store.register import Register, SeriesRegister
from dws.store.rules import counts_of, numbered
from dws.store.units import UnitLines

K = TypeVar("K")
V = TypeVar("V")
ReplyKey = tuple[str, str, str]
Subject = tuple[SubjectKind, int]
Mortal = CapacityRequest | Reservation | Series | Document
"""What is forgotten some time after it ended."""


class Tables:
    """Everything stored, one attribute a table, and its indexes."""

    def __init__(self) -> None:
        self.requests: dict[int, CapacityRequest] = {}
        self.ids: list[int] = []
        self.by_state: defaultdict[tuple[RequestState, bool], dict[int, None]] = defaultdict(dict)
        self.by_array: dict[str, list[int]] = {}
        self.names: dict[tuple[str, str], list[int]] = {}
        self.reservations = Register()
        self.series = SeriesRegister()
        self.documents = DocumentRegister()
        self.bookings: dict[int, Booking] = {}
        self.open: dict[int, None] = {}
        self.owned: dict[tuple[OwnerKind, int], dict[int, None]] = {}
        self.counts: dict[tuple[str, int], dict[int, tuple[int, int, int]]] = {}
        self.lines = UnitLines()
        self.fleet: Fleet | None = None
        self.hosts: dict[tuple[str, int], HostStatus] = {}
        self.story = Story()
        self.agenda = Agenda()
        self.replies: dict[ReplyKey, IdempotentReply] = {}
        self.replied: dict[int, dict[ReplyKey, None]] = {}
        self.usage: list[UsageRecord] = []
        self.usage_of: dict[int, list[UsageRecord]] = {}
        self.meta: dict[str, str] = {}
        self.ledger_version = 0

    # --- requests -----------------------------------------------------------------------------

    def exchange_request(self, old: CapacityRequest | None, new: CapacityRequest | None) -> None:
        """Put `new` where `old` was."""
        if old is not None and new is not None and old.deleted == new.deleted:
            self._change_request(old, new)
            return
        if old is not None:
            del self.by_state[old.state, old.deleted][old.id]
            if not old.deleted:
                _drop_id(self.names, (old.project, old.name), old.id)
        if new is not None:
            self.requests[new.id] = new
            self.by_state[new.state, new.deleted][new.id] = None
            if not new.deleted:
                insort(self.names.setdefault((new.project, new.name), []), new.id)
        if old is None and new is not None:
            insort(self.ids, new.id)
            if new.array:
                insort(self.by_array.setdefault(new.array, []), new.id)
        elif old is not None and new is None:
            del self.requests[old.id]
            del self.ids[bisect_left(self.ids, old.id)]
            if old.array:
                _drop_id(self.by_array, old.array, old.id)

    def _change_request(self, old: CapacityRequest, new: CapacityRequest) -> None:
        """A new version of a request that is listed as before, but for its state."""
        self.requests[new.id] = new
        if old.state is not new.state:
            del self.by_state[old.state, old.deleted][old.id]
            self.by_state[new.state, new.deleted][new.id] = None

    def candidates(self, query: RequestQuery) -> Iterator[int]:
        """Ids that may match, in the query's order, from behind its `after` on."""
        ids = self._narrowed(query)
        if query.newest_first:
            end = len(ids) if query.after is None else bisect_left(ids, query.after)
            return (ids[at] for at in range(end - 1, -1, -1))
        start = 0 if query.after is None else bisect_right(ids, query.after)
        return (ids[at] for at in range(start, len(ids)))

    def _narrowed(self, query: RequestQuery) -> list[int]:
        if query.array:
            return self.by_array.get(query.array, [])
        if not query.states:
            return self.ids
        deleted = (False, True) if query.include_deleted else (False,)
        return sorted(i for s in set(query.states) for d in deleted for i in self.by_state[s, d])

    def ended_before(self, instant: int) -> list[Mortal]:
        """Requests, reservations, series and documents that ended before `instant`, the earliest first; no
        request that a document still stands for."""
        rows = [
            self.requests[i] for (state, _), ids in self.by_state.items() if state.is_terminal for i in ids
        ]
        over: list[Mortal] = [
            r for r in rows if 0 < r.ended_at < instant and not self.documents.stand_for(r)
        ]
        over += self.reservations.ended_before(instant)
        over += self.series.ended_before(instant)
        over += self.documents.ended_before(instant)
        return sorted(over, key=attrgetter("ended_at", "id"))

    # --- bookings -----------------------------------------------------------------------------

    def exchange_booking(self, old: Booking | None, new: Booking | None) -> None:
        """Put `new` where `old` was, with its rows for units and its counts."""
        self.lines.exchange(old, new)
        if old is not None:
            self._take_away(old)
        if new is not None:
            self._lay_down(new)

    def _take_away(self, booking: Booking) -> None:
        del self.bookings[booking.id]
        self.open.pop(booking.id, None)
        _discard(self.owned, (booking.owner_kind, booking.owner), booking.id)
        for cell, _ in counts_of(booking):
            del self.counts[booking.pool, cell][booking.id]

    def _lay_down(self, booking: Booking) -> None:
        self.bookings[booking.id] = booking
        if booking.stage is not Stage.ENDED:
            self.open[booking.id] = None
        self.owned.setdefault((booking.owner_kind, booking.owner), {})[booking.id] = None
        for cell, count in counts_of(booking):
            row = (booking.span.start, booking.span.end, count)
            self.counts.setdefault((booking.pool, cell), {})[booking.id] = row

    def bookings_of(self, kind: OwnerKind, owner: int) -> list[Booking]:
        """Every booking a request or reservation ever had, by id."""
        return [self.bookings[b] for b in sorted(self.owned.get((kind, owner), ()))]

    # --- replies, usage -----------------------------------------------------------------------

    def exchange_reply(self, old: IdempotentReply | None, new: IdempotentReply | None) -> None:
        """Put `new` where `old` was."""
        if old is not None:
            del self.replies[_reply_key(old)]
            for subject in set(old.subjects):
                _discard(self.replied, subject, _reply_key(old))
        if new is not None:
            self.replies[_reply_key(new)] = new
            for subject in new.subjects:
                self.replied.setdefault(subject, {})[_reply_key(new)] = None

    def replies_to(self, subject: int) -> list[IdempotentReply]:
        """Every answer that named a request, reservation or series."""
        return [self.replies[key] for key in self.replied.get(subject, ())]

    def add_usage(self, records: Iterable[UsageRecord]) -> int:
        """Append records; returns how many there were."""
        before = len(self.usage)
        for record in records:
            self.usage.append(record)
            self.usage_of.setdefault(record.request, []).append(record)
        return len(self.usage) - before

    def take_back_usage(self, count: int) -> None:
        """Undo the last `add_usage`, which added so many."""
        for _ in range(count):
            record = self.usage.pop()
            self.usage_of[record.request].pop()


class Story:
    """The events, by sequence number and by subject."""

    def __init__(self) -> None:
        self.last_seq = 0
        self._events: list[Event] = []
        self._of: dict[tuple[SubjectKind, int], list[Event]] = {}

    def append(self, new: NewEvent) -> Event:
        """Record one event under the next numbers."""
        own = self._of.setdefault((new.subject_kind, new.subject), [])
        event = numbered(new, self.last_seq + 1, own[-1].subject_seq + 1 if own else 1)
        self.last_seq = event.seq
        self._events.append(event)
        own.append(event)
        return event

    def take_back(self, count: int) -> None:
        """Undo the last `count` appends."""
        for _ in range(count):
            event = self._events.pop()
            self._of[event.subject_kind, event.subject].pop()
            self.last_seq = event.seq - 1

    def walk(
        self, kind: SubjectKind | None, subject: int | None, after: int, newest_first: bool
    ) -> Iterator[Event]:
        """Events with `seq > after` among which all of that subject are, in the order asked for."""
        events = self._events
        if kind is not None and subject is not None:
            events = self._of.get((kind, subject), [])
        start = bisect_right(events, after, key=attrgetter("seq"))
        order = range(len(events) - 1, start - 1, -1) if newest_first else range(start, len(events))
        return (events[at] for at in order)

    def forget(self, subjects: Iterable[Subject]) -> list[Event]:
        """Drop every event of these subjects and return them."""
        gone = [e for subject in subjects for e in self._of.pop(subject, ())]
        if gone:
            seqs = {e.seq for e in gone}
            self._events = [e for e in self._events if e.seq not in seqs]
        return gone

    def remember(self, gone: Iterable[Event]) -> None:
        """Undo `forget`."""
        for event in gone:
            self._of.setdefault((event.subject_kind, event.subject), []).append(event)
            insort(self._events, event, key=attrgetter("seq"))


def _reply_key(reply: IdempotentReply) -> ReplyKey:
    return (reply.principal, reply.method, reply.call_id)


def _drop_id(table: dict[K, list[int]], key: K, number: int) -> None:
    numbers = table[key]
    del numbers[bisect_left(numbers, number)]
    if not numbers:
        del table[key]


def _discard(table: dict[K, dict[V, None]], key: K, value: V) -> None:
    del table[key][value]
    if not table[key]:
        del table[key]
