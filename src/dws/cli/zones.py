"""Times as people write and read them, in their own zone.

Inside everything is UTC seconds; here "2027-05-03 09:00" is the reader's wall clock. A wall-clock time
that a change of the clocks skips does not exist and is refused with its neighbours; one that comes twice
needs an offset. What is relative ("+5m") counts from the server's time, never from this machine's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dws.model.errors import InvalidArgument
from dws.model.time import DAY, HOUR, MINUTE
from dws.wire.timefmt import parse_duration, parse_instant

LOCALTIME: Final = Path("/etc/localtime")
_RELATIVE = re.compile(r"(?:\+|in\s+)\s*(\S+)")
_HAS_OFFSET = re.compile(r"\d(?:Z|z|[+-]\d\d:?\d\d)$")


def user_zone(given: str = "", environment: Mapping[str, str] = os.environ) -> ZoneInfo:
    """The zone named, else $TZ, else the machine's, else UTC. Raises InvalidArgument for an unknown name."""
    if given:
        return _named(given, field="tz")
    if name := environment.get("TZ", "").lstrip(":"):
        return _named(name, field="TZ")
    try:
        target = str(LOCALTIME.resolve(strict=True))
        _, _, name = target.partition("/zoneinfo/")
        if name:
            return ZoneInfo(name)
        with LOCALTIME.open("rb") as file:
            return ZoneInfo.from_file(file, key="localtime")
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return ZoneInfo("UTC")


def _named(name: str, *, field: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidArgument(
            f"{field}: '{name}' is not a time zone; write a name such as 'Europe/Paris' or 'UTC'",
            field=field,
        ) from None


def is_relative(text: str) -> bool:
    """True for "now", "+5m" and "in 5m"."""
    text = text.strip().lower()
    return text == "now" or _RELATIVE.fullmatch(text) is not None


def parse_when(text: str, zone: tzinfo, *, server_now: int, field: str) -> int:
    """Epoch seconds of what a person wrote.

    "now", "+5m" and "in 5m" count from `server_now`; an RFC 3339 instant is itself; a date with or
    without a time is wall-clock time in `zone`. Raises InvalidArgument naming `field`.
    """
    text = text.strip()
    if text.lower() == "now":
        return server_now
    if match := _RELATIVE.fullmatch(text.lower()):
        return server_now + parse_duration(match.group(1), field=field)
    if _HAS_OFFSET.search(text) and ":" in text:
        return parse_instant(text, field=field)
    try:
        wall = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgument(
            f"{field}: '{text}' is not a time; write for example '2027-05-03 09:00' (your zone), "
            "'2027-05-03T09:00:00+02:00', or '+30m'",
            field=field,
        ) from None
    return _from_wall(wall, zone, field=field)


def _from_wall(wall: datetime, zone: tzinfo, *, field: str) -> int:
    """The instant of a wall-clock time, refusing what does not exist or exists twice."""
    first, second = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return int(first.timestamp())
    if _exists(first):
        raise InvalidArgument(
            f"{field}: {wall:%Y-%m-%d %H:%M} comes twice in {zone} because the clocks go back; add the "
            f"offset: '{first:%Y-%m-%d %H:%M}{_offset(first)}' (the earlier) or "
            f"'{second:%Y-%m-%d %H:%M}{_offset(second)}' (the later)",
            field=field,
            reason="ambiguousTime",
        )
    before, after = sorted(moment.astimezone(UTC).astimezone(zone) for moment in (first, second))
    raise InvalidArgument(
        f"{field}: {wall:%Y-%m-%d %H:%M} does not exist in {zone}: the clocks go forward over it; "
        f"the nearest times are {before:%H:%M} {before:%Z} and {after:%H:%M} {after:%Z}",
        field=field,
        reason="skippedTime",
    )


def _exists(moment: datetime) -> bool:
    back = moment.astimezone(UTC).astimezone(moment.tzinfo)
    return back.replace(tzinfo=None) == moment.replace(tzinfo=None)


def _offset(moment: datetime) -> str:
    seconds = int((moment.utcoffset() or timedelta()).total_seconds())
    sign = "-" if seconds < 0 else "+"
    return f"{sign}{abs(seconds) // HOUR:02}:{abs(seconds) % HOUR // MINUTE:02}"


def instant_of(text: str) -> int | None:
    """Epoch seconds of an instant the server wrote, None for the empty string."""
    return int(datetime.fromisoformat(text).timestamp()) if text else None


def local_time(instant: int, zone: tzinfo) -> str:
    """In full, with the zone's abbreviation: "2027-05-03 09:00:00 CEST"."""
    return datetime.fromtimestamp(instant, zone).strftime("%Y-%m-%d %H:%M:%S %Z")


def short_time(instant: int, zone: tzinfo, *, now: int) -> str:
    """As short as is clear beside `now`: "09:00", "Mon 09:00" within a week, else "2027-05-03 09:00"."""
    moment, today = datetime.fromtimestamp(instant, zone), datetime.fromtimestamp(now, zone)
    if moment.date() == today.date():
        return moment.strftime("%H:%M")
    if abs(instant - now) < 6 * DAY:
        return moment.strftime("%a %H:%M")
    return moment.strftime("%Y-%m-%d %H:%M")


def rough(seconds: int) -> str:
    """A length of time in at most two units: "2h05m", "3d4h", "45s"."""
    seconds = max(0, seconds)
    if seconds < MINUTE:
        return f"{seconds}s"
    if seconds < HOUR:
        return (
            f"{seconds // MINUTE}m{seconds % MINUTE:02}s"
            if seconds < 10 * MINUTE
            else f"{seconds // MINUTE}m"
        )
    if seconds < DAY:
        minutes = seconds % HOUR // MINUTE
        return f"{seconds // HOUR}h{minutes:02}m" if minutes else f"{seconds // HOUR}h"
    hours = seconds % DAY // HOUR
    return f"{seconds // DAY}d{hours}h" if hours else f"{seconds // DAY}d"


def relative(instant: int, *, now: int) -> str:
    """ "in 2h05m", "12m ago" or "now"."""
    if instant == now:
        return "now"
    return f"in {rough(instant - now)}" if instant > now else f"{rough(now - instant)} ago"


def beside(instant: int, zone: tzinfo, *, now: int) -> str:
    """Short and relative: "14:05 (in 2h05m)"."""
    return f"{short_time(instant, zone, now=now)} ({relative(instant, now=now)})"


def echo_time(instant: int, zone: tzinfo) -> str:
    """Local and UTC, with the zone's name, as told before anything is asked for."""
    utc = datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{local_time(instant, zone)} ({zone}) = {utc}"
