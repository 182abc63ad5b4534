"""Work: what is due, and when. One table for effects, timers and retries.

An item is unique by (kind, subject, tag); scheduling it again moves it. Work that calls a backend is
leased with a fencing token so that only the present holder's result applies.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dws.model.evolve import swift


class WorkKind(StrEnum):
    """What is to be done when the item is due.

    PROVISION, RELEASE and SET_DEADLINE call the backend; the others are timers on a request or, from
    APPROVAL_EXPIRY on, on a reservation, a series or a maintenance window, except
    OUTAGE_END (a host should be back), RETENTION, and WATCHDOG, which stores of before still hold and which
    does nothing.
    When time alone makes planning useful is not work: each plan says when to look again.
    """

    PROVISION = "PROVISION"
    RELEASE = "RELEASE"
    SET_DEADLINE = "SET_DEADLINE"
    EXPIRE = "EXPIRE"
    DELIVERY_DEADLINE = "DELIVERY_DEADLINE"
    WARN = "WARN"
    RUN_END = "RUN_END"
    OVERRUN = "OVERRUN"
    UNREACHABLE = "UNREACHABLE"
    OUTAGE_END = "OUTAGE_END"
    WATCHDOG = "WATCHDOG"
    RETENTION = "RETENTION"
    APPROVAL_EXPIRY = "APPROVAL_EXPIRY"
    RESERVATION_LOCK = "RESERVATION_LOCK"
    RESERVATION_START = "RESERVATION_START"
    RESERVATION_WARN = "RESERVATION_WARN"
    RESERVATION_IDLE = "RESERVATION_IDLE"
    RESERVATION_END = "RESERVATION_END"
    SERIES_NEXT = "SERIES_NEXT"
    MAINTENANCE_START = "MAINTENANCE_START"
    MAINTENANCE_END = "MAINTENANCE_END"

    @property
    def calls_backend(self) -> bool:
        """True for work done outside any transaction, under a lease."""
        return self in _OF_BACKENDS


_OF_BACKENDS = (WorkKind.PROVISION, WorkKind.RELEASE, WorkKind.SET_DEADLINE)


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """One thing due. `due_at` is domain time; `lease_until` is process time, 0 when not leased.

    `subject` is the request's or reservation's id (0 for the fleet); `tag` tells items of one kind apart
    (the attempt, the lead time of a warning).
    """

    kind: WorkKind
    subject: int
    due_at: int
    tag: str = ""
    attempt: int = 0
    lease_token: str = ""
    lease_until: int = 0

    @property
    def key(self) -> tuple[str, int, str]:
        """What makes the item unique."""
        return (self.kind, self.subject, self.tag)
