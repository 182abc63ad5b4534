"""The planner's input: the fleet and its bookings at one version. Immutable by agreement: a pass forks
the calendars before it books in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dws.model.booking import Booking, OwnerKind, Stage, calendar_name
from dws.model.demand import Alternative
from dws.model.request import CapacityRequest
from dws.model.reservation import Reservation
from dws.model.topology import Fleet, HostState, HostStatus, Pool
from dws.planner.calendar import PoolCalendar
from dws.planner.resolve import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSnapshot:
    """Everything a pass may know. `bookings` are the open ones, `hosts` those not READY, or READY but
    doubted, by (pool, unit), `queue` the waiting requests in any order, `reservations` those not over, by
    id, and `in_use` how many units each project uses in each of them. There is a calendar for each pool and
    each reservation, by `Booking.calendar`'s name. `usable` remembers, for as long as the fleet is the same,
    what each list of alternatives comes to."""

    ledger_version: int
    fleet: Fleet
    bookings: Mapping[int, Booking]
    hosts: Mapping[tuple[str, int], HostStatus]
    queue: tuple[CapacityRequest, ...]
    calendars: Mapping[str, PoolCalendar]
    reservations: Mapping[int, Reservation] = field(default_factory=dict)
    in_use: Mapping[tuple[int, str], int] = field(default_factory=dict)
    usable: dict[tuple[Alternative, ...], tuple[Candidate, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )


def build(
    fleet: Fleet,
    *,
    bookings: Iterable[Booking] = (),
    hosts: Iterable[HostStatus] = (),
    queue: Iterable[CapacityRequest] = (),
    reservations: Iterable[Reservation] = (),
    ledger_version: int = 0,
) -> FleetSnapshot:
    """A snapshot with its calendars made from nothing."""
    by_id: dict[int, Booking] = {b.id: b for b in bookings}
    statuses = {(h.pool, h.unit): h for h in hosts}
    return FleetSnapshot(
        ledger_version=ledger_version,
        fleet=fleet,
        bookings=by_id,
        hosts=statuses,
        queue=tuple(queue),
        calendars=calendars(fleet, by_id.values(), statuses),
        reservations={r.id: r for r in reservations},
    )


def calendars(
    fleet: Fleet, bookings: Iterable[Booking], hosts: Mapping[tuple[str, int], HostStatus]
) -> dict[str, PoolCalendar]:
    """Every calendar, made from nothing: of each pool, and of each reservation in it."""
    bookings = [b for b in bookings if b.pool in {p.name for p in fleet.pools}]
    made = {pool.name: PoolCalendar(pool) for pool in fleet.pools}
    for booking in bookings:
        if booking.owner_kind is OwnerKind.RESERVATION:
            made[inside_of(booking)] = PoolCalendar(fleet.pool(booking.pool), booking)
    for calendar in made.values():
        calendar.set_hosts(unready(hosts, calendar.pool))
    for booking in bookings:
        if booking.calendar in made:
            made[booking.calendar].add(booking)
    return made


def unready(hosts: Mapping[tuple[str, int], HostStatus], pool: Pool) -> dict[int, HostStatus]:
    """The units of a pool's hosts that are not READY."""
    return {
        unit: status
        for (name, host), status in hosts.items()
        if name == pool.name and status.state is not HostState.READY
        for unit in pool.units_of(host)
    }


def units_in_use(snapshot: FleetSnapshot, booking: Booking) -> frozenset[int]:
    """The units of a reservation's booking on which something runs."""
    inside = (b for b in snapshot.bookings.values() if b.parent == booking.id)
    return frozenset(u for b in inside if b.stage is Stage.LIVE for u in b.units)


def inside_of(booking: Booking) -> str:
    """The name of the calendar of what lies inside a booking."""
    return calendar_name(booking.pool, booking.id)
