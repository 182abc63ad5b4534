"""What must be true of every plan, asserted: by the tests, and by the simulator on every pass."""

from __future__ import annotations

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.request import CapacityRequest
from dws.model.time import FOREVER
from dws.planner.plan import Placement, Plan, Start, Withdraw
from dws.planner.resolve import candidates
from dws.planner.snapshot import FleetSnapshot


def check(plan: Plan, snapshot: FleetSnapshot) -> None:
    """Raises AssertionError naming the first decision that breaks an invariant: never overbooked, a gang
    is whole and in one group, starts name free and ready units, windows are respected."""
    calendars = {name: c.fork() for name, c in snapshot.calendars.items()}
    own = {
        b.owner: b
        for b in snapshot.bookings.values()
        if b.owner_kind is OwnerKind.REQUEST and b.stage is Stage.FIRM
    }
    free = {
        name: {u for cell in range(len(c.pool.cells)) for u in c.idle_units(cell)}
        for name, c in calendars.items()
    }
    waiting: dict[int, CapacityRequest] = {r.id: r for r in snapshot.queue}
    for decision in plan.decisions:
        before = own.pop(decision.request, None)
        if before is not None:
            calendars[before.pool].lift(before)
        if isinstance(decision, Withdraw):
            continue
        placement = decision.placement
        request = waiting[decision.request]
        assert request.demand.not_before <= placement.start <= request.demand.not_after
        _gang_is_whole(placement, snapshot, decision.request)
        if isinstance(decision, Start):
            assert placement.start == plan.now
            _units_are_free(placement, free[placement.pool])
        calendars[placement.pool].take(placement.span.start, placement.span.end, placement.parts)
        if not isinstance(decision, Start):
            own[decision.request] = _as_booking(placement, decision.request)
    for name, calendar in calendars.items():
        assert calendar.least_free(plan.now, FOREVER) >= min(
            0, snapshot.calendars[name].least_free(plan.now, FOREVER)
        ), f"pool {name} is overbooked"


def _gang_is_whole(placement: Placement, snapshot: FleetSnapshot, request_id: int) -> None:
    request = next(r for r in snapshot.queue if r.id == request_id)
    candidate = next(
        c
        for c in candidates(request.demand, snapshot.fleet)
        if (c.alternative, c.pool.name) == (placement.alternative, placement.pool)
    )
    assert placement.count == candidate.count, "a gang is all or nothing"
    assert placement.span.length_s == candidate.length_s or placement.span.is_open
    cells = {p.cell for p in placement.parts}
    assert any(cells <= set(g) for g in candidate.pool.groups(candidate.within)), "one group"


def _units_are_free(placement: Placement, free: set[int]) -> None:
    for part in placement.parts:
        assert len(part.units) == part.count, "a start names its units"
        for unit in part.units:
            assert unit in free, f"unit {unit} is not free"
            free.remove(unit)


def _as_booking(placement: Placement, owner: int) -> Booking:
    return Booking(
        id=0,  # type: ignore[arg-type]
        pool=placement.pool,
        span=placement.span,
        stage=Stage.FIRM,
        owner_kind=OwnerKind.REQUEST,
        owner=owner,
        parts=tuple(Part(cell=p.cell, count=p.count) for p in placement.parts),
    )
