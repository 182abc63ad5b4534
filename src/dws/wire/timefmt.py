"""Instants and durations as text, and back. The only place that knows RFC 3339 and "4h".

Instants inside are integer seconds; `FOREVER` and 0 travel as the empty string. A time on the clocks of a
zone that a change of the clocks skips is refused with its neighbours; one that comes twice needs an offset.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from dws.model.errors import InvalidArgument
from dws.model.localtime import around, instants, offset_s
from dws.model.time import DAY, FOREVER, HOUR, MINUTE

_UNITS = {"w": 7 * DAY, "d": DAY, "h": HOUR, "m": MINUTE, "s": 1}
_SECOND_60 = re.compile(r":60(?:[.,]\d+)?(?:Z|z|[+-]\d\d:?\d\d)?$")
_HAS_OFFSET = re.compile(r":.*\d(?:Z|z|[+-]\d\d:?\d\d)$")
_RELATIVE = re.compile(r"(?:\+|in\s+)\s*(\S+)")
_DURATION = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


def parse_duration(value: str | int, *, field: str = "duration") -> int:
    """Seconds of "4h", "1d12h", "90m", "5400s", "5400" or 5400.

    Raises InvalidArgument naming `field` and showing an example; never negative, no fractions.
    """
    if isinstance(value, int):
        if value < 0:
            raise InvalidArgument(f"{field}: {value} s must not be negative", field=field)
        return value
    text = value.strip().lower()
    match = _DURATION.fullmatch(text)
    if not text or match is None or not any(match.groups()):
        raise InvalidArgument(
            f"{field}: '{value}' is not a duration; write for example '4h', '90m', '1d12h' or '5400s'",
            field=field,
        )
    return sum(
        int(part) * size for part, size in zip(match.groups(), _UNITS.values(), strict=True) if part
    )


def format_duration(seconds: int) -> str:
    """The shortest exact spelling with at most three units: 5400 is "1h30m", 0 is "0s"."""
    if seconds <= 0:
        return "0s"
    out = []
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", 1)):
        amount, seconds = divmod(seconds, size)
        if amount:
            out.append(f"{amount}{unit}")
    return "".join(out)


def parse_instant(value: str, *, field: str = "time") -> int:
    """Epoch seconds of an RFC 3339 instant with an offset; fractions are cut off.

    Raises InvalidArgument naming `field` when there is no offset, when the text is no instant, or for
    second 60.
    """
    text = value.strip()
    _refuse_second_60(text, field)
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        raise InvalidArgument(
            f"{field}: '{value}' is not an RFC 3339 instant such as '2027-01-11T09:00:00Z'",
            field=field,
        ) from None
    if moment.tzinfo is None:
        raise InvalidArgument(
            f"{field}: '{value}' has no offset; add 'Z' or one such as '+01:00'", field=field
        )
    return int(moment.timestamp() // 1)


def _refuse_second_60(text: str, field: str) -> None:
    if _SECOND_60.search(text):
        raise InvalidArgument(f"{field}: '{text}' has second 60; write the next minute", field=field)


@dataclass(frozen=True, slots=True)
class FromNow:
    """So many seconds after the server's now: whoever asks may have a clock that is wrong."""

    seconds: int


def parse_moment(text: str, zone: tzinfo | None = None, *, field: str = "time") -> int | FromNow:
    """When somebody means: "now", "+5m" and "in 5m" are from the server's now; an RFC 3339 instant is
    itself; a date with or without a time is what the clocks of `zone` show.

    Raises InvalidArgument naming `field`: for a time that the clocks skip (reason `skippedTime`), one they
    show twice (`ambiguousTime`), second 60, text that is no time, and without a zone for a time without an
    offset.
    """
    text = text.strip()
    if text.lower() == "now":
        return FromNow(0)
    if match := _RELATIVE.fullmatch(text.lower()):
        return FromNow(parse_duration(match.group(1), field=field))
    if zone is None or _HAS_OFFSET.search(text):
        return parse_instant(text, field=field)
    _refuse_second_60(text, field)
    try:
        wall = datetime.fromisoformat(text.upper())
    except ValueError:
        wall = None
    if wall is None or wall.tzinfo is not None:
        raise InvalidArgument(
            f"{field}: '{text}' is not a time; write for example '2027-05-03 09:00' (in {zone}), "
            "'2027-05-03T09:00:00+02:00', or '+30m'",
            field=field,
        )
    return _instant_shown(wall.replace(microsecond=0), zone, field)


def _instant_shown(wall: datetime, zone: tzinfo, field: str) -> int:
    """The one instant at which clocks show this; refuses what is never shown, or twice."""
    match instants(wall, zone):
        case (instant,):
            return instant
        case (earlier, later):
            one, other = (f"'{wall:%Y-%m-%d %H:%M}{_offset(at, zone)}'" for at in (earlier, later))
            raise InvalidArgument(
                f"{field}: {wall:%Y-%m-%d %H:%M} comes twice in {zone} because the clocks go back; add the "
                f"offset: {one} (the earlier) or {other} (the later)",
                field=field,
                reason="ambiguousTime",
            )
    before, after = (datetime.fromtimestamp(at, zone) for at in around(wall, zone))
    raise InvalidArgument(
        f"{field}: {wall:%Y-%m-%d %H:%M} does not exist in {zone}: the clocks go forward over it; "
        f"the nearest times are {before:%H:%M} {before:%Z} and {after:%H:%M} {after:%Z}",
        field=field,
        reason="skippedTime",
    )


def _offset(instant: int, zone: tzinfo) -> str:
    """Of the clocks then, as RFC 3339 writes it: "+01:00"."""
    seconds = offset_s(instant, zone)
    return f"{'-' if seconds < 0 else '+'}{abs(seconds) // HOUR:02}:{abs(seconds) % HOUR // MINUTE:02}"


def echo_instant(instant: int, zone: tzinfo) -> str:
    """What was understood, so that nobody need guess: local time, the zone's name, and UTC."""
    local = datetime.fromtimestamp(instant, zone).strftime("%Y-%m-%d %H:%M:%S %Z")
    utc = datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{local} ({zone}) = {utc}"


def format_instant(instant: int | None) -> str:
    """RFC 3339 in UTC, empty for None, 0 and FOREVER."""
    if instant is None or instant <= 0 or instant >= FOREVER:
        return ""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_for_people(instant: int, zone: tzinfo = UTC) -> str:
    """A short form for sentences: "Mon 11 Jan 09:00 UTC", with seconds when there are any."""
    moment = datetime.fromtimestamp(instant, zone)
    clock = "%H:%M:%S" if moment.second else "%H:%M"
    return moment.strftime(f"%a %d %b {clock}") + (" " + (moment.tzname() or "")).rstrip()


def format_money(micros: int) -> str:
    """Millionths as a decimal with two places: 4200800 is "4.20"."""
    return f"{micros / 1_000_000:.2f}"


def render_reason(text: str, facts: dict[str, int | str], zone: tzinfo = UTC) -> str:
    """A reason's sentence with its facts filled in, instants in `zone`."""

    def fill(match: re.Match[str]) -> str:
        name, kind = match.group(1), match.group(2)
        value = facts.get(name, "?")
        if isinstance(value, int):
            if kind == "time":
                return format_for_people(value, zone)
            if kind == "duration":
                return format_duration(value)
        return str(value)

    return re.sub(r"\{(\w+)(?::(\w+))?\}", fill, text)
