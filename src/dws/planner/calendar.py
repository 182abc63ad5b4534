"""One pool's calendar: its bookings, and the availability table derived from them.

The engine keeps it up to date booking by booking; the planner forks it and books in the fork. Built
incrementally or from nothing, the table is the same: rows that say the same as the one before are joined.

A host that is DRAINING or DOWN is out of its cell's capacity from the beginning of time until it is
expected back, so bookings do not count on such hosts, and outage bookings (which say the same) are left
out. Bookings inside another booking belong to that one's calendar and are left out too.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping

import numpy as np

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.time import FOREVER
from dws.model.topology import HostStatus, Pool
from dws.planner import kernels

_SPARE_ROWS = 64


class PoolCalendar:
    """Free units per cell over time. `version` of nothing: callers serialise access."""

    __slots__ = (
        "_bookings",
        "_busy",
        "_ends",
        "_floors",
        "_free",
        "_groups",
        "_idle",
        "_rows",
        "_times",
        "_unready",
        "pool",
    )

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._bookings: dict[int, Booking] = {}
        self._ends: list[tuple[int, int]] = []
        self._busy = bytearray(len(pool.hosts))
        self._idle = [c.size for c in pool.cells]
        self._unready: dict[int, HostStatus] = {}
        self._groups: dict[str | None, tuple[kernels.Ints, kernels.Ints]] = {}
        self._clear()

    def _clear(self) -> None:
        cells = len(self.pool.cells)
        self._times = np.zeros(_SPARE_ROWS, dtype=np.int64)
        self._free = np.zeros((_SPARE_ROWS, cells), dtype=np.int32)
        self._free[0] = [c.size for c in self.pool.cells]
        self._rows = 1
        self._floors: dict[tuple[str | None, int], tuple[int, int, int]] = {}

    # --- changes ------------------------------------------------------------------------------

    def add(self, booking: Booking) -> None:
        """Book it. A booking that is not the fleet's own, or an outage's, changes nothing."""
        if booking.parent or booking.owner_kind is OwnerKind.OUTAGE:
            return
        self._bookings[booking.id] = booking
        if booking.stage is Stage.LIVE:
            insort(self._ends, (booking.span.end, booking.id))
            self.occupy(booking.parts)
        self._apply(booking, -1)

    def remove(self, booking: Booking) -> None:
        """Take back what `add` did with this very booking."""
        if self._bookings.pop(booking.id, None) is not None:
            if booking.stage is Stage.LIVE:
                del self._ends[bisect_left(self._ends, (booking.span.end, booking.id))]
                self._vacate(booking.parts)
            self._apply(booking, 1)

    def occupy(self, parts: tuple[Part, ...]) -> None:
        """The drawn units of `parts` are not idle any more, whatever the table says."""
        for part in parts:
            for unit in part.units:
                if not self._busy[unit] and unit not in self._unready:
                    self._idle[part.cell] -= 1
                self._busy[unit] = True

    def _vacate(self, parts: tuple[Part, ...]) -> None:
        for part in parts:
            for unit in part.units:
                self._busy[unit] = False
                if unit not in self._unready:
                    self._idle[part.cell] += 1

    def set_hosts(self, unready: Mapping[int, HostStatus]) -> None:
        """The hosts that are not READY, by unit; everything is derived again."""
        if unready == self._unready:
            return
        self._unready = dict(unready)
        self._idle = [
            sum(1 for u in c.units if not self._busy[u] and u not in self._unready)
            for c in self.pool.cells
        ]
        self._clear()
        for unit, status in self._unready.items():
            cells = np.array([self.pool.cell_of(unit)], dtype=np.int64)
            self._change(0, status.until or FOREVER, cells, np.array([-1], dtype=np.int64))
        for booking in self._bookings.values():
            self._apply(booking, -1)

    def _apply(self, booking: Booking, sign: int) -> None:
        counts = [self._counted(part) for part in booking.parts]
        self.shift(booking.span.start, booking.span.end, booking.parts, counts, sign)

    def _counted(self, part: Part) -> int:
        """How many of a part's units count: those on hosts that are out of the capacity do not."""
        if not part.units or not self._unready:
            return part.count
        return sum(1 for u in part.units if u not in self._unready)

    def shift(
        self, start: int, end: int, parts: tuple[Part, ...], counts: list[int], sign: int
    ) -> None:
        """Add `sign` × counts to the free units of the parts' cells over [start, end)."""
        if end <= start or not parts:
            return
        if sign > 0:
            self._floors.clear()
        self._change(
            start,
            end,
            np.array([p.cell for p in parts], dtype=np.int64),
            np.array(counts, dtype=np.int64) * sign,
        )

    def take(self, start: int, end: int, parts: tuple[Part, ...]) -> None:
        """Book parts over [start, end) without a booking: for plans under way."""
        self.shift(start, end, parts, [p.count for p in parts], -1)

    def give(self, start: int, end: int, parts: tuple[Part, ...]) -> None:
        """Undo a `take` of the same."""
        self.shift(start, end, parts, [p.count for p in parts], 1)

    def lift(self, booking: Booking) -> None:
        """Take a booking out of the table but not out of the calendar: the twin of `drop`."""
        self._apply(booking, 1)

    def drop(self, booking: Booking) -> None:
        """Put a lifted booking back."""
        self._apply(booking, -1)

    def _change(self, start: int, end: int, cells: kernels.Ints, counts: kernels.Ints) -> None:
        if self._rows + 2 > self._times.size:
            self._grow()
        self._rows = kernels.change(self._times, self._free, self._rows, start, end, cells, counts)

    def _grow(self) -> None:
        room = self._times.size
        self._times = np.concatenate([self._times, np.zeros(room, dtype=np.int64)])
        self._free = np.concatenate([self._free, np.zeros_like(self._free)])

    def prune(self, now: int) -> None:
        """Forget rows that are over."""
        first = kernels.row_at(self._times, self._rows, now)
        if first:
            kept = self._rows - first
            self._times[:kept] = self._times[first : self._rows]
            self._free[:kept] = self._free[first : self._rows]
            self._times[0] = 0
            self._rows = kept

    def fork(self) -> PoolCalendar:
        """An independent copy."""
        copy = PoolCalendar.__new__(PoolCalendar)
        copy.pool = self.pool
        copy._bookings = self._bookings.copy()
        copy._ends = self._ends.copy()
        copy._busy = self._busy.copy()
        copy._idle = self._idle.copy()
        copy._floors = {}
        copy._groups = self._groups
        copy._unready = self._unready
        room = self._rows + _SPARE_ROWS
        copy._times = self._times[:room].copy()
        copy._free = self._free[:room].copy()
        copy._rows = self._rows
        return copy

    # --- questions ----------------------------------------------------------------------------

    def earliest(
        self,
        count: int,
        length_s: int,
        *,
        within: str | None,
        after: int,
        before: int,
        held: kernels.Ints | None = None,
    ) -> tuple[int, tuple[Part, ...]] | None:
        """The earliest start in [after, before] with `count` units of one group of level `within` free
        for `length_s`, and the counts to take from each cell. None when there is none.

        `held` are units per cell not confirmed free yet at `after`.

        While capacity is only taken, never given back, no start found before becomes possible earlier, nor
        for longer: each search goes on where the last one for as many units, no longer, ended.
        """
        offsets, cells = self._cells_of(within)
        before = min(before, FOREVER - 1)
        since = after
        length, since_then, found = self._floors.get((within, count), (0, 0, 0))
        if length <= length_s and since_then <= after < found:
            since, after, held = since_then, found, None
        if held is None:
            held = self.nothing_held()
        start, group = kernels.earliest(
            self._times,
            self._free,
            self._rows,
            offsets,
            cells,
            held,
            count,
            length_s,
            after,
            before,
        )
        self._floors[within, count] = length_s, since, max(after, int(start) if group >= 0 else before + 1)
        if group < 0:
            return None
        if start > after:
            held = self.nothing_held()
        own = cells[offsets[group] : offsets[group + 1]]
        taken = kernels.pick(
            self._times, self._free, self._rows, start, start + length_s, own, held, count
        ).tolist()
        parts = (Part(cell=int(own[i]), count=n) for i, n in enumerate(taken) if n)
        return int(start), tuple(parts)

    def _cells_of(self, within: str | None) -> tuple[kernels.Ints, kernels.Ints]:
        found = self._groups.get(within)
        if found is None:
            groups = self.pool.groups(within)
            offsets = np.cumsum([0] + [len(g) for g in groups]).astype(np.int64)
            found = offsets, np.array([c for g in groups for c in g], dtype=np.int64)
            self._groups[within] = found
        return found

    def nothing_held(self) -> kernels.Ints:
        """A zero for each cell."""
        return np.zeros(len(self.pool.cells), dtype=np.int64)

    def not_confirmed_free(self, now: int) -> kernels.Ints:
        """Units per cell that the table calls free at `now` but that are not: of live bookings past their
        end, and hosts past the instant they were expected back."""
        held = self.nothing_held()
        for end, booking_id in self._ends:
            if end > now:
                break
            for part in self._bookings[booking_id].parts:
                held[part.cell] += self._counted(part)
        for unit, status in self._unready.items():
            if status.until and status.until <= now:
                held[self.pool.cell_of(unit)] += 1
        return held

    def idle_units(self, cell: int) -> list[int]:
        """The units of a cell on READY hosts that no live booking holds, whatever its span says."""
        return [
            u
            for u in self.pool.cells[cell].units
            if not self._busy[u] and u not in self._unready
        ]

    def idle_in_groups(self, within: str | None) -> list[int]:
        """How many idle units each group of a level has."""
        return [sum(self._idle[c] for c in group) for group in self.pool.groups(within)]

    def draw(self, parts: tuple[Part, ...], doubted: frozenset[int]) -> tuple[Part, ...]:
        """Parts with their units drawn and occupied: the first idle ones, `doubted` ones last.

        Asserts that there are enough: counts per cell imply units (late binding).
        """
        out = []
        for part in parts:
            idle = self.idle_units(part.cell)
            assert len(idle) >= part.count, (
                f"pool {self.pool.name} cell {part.cell}: {part.count} promised by number, "
                f"{len(idle)} there"
            )
            if doubted:
                idle.sort(key=lambda u: (u in doubted, u))
            units = tuple(sorted(idle[: part.count]))
            out.append(Part(cell=part.cell, count=part.count, units=units))
        self.occupy(tuple(out))
        return tuple(out)

    def least_free_in(self, cell: int, start: int, end: int) -> int:
        """The smallest entry of one cell over [start, end)."""
        return self.least_free(start, end, (Part(cell=cell, count=1),))

    def least_free(self, start: int, end: int, parts: tuple[Part, ...] | None = None) -> int:
        """The smallest entry of the table over [start, end), of the parts' cells or of all: negative when
        overbooked."""
        first = kernels.row_at(self._times, self._rows, start)
        last = max(first + 1, int(np.searchsorted(self._times[: self._rows], end)))
        rows = self._free[first:last]
        return int((rows if parts is None else rows[:, [p.cell for p in parts]]).min())

    def longest(self, start: int, parts: tuple[Part, ...], limit_s: int) -> int:
        """For how many seconds from `start`, at most `limit_s`, the parts' counts stay free."""
        row = kernels.row_at(self._times, self._rows, start)
        for at in range(row, self._rows):
            if self._times[at] >= start + limit_s:
                break
            if any(self._free[at, p.cell] < self._counted(p) for p in parts):
                return max(0, int(self._times[at]) - start)
        return limit_s

    def rows(self) -> list[tuple[int, tuple[int, ...]]]:
        """The whole table, for comparing."""
        return [
            (int(self._times[i]), tuple(int(f) for f in self._free[i])) for i in range(self._rows)
        ]

    def unready_units(self) -> Mapping[int, HostStatus]:
        """Hosts that are not READY, by unit."""
        return self._unready
