"""Integer seconds and half-open spans.

    Span(10, 20)   covers 10 … 19;  20 belongs to whoever comes next
         10        20
    ─────├─────────┤─────▶ t

Conversion to and from calendar text happens in faces only (`dws.wire.timefmt`); what is said in an error is
said in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

MINUTE: Final = 60
HOUR: Final = 3_600
DAY: Final = 86_400

FOREVER: Final = 253_402_300_799
"""The end of a span that has no known end (9999-12-31T23:59:59Z): later than anything we plan."""


def in_words(instant: int) -> str:
    """An instant in a sentence for people, in UTC: "2027-01-11 09:00:00 UTC"."""
    return datetime.fromtimestamp(min(instant, FOREVER), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def length_in_words(seconds: int) -> str:
    """A length of time in a sentence for people, exact: "7 days", "3 days 15 hours", "0 seconds"."""
    found = []
    for unit, size in (("day", DAY), ("hour", HOUR), ("minute", MINUTE), ("second", 1)):
        amount, seconds = divmod(seconds, size)
        if amount:
            found.append(f"{amount} {unit}" + ("s" if amount > 1 else ""))
    return " ".join(found) or "0 seconds"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open interval of time, `start` included and `end` not, in seconds since the epoch.

    Raises ValueError when `end < start`; an empty span is legal and overlaps nothing.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError(f"a span cannot end ({self.end}) before it starts ({self.start})")

    @property
    def length_s(self) -> int:
        """Seconds from start to end."""
        return self.end - self.start

    @property
    def is_open(self) -> bool:
        """True when the span has no known end."""
        return self.end >= FOREVER

    def overlaps(self, other: Span) -> bool:
        """True when some instant lies in both spans."""
        return max(self.start, other.start) < min(self.end, other.end)

    def covers(self, instant: int) -> bool:
        """True when `instant` lies in the span."""
        return self.start <= instant < self.end

    def contains(self, other: Span) -> bool:
        """True when no instant of `other` lies outside this span."""
        return self.start <= other.start and other.end <= self.end

    def shifted(self, seconds: int) -> Span:
        """The same length, `seconds` later."""
        return Span(self.start + seconds, min(FOREVER, self.end + seconds))

    def clipped(self, other: Span) -> Span | None:
        """The part of this span inside `other`, None when there is none."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Span(start, end) if start < end else None
