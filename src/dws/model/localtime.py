"""What the clocks on the wall of a zone show, and when: where clocks change, nothing is guessed here.

    clocks go forward       …01:59:59 │ 03:00…            02:30 is never shown
    clocks go back          …02:59:59 │ 02:00…            02:30 is shown twice

A date with a time is a datetime without a zone, in whole seconds. `dws.wire.timefmt` refuses what is never
shown or shown twice; `dws.model.recurrence` has a rule for it. Neighbours: only the standard library.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dws.model.errors import InvalidArgument

EPOCH: Final = datetime(1970, 1, 1)


def zone_named(name: str, *, field: str = "timeZone") -> ZoneInfo:
    """The zone of an IANA name. Raises InvalidArgument naming `field` when there is none of that name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidArgument(
            f"{field}: '{name}' is not a time zone; write a name such as 'Europe/Paris' or 'UTC'",
            field=field,
        ) from None


def instants(wall: datetime, zone: tzinfo) -> tuple[int, ...]:
    """Every instant at which the clocks of `zone` show `wall`, in epoch seconds: one, two, or none."""
    first, second = (_offset_s(wall, zone, fold) for fold in (0, 1))
    seconds = _seconds(wall)
    if first == second:
        return (seconds - first,)
    # PEP 495: the offset before the change comes first, so in a skipped hour it is the smaller one.
    return (seconds - first, seconds - second) if first > second else ()


def reached(wall: datetime, zone: tzinfo) -> int:
    """The first instant, in epoch seconds, at which clocks in `zone` show `wall` or have jumped over it."""
    if shown := instants(wall, zone):
        return shown[0]
    early, late = around(wall, zone)
    before = offset_s(early, zone)
    while late - early > 1:  # the clocks change in (early, late]
        middle = (early + late) // 2
        if offset_s(middle, zone) == before:
            early = middle
        else:
            late = middle
    return late


def around(wall: datetime, zone: tzinfo) -> tuple[int, int]:
    """The neighbours, in epoch seconds, of a time that is skipped: one before the jump, one after it. Clocks
    that had jumped already, or had not jumped at all, would show `wall` then."""
    before, after = (_offset_s(wall, zone, fold) for fold in (0, 1))
    return _seconds(wall) - after, _seconds(wall) - before


def offset_s(instant: int, zone: tzinfo) -> int:
    """By how many seconds the clocks of `zone` are ahead of UTC at `instant`."""
    return _seconds(wall_at(instant, zone)) - instant


def wall_at(instant: int, zone: tzinfo) -> datetime:
    """What the clocks of `zone` show at `instant`, without a zone."""
    return datetime.fromtimestamp(instant, zone).replace(tzinfo=None, fold=0)


def _offset_s(wall: datetime, zone: tzinfo, fold: int) -> int:
    offset = wall.replace(tzinfo=zone, fold=fold).utcoffset()
    return round((offset or timedelta()).total_seconds())


def _seconds(wall: datetime) -> int:
    return (wall - EPOCH) // timedelta(seconds=1)
