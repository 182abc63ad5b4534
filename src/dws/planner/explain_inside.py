"""Why work aimed at a reservation does not start in it now."""

from __future__ import annotations

from dws.model.request import CapacityRequest
from dws.model.reservation import Reservation
from dws.planner import slices
from dws.planner.backfill import Pass
from dws.planner.explain_shared import unit_noun
from dws.planner.plan import Placement, Reason
from dws.planner.resolve import candidates_inside
from dws.planner.snapshot import inside_of


def why_inside(shadow: Pass, request: CapacityRequest, placement: Placement | None) -> Reason | None:
    """The reason, None when it is the same as it would be outside."""
    reservation = shadow.snapshot.reservations.get(request.demand.reservation)
    if reservation is None:
        return Reason(code="RESERVATION_OVER", text="the reservation it names is over")
    if not shadow.usable(request):
        return _unusable(shadow, request, reservation)
    if reservation.window.start > shadow.now:
        return Reason(
            code="RESERVATION_NOT_OPEN",
            text="waits for reservation {name}, which opens {at:time}",
            facts={"name": reservation.name, "at": reservation.window.start},
        )
    if request.not_again_before > shadow.now or request.demand.not_before > shadow.now:
        return None
    if placement is not None and placement.start <= shadow.now:
        return None
    booking = shadow.snapshot.bookings[reservation.booking or 0]
    pool = shadow.snapshot.fleet.pool(booking.pool)
    facts: dict[str, int | str] = {
        "name": reservation.name,
        "free": shadow.idle(inside_of(booking), None).total,
        "total": reservation.count * slices.units_each(reservation, pool),
        "end": reservation.window.end,
    }
    if placement is None:
        return Reason(
            code="RESERVATION_FULL",
            text=f"reservation {{name}} has {{free}} of its {{total}} {unit_noun(pool)} free, and not enough "
            + ("for as long" if reservation.is_open_ended else "for long enough before it ends {end:time}"),
            facts=facts,
        )
    return Reason(
        code="RESERVATION_FULL",
        text=f"reservation {{name}} has {{free}} of its {{total}} {unit_noun(pool)} free; needs {{need}}, "
        "free {at:time}",
        facts={**facts, "need": placement.count, "at": placement.start},
    )


def _unusable(shadow: Pass, request: CapacityRequest, reservation: Reservation) -> Reason:
    """Its project may not use the reservation, or not as much of it."""
    facts: dict[str, int | str] = {"name": reservation.name, "project": request.project}
    allowed = reservation.hosts_max_of(request.project)
    if allowed is None:
        return Reason(
            code="RESERVATION_NOT_SHARED",
            text="reservation {name} is not shared with project {project}",
            facts=facts,
        )
    booking = shadow.snapshot.bookings.get(reservation.booking or 0)
    inside = booking and candidates_inside(request.demand, shadow.snapshot.fleet, booking, reservation)
    if booking is None or not inside:
        held = f"{reservation.topology} slices" if reservation.topology else reservation.shape
        return Reason(
            code="RESERVATION_OTHER_KIND",
            text="reservation {name} holds {shape} in {zone}, which is not what is asked for",
            facts={**facts, "shape": held, "zone": reservation.zone},
        )
    pool = shadow.snapshot.fleet.pool(booking.pool)
    used = shadow.in_use.get((reservation.id, request.project), 0)
    need = min(c.units for c in inside)
    limit = min(allowed, reservation.terms.request_hosts_max or allowed)
    limit *= slices.units_each(reservation, pool)
    if need > limit or (reservation.limit_of(request.project) and used):
        return Reason(
            code="SHARE_LIMIT",
            text=f"needs {{need}} {unit_noun(pool)} of reservation {{name}}; project {{project}} may use "
            "{limit}, has {used}",
            facts={**facts, "need": need, "limit": limit, "used": used},
        )
    return Reason(
        code="RESERVATION_TOO_SHORT",
        text="does not fit into reservation {name}, which lasts until {end:time}",
        facts={**facts, "end": reservation.window.end},
    )
