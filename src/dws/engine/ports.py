"""What the engine needs from the world: a store, backends, clocks, ids, hints.

Each protocol states its duties; `store/` and `backends/` import this module and nothing else of the
engine. Nothing here raises a client library's exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from dws.model.booking import Booking
from dws.model.document import Document
from dws.model.events import Event, NewEvent, SubjectKind
from dws.model.evolve import swift
from dws.model.request import CapacityRequest, RequestState, Workload
from dws.model.reservation import Reservation, ReservationState
from dws.model.resources import MachineShape
from dws.model.series import Series
from dws.model.topology import Fleet, HostStatus
from dws.model.usage import UsageRecord
from dws.model.work import WorkItem, WorkKind

# --- store ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestQuery:
    """Which requests to list. Empty fields do not restrict.

    Results are ordered by id, ascending (oldest first) or descending with `newest_first`;
    `after` is the id to continue behind in that order.
    """

    project: str = ""
    projects: tuple[str, ...] = ()
    states: tuple[RequestState, ...] = ()
    array: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    include_deleted: bool = False
    newest_first: bool = False
    after: int | None = None
    limit: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationQuery:
    """Which reservations to list; fields and order as in `RequestQuery`. `series` restricts to the
    occurrences of one series, `ends_after` to windows that end behind that instant."""

    project: str = ""
    projects: tuple[str, ...] = ()
    states: tuple[ReservationState, ...] = ()
    series: str = ""
    ends_after: int = 0
    include_deleted: bool = False
    newest_first: bool = False
    after: int | None = None
    limit: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentQuery:
    """Which documents of one kind to list; empty fields do not restrict, `parent` None neither.

    Results are ordered by (scope, parent, name); `after` is that of the one to continue behind. `request` and
    `reservation` restrict to those that stand for it.
    """

    kind: str
    project: str = ""
    scope: str = ""
    parent: str | None = None
    request: int = 0
    reservation: int = 0
    after: tuple[str, str, str] | None = None
    limit: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentReply:
    """What was answered to a call that carried a request id; `body_hash` is of the call's body."""

    principal: str
    method: str
    call_id: str
    body_hash: str
    subjects: tuple[int, ...]
    at: int


class Reader(Protocol):
    """A consistent view of the store at one commit."""

    def request(self, request_id: int) -> CapacityRequest | None:
        """The request of that id, None when there is none (deleted ones are returned)."""

    def request_named(self, project: str, name: str) -> CapacityRequest | None:
        """The newest request of that name that is not deleted, None when there is none."""

    def requests(self, query: RequestQuery) -> list[CapacityRequest]:
        """At most `query.limit` requests in id order."""

    def count_requests(self) -> dict[RequestState, int]:
        """How many requests there are in each state, deleted ones not counted."""

    def reservation(self, reservation_id: int) -> Reservation | None:
        """The reservation of that id, None when there is none (deleted ones are returned)."""

    def reservation_named(self, project: str, name: str) -> Reservation | None:
        """The newest reservation of that name that is not deleted, None when there is none."""

    def reservations(self, query: ReservationQuery) -> list[Reservation]:
        """At most `query.limit` reservations in id order."""

    def series(self, series_id: int) -> Series | None:
        """The series of that id, None when there is none."""

    def series_named(self, project: str, name: str) -> Series | None:
        """The newest series of that name, None when there is none."""

    def all_series(self, project: str = "") -> list[Series]:
        """Every series kept, of one project or of all, by id."""

    def document(self, document_id: int) -> Document | None:
        """The document of that id, None when there is none."""

    def document_named(
        self, kind: str, project: str, scope: str, name: str, parent: str = ""
    ) -> Document | None:
        """The document of that name, None when there is none."""

    def documents(self, query: DocumentQuery) -> list[Document]:
        """At most `query.limit` documents, by scope, parent and name."""

    def booking(self, booking_id: int) -> Booking | None:
        """The booking of that id in any stage, None when there is none."""

    def open_bookings(self) -> list[Booking]:
        """Every booking not ENDED, by id."""

    def bookings_inside(self, booking_id: int) -> list[Booking]:
        """Every booking inside that one and not ENDED, by id."""

    def fleet(self) -> Fleet | None:
        """The declared fleet, None before the first one was applied."""

    def host_statuses(self) -> list[HostStatus]:
        """Every host that is not simply READY and reachable, by (pool, unit)."""

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
        """Events with `seq > after` in sequence order; with `newest_first`, the last ones, descending."""

    def last_seq(self) -> int:
        """The sequence number of the newest event, 0 when there is none."""

    def work(self, subject: int) -> list[WorkItem]:
        """Every item of a subject, by due time."""

    def due_work(self, now: int, *, limit: int, kinds: Sequence[WorkKind] = ()) -> list[WorkItem]:
        """Items due at or before `now`, in (due_at, kind, subject, tag) order, leased ones included."""

    def next_due(self) -> int | None:
        """The earliest `due_at` of any item, None when there is no work."""

    def idempotent(self, principal: str, method: str, call_id: str) -> IdempotentReply | None:
        """What was answered earlier to this call, None when it is new."""

    def usage(
        self, *, start: int, end: int, project: str = "", request: int = 0
    ) -> list[UsageRecord]:
        """Closed usage records overlapping [start, end)."""

    def largest_id(self) -> int:
        """The largest id of any request, reservation, series, document or booking kept, ended ones too; 0 for
        none."""

    def ledger_version(self) -> int:
        """Grows with every commit that changed a booking, a waiting request, a host or the fleet."""

    def meta(self, key: str) -> str | None:
        """A small named value (`state_dir_id`, `clock_start`, ...), None when unset."""

    def peak(self, pool: str, cell: int, start: int, end: int) -> int:
        """The largest sum of counts booked in a cell at any instant of [start, end), all stages but
        ENDED, fleet-level bookings only. Computed by the store itself, independently of the planner."""


