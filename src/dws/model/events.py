"""Everything that can be said to have happened, in the past tense.

An `Event` is one recorded fact: a gapless sequence number, when, who, about what, why, and a typed
body. The table of events is append-only; it feeds followers, the audit trail and replays. Rows are
the truth and events are the story: folding a request's events through its lifecycle gives its row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from dws.model.demand import Demand
from dws.model.evolve import swift
from dws.model.names import BookingId
from dws.model.request import CapacityRequest, EndReason, Grant, HostLossPolicy, Instance, Workload
from dws.model.reservation import Reservation, Terms
from dws.model.series import Series
from dws.model.time import Span


class SubjectKind(StrEnum):
    """What an event is about."""

    REQUEST = "REQUEST"
    RESERVATION = "RESERVATION"
    SERIES = "SERIES"
    DOCUMENT = "DOCUMENT"
    MAINTENANCE = "MAINTENANCE"
    HOST = "HOST"
    FLEET = "FLEET"
    SYSTEM = "SYSTEM"


# --- about a capacity request -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A request entered the queue."""

    request: CapacityRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Booked:
    """A latest start was promised, or an earlier one than before."""

    booking: BookingId
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A promise moved later; `cause` says which recorded event forced it."""

    booking: BookingId
    start: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbooked:
    """A promise was withdrawn; `cause` says why."""

    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Amended:
    """The owner changed what is asked; the age is kept."""

    demand: Demand
    priority: int
    labels: dict[str, str]
    workload: Workload | None
    on_host_loss: HostLossPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The planner started an attempt: hosts are drawn and the backend is asked for them."""

    booking: BookingId
    grant: Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancesRan:
    """Instances are running: their addresses by rank."""

    attempt: int
    addresses: dict[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceExited:
    """The program of an instance ended by itself."""

    rank: int
    attempt: int
    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceLost:
    """An instance and its host are gone."""

    rank: int
    attempt: int
    host: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancesReleased:
    """The backend confirmed that these instances are gone and their hosts free."""

    attempt: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceReplaced:
    """A spare host takes the place of a lost one for the time that remains."""

    attempt: int
    instance: Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The whole gang is up: the run and its bill begin."""

    ends_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFailed:
    """An attempt did not come up as a whole; what did come up is given back."""

    cause: str
    may_retry: bool
    not_again_before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """The end is `lead_s` seconds away and the owner has been told."""

    lead_s: int
    ends_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """The end of the run moved."""

    ends_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The run is over and its instances are being given back; `requeue` puts it back in line after."""

    why: EndReason
    message: str = ""
    requeue: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReleased:
    """The owner gave back some instances while the others run on."""

    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """The owner no longer wants it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowClosed:
    """The request waited as long as it was willing to, or as `cause` says."""

    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """Everything is back: the request is over, or in line again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreachable:
    """The backend cannot see the instances; nothing is concluded from that yet."""

    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachable:
    """The backend sees the instances again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overran:
    """Hosts are not confirmed free in time; they are kept until they are."""

    expected_by: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The record was put away; its name is free."""


# --- about a reservation ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationAsked:
    """A reservation was asked for and there is room: its capacity is booked, or held until approved."""

    reservation: Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationApproved:
    """It is approved: its capacity is booked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationDeclined:
    """Nobody approved it in time, or somebody said no."""

    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationAmended:
    """Its owner changed it: everything that can be changed, as it is from now on."""

    name: str
    window: Span
    count: int
    pool: str
    zone: str
    terms: Terms
    description: str
    labels: dict[str, str]
    time_zone: str
    lock_at: int
    cancel_until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationLocked:
    """The lock time has come: it cannot be changed any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationStarted:
    """Its window has begun and its hosts are being collected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationDelivered:
    """All of its hosts are there, `late_s` after its start."""

    late_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationDegraded:
    """It lacks `short` hosts; `cause` says why."""

    short: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRestored:
    """It lacks nothing any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationReplaced:
    """Other hosts took the place of lost ones, or room was found elsewhere: nothing is lacking for it."""

    hosts: tuple[str, ...]
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationUsed:
    """Work runs in it, for the first time since it was idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationIdle:
    """Nothing runs in it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationUnused:
    """Nothing has run in it for `idle_s` seconds and its owner was told; at `release_at` (0: never) it will
    be taken back."""

    idle_s: int
    release_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationWarned:
    """The end is `lead_s` seconds away and the owner has been told."""

    lead_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationCancelled:
    """Its owner, or an operator, no longer wants it: nothing of it had started."""

    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationClosing:
    """It is over, by time or early; what still runs in it is being stopped."""

    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationClosed:
    """It is over and its hosts are free."""

    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationDeleted:
    """The record was put away; its name is free."""


# --- about a series ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesBegun:
    """The same reservation is to be booked again and again."""

    series: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesAmended:
    """Its owner changed what is booked, or when; occurrences that have not started were booked anew."""

    series: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrenceMissed:
    """An occurrence could not be booked; `cause` says why. The others are not touched."""

    day: date
    start: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEnded:
    """Nothing more will be booked: its last occurrence has been dealt with, or it was cancelled."""

    cause: str


# --- about a maintenance window ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenancePlanned:
    """These hosts will be out of service over `window`."""

    pool: str
    hosts: tuple[str, ...]
    window: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceBegun:
    """The hosts are out of service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceOver:
    """The hosts are back, or the window was cancelled before it began."""

    cause: str


# --- about hosts, the fleet, the system -------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChanged:
    """A host became READY, DRAINING or DOWN."""

    pool: str
    host: str
    state: str
    until: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetApplied:
    """The declared fleet changed; `version` is the new one."""

    version: int
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Something worth knowing that changes no state: a restart, a stuck wake-up, a clock step."""

    what: str
    facts: dict[str, str] = field(default_factory=dict)


RequestEvent = (
    Submitted
    | Booked
    | Moved
    | Unbooked
    | Amended
    | Started
    | InstancesRan
    | InstanceExited
    | InstanceLost
    | InstancesReleased
    | InstanceReplaced
    | Delivered
    | DeliveryFailed
    | Warned
    | Extended
    | Ended
    | PartReleased
    | CancelRequested
    | WindowClosed
    | Returned
    | Unreachable
    | Reachable
    | Overran
    | Deleted
)
ReservationEvent = (
    ReservationAsked
    | ReservationApproved
    | ReservationDeclined
    | ReservationAmended
    | ReservationLocked
    | ReservationStarted
    | ReservationDelivered
    | ReservationDegraded
    | ReservationRestored
    | ReservationReplaced
    | ReservationUsed
    | ReservationIdle
    | ReservationUnused
    | ReservationWarned
    | ReservationCancelled
    | ReservationClosing
    | ReservationClosed
    | ReservationDeleted
)
SeriesEvent = SeriesBegun | SeriesAmended | OccurrenceMissed | SeriesEnded
MaintenanceEvent = MaintenancePlanned | MaintenanceBegun | MaintenanceOver
EventBody = (
    RequestEvent
    | ReservationEvent
    | SeriesEvent
    | MaintenanceEvent
    | HostChanged
    | FleetApplied
    | Noted
)


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """A fact about to be recorded; the store gives it its sequence number."""

    at: int
    actor: str
    subject_kind: SubjectKind
    subject: int
    body: EventBody
    project: str = ""
    name: str = ""
    reason: str = ""
    call_id: str = ""

    @property
    def kind(self) -> str:
        """The name of what happened, `Delivered`."""
        return type(self.body).__name__


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class Event(NewEvent):
    """A recorded fact. `seq` is gapless over the whole fleet; `subject_seq` over its subject."""

    seq: int
    subject_seq: int
