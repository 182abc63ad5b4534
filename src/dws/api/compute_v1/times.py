"""Instants and lengths of time that bodies say as texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from dws.api.compute_v1.forms import invalid, text
from dws.model.errors import InvalidArgument
from dws.model.time import length_in_words
from dws.planner.options import PolicyOptions
from dws.wire.timefmt import parse_instant

_DURATION: Final = re.compile(r"(\d{1,12})(?:\.\d{1,9})?s")


def length(value: Any, path: str) -> int:
    """A length of time as a text with its unit, `86400s`; whole seconds."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise invalid(path, value, "Seconds with their unit are needed, for example '86400s'.")
    return int(found[1])


def instant(value: Any, path: str) -> int:
    """An instant as RFC 3339 has it; seconds since the epoch."""
    try:
        return parse_instant(text(value, path))
    except InvalidArgument as error:
        raise invalid(path, value, error.message.removeprefix("time: ")) from None


def end_of(policy: PolicyOptions, now: int, scheduling: Mapping[str, Any], path: str) -> int:
    """The instant at which instances of this scheduling end at the latest, 0 for none; `path` is where it
    stands. Raises InvalidArgument for one that is over, too far ahead, or beside a length of the run."""
    told, here = scheduling.get("terminationTime"), f"{path}.terminationTime"
    if not told:
        return 0
    if "maxRunDuration" in scheduling:
        raise invalid(here, told, "Give maxRunDuration or terminationTime, not both.")
    end = instant(told, here)
    if end <= now:
        raise invalid(here, told, "It lies in the past.")
    least, most = policy.run_duration_min_s, policy.run_duration_max_s
    if not least <= end - now <= most:
        why = f"It must lie between {length_in_words(least)} and {length_in_words(most)} ahead."
        raise invalid(here, told, why)
    return end
