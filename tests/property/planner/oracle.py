"""The planner's questions answered the slow way, second by second, sharing no code with it.

A world is a pool, bookings by cell counts or by units, and hosts that are out until some instant. The
oracle knows nothing of tables or breakpoints: it asks for every second of every window.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.names import BookingId
from dws.model.resources import MachineShape
from dws.model.time import FOREVER, Span
from dws.model.topology import Domain, HostState, HostStatus, Pool

END = 60
"""Nothing is booked at or after this second."""


@dataclass(slots=True)
class Small:
    """A small world."""

    pool: Pool
    bookings: list[Booking] = field(default_factory=list)
    out: dict[int, HostStatus] = field(default_factory=dict)

    def free(self, cell: int, second: int) -> int:
        """Free units of a cell in one second."""
        units = self.pool.cells[cell].units
        gone = {u for u, h in self.out.items() if u in units and second < (h.until or FOREVER)}
        free = len(units) - len(gone)
        for booking in self.bookings:
            if not booking.span.start <= second < booking.span.end:
                continue
            for part in booking.parts:
                if part.cell == cell:
                    free -= len(set(part.units) - gone) if part.units else part.count
        return max(free, 0)

    def least(self, cell: int, start: int, length: int) -> int:
        """The least number free over a window."""
        return min(self.free(cell, s) for s in range(start, min(start + length, END + 1)) or [start])

    def groups(self, within: str | None) -> list[list[int]]:
        """Cells of every domain of a level, found from the domains alone."""
        cells = list(enumerate(self.pool.cells))
        if within is None:
            return [[i for i, _ in cells]]
        return [
            [i for i, c in cells if d.first <= c.first and c.first + c.size <= d.first + d.size]
            for d in self.pool.domains
            if d.level == within
        ]

    def earliest(self, count: int, length: int, within: str | None, after: int, before: int) -> int | None:
        """The first second at which it fits."""
        for start in range(after, min(before, END + 1) + 1):
            for group in self.groups(within):
                if sum(self.least(c, start, length) for c in group) >= count:
                    return start
        return None


def small_worlds(seed: int, number: int, grid: int = 1) -> Iterator[tuple[Small, random.Random]]:
    """Random small worlds, never overbooked; bookings begin and end at multiples of `grid`."""
    rng = random.Random(seed)
    for _ in range(number):
        yield _small_world(rng, grid), rng


def _small_world(rng: random.Random, grid: int) -> Small:
    sizes = [rng.randint(1, 4) for _ in range(rng.randint(1, 4))]
    world = Small(a_pool(sizes, rng.random() < 0.5))
    for unit in range(len(world.pool.hosts)):
        if rng.random() < 0.12:
            until = rng.choice((0, rng.randint(1, END - 1)))
            state = HostState.DOWN if until else rng.choice((HostState.DOWN, HostState.DRAINING))
            world.out[unit] = HostStatus(pool="p", unit=unit, state=state, until=until)
    for number in range(rng.randint(0, 8)):
        booking = _a_booking(rng, world, number + 1, grid)
        if booking is not None:
            world.bookings.append(booking)
    return world


def a_pool(sizes: list[int], with_rows: bool) -> Pool:
    """A pool with one block a size, and rows of two blocks each when asked."""
    blocks, first = [], 0
    for index, size in enumerate(sizes):
        blocks.append(Domain(level="block", name=f"b{index}", first=first, size=size))
        first += size
    rows = []
    if with_rows:
        for index in range(0, len(blocks), 2):
            pair = blocks[index : index + 2]
            size = sum(b.size for b in pair)
            rows.append(Domain(level="row", name=f"r{index}", first=pair[0].first, size=size))
    return Pool(
        name="p",
        zone="z",
        shape=MachineShape(name="m", accelerator="nvidia-h100-80gb", accelerators=8),
        backend="simulated",
        hosts=tuple(f"h{i}" for i in range(first)),
        domains=(*rows, *blocks),
    )


def _a_booking(rng: random.Random, world: Small, number: int, grid: int) -> Booking | None:
    start = rng.randint(0, END - 2) // grid * grid
    end = -(-rng.randint(start + 1, END) // grid) * grid
    parts = []
    for cell in rng.sample(range(len(world.pool.cells)), rng.randint(1, len(world.pool.cells))):
        room = min(world.free(cell, s) for s in range(start, end))
        if room:
            parts.append(Part(cell=cell, count=rng.randint(1, room)))
    if not parts:
        return None
    return Booking(
        id=BookingId(number),
        pool="p",
        span=Span(start, end),
        stage=Stage.FIRM,
        owner_kind=OwnerKind.RESERVATION,
        owner=number,
        parts=tuple(sorted(parts, key=lambda p: p.cell)),
    )
