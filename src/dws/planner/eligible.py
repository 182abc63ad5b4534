"""Where a request may run: in which pools, and inside which reservations.

What it is of is `dws.planner.resolve`'s business; here it is held against what is open to it: pools and zones
that are available, reservations of its own project or shared with it, within their terms.
"""

from __future__ import annotations

from collections.abc import Mapping

from dws.model.demand import ANY_RESERVATION
from dws.model.evolve import evolve
from dws.model.request import CapacityRequest
from dws.model.reservation import Reservation
from dws.planner import slices
from dws.planner.resolve import Candidate, candidates, candidates_inside
from dws.planner.snapshot import FleetSnapshot


def kind_of(request: CapacityRequest) -> object:
    """What requests have in common that may run in the same places, in the same way."""
    demand = request.demand
    if not demand.reservation:
        return demand.alternatives
    return demand.alternatives, demand.reservation, request.project


def eligible(
    request: CapacityRequest,
    snapshot: FleetSnapshot,
    in_use: Mapping[tuple[int, str], int],
    lend_idle_s: int = 0,
) -> tuple[Candidate, ...]:
    """Candidates that the empty fleet could hold, in pools and zones that are available; those inside a
    reservation first, and no others for who names one; those in hosts that a reservation lends, last."""
    fleet, demand = snapshot.fleet, request.demand
    found = [c for r in _open_to(request, snapshot) for c in _inside(request, r, snapshot, in_use)]
    if demand.reservation <= 0:
        found += candidates(demand, fleet)
    if lend_idle_s and not demand.reservation:
        found += _lent(request, snapshot, lend_idle_s)
    closed = {z.name for z in fleet.zones if z.unavailable}
    return tuple(
        c
        for c in found
        if c.could_ever_fit and not c.pool.unavailable and c.pool.zone not in closed
    )


def _lent(
    request: CapacityRequest, snapshot: FleetSnapshot, lend_idle_s: int
) -> list[Candidate]:
    """Candidates in open reservations that are over before their owner would have to wait too long."""
    found = []
    for reservation in sorted(snapshot.reservations.values(), key=lambda r: (r.window.end, r.id)):
        booking = snapshot.bookings.get(reservation.booking or 0)
        if booking is not None and reservation.state.is_open:
            inside = candidates_inside(request.demand, snapshot.fleet, booking, reservation)
            found += [evolve(c, lent=True) for c in inside if c.length_s <= lend_idle_s]
    return found


def _open_to(request: CapacityRequest, snapshot: FleetSnapshot) -> list[Reservation]:
    """The reservations that the request may use."""
    wanted = request.demand.reservation
    if wanted > 0:
        return [snapshot.reservations[wanted]] if wanted in snapshot.reservations else []
    if wanted != ANY_RESERVATION:
        return []
    found = [r for r in snapshot.reservations.values() if r.state.is_open and not r.terms.specific_only]
    return sorted(found, key=lambda r: (r.window.end, r.id))


def _inside(
    request: CapacityRequest,
    reservation: Reservation,
    snapshot: FleetSnapshot,
    in_use: Mapping[tuple[int, str], int],
) -> tuple[Candidate, ...]:
    """The request's candidates in a reservation, as many hosts at once as its project may have there."""
    allowed = reservation.hosts_max_of(request.project)
    booking = snapshot.bookings.get(reservation.booking or 0)
    if allowed is None or booking is None:
        return ()
    each = slices.units_each(reservation, snapshot.fleet.pool(booking.pool))
    limit = reservation.limit_of(request.project)
    used = in_use.get((reservation.id, request.project), 0)
    terms = reservation.terms
    return tuple(
        c
        for c in candidates_inside(request.demand, snapshot.fleet, booking, reservation)
        if c.units <= allowed * each
        and (not limit or c.units + used <= limit * each)
        and (not terms.request_hosts_max or c.units <= terms.request_hosts_max * each)
        and c.duration_s <= (terms.request_run_max_s or c.duration_s)
    )