class Transaction(Reader, Protocol):
    """One atomic write. Reads see the writes made so far."""

    def savepoint(self) -> AbstractContextManager[None]:
        """A part that may fail alone: an exception leaving the block undoes the block and propagates."""

    def put_request(self, request: CapacityRequest) -> None:
        """Insert (`version == 1`) or replace (`version` = stored + 1).

        Raises Conflict when the stored version is not `request.version - 1`, AlreadyExists when an
        inserted id exists.
        """

    def put_reservation(self, reservation: Reservation) -> None:
        """Insert or replace, by version as `put_request`."""

    def put_series(self, series: Series) -> None:
        """Insert or replace, by version as `put_request`."""

    def put_document(self, document: Document) -> None:
        """Insert or replace, by version as `put_request`. Raises AlreadyExists when another of its kind,
        project, scope and parent has the name."""

    def drop_document(self, document_id: int) -> None:
        """Remove a document; harmless when there is none."""

    def put_booking(self, booking: Booking) -> None:
        """Insert or replace, by version as `put_request`; keeps one row a drawn unit.

        Raises DoubleBooking when a unit would be in two bookings of one parent at one instant, or when
        a child would lie outside its parent's units or span.
        """

    def put_fleet(self, fleet: Fleet) -> None:
        """Replace the declared fleet."""

    def put_host_status(self, status: HostStatus) -> None:
        """Replace the status of a host; a READY, reachable one is forgotten."""

    def append(self, events: Iterable[NewEvent]) -> list[Event]:
        """Record events in order and return them with their numbers."""

    def schedule(self, items: Iterable[WorkItem]) -> None:
        """Insert or replace items by key; a replaced item loses its lease."""

    def unschedule(self, subject: int, kinds: Sequence[WorkKind] = (), tag: str | None = None) -> None:
        """Remove a subject's items, of these kinds and this tag when given."""

    def lease_work(
        self, *, now: int, process_now: int, until: int, token: str, limit: int
    ) -> list[WorkItem]:
        """Take due items whose kind calls a backend and whose lease is free or over; returns them leased."""

    def leased(self, item: WorkItem) -> bool:
        """True when the item is still there under the token it carries."""

    def clear_leases(self) -> None:
        """Forget every lease: called once at start by a process that is alone with the store."""

    def put_usage(self, records: Iterable[UsageRecord]) -> None:
        """Append usage records."""

    def put_idempotent(self, reply: IdempotentReply) -> None:
        """Remember an answer."""

    def put_meta(self, key: str, value: str) -> None:
        """Set a small named value."""

    def bump_ledger_version(self) -> int:
        """Grow the ledger's version by one and return it."""

    def forget_before(self, instant: int, *, limit: int) -> int:
        """Drop at most `limit` requests, reservations, series and documents that ended before `instant`,
        with their bookings, events and idempotent replies; returns how many. Usage records stay."""


class Store(Protocol):
    """Remembers. One writer at a time; readers never wait for it.

    `begin` commits when its block ends and rolls back when an exception leaves it. Raises Unavailable
    when the store is locked, full or read-only; the engine treats that as "try again".
    """

    def begin(self) -> AbstractContextManager[Transaction]:
        """Open a write transaction."""

    def read(self) -> AbstractContextManager[Reader]:
        """Open a consistent read view; usable from any thread."""

    def backup(self, path: str) -> None:
        """Write a consistent copy to `path`, while in use. Raises InvalidArgument if it exists,
        FailedPrecondition when there is nothing on disk to copy."""

    def close(self) -> None:
        """Release everything; harmless twice."""


