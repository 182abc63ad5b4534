"""A TOML table that knows where it stands, so that every complaint points at a line.

Reading is strict: a key nobody knows, or a value of another type, is a mistake that would otherwise
silently change what a fleet is. Complaints read `fleet.toml:12: pools.zone: …`.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from dws.declared.positions import Path, lines_of
from dws.model.errors import InvalidArgument

_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
_AT_LINE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read(text: str, *, source: str) -> Table:
    """The root table of a TOML text. Raises InvalidArgument `source:LINE: …` for a syntax error."""
    try:
        values = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        where = _AT_LINE.search(message)
        plain = _AT_LINE.sub("", message)
        if where and where[1]:
            line, plain = int(where[1]), f"{plain} (column {where[2]})"
        else:
            line = text.rstrip().count("\n") + 1
        raise InvalidArgument(f"{source}:{line}: not TOML: {plain}", field="fleet") from None
    return Table(values=values, path=(), source=source, lines=lines_of(text))


def kind_of(value: object) -> str:
    """What a TOML value is, in a person's words."""
    match value:
        case bool():
            return "true or false"
        case int() | Decimal():
            return f"the number {value}"
        case str():
            return f"the text '{value}'"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"


def nearest(word: str, known: Iterable[str]) -> str:
    """The hint `; did you mean 'zone'?`, empty when nothing is close."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def quoted(text: str) -> str:
    """A TOML basic string."""
    return '"' + _ESCAPED.sub(lambda m: f"\\u{ord(m[0]):04X}", text) + '"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table: its values, its path from the root, and the lines of the whole text."""

    values: Mapping[str, object]
    path: Path
    source: str
    lines: Mapping[Path, int]

    def fail(self, message: str, *at: str | int) -> NoReturn:
        """Raise InvalidArgument for the key (or element) at `at` inside this table."""
        path = (*self.path, *at)
        field = ".".join(str(step) for step in path if isinstance(step, str)) or "fleet"
        while path not in self.lines and path:
            path = path[:-1]
        line = self.lines.get(path, 1)
        raise InvalidArgument(f"{self.source}:{line}: {field}: {message}", field=field)

    @contextmanager
    def at(self, *at: str | int) -> Iterator[None]:
        """Let an InvalidArgument of the model point at a key of this table."""
        try:
            yield
        except InvalidArgument as error:
            own = f"{error.field}: " if error.field else ""
            self.fail(error.message.removeprefix(own), *at)

    def only(self, *known: str) -> None:
        """Complain about the first key that is not one of `known`."""
        for key in self.values:
            if key not in known:
                hint = nearest(key, known) or f"; known here: {', '.join(sorted(known))}"
                self.fail(f"unknown key{hint}", key)

    def _get(self, key: str, wanted: str, fits: Callable[[object], bool]) -> object:
        value = self.values.get(key)
        if value is not None and not fits(value):
            self.fail(f"expected {wanted}, found {kind_of(value)}", key)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A text; without a default the key must be there."""
        value = self._get(key, "a text", lambda v: isinstance(v, str))
        if value is None and default is None:
            self.fail(f"missing key '{key}'")
        return str(default if value is None else value)

    def count(self, key: str, default: int = 0) -> int:
        """A whole number, not negative."""
        value = self._get(key, "a whole number", _is_whole)
        number = default if value is None else int(str(value))
        if number < 0:
            self.fail(f"{number} must not be negative", key)
        return number

    def flag(self, key: str) -> bool:
        """True or false; false when the key is not there."""
        return self._get(key, "true or false", lambda v: isinstance(v, bool)) is True

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty when the key is not there."""
        value = self._get(key, "a list of texts", lambda v: isinstance(v, list))
        items = value if isinstance(value, list) else []
        for index, item in enumerate(items):
            if not isinstance(item, str):
                self.fail(f"expected a text, found {kind_of(item)}", key, index)
        return tuple(items)

    def table(self, key: str) -> Table:
        """A table; an empty one when the key is not there."""
        value = self._get(key, "a table", lambda v: isinstance(v, dict))
        return self._inner(value if isinstance(value, dict) else {}, key)

    def tables(self, key: str) -> tuple[Table, ...]:
        """An array of tables (`[[key]]`), empty when the key is not there."""
        value = self._get(key, f"tables written as [[{key}]]", lambda v: isinstance(v, list))
        items = value if isinstance(value, list) else []
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                self.fail(f"expected a table, found {kind_of(item)}", key, index)
        return tuple(self._inner(item, key, index) for index, item in enumerate(items))

    def _inner(self, values: dict[str, object], *at: str | int) -> Table:
        return Table(values=values, path=(*self.path, *at), source=self.source, lines=self.lines)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
