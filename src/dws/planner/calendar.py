"""One calendar: the bookings of a pool, or those inside one reservation of it, and the availability table
derived from them.

The engine keeps it up to date booking by booking; the planner forks it and books in the fork. Built
incrementally or from nothing, the table is the same: rows that say the same as the one before are joined.

A host that is DRAINING or DOWN is out of its cell's capacity from the beginning of time until it is
expected back, so bookings do not count on such hosts, and outage bookings (which say the same) are left
out. Bookings inside another booking belong to that one's calendar: a small fleet of its own that has as many
units as that booking holds, while it lasts.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.piece import UNIT, Piece
from dws.model.time import FOREVER, Span
from dws.model.topology import HostStatus, Pool
from dws.planner import kernels

_SPARE_ROWS = 64
_Claim = tuple[int, int, Part]
"""(start, end, named units of one cell)"""


class PoolCalendar:
    """Free units per cell over time. `version` of nothing: callers serialise access."""

    __slots__ = (
        "_bookings",
        "_busy",
        "_doubled",
        "_ends",
        "_floors",
        "_free",
        "_groups",
        "_idle",
        "_inside",
        "_maintained",
        "_maintenance",
        "_rows",
        "_times",
        "_units",
        "_unready",
        "pool",
    )

    def __init__(self, pool: Pool, inside: Booking | None = None) -> None:
        self.pool = pool
        self._inside = inside
        self._units = _units_by_cell(pool, inside)
        self._bookings: dict[int, Booking] = {}
        self._ends: list[tuple[int, int]] = []
        self._maintenance: dict[int, Booking] = {}
        self._maintained: dict[int, list[Span]] = {}
        self._doubled: list[_Claim] = []
        self._busy = bytearray(pool.size)
        self._idle = [len(units) for units in self._units]
        self._unready: dict[int, HostStatus] = {}
        self._groups: dict[str | None, tuple[kernels.Ints, kernels.Ints]] = {}
        self._clear()

    def _clear(self) -> None:
        cells = len(self.pool.cells)
        self._times = np.zeros(_SPARE_ROWS, dtype=np.int64)
        self._free = np.zeros((_SPARE_ROWS, cells), dtype=np.int32)
        self._rows = 1
        self._floors: dict[tuple[str | None, int, Piece], tuple[int, int, int]] = {}
        if self._inside is None:
            self._free[0] = [c.size for c in self.pool.cells]
            return
        held = _holdings(self._inside)
        self.shift(self._inside.span.start, self._inside.span.end, held, [p.count for p in held], 1)

    # --- changes ------------------------------------------------------------------------------

    def set_inside(self, booking: Booking) -> None:
        """The booking it lies inside is as `booking` now; everything is derived again."""
        self._inside = booking
        self._units = _units_by_cell(self.pool, booking)
        self._unready = {u: h for u, h in self._unready.items() if u in booking.units}
        self._derive()

    def add(self, booking: Booking) -> None:
        """Book it. A booking of another calendar, or an outage's, changes nothing."""
        inside = 0 if self._inside is None else self._inside.id
        if booking.parent != inside or booking.owner_kind is OwnerKind.OUTAGE:
            return
        self._bookings[booking.id] = booking
        if booking.owner_kind is OwnerKind.MAINTENANCE:
            self._maintenance[booking.id] = booking
        if booking.stage is Stage.LIVE:
            insort(self._ends, (booking.span.end, booking.id))
            self.occupy(booking.parts)
        self._apply(booking, -1)
        self._count_once(booking)

    def remove(self, booking: Booking) -> None:
        """Take back what `add` did with this very booking."""
        if self._bookings.pop(booking.id, None) is not None:
            self._maintenance.pop(booking.id, None)
            if booking.stage is Stage.LIVE:
                del self._ends[bisect_left(self._ends, (booking.span.end, booking.id))]
                self._vacate(booking.parts)
            self._apply(booking, 1)
            self._count_once(booking)

    def occupy(self, parts: tuple[Part, ...]) -> None:
        """The drawn units of `parts` are not idle any more, whatever the table says."""
        for part in parts:
            for unit in part.units:
                if not self._busy[unit] and unit not in self._unready:
                    self._idle[part.cell] -= 1
                self._busy[unit] += 1  # counted: maintenance may begin where something still runs

    def _vacate(self, parts: tuple[Part, ...]) -> None:
        for part in parts:
            for unit in part.units:
                self._busy[unit] -= 1
                if not self._busy[unit] and unit not in self._unready:
                    self._idle[part.cell] += 1

    def set_hosts(self, unready: Mapping[int, HostStatus]) -> None:
        """The hosts that are not READY, by unit; everything is derived again."""
        if self._inside is not None:
            unready = {u: h for u, h in unready.items() if u in self._inside.units}
        if unready == self._unready:
            return
        self._unready = dict(unready)
        self._derive()

    def _derive(self) -> None:
        """Idle units and the table, from nothing."""
        self._idle = [
            sum(1 for u in units if not self._busy[u] and u not in self._unready) for units in self._units
        ]
        self._clear()
        span = Span(0, FOREVER) if self._inside is None else self._inside.span
        for unit, status in self._unready.items():
            out = Part(cell=self.pool.cell_of(unit), count=1)
            self.shift(span.start, min(span.end, status.until or FOREVER), (out,), [1], -1)
        for booking in self._bookings.values():
            self._apply(booking, -1)
        self._claim_all(self._doubled, 1)

    def _count_once(self, changed: Booking) -> None:
        """What several bookings name at one time counts once: maintenance that was forced over what somebody
        has, and windows over one another. To be called after a booking has come or gone."""
        is_window = changed.owner_kind is OwnerKind.MAINTENANCE
        if not is_window and (not self._maintained or self._maintained.keys().isdisjoint(changed.units)):
            return
        self._claim_all(self._doubled, -1)
        windows = list(self._maintenance.values())
        self._maintained = {unit: [] for window in windows for unit in window.units}
        live = (self._bookings[number] for _, number in self._ends if number not in self._maintenance)
        doubled = []
        for booking in sorted((*windows, *live), key=lambda b: b.span):
            for unit in self._maintained.keys() & set(booking.units):
                spans = self._maintained[unit]
                covered = spans[-1].end if spans else booking.span.start
                if booking.span.start < covered:
                    doubled.append((booking.span.start, min(booking.span.end, covered), unit))
                spans.append(Span(booking.span.start, max(booking.span.end, covered)))
        self._doubled = self._together(doubled)
        self._claim_all(self._doubled, 1)

    def _together(self, single: Iterable[tuple[int, int, int]]) -> list[_Claim]:
        """Units of one cell over the same time as one part."""
        found: dict[tuple[int, int, int], list[int]] = {}
        for start, end, unit in single:
            found.setdefault((start, end, self.pool.cell_of(unit)), []).append(unit)
        return [
            (start, end, Part(cell=cell, count=len(units), units=tuple(sorted(units))))
            for (start, end, cell), units in found.items()
        ]

    def _claim_all(self, claims: Iterable[_Claim], sign: int) -> None:
        for start, end, part in claims:
            self._claim(start, end, (part,), sign)

    def _apply(self, booking: Booking, sign: int) -> None:
        self._claim(booking.span.start, booking.span.end, booking.parts, sign)

    def _claim(self, start: int, end: int, parts: tuple[Part, ...], sign: int) -> None:
        """Take parts over [start, end), or give them back: those of their units that are in the capacity, and
        those that are out from the instant they are expected back."""
        self.shift(start, end, parts, [self._counted(part) for part in parts], sign)
        for part in parts if self._unready else ():
            for unit in part.units:
                status = self._unready.get(unit)
                if status is not None and status.until:
                    self.shift(max(start, status.until), end, (part,), [1], sign)

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

    def level(self, start: int, end: int, cells: Iterable[int]) -> None:
        """Where `cells` are overbooked in [start, end) they have nothing free instead: what is lacking there
        is lacking for good, and nobody else's fault."""
        first = kernels.row_at(self._times, self._rows, start)
        ends = [*self._times[first + 1 : self._rows].tolist(), FOREVER]
        lacking = [
            (max(start, at), min(end, until), Part(cell=cell, count=-row[cell]))
            for (at, row), until in zip(self.rows()[first:], ends, strict=True)
            for cell in cells
            if at < end and row[cell] < 0
        ]
        for since, until, part in lacking:
            self.give(since, until, (part,))

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
        copy._inside = self._inside
        copy._units = self._units
        copy._bookings = self._bookings.copy()
        copy._ends = self._ends.copy()
        copy._maintenance = self._maintenance.copy()
        copy._maintained = self._maintained
        copy._doubled = self._doubled
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
        piece: Piece = UNIT,
    ) -> tuple[int, tuple[Part, ...]] | None:
        """The earliest start in [after, before] with `count` pieces in one group of level `within` free
        for `length_s`, and the units to take from each cell. None when there is none.

        `held` are units per cell not confirmed free yet at `after`.
        """
        if not self._maintenance:
            return self._earliest_by_number(count, piece, length_s, within, after, before, held)
        at: int | None = after
        while at is not None and at <= before:
            own = held if at == after else None
            found = self._earliest_by_number(count, piece, length_s, within, at, before, own)
            if found is None:
                return None
            start = found[0]
            own = own if start == at else None
            sure = self._around_maintenance(found, count, piece, length_s, within, own)
            if sure is not None:
                return sure
            at = self.next_change(start)
        return None

    def _around_maintenance(
        self,
        found: tuple[int, tuple[Part, ...]],
        count: int,
        piece: Piece,
        length_s: int,
        within: str | None,
        held: kernels.Ints | None,
    ) -> tuple[int, tuple[Part, ...]] | None:
        """What was found by number, if there are units enough that no maintenance begins on meanwhile."""
        start = found[0]
        if not self.maintenance_begins(start, start + length_s):
            return found
        with self._spared(start, start + length_s):
            return self._earliest_by_number(count, piece, length_s, within, start, start, held)

    def maintenance_begins(self, start: int, end: int) -> list[int]:
        """When maintenance begins behind `start` and before `end`, in order."""
        begins = {window.span.start for window in self._maintenance.values()}
        return sorted(at for at in begins if start < at < end)

    @contextmanager
    def _spared(self, start: int, end: int) -> Iterator[None]:
        """Meanwhile units on which maintenance begins in a window are out from its start on: one that is free
        until then must not stand for one that is free from then on."""
        ahead = list(self._free_before(start, end)) if self.maintenance_begins(start, end) else []
        self._claim_all(ahead, -1)
        try:
            yield
        finally:
            self._claim_all(ahead, 1)

    def _free_before(self, start: int, end: int) -> list[_Claim]:
        """When, in a window, units are free on which something begins later in it."""
        found = []
        for unit, spans in self._maintained.items():
            at = start
            for span in spans:
                if at < span.start < end:
                    found.append((at, span.start, unit))
                at = max(at, span.end)
        return self._together(found)

    def _earliest_by_number(
        self,
        count: int,
        piece: Piece,
        length_s: int,
        within: str | None,
        after: int,
        before: int,
        held: kernels.Ints | None,
    ) -> tuple[int, tuple[Part, ...]] | None:
        """The search itself. While capacity is only taken, never given back, no start found before becomes
        possible earlier, nor for longer: each search goes on where the last one for as many pieces, no
        longer, ended.
        """
        offsets, cells = self._cells_of(within)
        before = min(before, FOREVER - 1)
        since = after
        length, since_then, found = self._floors.get((within, count, piece), (0, 0, 0))
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
            self._inner_of(piece),
            piece.span,
            piece.size,
            piece.together,
            piece.at_most,
            count,
            length_s,
            after,
            before,
        )
        ruled_out = int(start) if group >= 0 else before + 1
        self._floors[within, count, piece] = length_s, since, max(after, ruled_out)
        if group < 0:
            return None
        if start > after:
            held = self.nothing_held()
        own = cells[offsets[group] : offsets[group + 1]]
        taken = kernels.pick(
            self._times,
            self._free,
            self._rows,
            start,
            start + length_s,
            own,
            held,
            self._inner_of(piece),
            self.pool.has_host_cells,
            piece.span,
            piece.size,
            piece.together,
            piece.at_most,
            count,
        ).tolist()
        parts = (Part(cell=int(own[i]), count=n) for i, n in enumerate(taken) if n)
        return int(start), tuple(parts)

    def earliest_lasting(
        self,
        count: int,
        end: int,
        *,
        within: str | None,
        after: int,
        before: int,
        held: kernels.Ints | None = None,
        piece: Piece = UNIT,
    ) -> tuple[int, tuple[Part, ...]] | None:
        """As `earliest`, for pieces free from the start until `end`, which lies behind it."""
        before = min(before, end - 1)
        if before < after:
            return None
        changes = self._times[: self._rows]
        instants = [after, *changes[(changes > after) & (changes <= before)].tolist()]
        for at in instants:
            found = self.earliest(
                count,
                end - at,
                within=within,
                after=at,
                before=at,
                held=held if at == after else None,
                piece=piece,
            )
            if found is not None:
                return found
        return None

    def _cells_of(self, within: str | None) -> tuple[kernels.Ints, kernels.Ints]:
        found = self._groups.get(within)
        if found is None:
            groups = self.pool.groups(within)
            offsets = np.cumsum([0] + [len(g) for g in groups]).astype(np.int64)
            found = offsets, np.array([c for g in groups for c in g], dtype=np.int64)
            self._groups[within] = found
        return found

    def _inner_of(self, piece: Piece) -> kernels.Ints:
        """The domain of each cell in which pieces stand together or apart."""
        if not piece.level:
            return self.nothing_held()
        return np.array(self.pool.domains_by_cell(piece.level), dtype=np.int64)

    def nothing_held(self) -> kernels.Ints:
        """A zero for each cell."""
        return np.zeros(len(self.pool.cells), dtype=np.int64)

    def not_confirmed_free(self, now: int) -> kernels.Ints:
        """Units per cell that the table calls free at `now` but that are not: of live bookings past their
        end, hosts past the instant they were expected back, and all of a reservation that has none yet."""
        held = self.nothing_held()
        if self._inside is not None and self._inside.stage is not Stage.LIVE:
            for part in self._inside.parts:
                held[part.cell] += part.count
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
        return [u for u in self._units[cell] if not self._busy[u] and u not in self._unready]

    def idle_in_groups(self, within: str | None, piece: Piece = UNIT) -> list[int]:
        """How many idle pieces each group of a level has."""
        idle = self._idle.__getitem__
        if piece != UNIT:
            return [self.pool.pieces_in(g, self._idle, piece) for g in self.pool.groups(within)]
        return [sum(map(idle, group)) for group in self.pool.groups(within)]

    def free_to(self, cell: int, now: int, end: int) -> list[int]:
        """The idle units of a cell on which no maintenance begins before `end`; first those on which one
        begins later, so that the others stay whole."""
        if not self._maintenance:
            return self.idle_units(cell)
        begins: dict[int, int] = {}
        for window in self._maintenance.values():
            for unit in window.units if window.span.end > now else ():
                begins[unit] = min(begins.get(unit, FOREVER), window.span.start)
        idle = [u for u in self.idle_units(cell) if begins.get(u, FOREVER) >= end]
        return sorted(idle, key=lambda u: (u not in begins, u))

    def draw(
        self, parts: tuple[Part, ...], doubted: frozenset[int], span: Span
    ) -> tuple[Part, ...]:
        """Parts with their units drawn and occupied: the first idle ones, `doubted` ones last.

        Asserts that there are enough: counts per cell imply units (late binding).
        """
        out = []
        for part in parts:
            idle = self.free_to(part.cell, span.start, span.end)
            assert len(idle) >= part.count, (
                f"pool {self.pool.name} cell {part.cell}: {part.count} promised by number, "
                f"{len(idle)} there"
            )
            if doubted:
                idle.sort(key=lambda u: u in doubted)
            units = tuple(sorted(idle[: part.count]))
            out.append(Part(cell=part.cell, count=part.count, units=units))
        self.occupy(tuple(out))
        return tuple(out)

    def free_until(
        self, cells: Sequence[int], count: int, start: int, limit: int, piece: Piece = UNIT
    ) -> int:
        """Until when, at most `limit`, `count` pieces of `cells` taken at `start` stay free: the same units
        of each cell all the time. `start` itself when there are not as many then."""
        until = start
        for end in (*self.maintenance_begins(start, limit), limit):
            with self._spared(start, end):
                found = self._free_until_by_number(cells, count, start, end, piece)
            until = max(until, found)
            if found < end:
                break
        return until

    def _free_until_by_number(
        self, cells: Sequence[int], count: int, start: int, limit: int, piece: Piece
    ) -> int:
        first = kernels.row_at(self._times, self._rows, start)
        last = max(first + 1, int(np.searchsorted(self._times[: self._rows], limit)))
        own, inner = np.array(cells, dtype=np.int64), self._inner_of(piece)
        kind = piece.span, piece.size, piece.together, piece.at_most
        least = np.minimum.accumulate(self._free[first:last, own].astype(np.int64), axis=0)
        enough = bisect_left(
            range(last - first), True, key=lambda row: kernels.pieces(least[row], own, inner, *kind) < count
        )
        if enough == 0:
            return start
        return limit if first + enough == last else int(self._times[first + enough])

    def choose(
        self, cells: Sequence[int], count: int, start: int, end: int, piece: Piece = UNIT
    ) -> tuple[Part, ...]:
        """Which cells to take `count` pieces from that are free over [start, end)."""
        own = np.array(cells, dtype=np.int64)
        kind = piece.span, piece.size, piece.together, piece.at_most
        with self._spared(start, end):
            taken = kernels.pick(
                self._times,
                self._free,
                self._rows,
                start,
                end,
                own,
                self.nothing_held(),
                self._inner_of(piece),
                self.pool.has_host_cells,
                *kind,
                count,
            ).tolist()
        return tuple(Part(cell=c, count=n) for c, n in zip(cells, taken, strict=True) if n)

    def free_during(self, start: int, end: int, cells: Sequence[int]) -> list[int]:
        """How many units of each of `cells` are free all over [start, end), 0 where it is overbooked."""
        with self._spared(start, end):
            return [max(0, self.least_free_in(cell, start, end)) for cell in cells]

    def least_free_in(self, cell: int, start: int, end: int) -> int:
        """The smallest entry of one cell over [start, end)."""
        return self.least_free(start, end, (Part(cell=cell, count=1),))

    def least_free(self, start: int, end: int, parts: tuple[Part, ...] | None = None) -> int:
        """The smallest entry of the table over [start, end), of the parts' cells or of all: negative when
        overbooked."""
        first = kernels.row_at(self._times, self._rows, start)
        last = max(first + 1, int(np.searchsorted(self._times[: self._rows], end)))
        rows = self._free[first:last]
        return int(np.min(rows if parts is None else rows[:, [p.cell for p in parts]]))

    def longest(self, start: int, parts: tuple[Part, ...], limit_s: int) -> int:
        """For how many seconds from `start`, at most `limit_s`, the parts' counts stay free."""
        row = kernels.row_at(self._times, self._rows, start)
        for at in range(row, self._rows):
            if self._times[at] >= start + limit_s:
                break
            if any(self._free[at, p.cell] < self._counted(p) for p in parts):
                return max(0, int(self._times[at]) - start)
        return limit_s

    def next_change(self, after: int) -> int | None:
        """The next instant behind `after` at which something changes, None when nothing ever does."""
        row = int(np.searchsorted(self._times[: self._rows], after, side="right"))
        at = int(self._times[row]) if row < self._rows else None
        begins = self.maintenance_begins(after, FOREVER)
        return min((t for t in (at, *begins) if t is not None), default=None)

    def changes(self) -> set[int]:
        """Every instant at which something changes: the table, or what it stands for."""
        return {*self._times[: self._rows].tolist(), *self.maintenance_begins(0, FOREVER)}

    def rows(self) -> list[tuple[int, tuple[int, ...]]]:
        """The whole table, for comparing."""
        return [
            (int(self._times[i]), tuple(int(f) for f in self._free[i])) for i in range(self._rows)
        ]

    def unready_units(self) -> Mapping[int, HostStatus]:
        """Hosts that are not READY, by unit."""
        return self._unready


def _units_by_cell(pool: Pool, inside: Booking | None) -> list[Sequence[int]]:
    """The units of each cell that a calendar has: the pool's, or those of the booking it is inside."""
    if inside is None:
        return [cell.units for cell in pool.cells]
    drawn: list[list[int]] = [[] for _ in pool.cells]
    for part in inside.parts:
        drawn[part.cell] += part.units
    return [sorted(units) for units in drawn]


def _holdings(inside: Booking) -> tuple[Part, ...]:
    """What a booking has for those inside it: what is promised to it, then what has been drawn; nothing
    while it is tentative."""
    if inside.stage is Stage.FIRM:
        return inside.parts
    return tuple(p for p in inside.parts if p.units) if inside.stage is Stage.LIVE else ()

