"""The ledger row: a claim of capacity over a span.

Everything that consumes capacity over time is a booking: a promised start, running work, a failed
host; later reservations and maintenance. A booking names counts per cell of its pool; the units
themselves are drawn when it goes live.

    HOLD ──▶ FIRM ──▶ LIVE ──▶ ENDED
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dws.model.evolve import swift
from dws.model.names import BookingId
from dws.model.time import Span


class Stage(StrEnum):
    """How far a booking has come."""

    HOLD = "HOLD"
    FIRM = "FIRM"
    LIVE = "LIVE"
    ENDED = "ENDED"


class OwnerKind(StrEnum):
    """Who a booking belongs to."""

    REQUEST = "REQUEST"
    OUTAGE = "OUTAGE"
    RESERVATION = "RESERVATION"
    MAINTENANCE = "MAINTENANCE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`count` units of one cell of the pool; `units` are their indexes once drawn, else empty.

    `since` is when the units joined the booking, if later than its start (a spare for a lost one), else 0.
    """

    cell: int
    count: int
    units: tuple[int, ...] = ()
    since: int = 0

    def __post_init__(self) -> None:
        if self.count < 0 or (self.units and len(self.units) != self.count):
            raise ValueError(f"part of {self.count} units cannot list {len(self.units)}")


def calendar_name(pool: str, parent: int = 0) -> str:
    """How the calendar of a pool, or of the booking `parent` in it, is called."""
    return f"{pool}/{parent}" if parent else pool


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """One claim. `parent` 0 is the fleet itself; another number is the booking this one lies inside.

    `owner` is the id of the request, reservation or fault it belongs to. A maintenance window is named, and
    `note` says what for; it names its units from the beginning.
    """

    id: BookingId
    pool: str
    span: Span
    stage: Stage
    owner_kind: OwnerKind
    owner: int
    parts: tuple[Part, ...]
    parent: int = 0
    version: int = 1
    name: str = ""
    note: str = ""

    @property
    def calendar(self) -> str:
        """The name of the calendar it is in: its pool's, or that of the reservation it lies inside."""
        return calendar_name(self.pool, self.parent)

    @property
    def count(self) -> int:
        """Units claimed, over all parts."""
        return sum(p.count for p in self.parts)

    @property
    def units(self) -> tuple[int, ...]:
        """Unit indexes drawn so far, ascending; empty while the booking is bound by count only."""
        if len(self.parts) == 1:
            return tuple(sorted(self.parts[0].units))
        return tuple(sorted(u for p in self.parts for u in p.units))

    @property
    def holdings(self) -> tuple[tuple[int, int], ...]:
        """(unit, from when) of every drawn unit, ascending; each is held to the span's end."""
        start = self.span.start
        if len(self.parts) == 1:
            since = max(start, self.parts[0].since)
            return tuple([(u, since) for u in sorted(self.parts[0].units)])
        return tuple(sorted((u, max(start, p.since)) for p in self.parts for u in p.units))
