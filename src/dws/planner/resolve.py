"""From what is wanted to where it could be: each alternative, in each pool that can hold its kind.

A gang never spans pools, so it never mixes machine types. Accelerator counts are rounded up to whole
hosts, because hosts are handed out whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from dws.model.booking import Booking, calendar_name
from dws.model.catalog import accelerator_names
from dws.model.demand import UNTIL_END, Alternative, Demand
from dws.model.topology import Fleet, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One alternative in one pool: `count` hosts for `length_s`, set-up and tear-down included.

    With `inside`, in the booking of a reservation of that pool, and then `until_end` may say that it lasts
    to that booking's end, whenever it starts: `duration_s` and `length_s` are the longest it can be. `lent`
    is one that may start there now but is promised nothing.
    """

    alternative: int
    pool: Pool
    count: int
    duration_s: int
    length_s: int
    within: str | None
    inside: Booking | None = None
    until_end: bool = False
    lent: bool = False

    @property
    def parent(self) -> int:
        """The booking it lies inside, 0 for the fleet itself."""
        return 0 if self.inside is None else self.inside.id

    @property
    def calendar(self) -> str:
        """The name of the calendar it would be in."""
        return calendar_name(self.pool.name, self.parent)

    @property
    def could_ever_fit(self) -> bool:
        """True when the empty pool, or reservation, has room for it, hosts that are down counted in."""
        if self.inside is None:
            return self.pool.largest_group(self.within) >= self.count
        fits = self.duration_s > 0 and self.length_s <= self.inside.span.length_s
        return fits and self.count <= max(
            (
                sum(p.count for p in self.inside.parts if p.cell in group)
                for group in self.pool.groups(self.within)
            ),
            default=0,
        )

    @property
    def accelerators(self) -> int:
        """Accelerators held, 0 for CPU-only hosts."""
        return self.count * self.pool.shape.accelerators

    @property
    def accelerator_s(self) -> int:
        """Accelerator-seconds booked, a host without accelerators counting as one."""
        return self.count * max(1, self.pool.shape.accelerators) * self.length_s

    def cost_micros_of(self, duration_s: int) -> int:
        """What so many seconds cost."""
        units = self.count * max(1, self.pool.shape.accelerators)
        return self.pool.price_micros_per_hour * units * duration_s // 3600


def candidates(demand: Demand, fleet: Fleet) -> tuple[Candidate, ...]:
    """Every (alternative, pool) that is of the kind asked for, in order of preference and fleet order."""
    return tuple(
        Candidate(
            alternative=index,
            pool=pool,
            count=hosts_needed(alternative, pool),
            duration_s=alternative.duration_s,
            length_s=alternative.duration_s + pool.overheads.total_s,
            within=alternative.within,
        )
        for index, alternative in enumerate(demand.alternatives)
        for pool in fleet.pools_in(alternative.locations)
        if is_of_kind(alternative, pool) and has_level(pool, alternative.within)
    )


def is_of_kind(alternative: Alternative, pool: Pool) -> bool:
    """True when the pool's hosts are what the alternative asks for."""
    if alternative.shape:
        return pool.shape.name == alternative.shape
    names = accelerator_names(pool.shape.accelerator) if pool.shape.accelerator else frozenset()
    return alternative.accelerator in names


def has_level(pool: Pool, within: str | None) -> bool:
    """True when the pool knows the level of closeness."""
    return within is None or within == "pool" or within in pool.levels


def hosts_needed(alternative: Alternative, pool: Pool) -> int:
    """Whole hosts for the alternative's count."""
    if alternative.shape:
        return alternative.count
    return -(-alternative.count // pool.shape.accelerators)


def candidates_inside(demand: Demand, fleet: Fleet, booking: Booking) -> tuple[Candidate, ...]:
    """Every alternative that could lie inside a reservation's booking, in order of preference."""
    pool = fleet.pool(booking.pool)
    overhead_s = pool.overheads.total_s
    found = []
    for index, alternative in enumerate(demand.alternatives):
        if not (is_of_kind(alternative, pool) and has_level(pool, alternative.within)):
            continue
        if alternative.locations and pool not in fleet.pools_in(alternative.locations):
            continue
        until_end = alternative.duration_s == UNTIL_END
        duration_s = booking.span.length_s - overhead_s if until_end else alternative.duration_s
        found.append(
            Candidate(
                alternative=index,
                pool=pool,
                count=hosts_needed(alternative, pool),
                duration_s=duration_s,
                length_s=duration_s + overhead_s,
                within=alternative.within,
                inside=booking,
                until_end=until_end,
            )
        )
    return tuple(found)
