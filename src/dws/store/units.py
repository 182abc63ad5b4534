"""Who holds which unit when, in memory: what SQL does with `booking_part` and its triggers.

    (parent 0, pool a, unit 3)   ├── booking 7 ──┤   ├─ booking 9 ─┤

Siblings (bookings of one parent) never overlap on a unit, and the part of a child lies inside its
parent's part. Checks come before changes, so a refused booking leaves no trace.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import islice

from dws.model.booking import Booking, Stage
from dws.model.errors import DoubleBooking
from dws.store.rules import units_of

Line = tuple[int, str, int]
Row = tuple[int, int, int]


def double_booked(booking: Booking, unit: int, other: int) -> DoubleBooking:
    """The refusal of a unit that another booking of the same parent holds at one instant."""
    return DoubleBooking(
        f"unit {unit} of pool {booking.pool} is in booking {other} within "
        f"[{booking.span.start}, {booking.span.end}); booking {booking.id} cannot have it"
    )


def outside_parent(booking: Booking, unit: int, parent: int) -> DoubleBooking:
    """The refusal of a part of a child that its parent does not hold."""
    return DoubleBooking(
        f"unit {unit} of pool {booking.pool} would lie outside booking {parent}, "
        f"the parent (writing booking {booking.id})"
    )


class UnitLines:
    """For every unit a line of spans, kept in order of time."""

    def __init__(self) -> None:
        self._lines: dict[Line, list[Row]] = {}
        self._children: dict[int, dict[int, Booking]] = {}

    def check(self, booking: Booking, old: Booking | None, parent: Booking | None) -> None:
        """Raise DoubleBooking unless `booking` may take the place of `old`."""
        for unit, start in units_of(booking):
            other = self._clash(booking, unit, start)
            if other is not None:
                raise double_booked(booking, unit, other)
        if booking.parent and (lost := _outside(booking, parent)) is not None:
            raise outside_parent(booking, lost, booking.parent)
        if old is not None:
            for child in self._children.get(booking.id, {}).values():
                if (lost := _outside(child, booking)) is not None:
                    raise outside_parent(booking, lost, booking.id)

    def check_gone(self, booking: Booking) -> None:
        """Raise DoubleBooking if something open lies in the units of `booking`."""
        for child in self._children.get(booking.id, {}).values():
            if (lost := _outside(child, None)) is not None:
                raise outside_parent(booking, lost, booking.id)

    def exchange(self, old: Booking | None, new: Booking | None) -> None:
        """Take the rows of `old` away and lay those of `new` down; what was checked must still hold."""
        if old is not None and new is not None and _same_rows(old, new):
            self._know_child(old, new)
            return
        if old is not None:
            for unit, start in units_of(old):
                row = (start, old.span.end, old.id)
                line = self._lines[old.parent, old.pool, unit]
                del line[bisect_left(line, row)]
                if not line:
                    del self._lines[old.parent, old.pool, unit]
        if new is not None:
            for unit, start in units_of(new):
                row = (start, new.span.end, new.id)
                line = self._lines.setdefault((new.parent, new.pool, unit), [])
                line.insert(bisect_right(line, row), row)
        self._know_child(old, new)

    def _know_child(self, old: Booking | None, new: Booking | None) -> None:
        if old is not None and old.parent and old.stage is not Stage.ENDED:
            self._children[old.parent].pop(old.id)
        if new is not None and new.parent and new.stage is not Stage.ENDED:
            self._children.setdefault(new.parent, {})[new.id] = new

    def _clash(self, booking: Booking, unit: int, start: int) -> int | None:
        line = self._lines.get((booking.parent, booking.pool, unit))
        if line is None:
            return None
        at = bisect_left(line, (start, -1, -1))
        for begins, ends, other in islice(line, max(0, at - 1), None):
            if begins >= booking.span.end:
                return None
            if ends > start and other != booking.id:
                return other
        return None


def _same_rows(a: Booking, b: Booking) -> bool:
    return a.parent == b.parent and a.pool == b.pool and a.span == b.span and a.holdings == b.holdings


def _outside(child: Booking, parent: Booking | None) -> int | None:
    """The first unit of a child that its parent does not hold all the while, None when all is well."""
    held: dict[int, int] = {}
    if parent is not None and parent.pool == child.pool and parent.span.end >= child.span.end:
        held = dict(units_of(parent))
    return next((u for u, start in units_of(child) if u not in held or held[u] > start), None)
