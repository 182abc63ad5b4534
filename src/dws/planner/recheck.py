"""A plan's decisions, checked again on a newer snapshot, one after the other.

Somebody else may have written between plan and commit. Each decision is held against the ledger as it is by
then, with the decisions kept before it; what does not hold any more is dropped, with the reason.
"""

from __future__ import annotations

from dws.model.evolve import evolve
from dws.model.request import CapacityRequest
from dws.model.time import Span
from dws.planner.backfill import Pass
from dws.planner.options import DEFAULT_POLICY, PolicyOptions
from dws.planner.plan import Bind, Decision, Placement, Reason, Start, Withdraw
from dws.planner.snapshot import FleetSnapshot, inside_of, units_in_use


def still_holds(
    decision: Decision, snapshot: FleetSnapshot, now: int, options: PolicyOptions = DEFAULT_POLICY
) -> Reason | None:
    """None when a decision made on an older snapshot may still be committed, else why not."""
    return Recheck(snapshot, now, options).why_not(decision)


class Recheck:
    """The snapshot, and what has been kept so far."""

    def __init__(self, snapshot: FleetSnapshot, now: int, options: PolicyOptions) -> None:
        self._state = Pass(snapshot, options, now)
        self._waiting: dict[int, CapacityRequest] = {r.id: r for r in snapshot.queue}

    def why_not(self, decision: Decision) -> Reason | None:
        """None when the decision holds, and then it counts for those after it; else why it does not."""
        if isinstance(decision, Bind):
            return self._why_not_bound(decision)
        request = self._waiting.get(decision.request)
        if request is None:
            return Reason(code="NOT_WAITING", text="the request does not wait any more")
        promise = self._state.lift(request)
        if isinstance(decision, Withdraw):
            self._state.promises.pop(request.id, None)
            return None
        reason = self._fits(decision.placement, request, starts=isinstance(decision, Start))
        if reason is not None:
            self._state.drop(promise)
            return reason
        if isinstance(decision, Start):
            del self._waiting[request.id]
            self._state.promises.pop(request.id, None)
            calendar = self._state.calendar(decision.placement.calendar)
            calendar.occupy(decision.placement.parts)
            parts, span = decision.placement.parts, decision.placement.span
            calendar.take(span.start, span.end, parts)
        else:
            self._state.hold(request, decision.placement)
        return None

    def _why_not_bound(self, decision: Bind) -> Reason | None:
        """Hosts are bound to a reservation only on the very ledger row they were chosen for."""
        reservation = self._state.snapshot.reservations.get(decision.reservation)
        booking = self._state.snapshot.bookings.get(reservation.booking or 0) if reservation else None
        if booking is None or booking.version != decision.version:
            return Reason(code="CHANGED", text="the reservation was changed in the meantime")
        calendar = self._state.calendar(booking.pool)
        had = set(booking.units)
        if any(set(p.units) - had - set(calendar.idle_units(p.cell)) for p in decision.parts):
            return Reason(code="TAKEN", text="a host was taken in the meantime")
        bound = evolve(booking, parts=decision.parts)
        gone = had - set(bound.units)
        if gone & units_in_use(self._state.snapshot, booking):
            return Reason(code="TAKEN", text="work was started in the meantime on what is to be given up")
        calendar.remove(booking)
        calendar.add(bound)
        if gone:
            self._state.calendar(inside_of(booking)).set_inside(bound)
        return None

    def _fits(self, placement: Placement, request: CapacityRequest, *, starts: bool) -> Reason | None:
        if not self._is_asked_for(placement, request):
            return Reason(code="CHANGED", text="what is asked for, or where it may be, has changed")
        calendar = self._state.calendar(placement.calendar)
        span = placement.span
        calendar.take(span.start, span.end, placement.parts)
        least = calendar.least_free(max(self._state.now, span.start), span.end, placement.parts)
        calendar.give(span.start, span.end, placement.parts)
        if least < 0:
            return Reason(code="TAKEN", text="the capacity was taken in the meantime")
        if starts and any(set(p.units) - set(calendar.idle_units(p.cell)) for p in placement.parts):
            return Reason(code="TAKEN", text="a host was taken in the meantime")
        return None

    def _is_asked_for(self, placement: Placement, request: CapacityRequest) -> bool:
        """True when the placement is one of the request's demand as it is now."""
        window = Span(request.demand.not_before, request.demand.not_after + 1)
        return window.covers(placement.start) and any(
            (c.alternative, c.calendar, c.units)
            == (placement.alternative, placement.calendar, placement.count)
            and (c.until_end or c.duration_s == placement.duration_s)
            for c in self._state.usable(request)
        )
