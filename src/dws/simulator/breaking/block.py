"""The auditor's own small model of the calendar, made from events alone: reservations and series.

As `model.py` is for requests. What may run in a reservation, when it may be changed and cancelled, and when
the occurrences of a series lie is reckoned here once more, by other means than the engine's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal

from dws.model.demand import Alternative
from dws.model.recurrence import Recurrence
from dws.model.reservation import Terms
from dws.model.time import HOUR, Span
from dws.model.topology import Pool
from dws.planner.options import PolicyOptions
from dws.simulator.breaking.shapes import Spot, slots_each

BlockPhase = Literal[
    "PENDING_APPROVAL",
    "APPROVED",
    "PROCURING",
    "PROVISIONING",
    "FULFILLED",
    "ENDING",
    "ENDED",
    "DECLINED",
    "CANCELLED",
]
PENDING: Final = frozenset({"PENDING_APPROVAL"})
AHEAD: Final = frozenset({"APPROVED", "PROCURING"})
OPEN: Final = frozenset({"PROVISIONING", "FULFILLED"})
GONE: Final = frozenset({"ENDED", "DECLINED", "CANCELLED"})

WINTER_OFFSETS_S: Final = {"UTC": 0, "Europe/Berlin": HOUR, "America/New_York": -5 * HOUR}
"""Zones that series are in, and how far their clocks are ahead in winter, when every run happens."""

Held = tuple[Spot, int, int]
"""(slot of a host, start, end) that was held."""


@dataclass(slots=True)
class Block:
    """One reservation of `count` machines, or slices of a `topology`. `holds` and `uses` are the slots of
    hosts that it had and those that ran something billed; `drawn` those that it has now, each since when;
    `names` are those it has ever had."""

    id: int
    name: str
    project: str
    series: str
    asked: int
    asked_at_seq: int
    phase: BlockPhase
    window: Span
    pool: str
    zone: str
    shape: str
    topology: str
    count: int
    within: str | None
    terms: Terms
    lock_at: int
    approve_by: int
    cancel_until: int
    short: int = 0
    was_short: bool = False
    idle_since: int = 0
    overran: bool = False
    deleted: bool = False
    on_demand: bool = False
    names: set[str] = field(default_factory=set)
    warned: set[int] = field(default_factory=set)
    drawn: dict[Spot, int] = field(default_factory=dict)
    holds: list[Held] = field(default_factory=list)
    uses: list[Held] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """True in a terminal state."""
        return self.phase in GONE

    @property
    def is_closed(self) -> bool:
        """True when nothing can start in it any more."""
        return self.is_over or self.phase == "ENDING"

    def slots_each(self, pool: Pool) -> int:
        """Slots of hosts that each of its machines, or slices, has."""
        return slots_each(pool, self.shape, self.topology)

    def part_of(self, project: str) -> int | None:
        """How many of its machines at once that project may use, None when it may not use it at all."""
        if project == self.project:
            own = [s.hosts_max for s in self.terms.shares if s.project == project]
            return min([self.count, *(n for n in own if n)])
        for share in self.terms.shares:
            if share.project == project:
                return min(self.count, share.hosts_max or self.count)
        return None

    def may_be_cancelled(self, now: int, policy: PolicyOptions) -> bool:
        """What the rules say, of one that has not started, to its owner."""
        if self.phase == "PENDING_APPROVAL":
            return True
        is_free = self.cancel_until > 0 and now <= self.cancel_until
        return self.phase in AHEAD and policy.reservation_cancel != "never" and is_free

    def may_be_moved(self, policy: PolicyOptions) -> bool:
        """What the rules say of its size and window, to its owner."""
        if self.on_demand:
            return not self.is_closed
        if policy.reservation_amend == "never" or self.phase == "PROCURING":
            return False
        return not self.is_closed


@dataclass(slots=True)
class Cycle:
    """One series. `dealt` are the days that were booked, missed or left out; those that start before
    `since` are not its business any more."""

    id: int
    name: str
    project: str
    recurrence: Recurrence
    alternative: Alternative
    since: int
    is_over: bool = False
    dealt: set[date] = field(default_factory=set)

    def occurrences(self) -> list[tuple[date, Span]]:
        """Every occurrence, in order, by arithmetic alone: no clock changes while a run lasts."""
        rule = self.recurrence
        found: list[tuple[date, Span]] = []
        day, seen = rule.first, 0
        while seen < rule.count:
            if day.weekday() in rule.days:
                seen += 1
                wall = datetime.combine(day, rule.start, tzinfo=UTC)
                start = int(wall.timestamp()) - WINTER_OFFSETS_S[rule.zone]
                if day not in rule.left_out:
                    found.append((day, Span(start, start + rule.length_s)))
            day += timedelta(days=1)
        return found


def merged(spans: list[Held]) -> list[Held]:
    """The same seconds of the same hosts, told once and in one piece."""
    found: list[Held] = []
    for spot, start, end in sorted(s for s in spans if s[1] < s[2]):
        if found and found[-1][0] == spot and start <= found[-1][2]:
            found[-1] = (spot, found[-1][1], max(end, found[-1][2]))
        else:
            found.append((spot, start, end))
    return found


def clipped(spans: list[Held], window: Span) -> list[Held]:
    """What of them lies in a window."""
    return [(u, max(s, window.start), min(e, window.end)) for u, s, e in spans]


def covers(outer: list[Held], inner: list[Held]) -> bool:
    """True when every second of `inner` is also in `outer`."""
    return merged(outer + inner) == merged(outer)


def seconds(spans: list[Held]) -> int:
    """Seconds of slots, each counted as often as it is told."""
    return sum(max(0, end - start) for _, start, end in spans)
