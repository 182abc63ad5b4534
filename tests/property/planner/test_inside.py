"""Planning inside reservations against brute force: small pools, a reservation in them, work inside it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.names import BookingId
from dws.model.time import FOREVER, Span
from dws.model.topology import Fleet, HostState, HostStatus, Pool, Zone
from dws.planner import snapshot
from dws.planner.calendar import PoolCalendar
from tests.property.planner.oracle import END, a_pool

OUTER = BookingId(1)


@dataclass(slots=True)
class Inside:
    """A reservation, hosts that are out, and what is booked in it."""

    pool: Pool
    outer: Booking
    out: dict[int, HostStatus]
    children: list[Booking]

    def free(self, cell: int, second: int) -> int:
        """Units of a cell that the reservation has and that nothing in it has booked, in one second."""
        if not self.outer.span.covers(second) or self.outer.stage is Stage.HOLD:
            return 0
        live = self.outer.stage is Stage.LIVE
        own = [u for p in self.outer.parts if p.cell == cell for u in p.units]
        free = sum(p.count for p in self.outer.parts if p.cell == cell) if not live else len(own)
        free -= sum(1 for u in own if live and self.is_out(u, second))
        for child in (c for c in self.children if c.span.covers(second)):
            for part in (p for p in child.parts if p.cell == cell):
                free -= sum(1 for u in part.units if u not in self.out) if part.units else part.count
        return max(0, free)

    def is_out(self, unit: int, second: int) -> bool:
        return unit in self.out and second < (self.out[unit].until or FOREVER)

    def fits(self, count: int, within: str | None, start: int, end: int) -> bool:
        seconds = range(start, min(end, max(END, start) + 1))
        return any(
            sum(min(self.free(c, s) for s in seconds) for c in group) >= count
            for group in self.pool.groups(within)
        )

    def calendar(self) -> PoolCalendar:
        fleet = Fleet(zones=(Zone(name="z"),), pools=(self.pool,))
        made = snapshot.calendars(
            fleet, [self.outer, *self.children], {("p", u): h for u, h in self.out.items()}
        )
        return made[snapshot.inside_of(self.outer)]


def insides(seed: int, number: int) -> Iterator[tuple[Inside, random.Random]]:
    """Random reservations: ahead by count, open with some or all of their hosts, or only held."""
    rng = random.Random(seed)
    for _ in range(number):
        pool = a_pool([rng.randint(1, 4) for _ in range(rng.randint(1, 3))], rng.random() < 0.5)
        start = rng.randint(0, 20)
        span = Span(start, rng.randint(start + 5, END))
        stage = rng.choice((Stage.FIRM, Stage.LIVE, Stage.LIVE, Stage.HOLD))
        parts: list[Part] = []
        for cell in rng.sample(range(len(pool.cells)), rng.randint(1, len(pool.cells))):
            units = rng.sample(pool.cells[cell].units, rng.randint(1, pool.cells[cell].size))
            drawn = units[: rng.randint(0, len(units))] if stage is Stage.LIVE else []
            parts += [Part(cell=cell, count=len(drawn), units=tuple(sorted(drawn)))] if drawn else []
            parts += [Part(cell=cell, count=len(units) - len(drawn))] if len(units) > len(drawn) else []
        outer = Booking(
            id=OUTER,
            pool="p",
            span=span,
            stage=stage,
            owner_kind=OwnerKind.RESERVATION,
            owner=1,
            parts=tuple(parts),
        )
        inside = Inside(pool, outer, _out(rng, pool), [])
        for child in range(rng.randint(0, 5)):
            _add_child(rng, inside, child + 2)
        yield inside, rng


def _out(rng: random.Random, pool: Pool) -> dict[int, HostStatus]:
    out = {}
    for unit in range(len(pool.hosts)):
        if rng.random() < 0.15:
            until = rng.choice((0, rng.randint(1, END)))
            out[unit] = HostStatus(pool="p", unit=unit, state=HostState.DOWN, until=until)
    return out


def _add_child(rng: random.Random, inside: Inside, number: int) -> None:
    """Work inside it where there is room, promised, or running on its hosts."""
    span = inside.outer.span
    start = rng.randint(span.start, span.end - 1)
    end = rng.randint(start + 1, span.end)
    cell = rng.randrange(len(inside.pool.cells))
    room = min(inside.free(cell, s) for s in range(start, end))
    if not room:
        return
    count = rng.randint(1, room)
    taken = {u for c in inside.children for u in c.units}
    idle = [u for p in inside.outer.parts if p.cell == cell for u in p.units if u not in taken and u not in inside.out]
    runs = len(idle) >= count and inside.outer.stage is Stage.LIVE and rng.random() < 0.4
    inside.children.append(
        Booking(
            id=BookingId(number),
            pool="p",
            span=Span(start, end),
            stage=Stage.LIVE if runs else Stage.FIRM,
            owner_kind=OwnerKind.REQUEST,
            owner=number,
            parts=(Part(cell=cell, count=count, units=tuple(sorted(idle[:count])) if runs else ()),),
            parent=OUTER,
        )
    )


def test_the_earliest_start_inside_is_the_earliest() -> None:
    """Work could wait in its reservation beside free hosts, or be promised hosts that it does not have."""
    found = 0
    for inside, rng in insides(1, 2000):
        calendar = inside.calendar()
        for _ in range(3):
            within = rng.choice([None, *inside.pool.levels])
            count, length = rng.randint(1, 4), rng.randint(1, 25)
            after = rng.randint(0, 40)
            before = rng.choice((FOREVER, after + rng.randint(0, 20)))
            answer = calendar.earliest(count, length, within=within, after=after, before=before)
            starts = range(after, min(before, END) + 1)
            first = next((s for s in starts if inside.fits(count, within, s, s + length)), None)
            assert (answer[0] if answer else None) == first
            if answer is not None:
                found += 1
                start, parts = answer
                assert sum(p.count for p in parts) == count
                assert any({p.cell for p in parts} <= set(g) for g in inside.pool.groups(within))
                for part in parts:
                    assert min(inside.free(part.cell, s) for s in range(start, start + length)) >= part.count
    assert found > 500


def test_the_earliest_start_of_a_run_to_the_end_is_the_earliest() -> None:
    """A run to the end of its reservation could start later than it could, or into another's promise."""
    found = 0
    for inside, rng in insides(2, 3000):
        calendar, end = inside.calendar(), inside.outer.span.end
        within = rng.choice([None, *inside.pool.levels])
        count, after = rng.randint(1, 4), rng.randint(0, 40)
        before = rng.choice((end - 1, after + rng.randint(0, 20)))
        answer = calendar.earliest_lasting(count, end, within=within, after=after, before=before)
        starts = range(after, min(before, end - 1) + 1)
        first = next((s for s in starts if inside.fits(count, within, s, end)), None)
        assert (answer[0] if answer else None) == first
        found += first is not None
    assert found > 300


def test_only_its_own_idle_hosts_are_drawn_inside() -> None:
    """Work could be started on a host of somebody else, or one that another run has."""
    drawn = 0
    for inside, rng in insides(3, 2000):
        calendar = inside.calendar()
        own = set(inside.outer.units) if inside.outer.stage is not Stage.HOLD else set()
        busy = {u for c in inside.children if c.stage is Stage.LIVE for u in c.units}
        idle = {u for c in range(len(inside.pool.cells)) for u in calendar.idle_units(c)}
        assert idle == own - busy - inside.out.keys()
        for cell in range(len(inside.pool.cells)):
            there = calendar.idle_units(cell)
            if there:
                part = Part(cell=cell, count=rng.randint(1, len(there)))
                (got,) = calendar.draw((part,), frozenset(), inside.outer.span)
                assert set(got.units) <= set(there) and not set(got.units) & set(calendar.idle_units(cell))
                drawn += 1
    assert drawn > 300
