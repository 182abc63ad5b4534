"""A time zone for calendar programs: every change of its clocks over a span, exact to the second.

RFC 5545 wants each change as the local time at which it happens, in the offset before it: 02:00 in spring
and 03:00 in autumn for Europe/Berlin. One subcomponent is written for each change, which every calendar
program understands; none is left to a rule that would have to be guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from icalendar import Timezone, TimezoneDaylight, TimezoneStandard

from dws.model.time import DAY, HOUR, Span

STEP_S: Final = 6 * HOUR
MARGIN_S: Final = 2 * DAY


def calendar_zone(zone: ZoneInfo, span: Span) -> Timezone:
    """The VTIMEZONE of `zone`, right for every instant in `span` (epoch seconds)."""
    begin = span.start - MARGIN_S
    made = Timezone()
    made.add("TZID", zone.key)
    made.add_component(_clocks(zone, begin, begin))
    for change in _changes(zone, begin, span.end + MARGIN_S):
        made.add_component(_clocks(zone, change - 1, change))
    return made


def _clocks(zone: ZoneInfo, before: int, since: int) -> TimezoneStandard | TimezoneDaylight:
    """How clocks are set from `since` on; `before` is an instant at which they were as they were before."""
    old, new = datetime.fromtimestamp(before, zone), datetime.fromtimestamp(since, zone)
    offset_from = old.utcoffset() or timedelta()
    made = TimezoneDaylight() if new.dst() else TimezoneStandard()
    made.DTSTART = datetime.fromtimestamp(since, UTC).replace(tzinfo=None) + offset_from
    made.TZOFFSETFROM = offset_from
    made.TZOFFSETTO = new.utcoffset() or timedelta()
    made.add("TZNAME", new.tzname() or zone.key)
    return made


def _changes(zone: ZoneInfo, after: int, before: int) -> Iterator[int]:
    """The first instants of every new setting of the clocks in (after, before]."""
    for begin in range(after, before, STEP_S):
        early, late = begin, begin + STEP_S
        if _setting(zone, early) == _setting(zone, late):
            continue
        while late - early > 1:
            middle = (early + late) // 2
            if _setting(zone, middle) == _setting(zone, begin):
                early = middle
            else:
                late = middle
        yield late


def _setting(zone: ZoneInfo, instant: int) -> tuple[timedelta | None, str | None]:
    moment = datetime.fromtimestamp(instant, zone)
    return moment.utcoffset(), moment.tzname()
