"""The planner's input: the fleet and its bookings at one version. Immutable by agreement: a pass forks
the calendars before it books in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dws.model.booking import Booking
from dws.model.demand import Alternative
from dws.model.request import CapacityRequest
from dws.model.topology import Fleet, HostState, HostStatus
from dws.planner.calendar import PoolCalendar
from dws.planner.resolve import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSnapshot:
    """Everything a pass may know. `bookings` are the open ones, `hosts` those not READY, or READY but
    doubted, by (pool, unit), `queue` the waiting requests in any order. `usable` remembers, for as long as
    the fleet is the same, what each list of alternatives comes to."""

    ledger_version: int
    fleet: Fleet
    bookings: Mapping[int, Booking]
    hosts: Mapping[tuple[str, int], HostStatus]
    queue: tuple[CapacityRequest, ...]
    calendars: Mapping[str, PoolCalendar]
    usable: dict[tuple[Alternative, ...], tuple[Candidate, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )


def build(
    fleet: Fleet,
    *,
    bookings: Iterable[Booking] = (),
    hosts: Iterable[HostStatus] = (),
    queue: Iterable[CapacityRequest] = (),
    ledger_version: int = 0,
) -> FleetSnapshot:
    """A snapshot with its calendars made from nothing."""
    by_id: dict[int, Booking] = {b.id: b for b in bookings}
    statuses = {(h.pool, h.unit): h for h in hosts}
    calendars = {}
    for pool in fleet.pools:
        calendar = PoolCalendar(pool)
        calendar.set_hosts(
            {
                u: h
                for (p, u), h in statuses.items()
                if p == pool.name and h.state is not HostState.READY
            }
        )
        for booking in by_id.values():
            if booking.pool == pool.name:
                calendar.add(booking)
        calendars[pool.name] = calendar
    return FleetSnapshot(
        ledger_version=ledger_version,
        fleet=fleet,
        bookings=by_id,
        hosts=statuses,
        queue=tuple(queue),
        calendars=calendars,
    )
