"""A series: the same reservation again and again, each occurrence a reservation of its own.

Occurrences are booked one by one as they come within the horizon; later ones are known, but not booked yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from dws.model.demand import Alternative
from dws.model.names import SeriesId, derive_name
from dws.model.recurrence import Recurrence
from dws.model.reservation import DEFAULT_TERMS, Terms


class SeriesState(StrEnum):
    """ACTIVE until its last occurrence has been dealt with, or it was cancelled."""

    ACTIVE = "ACTIVE"
    ENDED = "ENDED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """An occurrence that could not be booked, and why."""

    day: date
    start: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What is booked again and again, and how far it has been.

    `alternative` is what each occurrence books (its duration is the occurrence's own, whatever it says).
    Occurrences that start before `booked_until` have been dealt with: booked, or `missed`.
    """

    id: SeriesId
    name: str
    project: str
    principal: str
    alternative: Alternative
    recurrence: Recurrence
    created_at: int
    state: SeriesState = SeriesState.ACTIVE
    version: int = 1
    terms: Terms = DEFAULT_TERMS
    description: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    booked_until: int = 0
    missed: tuple[Missed, ...] = ()
    ended_at: int = 0

    def occurrence_name(self, day: date) -> str:
        """The name of the reservation of that day."""
        return derive_name(self.name, f"{day:%Y%m%d}")
