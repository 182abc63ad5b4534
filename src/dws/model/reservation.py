"""The future reservation: "so many of these from then until then", and what may run inside it.

A reservation owns one booking of the fleet from its confirmation to its end. What consumes it are bookings
inside that one: within its hosts and its window, exclusive among themselves. Its state changes only
through `dws.lifecycle.reservation`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from dws.model.demand import OPEN_ENDED_S
from dws.model.errors import InvalidArgument
from dws.model.names import BookingId, ReservationId
from dws.model.time import Span


class ReservationState(StrEnum):
    """Where a reservation is in its life, in the public service's words.

    APPROVED is booked and may be changed; PROCURING is behind its lock time; PROVISIONING has started and
    waits for hosts; FULFILLED has had all its hosts; ENDING is over, but something in it is still being
    stopped.
    """

    PENDING_APPROVAL = "PENDING_APPROVAL"
    APPROVED = "APPROVED"
    PROCURING = "PROCURING"
    PROVISIONING = "PROVISIONING"
    FULFILLED = "FULFILLED"
    ENDING = "ENDING"
    ENDED = "ENDED"
    DECLINED = "DECLINED"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        """True when nothing will ever change again."""
        return self in _TERMINAL

    @property
    def is_open(self) -> bool:
        """True while its capacity is there to be used."""
        return self in (ReservationState.PROVISIONING, ReservationState.FULFILLED)

    @property
    def is_ahead(self) -> bool:
        """True while it is booked and has not started."""
        return self in (ReservationState.APPROVED, ReservationState.PROCURING)


_TERMINAL = frozenset({ReservationState.ENDED, ReservationState.DECLINED, ReservationState.CANCELLED})


class AtEnd(StrEnum):
    """What becomes of instances that still run when a reservation ends."""

    STOP = "stop"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A project that may use the reservation too; `hosts_max` 0 is no limit of its own."""

    project: str
    hosts_max: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a reservation may be used, as its owner chose.

    `specific_only`: only work that names it may use it. `request_hosts_max` and `request_run_max_s` bound
    each request inside it, 0 for no bound.
    """

    shares: tuple[Share, ...] = ()
    specific_only: bool = True
    at_end: AtEnd = AtEnd.DELETE
    request_hosts_max: int = 0
    request_run_max_s: int = 0

    def __post_init__(self) -> None:
        projects = [s.project for s in self.shares]
        if len(set(projects)) != len(projects):
            raise InvalidArgument("shares: a project is named twice", field="shares")
        for name in ("request_hosts_max", "request_run_max_s"):
            if getattr(self, name) < 0:
                raise InvalidArgument(f"{name}: must not be negative", field=name)


DEFAULT_TERMS: Final = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One reservation, everything known about it.

    `window` is when its capacity is its own. `pool`, `zone` and `shape` say where it is booked, `count` how
    many hosts, or slices where it has a `topology`, all within one domain of level `within`. `short` of them
    it lacks (it is DEGRADED while that is not 0). `lock_at` is when it can no longer be changed,
    `approve_by` when an approval would come too late. `cancel_until` is the last instant of a free
    cancellation; 0 is never. `time_zone` is the zone its owner thinks in. `sequence` counts its changes, for
    calendar programs. `opened_at` is when all its hosts were first there, `idle_since` since when nothing
    runs in it (0: something does, or it has not started). One that is `on_demand` was made for the instant
    it was asked for, outside the calendar's bounds.
    """

    id: ReservationId
    name: str
    project: str
    principal: str
    state: ReservationState
    window: Span
    pool: str
    zone: str
    shape: str
    count: int
    created_at: int
    version: int = 1
    within: str | None = None
    topology: str = ""
    terms: Terms = DEFAULT_TERMS
    description: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    time_zone: str = ""
    series: str = ""
    on_demand: bool = False
    booking: BookingId | None = None
    short: int = 0
    lock_at: int = 0
    approve_by: int = 0
    cancel_until: int = 0
    sequence: int = 0
    opened_at: int = 0
    idle_since: int = 0
    warned_s: tuple[int, ...] = ()
    ended_at: int = 0
    end_message: str = ""
    deleted: bool = False

    @property
    def is_degraded(self) -> bool:
        """True while it lacks hosts."""
        return self.short > 0

    @property
    def is_open_ended(self) -> bool:
        """True when it lasts until it is given back."""
        return self.window.length_s == OPEN_ENDED_S

    def limit_of(self, project: str) -> int:
        """How many hosts a project it is shared with may use at once, 0 for no limit of its own."""
        return next((s.hosts_max for s in self.terms.shares if s.project == project), 0)

    def hosts_max_of(self, project: str) -> int | None:
        """How many hosts the project may use at once; None when it may not use the reservation at all."""
        if project != self.project and all(s.project != project for s in self.terms.shares):
            return None
        return min(self.count, self.limit_of(project) or self.count)
