"""Pieces: what one instance, or one slice, takes of a pool's line.

A piece is `size` units of each of `span` neighbouring cells, aligned at a multiple of `span`. Shapes finer
than a host, whole hosts and slices of many hosts differ in these two numbers only; a demand comes to so many
pieces of one kind in each pool.

    hosts with 8 accelerators    |11122...|33333333|........|
    two accelerators (2)          1..   ..        a whole host (3)      one host in a row, `size` 2 and 8
"""

from __future__ import annotations

from dataclasses import dataclass

from dws.model.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """`size` units of each of `span` cells in a row. Raises InvalidArgument when either is below 1."""

    span: int = 1
    size: int = 1

    def __post_init__(self) -> None:
        if self.span < 1 or self.size < 1:
            raise InvalidArgument(
                f"piece: {self.size} units of {self.span} cells are nothing", field="piece"
            )

    @property
    def units(self) -> int:
        """Units that one piece takes."""
        return self.span * self.size

    def in_cells(self, units: list[int]) -> int:
        """How many pieces neighbouring cells have room for that have so many units each."""
        runs = (units[i : i + self.span] for i in range(0, len(units) - self.span + 1, self.span))
        return sum(max(0, min(run)) // self.size for run in runs)


UNIT = Piece()
"""One whole unit, wherever it is: a host, in pools whose hosts are not shared."""
