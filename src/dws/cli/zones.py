"""Times as people write and read them, in their own zone.

Inside everything is UTC seconds; here "2027-05-03 09:00" is the reader's wall clock. A wall-clock time
that a change of the clocks skips does not exist and is refused with its neighbours; one that comes twice
needs an offset. What is relative ("+5m") counts from the server's time, never from this machine's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dws.model.localtime import zone_named
from dws.model.time import DAY, HOUR, MINUTE
from dws.wire.timefmt import FromNow, parse_moment

LOCALTIME: Final = Path("/etc/localtime")
UNNAMED: Final = "localtime"


def user_zone(given: str = "", environment: Mapping[str, str] = os.environ) -> ZoneInfo:
    """The zone named, else $TZ, else the machine's, else UTC. Raises InvalidArgument for an unknown name."""
    if given:
        return zone_named(given, field="tz")
    if name := environment.get("TZ", "").lstrip(":"):
        return zone_named(name, field="TZ")
    try:
        target = str(LOCALTIME.resolve(strict=True))
        _, _, name = target.partition("/zoneinfo/")
        if name:
            return ZoneInfo(name)
        with LOCALTIME.open("rb") as file:
            return ZoneInfo.from_file(file, key=UNNAMED)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return ZoneInfo("UTC")


def name_of(zone: ZoneInfo) -> str:
    """The name by which the server knows a zone; empty for one that this machine has only as a file."""
    return "" if zone.key == UNNAMED else zone.key


def parse_when(text: str, zone: tzinfo, *, server_now: int, field: str) -> int:
    """Epoch seconds of what a person wrote, as `dws.wire.timefmt.parse_moment` reads it.

    What is relative counts from `server_now`. Raises InvalidArgument naming `field`.
    """
    moment = parse_moment(text, zone, field=field)
    return server_now + moment.seconds if isinstance(moment, FromNow) else moment


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
