"""What the bodies of advice have in common: lengths of time and instants as texts."""

from __future__ import annotations

import re
from typing import Any, Final

from dws.api.compute_v1.forms import invalid, text
from dws.model.errors import InvalidArgument
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
