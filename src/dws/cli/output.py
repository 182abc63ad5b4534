"""How answers are printed: JSON and YAML exactly as the API has them, and tables for people.

A table is aligned columns without lines, so that it can be cut and grepped; on a terminal it is made to fit
the terminal's width and states are coloured (unless NO_COLOR is set).
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import click
import msgspec

WIDE: Final = 100_000
FOLDED_MIN: Final = 16
GAP: Final = "  "
_STYLES: Final = {
    "ACTIVE": "green",
    "COMPLETED": "green",
    "READY": "green",
    "FAILED": "red",
    "DOWN": "red",
    "EXPIRED": "red",
    "BOOKED": "cyan",
    "PROVISIONING": "cyan",
    "DRAINING": "yellow",
    "ENDING": "yellow",
}


def encoded(value: Any, form: str) -> str:
    """`value` (structs, lists, plain values) as "json" or "yaml", field names as in the API."""
    plain = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    if form == "json":
        return plain
    import yaml

    return yaml.safe_dump(msgspec.json.decode(plain), sort_keys=False, allow_unicode=True).rstrip("\n")


def is_terminal() -> bool:
    """True when a person reads standard output."""
    return sys.stdout.isatty()


def may_colour() -> bool:
    """True on a terminal whose owner has not set NO_COLOR."""
    return is_terminal() and not os.environ.get("NO_COLOR")


@dataclass(slots=True)
class Column:
    """A column of a table: what stands in it, and how wide it is drawn."""

    header: str
    cells: list[str]
    is_right: bool
    folds: bool
    width: int = 0

    def __post_init__(self) -> None:
        self.width = max(len(text) for text in (self.header, *self.cells))

    @property
    def least(self) -> int:
        """How narrow it may become."""
        return min(self.width, FOLDED_MIN) if self.folds else self.width

    def draw(self, text: str) -> str:
        """A line of a cell, padded and coloured."""
        padded = text.rjust(self.width) if self.is_right else text.ljust(self.width)
        colour = _STYLES.get(text) if may_colour() else None
        return click.style(padded, fg=colour) if colour else padded


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[str] = (),
    fold: Sequence[str] = (),
    below: str | None = None,
    spare: Sequence[str] = (),
    caption: str = "",
) -> str:
    """Rows under headers; columns named in `right` are set flush right.

    On a terminal that is too narrow, in this order: what stands in column `below` gets lines of its own under
    its row, the columns of `spare` are left out one by one, and those of `fold`, as well as the last, are
    folded. What still does not fit is left to the terminal: nothing is ever cut.
    """
    lines = [list(row) for row in rows]
    columns = [
        Column(
            header=header,
            cells=[row[index] for row in lines],
            is_right=header in right,
            folds=header in fold or (header != "" and index == len(headers) - 1),
        )
        for index, header in enumerate(headers)
    ]
    room = shutil.get_terminal_size().columns if is_terminal() else WIDE
    under = next((c for c in columns if c.header == below and _width(columns) > room), None)
    columns = [c for c in columns if c is not under]
    for header in spare:
        if sum(c.least + len(GAP) for c in columns) - len(GAP) > room:
            columns = [c for c in columns if c.header != header]
    _narrow(columns, room)
    drawn = _row([[c.header] for c in columns], columns)
    if may_colour():
        drawn = [click.style(line, bold=True) for line in drawn]
    for index in range(len(lines)):
        drawn += _row([_folded(c.cells[index], c.width) for c in columns], columns)
        if under is not None and under.cells[index]:
            indent = " " * columns[0].width + GAP
            drawn += [f"{indent}{line}" for line in _folded(under.cells[index], room - len(indent))]
    return "\n".join([*drawn, *([caption] if caption else [])])


def _width(columns: Sequence[Column]) -> int:
    return sum(c.width + len(GAP) for c in columns) - len(GAP)


def _narrow(columns: Sequence[Column], room: int) -> None:
    """Take what is missing from the columns that fold, the widest first."""
    while (missing := _width(columns) - room) > 0:
        widest = max((c for c in columns if c.width > c.least), key=lambda c: c.width, default=None)
        if widest is None:
            return
        widest.width = max(widest.least, widest.width - missing)


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False) or [""]


def _row(cells: Sequence[Sequence[str]], columns: Sequence[Column]) -> list[str]:
    """The lines of one row, each cell from the top."""
    return [
        GAP.join(c.draw(part) for c, part in zip(columns, parts, strict=True)).rstrip()
        for parts in zip_longest(*cells, fillvalue="")
    ]


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """`Name:  value` lines, names padded to one column; pairs with an empty value are left out."""
    shown = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in shown), default=0) + 1
    return "\n".join(f"{name + ':':<{width}}  {value}" for name, value in shown)


def bar(parts: Sequence[tuple[str, int]], *, width: int = 20) -> str:
    """A bar of `width` characters: each (character, amount) gets its share, none that is there gets zero."""
    total = sum(amount for _, amount in parts)
    if total <= 0:
        return ""
    width = min(width, total)
    exact = [amount * width / total for _, amount in parts]
    cells = [max(1, int(share)) if share else 0 for share in exact]
    order = sorted(range(len(parts)), key=lambda i: exact[i] - cells[i], reverse=True)
    while (missing := width - sum(cells)) != 0:
        if missing > 0:
            cells[order[0]] += 1
            order.append(order.pop(0))
        else:
            cells[max(range(len(cells)), key=cells.__getitem__)] -= 1
    return "".join(character * count for (character, _), count in zip(parts, cells, strict=True))
