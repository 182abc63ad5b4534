"""On which line each key and each array element of a TOML text stands.

`tomllib` gives values without their places. This walks the same text once more, only to note lines:

    [[pools]]            ("pools", 0)            -> 1
    name = "a3"          ("pools", 0, "name")    -> 2
    hosts = ["h1",       ("pools", 0, "hosts")   -> 3   ("pools", 0, "hosts", 0) -> 3
             "h2"]       ("pools", 0, "hosts", 1) -> 4

It is used after `tomllib` accepted the text, so it may trust the syntax.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

Path = tuple[str | int, ...]
"""Where a value is: table keys and array indexes from the root."""

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY: Final = re.compile(r'[ \t]*(?:"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+)[ \t]*')
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)
_SCALAR: Final = re.compile(r"[^,\]}\n#]*")


def lines_of(text: str) -> Mapping[Path, int]:
    """The line, from 1, of every table, key and array element of a valid TOML text."""
    walk = _Walk(text)
    walk.document()
    return walk.lines


class _Walk:
    """One pass over the text; `at` is the offset, `tables` counts the tables of each array seen so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.breaks = [match.start() for match in re.finditer("\n", text)]
        self.at = 0
        self.lines: dict[Path, int] = {}
        self.tables: dict[Path, int] = {}

    def document(self) -> None:
        """Headers and key-value pairs until the end."""
        base: Path = ()
        while True:
            self.skip(_BLANK)
            if self.at >= len(self.text):
                return
            if self.text[self.at] == "[":
                base = self.header()
            else:
                self.pair(base)

    def header(self) -> Path:
        """`[a.b]` or `[[a.b]]`: the path of the table it opens."""
        line, is_array = self.line(), self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        *outer, last = self.dotted()
        self.at += 2 if is_array else 1
        path: Path = ()
        for key in outer:
            self.lines.setdefault((*path, key), line)
            path = self.inside((*path, key))
        path = (*path, last)
        if is_array:
            self.lines.setdefault(path, line)
            self.tables[path] = self.tables.get(path, -1) + 1
            path = (*path, self.tables[path])
        self.lines.setdefault(path, line)
        return path

    def pair(self, base: Path) -> None:
        """`a.b = value`."""
        line = self.line()
        path = base
        for key in self.dotted():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self.at += 1
        self.value(path)

    def value(self, path: Path) -> None:
        """Any value; the elements of arrays and the keys of inline tables are noted."""
        self.skip(_BLANK)
        first = self.text[self.at]
        if first == "[":
            self.elements(path)
        elif first == "{":
            self.inline_table(path)
        elif first in "\"'":
            self.skip(_STRING)
        else:
            self.skip(_SCALAR)

    def elements(self, path: Path) -> None:
        """`[a, b]`."""
        index = 0
        while self.has_more("]"):
            self.lines[(*path, index)] = self.line()
            self.value((*path, index))
            index += 1

    def inline_table(self, path: Path) -> None:
        """`{ a = 1, b = 2 }`."""
        while self.has_more("}"):
            self.pair(path)

    def has_more(self, closing: str) -> bool:
        """Step over the opening bracket or a comma; at the closing bracket step over it and say no."""
        self.skip(_BLANK)
        if self.text[self.at] != closing:
            self.at += 1
            self.skip(_BLANK)
        if self.text[self.at] != closing:
            return True
        self.at += 1
        return False

    def dotted(self) -> list[str]:
        """`a . "b"`: its keys."""
        keys = [self.key()]
        while self.text.startswith(".", self.at):
            self.at += 1
            keys.append(self.key())
        return keys

    def key(self) -> str:
        """One bare or quoted key."""
        raw = self.skip(_KEY).strip()
        if raw[0] in "\"'":
            return str(tomllib.loads(f"k = {raw}")["k"])
        return raw

    def inside(self, path: Path) -> Path:
        """The path of a table, or of the latest element where it is an array of tables."""
        return (*path, self.tables[path]) if path in self.tables else path

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Step over what matches here and return it."""
        match = pattern.match(self.text, self.at)
        found = match.group() if match else ""
        self.at += len(found)
        return found

    def line(self) -> int:
        """The line we are on, from 1."""
        return bisect_left(self.breaks, self.at) + 1
