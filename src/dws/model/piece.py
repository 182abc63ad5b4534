"""Pieces: what one instance, or one slice, takes of a pool's line.

A piece is `size` units of each of `span` neighbouring cells, aligned at a multiple of `span`. Shapes finer
than a host, whole hosts and slices of many hosts differ in these two numbers only; a demand comes to so many
pieces of one kind in each pool.

    hosts with 8 accelerators    |11122...|33333333|........|
    two accelerators (2)          1..   ..        a whole host (3)      one host in a row, `size` 2 and 8
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dws.model.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """`size` units of each of `span` cells in a row.

    With `level` set, pieces stand together or apart: always `together` of them in one domain of that level,
    and at most `at_most` in each (0: as many as there is room for). Raises InvalidArgument for a number below
    1, or when fewer are allowed in a domain than must be together.
    """

    span: int = 1
    size: int = 1
    level: str = ""
    together: int = 1
    at_most: int = 0

    def __post_init__(self) -> None:
        if self.span < 1 or self.size < 1:
            raise InvalidArgument(
                f"piece: {self.size} units of {self.span} cells are nothing", field="piece"
            )
        if self.together < 1 or 0 < self.at_most < self.together or self.at_most < 0:
            raise InvalidArgument(
                f"piece: {self.together} together cannot be at most {self.at_most}", field="piece"
            )

    @property
    def units(self) -> int:
        """Units that one piece takes."""
        return self.span * self.size

    def usable(self, there: int) -> int:
        """How many of so many pieces that one domain of `level` has room for may be taken."""
        most = min(there, self.at_most or there)
        return most - most % self.together

    def in_cells(self, units: Sequence[int], domains: Sequence[int] = ()) -> int:
        """How many pieces neighbouring cells have room for that have so many units each; `domains` is the
        domain of `level` that each belongs to, below 0 for none, and needed where a level is set."""
        there: dict[int, int] = {}
        for i in range(0, len(units) - self.span + 1, self.span):
            room = max(0, min(units[i : i + self.span])) // self.size
            domain = domains[i] if domains else 0
            there[domain] = there.get(domain, 0) + room
        return sum(self.usable(room) for domain, room in there.items() if domain >= 0)


UNIT = Piece()
"""One whole unit, wherever it is: a host, in pools whose hosts are not shared."""
