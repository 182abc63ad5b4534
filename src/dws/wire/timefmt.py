"""Instants and durations as text, and back. The only place that knows RFC 3339 and "4h".

Instants inside are integer seconds; `FOREVER` and 0 travel as the empty string.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

from dws.model.errors import InvalidArgument
from dws.model.time import DAY, FOREVER, HOUR, MINUTE

_UNITS = {"w": 7 * DAY, "d": DAY, "h": HOUR, "m": MINUTE, "s": 1}
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
    if re.search(r":60(?:[.,]\d+)?(?:Z|z|[+-]\d\d:?\d\d)?$", text):
        raise InvalidArgument(f"{field}: '{value}' has second 60; write the next minute", field=field)
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
