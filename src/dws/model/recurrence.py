"""The same hours again and again: "every weekday 20:00-06:00 Europe/Berlin until 2027-03-01".

    text      every DAYS HH:MM-HH:MM ZONE [from DATE] until DATE [except DATE,DATE]
              every DAYS HH:MM for LENGTH ZONE [from DATE] N times [except DATE,DATE]
    DAYS      day, weekday, weekend, or mon,wed,fri; LENGTH 90m, 12h, 2d12h

A recurrence is about clocks on the wall of its zone: 20:00 is 20:00 in winter and in summer, whatever that
is in UTC. Where clocks change, an occurrence starts, and ends, at the first instant at which they show the
time or have jumped over it: a time that is skipped becomes the first instant after the jump, one that is
shown twice is taken the first time. An occurrence that this touches carries a note in words.

The day of an occurrence is the one it starts on. A booking of its own is made of each; that is the
engine's business. Instants are epoch seconds. Neighbours: `dws.model.localtime`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from dws.model.errors import InvalidArgument
from dws.model.localtime import instants, reached, wall_at, zone_named
from dws.model.time import DAY, HOUR, MINUTE, Span

FIELD: Final = "every"
COUNT_MAX: Final = 1_000
DAYS_MAX: Final = 3_660
YEAR_MAX: Final = 9_900
DAY_NAMES: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
EVERY_DAY: Final = frozenset(range(7))
WEEKDAYS: Final = frozenset(range(5))
WEEKEND: Final = frozenset({5, 6})
_GROUPS: Final = {"day": EVERY_DAY, "weekday": WEEKDAYS, "weekend": WEEKEND}
_LENGTH = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,4})h)?(?:(\d{1,5})m)?")


class Occurrence(NamedTuple):
    """One of them. `note` says how a change of the clocks touches it, else it is empty; `span` is empty when
    its hours are skipped altogether."""

    day: date
    span: Span
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """On `days` of the week (0 is Monday), from `start` on the clock to `end` (the next day, when it is not
    later) or for `length_s`; from day `first` on, until day `until` or `count` times. Days in `left_out`
    count but do not occur.

    Raises InvalidArgument when it says too little or contradicts itself.
    """

    days: frozenset[int]
    start: time
    zone: str
    first: date
    end: time | None = None
    length_s: int = 0
    until: date | None = None
    count: int = 0
    left_out: frozenset[date] = frozenset()

    def __post_init__(self) -> None:
        zone_named(self.zone, field=FIELD)
        if not self.days or not self.days <= EVERY_DAY:
            raise _wrong("name at least one day, such as 'mon,wed', 'weekday' or 'day'")
        if (self.end is None) == (self.length_s == 0):
            raise _wrong("say either when each one ends ('09:00-11:00') or how long it is ('09:00 for 2h')")
        if not 0 <= self.length_s <= self._apart * DAY or self.length_s % MINUTE:
            raise _wrong(f"each one may last whole minutes, up to {self._apart}d, when the next one starts")
        if (self.until is None) == (self.count == 0):
            raise _wrong("say when it ends: 'until 2027-03-01' or '12 times'")
        if not 0 <= self.count <= COUNT_MAX:
            raise _wrong(f"{self.count} times is not possible: 1 to {COUNT_MAX} are")
        if not 1970 <= self.first.year < YEAR_MAX:
            raise _wrong(f"it cannot begin on {self.first}")
        if self.until is not None and not 0 <= (self.until - self.first).days <= DAYS_MAX:
            raise _wrong(f"it must end between its first day, {self.first}, and {DAYS_MAX} days later")

    @property
    def _apart(self) -> int:
        """The fewest days from one occurrence to the next."""
        ordered = sorted(self.days)
        return min((b - a for a, b in zip(ordered, [*ordered[1:], ordered[0] + 7], strict=True)), default=7)

    def without(self, day: date) -> Recurrence:
        """The same, with one more day left out."""
        return replace(self, left_out=self.left_out | {day})

    def __str__(self) -> str:
        """As `parse_recurrence` reads it."""
        hours = f"-{self.end:%H:%M}" if self.end is not None else f" for {_length_text(self.length_s)}"
        last = f"until {self.until}" if self.until is not None else f"{self.count} times"
        rest = "".join(f",{day}" for day in sorted(self.left_out)).replace(",", " except ", 1)
        start = f"every {_days_text(self.days)} {self.start:%H:%M}"
        return f"{start}{hours} {self.zone} from {self.first} {last}{rest}"


def occurrences(recurrence: Recurrence, *, after: int, before: int) -> list[Occurrence]:
    """Those that start in [after, before), in epoch seconds, in order."""
    found = []
    for day in _days(recurrence):
        one = _occurrence(recurrence, day)
        if one.span.start >= before:
            break
        if one.span.start >= after and day not in recurrence.left_out:
            found.append(one)
    return found


def _days(recurrence: Recurrence) -> Iterator[date]:
    """The days it falls on, those left out as well."""
    day, seen = recurrence.first, 0
    while (day <= recurrence.until) if recurrence.until is not None else (seen < recurrence.count):
        if day.weekday() in recurrence.days:
            seen += 1
            yield day
        day += timedelta(days=1)


def _occurrence(recurrence: Recurrence, day: date) -> Occurrence:
    """The one of that day."""
    zone = ZoneInfo(recurrence.zone)
    wall = datetime.combine(day, recurrence.start)
    start, notes = reached(wall, zone), [_note("starts", wall, zone)]
    if recurrence.end is not None:
        until = datetime.combine(day, recurrence.end)
        until += timedelta(days=1) if recurrence.end <= recurrence.start else timedelta()
        end = reached(until, zone)
        notes.append(_note("ends", until, zone))
    else:
        end = start + recurrence.length_s
        following = reached(wall + timedelta(days=_days_to_next(recurrence.days, day)), zone)
        if end > following:
            end = following
            notes.append("is cut short by the next one, because the clocks go forward")
    return Occurrence(day, Span(start, end), "; ".join(note for note in notes if note))


def _days_to_next(days: frozenset[int], day: date) -> int:
    return next(n for n in range(1, 8) if (day.weekday() + n) % 7 in days)


def _note(verb: str, wall: datetime, zone: ZoneInfo) -> str:
    """What a change of the clocks does to this time, in words; empty when nothing."""
    match len(instants(wall, zone)):
        case 0:
            there = wall_at(reached(wall, zone), zone)
            return f"{verb} at {there:%H:%M}: the clocks go forward over {wall:%H:%M} on {wall:%Y-%m-%d}"
        case 2:
            return f"{verb} the first time it is {wall:%H:%M}: on {wall:%Y-%m-%d} the clocks go back"
    return ""


# --- as text ----------------------------------------------------------------------------------


def parse_recurrence(text: str, *, now: int) -> Recurrence:
    """A recurrence as people write it. Unless it says otherwise it begins with the first one that starts at
    `now`, in epoch seconds, or later: today in its zone, or tomorrow.

    Raises InvalidArgument that names the word that is wrong and shows how it is written.
    """
    words = text.replace("–", "-").split()
    if words[:1] and words[0].lower() == "every":
        del words[0]
    if len(words) < 3:
        raise _wrong(
            f"'{text}' is too short; write for example "
            "'every weekday 20:00-06:00 Europe/Berlin until 2027-03-01'"
        )
    days, hours, words = _read_days(words[0]), words[1], words[2:]
    length_s = 0
    if words[0].lower() == "for":
        length_s = _read_length(_argument("for", words))
    start, end = _read_hours(hours, has_length=length_s > 0)
    if not words or words[0].lower() in ("from", "until", "except") or words[0].isdecimal():
        raise _wrong("name the zone its clocks are in after its hours, such as 'Europe/Berlin' or 'UTC'")
    zone = words.pop(0)
    first, until, count, left_out = _first_day(start, zone, now), None, 0, frozenset[date]()
    while words:
        match words[0].lower():
            case "from":
                first = _read_date(_argument("from", words))
            case "until":
                until = _read_date(_argument("until", words))
            case "except":
                left_out = frozenset(_read_date(word) for word in _argument("except", words).split(","))
            case number if number.isdecimal() and words[1:2] in (["times"], ["time"]):
                count = int(number[:9])
                del words[:2]
            case other:
                raise _wrong(
                    f"'{other}' is not understood there; known are 'from DATE', 'until DATE', '12 times' "
                    "and 'except DATE,DATE'"
                )
    return Recurrence(
        days=days,
        start=start,
        end=end,
        length_s=length_s,
        zone=zone,
        first=first,
        until=until,
        count=count,
        left_out=left_out,
    )


def _first_day(start: time, zone_name: str, now: int) -> date:
    """Today in the zone, or tomorrow when that hour is past."""
    zone = zone_named(zone_name, field=FIELD)
    today = wall_at(now, zone).date()
    is_past = reached(datetime.combine(today, start), zone) < now
    return today + timedelta(days=1) if is_past else today


def _wrong(message: str) -> InvalidArgument:
    return InvalidArgument(f"{FIELD}: {message}", field=FIELD)


def _argument(name: str, words: list[str]) -> str:
    """The word after the first one; both are taken away."""
    if len(words) < 2:
        raise _wrong(f"'{name}' is the last word; something belongs behind it")
    del words[0]
    return words.pop(0)


def _read_days(text: str) -> frozenset[int]:
    if (group := _GROUPS.get(text.lower().removesuffix("s"))) is not None:
        return group
    return frozenset(_read_day(word) for word in text.lower().split(","))


def _read_day(text: str) -> int:
    for number, name in enumerate(DAY_NAMES):
        if len(text) >= 3 and name.startswith(text):
            return number
    raise _wrong(f"'{text}' is not a day; write 'day', 'weekday', 'weekend', or days such as 'mon,wed'")


def _read_hours(text: str, *, has_length: bool) -> tuple[time, time | None]:
    begin, dash, end = text.partition("-")
    if has_length:
        if dash:
            raise _wrong(f"'{text}' says when each one ends, and so does 'for': leave one of them out")
        return _read_time(begin), None
    if not dash:
        raise _wrong(f"'{text}' does not say when each one ends; write '{begin}-11:00' or '{begin} for 2h'")
    return _read_time(begin), time(0) if end == "24:00" else _read_time(end)


def _read_time(text: str) -> time:
    match = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", text, re.ASCII)
    if match is None:
        raise _wrong(f"'{text}' is not a time of day; write it as '09:00' or '20:30'")
    return time(int(match[1]), int(match[2]))


def _read_length(text: str) -> int:
    match = _LENGTH.fullmatch(text.lower())
    if match is None or not any(match.groups()):
        raise _wrong(f"'{text}' is not a length; write for example '90m', '12h' or '2d12h'")
    length_s = sum(int(n) * size for n, size in zip(match.groups(), (DAY, HOUR, MINUTE), strict=True) if n)
    if length_s == 0:
        raise _wrong("each one must last at least a minute")
    return length_s


def _read_date(text: str) -> date:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise _wrong(f"'{text}' is not a date; write it as '2027-03-01'") from None


def _days_text(days: frozenset[int]) -> str:
    for name, group in _GROUPS.items():
        if days == group:
            return name
    return ",".join(DAY_NAMES[day][:3] for day in sorted(days))


def _length_text(seconds: int) -> str:
    parts = ((seconds // DAY, "d"), (seconds % DAY // HOUR, "h"), (seconds % HOUR // MINUTE, "m"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount)