# --- backends ---------------------------------------------------------------------------------


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceOrder:
    """One instance of an order: its rank and the host it goes to, `unit` being the host's place in its pool;
    where hosts are shared, `slots` are those of its accelerators that are the instance's. `environment` is
    its own, beside the order's."""

    rank: int
    unit: int
    host: str
    slots: tuple[int, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the engine asks a backend to hold for one booking and attempt.

    `key` is the exactly-once token: repeating a call with it changes nothing. `runs_until` is the
    latest instant the programs may run, in domain time, known for certain only once delivered
    (`SetsDeadlines`); `grace_s` is the time between the soft and the hard stop. `instances` lists the
    instances to start or release in this call; `size` is the whole gang.
    """

    key: str
    request: int
    request_name: str
    project: str
    pool: str
    zone: str
    shape: MachineShape
    instances: tuple[InstanceOrder, ...]
    size: int
    workload: Workload | None
    environment: Mapping[str, str]
    runs_until: int
    duration_s: int
    grace_s: int
    issued_at: int


class DeliveryState(StrEnum):
    """What a backend answers to an order."""

    DELIVERED = "DELIVERED"
    UNDER_WAY = "UNDER_WAY"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The answer to `provision` and `release`.

    DELIVERED: done for every instance of the call. UNDER_WAY: observations will tell. FAILED: `cause`
    says why, `may_retry` whether another attempt may succeed, `bad_hosts` which units to avoid.
    """

    state: DeliveryState
    cause: str = ""
    may_retry: bool = True
    bad_hosts: tuple[int, ...] = ()
    addresses: Mapping[int, str] = field(default_factory=dict)


class FactKind(StrEnum):
    """What a backend can have seen."""

    RUNNING = "RUNNING"
    EXITED = "EXITED"
    GONE = "GONE"
    LOST = "LOST"
    FAILED_CHECK = "FAILED_CHECK"
    UNREACHABLE = "UNREACHABLE"
    REACHABLE = "REACHABLE"
    HOST_DOWN = "HOST_DOWN"
    HOST_UP = "HOST_UP"


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One observation, never a conclusion. May arrive twice, late or out of order.

    Instance facts carry the order's `key` and `rank`; host facts carry `pool` and `unit`, the host's place.
    GONE means: the instance does not exist any more and its host is free. `at_deadline` says that the
    backend itself ended the instance because its time was over (`SetsDeadlines`).
    """

    kind: FactKind
    key: str = ""
    rank: int = -1
    pool: str = ""
    unit: int = -1
    code: int | None = None
    address: str = ""
    detail: str = ""
    at_deadline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Facts since a cursor, and the cursor to ask from next time."""

    facts: tuple[Fact, ...]
    cursor: str


class BackendUnavailable(Exception):
    """The backend does not answer; try later."""


class OrderRejected(Exception):
    """The backend will never carry out this order; do not try again."""


@runtime_checkable
class Backend(Protocol):
    """Acts on the world. Thread-safe; each call returns quickly; every call is idempotent by key.

    Raises BackendUnavailable (try later) or OrderRejected (do not), nothing else.
    """

    name: str

    def provision(self, order: Order) -> Delivery:
        """Start the order's instances; return at once. A repeated key starts nothing twice."""

    def release(self, order: Order, *, hard: bool = False) -> Delivery:
        """Give back the order's instances: soft stop, hard stop after `grace_s` (at once with `hard`).
        An instance that is not there is success."""

    def observe(self, cursor: str) -> Observations:
        """Facts since the cursor; the empty cursor asks for everything currently true, the last word of every
        instance that is gone and was not given back included."""


@runtime_checkable
class SetsDeadlines(Protocol):
    """A backend that ends programs by itself when the engine is away."""

    def set_deadline(self, order: Order) -> None:
        """Make `order.runs_until` the time by which the programs end."""


@runtime_checkable
class StreamsLogs(Protocol):
    """A backend that keeps what programs print."""

    def read_log(self, key: str, rank: int, *, offset: int, limit: int) -> tuple[bytes, int]:
        """Up to `limit` bytes of an instance's output from `offset`, and the next offset.

        Returns no bytes at the present end. Raises NotFound when nothing was ever kept.
        """


@runtime_checkable
class HasTimers(Protocol):
    """A simulated backend: it has something to say at a known instant of domain time."""

    def next_due(self) -> int | None:
        """The next instant at which `observe` would say more, None when never."""

    def advance(self, now: int) -> None:
        """Domain time is `now`."""


class Meters(Protocol):
    """Measures what the engine does; must not raise."""

    def planned(self, seconds: float) -> None:
        """A planning pass took this long, in process time."""

    def happened(self, events: list[Event]) -> None:
        """These events were committed."""


# --- clocks, ids, hints -----------------------------------------------------------------------


class Clock(Protocol):
    """The one domain clock. Only `engine/clock.py` implements it."""

    is_virtual: bool

    def now(self) -> int:
        """Domain time, whole seconds since the epoch; never goes back."""


class ProcessClock(Protocol):
    """Time for leases and waits, which no virtual clock moves."""

    def now(self) -> int:
        """Monotonic whole seconds."""


class IdSource(Protocol):
    """Time-ordered 63-bit ids."""

    def next(self, now: int) -> int:
        """A new id, larger than any returned before."""


class Hints(Protocol):
    """ "Look now", to a loop. Carries no data and may be lost."""

    def planning(self) -> None:
        """Something the planner cares about changed."""

    def executing(self) -> None:
        """Work is due."""

    def published(self) -> None:
        """New events were committed."""

