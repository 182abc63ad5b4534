"""What of the fleet a reservation holds: in which blocks its hosts lie, which are in use, which are lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dws.engine.ports import Reader
from dws.model.booking import Stage
from dws.model.reservation import Reservation
from dws.model.topology import Domain, HostState, Pool

BLOCK: Final = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The part of a domain that a reservation holds: `units` of it, `used` are the first ones of what runs
    there, `down` are out of order, and so many more are `lacking` that were lost. `parts` are the
    same of the domains one level below."""

    domain: Domain
    units: tuple[int, ...]
    used: frozenset[int]
    down: frozenset[int]
    lacking: int = 0
    parts: tuple[Held, ...] = ()

    @property
    def degraded(self) -> bool:
        """True when a host of it is out of order, or lost."""
        return bool(self.down) or self.lacking > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Everything a reservation holds now: `blocks`, none before its hosts are drawn or where the pool has no
    domains; `in_use` instances run in it, of each project in `users`; `degraded` when it lacks hosts."""

    pool: Pool
    blocks: tuple[Held, ...]
    in_use: int
    users: Mapping[str, int]
    degraded: bool


def of(reader: Reader, reservation: Reservation) -> Layout:
    """What a reservation that is not over holds."""
    fleet = reader.fleet()
    booking = reader.booking(reservation.booking or 0)
    assert fleet is not None, "who has a reservation has a fleet"
    assert booking is not None, "what is not over is booked"
    pool = fleet.pool(booking.pool)
    running = _running(reader, booking.id, pool)
    down = frozenset(
        unit
        for status in reader.host_statuses()
        if status.pool == pool.name and status.state is HostState.DOWN
        for unit in pool.units_of(status.unit)
    )
    held = frozenset(booking.units)
    lost = Counter({part.cell: part.count for part in booking.parts if not part.units} if held else {})
    return Layout(
        pool=pool,
        blocks=_parts(pool, levels(pool), held, frozenset(running), down, lost),
        in_use=len(running),
        users=Counter(running.values()),
        degraded=reservation.is_degraded or bool(held & down),
    )


def _running(reader: Reader, booking: int, pool: Pool) -> dict[int, str]:
    """The first unit of each instance that runs inside a booking, and its project; hosts that are only lent
    to others do not count."""
    found: dict[int, str] = {}
    for inside in reader.bookings_inside(booking):
        request = reader.request(inside.owner) if inside.stage is Stage.LIVE else None
        if request is not None and request.grant is not None and request.demand.reservation:
            held = (i for i in request.grant.instances if i.is_held)
            found |= {pool.units_at(i.unit, i.slots)[0]: request.project for i in held}
    return found


def levels(pool: Pool) -> tuple[str, ...]:
    """The level of blocks and, if there is one, the next finer of sub-blocks."""
    at = pool.levels.index(BLOCK) if BLOCK in pool.levels else 0
    return pool.levels[at : at + 2]


def domain_of(reader: Reader, reservation: Reservation, names: Sequence[str]) -> str | None:
    """The domain, as `LEVEL/NAME`, that a block is, or a sub-block of it (`names`: of each, outermost first);
    None when the reservation has no hosts there."""
    fleet, booking = reader.fleet(), reader.booking(reservation.booking or 0)
    assert fleet is not None, "who has a reservation has a fleet"
    assert booking is not None, "what is not over is booked"
    pool = fleet.pool(booking.pool)
    held = {pool.cells[part.cell].first for part in booking.parts}
    found = None
    for level, name in zip(levels(pool), names, strict=False):
        domain = pool.domain_named(f"{level}/{name}")
        held &= set(domain.units) if domain is not None else set()
        found = f"{level}/{name}"
    return found if held and len(names) <= len(levels(pool)) else None


def _parts(
    pool: Pool,
    below: tuple[str, ...],
    held: frozenset[int],
    used: frozenset[int],
    down: frozenset[int],
    lost: Counter[int],
) -> tuple[Held, ...]:
    """Those domains of the first level that hold any of the units, or should (`lost` are so many of a cell),
    each with its parts of the next."""
    if not below:
        return ()
    found = []
    for domain in pool.domains:
        units = held.intersection(domain.units)
        here = Counter({cell: n for cell, n in lost.items() if pool.cells[cell].first in domain.units})
        if (units or here) and domain.level == below[0]:
            found.append(
                Held(
                    domain=domain,
                    units=tuple(sorted(units)),
                    used=used & units,
                    down=down & units,
                    lacking=here.total(),
                    parts=_parts(pool, below[1:], units, used, down, here),
                )
            )
    return tuple(found)
