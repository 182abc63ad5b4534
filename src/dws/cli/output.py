"""How answers are printed: JSON and YAML exactly as the API has them, and tables for people.

A table is aligned columns without lines, so that it can be cut and grepped; on a terminal it is folded
to the terminal's width and states are coloured (unless NO_COLOR is set). `rich` is imported here, in the
drawing, and nowhere else.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

WIDE: Final = 100_000
FOLDED_MIN: Final = 16
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


def may_colour() -> bool:
    """True on a terminal whose owner has not set NO_COLOR."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[str] = (),
    fold: Sequence[str] = (),
    caption: str = "",
) -> str:
    """Rows under headers; columns named in `right` are set flush right, those in `fold` may be folded to
    the terminal's width, as may the last."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in headers:
        folds = header in fold or header == headers[-1]
        drawn.add_column(
            header,
            justify="right" if header in right else "left",
            no_wrap=not folds,
            min_width=FOLDED_MIN if folds and header else None,
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    is_terminal = sys.stdout.isatty()
    text = io.StringIO()
    console = Console(
        file=text,
        width=shutil.get_terminal_size().columns if is_terminal else WIDE,
        force_terminal=may_colour(),
        no_color=not may_colour(),
        color_system="standard" if may_colour() else None,
        highlight=False,
        emoji=False,
        markup=False,
    )
    console.print(drawn)
    lines = [line.rstrip() for line in text.getvalue().rstrip("\n").split("\n")]
    return "\n".join([*lines, *([caption] if caption else [])])


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
