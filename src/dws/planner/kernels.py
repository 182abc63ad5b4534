"""The availability table's inner loops: plain functions over arrays, compiled by numba where it is.

A table has K rows; row i says how many units are free in each of B cells during [times[i], times[i+1]);
the last row lasts for ever.

    times   0      100     200     250
    cell 0  4      2       2       4
    cell 1  4      4       1       4

What is looked for are *pieces*: `size` units of each of `span` neighbouring cells, aligned. A whole unit
is the piece of one and one; two of a host's accelerators, where cells are hosts, one of one and two; a
slice of four whole hosts with four chips each, one of four and four. Pieces may have to stand together or
apart: `inner[c]` is the domain that cell c is in for that, below 0 for none, and in each domain a multiple of
`together` may be taken, at most `at_most` (0: no limit).

Every function here also runs uncompiled, slowly, which is its own reference in the tests. Nothing else
in the project imports numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Times = NDArray[np.int64]
Free = NDArray[np.int32]
Ints = NDArray[np.int64]

try:
    from numba import njit

    IS_COMPILED = True

    def compiled(function: F) -> F:
        """Compile, and keep the result on disk for the next process."""
        return cast(F, njit(cache=True, nogil=True)(function))

except ImportError:  # numba is missing: the same functions, interpreted
    IS_COMPILED = False

    def compiled(function: F) -> F:
        """Leave the function as it is."""
        return function


@compiled
def row_at(times: Times, rows: int, instant: int) -> int:
    """The row that covers `instant`; row 0 for anything earlier."""
    low, high = 0, rows
    while high - low > 1:
        middle = (low + high) // 2
        if times[middle] <= instant:
            low = middle
        else:
            high = middle
    return low


@compiled
def split(times: Times, free: Free, rows: int, instant: int) -> int:
    """Make `instant` the start of a row; returns the new number of rows (the arrays have room)."""
    at = row_at(times, rows, instant)
    if times[at] >= instant:
        return rows
    for row in range(rows, at + 1, -1):
        times[row] = times[row - 1]
        free[row] = free[row - 1]
    times[at + 1] = instant
    free[at + 1] = free[at]
    return rows + 1


@compiled
def join(times: Times, free: Free, rows: int, instant: int) -> int:
    """Drop the row that starts at `instant` when it says the same as the one before."""
    at = row_at(times, rows, instant)
    if at == 0 or times[at] != instant:
        return rows
    for cell in range(free.shape[1]):
        if free[at, cell] != free[at - 1, cell]:
            return rows
    for row in range(at, rows - 1):
        times[row] = times[row + 1]
        free[row] = free[row + 1]
    return rows - 1


@compiled
def change(
    times: Times, free: Free, rows: int, start: int, end: int, cells: Ints, counts: Ints
) -> int:
    """Add `counts` to the free units of `cells` over [start, end); returns the new number of rows."""
    rows = split(times, free, rows, start)
    rows = split(times, free, rows, end)
    first, last = row_at(times, rows, start), row_at(times, rows, end)
    for row in range(first, last):
        for i in range(cells.size):
            free[row, cells[i]] += counts[i]
    rows = join(times, free, rows, end)
    return join(times, free, rows, start)


@compiled
def window_min(
    times: Times, free: Free, rows: int, start: int, end: int, cells: Ints, out: Ints
) -> None:
    """For each of `cells` the least number of free units over [start, end), never below 0."""
    first = row_at(times, rows, start)
    for i in range(cells.size):
        out[i] = free[first, cells[i]]
    row = first + 1
    while row < rows and times[row] < end:
        for i in range(cells.size):
            out[i] = min(out[i], free[row, cells[i]])
        row += 1
    for i in range(cells.size):
        out[i] = max(out[i], 0)


@compiled
def usable(there: int, together: int, at_most: int) -> int:
    """How many of the pieces in one domain may be taken."""
    if 0 < at_most < there:
        there = at_most
    return there - there % together


@compiled
def pieces(
    least: Ints, own: Ints, inner: Ints, span: int, size: int, together: int, at_most: int
) -> int:
    """How many pieces the cells `own` have room for that have `least[i]` units each; cells left over at the
    end of the line make no piece. Numbers below 0 count as 0. Cells of a domain stand side by side."""
    total, there, domain = 0, 0, -1
    for first in range(0, own.size - span + 1, span):
        if inner[own[first]] != domain:
            total += usable(there, together, at_most)
            there, domain = 0, inner[own[first]]
        few = least[first]
        for i in range(first + 1, first + span):
            few = min(few, least[i])
        if few >= size and domain >= 0:
            there += few // size
    return total + usable(there, together, at_most)


@compiled
def earliest(
    times: Times,
    free: Free,
    rows: int,
    offsets: Ints,
    cells: Ints,
    held: Ints,
    inner: Ints,
    span: int,
    size: int,
    together: int,
    at_most: int,
    need: int,
    length: int,
    after: int,
    before: int,
) -> tuple[int, int]:
    """The earliest start in [after, before] at which some group has `need` pieces free for `length`.

    Group g is cells[offsets[g]:offsets[g+1]]; it has as many pieces as the least numbers of units free in
    each of its cells in the window make. `held[c]` units of cell c are not confirmed free yet at `after`
    and do not count for a start at that very instant. Returns (start, group) with the fullest group that
    still fits, the lowest index among equals; (-1, -1) when there is none.

    A window is read from its end: the first row at which too few are left rules out every start up to
    the end of that row, because each such window would hold the same rows.
    """
    best_start, best_group, best_free = -1, -1, 0
    least = np.empty(cells.size, dtype=np.int64)
    are_units = span == 1 and size == 1 and together == 1 and at_most == 0  # counted on the way
    for group in range(offsets.size - 1):
        own = cells[offsets[group] : offsets[group + 1]]
        limit = before if best_start < 0 else best_start
        start = after
        first = row_at(times, rows, start)
        while start <= limit:
            row = row_at(times, rows, start + length - 1)
            for i in range(own.size):
                least[i] = free[row, own[i]]
            total = 0
            while row >= first:
                total = 0
                for i in range(own.size):
                    least[i] = min(least[i], free[row, own[i]])
                    if least[i] > 0:
                        total += least[i]
                if not are_units:
                    total = pieces(least, own, inner, span, size, together, at_most)
                if total < need:
                    break
                row -= 1
            if row >= first:
                first = row + 1
                if first >= rows:
                    break
                start = times[first]
                continue
            if start == after:
                for i in range(own.size):
                    least[i] -= held[own[i]]
                total = pieces(least, own, inner, span, size, together, at_most)
                if total < need:
                    start += 1
                    first = row_at(times, rows, start)
                    continue
            if best_start < 0 or start < best_start or total < best_free:
                best_start, best_group, best_free = start, group, total
            break
    return best_start, best_group


@compiled
def choose(least: Ints, count: int) -> Ints:
    """How many of `count` to take from each cell when cell i has `least[i]`: all from the tightest one
    that fits, so that whole ones stay whole; else the fullest first, and the rest from the tightest that
    holds it. The lowest index among equals. There must be enough."""
    taken = np.zeros(least.size, dtype=np.int64)
    while count > 0:
        best = -1
        for i in range(least.size):
            if least[i] <= 0 or taken[i] > 0:
                continue
            if best < 0:
                best = i
            elif least[best] >= count:
                if count <= least[i] < least[best]:
                    best = i
            elif least[i] > least[best]:
                best = i
        taken[best] = min(least[best], count)
        count -= taken[best]
    return taken


@compiled
def rooms(least: Ints, span: int, size: int) -> Ints:
    """For each run of `span` cells how many runs its largest wholly free surroundings have: 1, 2, 4 … for
    aligned blocks of runs that all have room, 0 where the run itself has none."""
    found = np.ones(least.size // span, dtype=np.int64)
    for run in range(found.size):
        for i in range(run * span, (run + 1) * span):
            if least[i] < size:
                found[run] = 0
    width = 1
    while 2 * width <= found.size:
        for base in range(0, found.size - 2 * width + 1, 2 * width):
            if found[base] == width and found[base + width] == width:
                found[base : base + 2 * width] = 2 * width
        width *= 2
    return found


@compiled
def choose_pieces(least: Ints, span: int, size: int, count: int) -> Ints:
    """How many units to take from each cell for `count` pieces: from the fullest run that still has room,
    then from the one in the smallest free surroundings, so that what is whole stays whole; the lowest index
    among equals. There must be enough."""
    taken = np.zeros(least.size, dtype=np.int64)
    room = rooms(least, span, size)
    while count > 0:
        best, best_left = -1, 0
        for run in range(room.size):
            if room[run] == 0:
                continue
            left = int(least[run * span : (run + 1) * span].sum())
            if best < 0 or left < best_left or (left == best_left and room[run] < room[best]):
                best, best_left = run, left
        own = least[best * span : (best + 1) * span]
        number = min(count, int(np.min(own)) // size)
        taken[best * span : (best + 1) * span] = number * size
        room[best] = 0
        count -= number
    return taken


@compiled
def choose_by_domain(
    least: Ints, own: Ints, inner: Ints, span: int, size: int, together: int, at_most: int, count: int
) -> Ints:
    """How many units to take from each cell for `count` pieces that stand together or apart: the domains as
    `choose` chooses cells, and in each of them the pieces as `choose_pieces` does."""
    starts = np.zeros(own.size + 1, dtype=np.int64)
    room = np.zeros(own.size, dtype=np.int64)
    domains = 0
    first = 0
    while first < own.size:
        last = first
        while last < own.size and inner[own[last]] == inner[own[first]]:
            last += 1
        if inner[own[first]] >= 0:
            cells = own[first:last]
            room[domains] = pieces(least[first:last], cells, inner, span, size, together, at_most)
        domains += 1
        starts[domains] = last
        first = last
    taken = np.zeros(least.size, dtype=np.int64)
    wanted = choose(room[:domains], count)
    for domain in range(domains):
        if wanted[domain] > 0:
            low, high = starts[domain], starts[domain + 1]
            taken[low:high] = choose_pieces(least[low:high], span, size, wanted[domain])
    return taken


@compiled
def pick(
    times: Times,
    free: Free,
    rows: int,
    start: int,
    end: int,
    cells: Ints,
    held: Ints,
    inner: Ints,
    are_hosts: bool,
    span: int,
    size: int,
    together: int,
    at_most: int,
    count: int,
) -> Ints:
    """How many units to take from each of `cells` for `count` pieces over [start, end), as `choose` does for
    hosts of blocks, `choose_pieces` where each cell is a host or a piece more than a unit, and
    `choose_by_domain` for what stands together or apart; `held[c]` units of cell c do not count."""
    least = np.empty(cells.size, dtype=np.int64)
    window_min(times, free, rows, start, end, cells, least)
    for i in range(cells.size):
        least[i] -= held[cells[i]]
    if together > 1 or at_most > 0:
        return choose_by_domain(least, cells, inner, span, size, together, at_most, count)
    if are_hosts or span > 1 or size > 1:
        return choose_pieces(least, span, size, count)
    return choose(least, count)


def warming() -> Iterator[None]:
    """Compile everything for the types used, one kernel a step: without a cache a step takes seconds, and
    who wants to stop need not wait for the rest."""
    times = np.zeros(8, dtype=np.int64)
    free = np.full((8, 2), 4, dtype=np.int32)
    ints = np.zeros(2, dtype=np.int64)
    rows = change(times, free, 1, 10, 20, ints[:1], ints[:1] - 1)
    yield
    earliest(times, free, rows, np.array([0, 2]), np.array([0, 1]), ints, ints, 1, 1, 1, 0, 1, 5, 0, 100)
    yield
    pick(times, free, rows, 0, 5, np.array([0, 1]), ints, ints, False, 1, 1, 1, 0, 1)


def warm() -> None:
    """Compile everything, so that the first plan is not the slow one."""
    for _ in warming():
        pass
