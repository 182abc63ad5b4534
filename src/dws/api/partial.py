"""Partial responses: `fields=items(name,status),nextPageToken` leaves everything else of an answer out.

A mask is a list of paths with slashes; parentheses hold several paths below one; `*` is any name. It goes
through lists as if they were not there. What the answer has not is left out silently.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

from dws.model.errors import InvalidArgument

LENGTH_MAX: Final = 2_048
DEPTH_MAX: Final = 32
Mask = dict[str, "Mask"]
"""Names to what is wanted below them; of no names: all of it."""

_TOKEN: Final = re.compile(r"\s*([(),/]|[^\s(),/]+)")


def parse_mask(text: str) -> Mask:
    """The mask a `fields` parameter describes. Raises InvalidArgument with the position."""
    if len(text) > LENGTH_MAX:
        raise InvalidArgument(f"fields: at most {LENGTH_MAX} characters are read", field="fields")
    return _Parser(text).whole()


def prune(answer: Any, mask: Mask) -> Any:
    """What a mask leaves of an answer of JSON values."""
    if not mask:
        return answer
    if isinstance(answer, list):
        return [prune(member, mask) for member in answer]
    if not isinstance(answer, dict):
        return answer
    any_name = mask.get("*")
    found = {}
    for name, value in answer.items():
        below = mask.get(name, any_name)
        if below is not None:
            found[name] = prune(value, below)
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text.rstrip()
        self._at = 0

    def whole(self) -> Mask:
        mask = self._paths(0)
        if self._at < len(self._text):
            self._wrong()
        return mask

    def _paths(self, depth: int) -> Mask:
        mask: Mask = {}
        while True:
            self._path(mask, depth)
            if not self._took(","):
                return mask

    def _path(self, mask: Mask, depth: int) -> None:
        """`a/b/c` or `a/b(…)`, merged into what is wanted already: all of a thing wins over a part of it."""
        name = self._name(depth)
        known = mask.get(name)
        below: Mask = {}
        if self._took("/"):
            self._path(below, depth + 1)
        elif self._took("("):
            below = self._paths(depth + 1)
            if not self._took(")"):
                self._wrong()
        mask[name] = below if known is None else _merged(known, below)

    def _name(self, depth: int) -> str:
        token = self._peek()
        if not token or token in "(),/" or depth > DEPTH_MAX:
            self._wrong()
        self._took(token)
        return token

    def _peek(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        return found[1] if found else ""

    def _took(self, token: str) -> bool:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found[1] != token:
            return False
        self._at = found.end()
        return True

    def _wrong(self) -> NoReturn:
        raise InvalidArgument(
            f"Invalid field selection '{self._text[:80]}': see position {self._at}",
            field="fields",
            reason="invalidParameter",
            details={"position": self._at},
        )


def _merged(one: Mask, other: Mask) -> Mask:
    if not one or not other:
        return {}
    both = {name: _merged(one[name], other[name]) for name in one.keys() & other.keys()}
    return one | other | both
