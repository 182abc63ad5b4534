"""What must be true of every plan, asserted: by the tests, and by the simulator on every pass."""

from __future__ import annotations

from collections import Counter

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.evolve import evolve
from dws.model.request import CapacityRequest
from dws.model.time import FOREVER
from dws.planner import slices
from dws.planner.calendar import PoolCalendar
from dws.planner.eligible import eligible
from dws.planner.hold import Hold
from dws.planner.plan import Bind, Book, Move, Placement, Plan, Start, Withdraw
from dws.planner.resolve import Candidate
from dws.planner.snapshot import FleetSnapshot, inside_of, units_in_use


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
        if isinstance(decision, Bind):
            _hosts_are_bound(decision, snapshot, calendars, free)
            continue
        before = own.pop(decision.request, None)
        if before is not None:
            calendars[before.calendar].lift(before)
        if isinstance(decision, Withdraw):
            continue
        placement = decision.placement
        request = waiting[decision.request]
        assert request.demand.not_before <= placement.start <= request.demand.not_after
        _gang_is_whole(placement, snapshot, decision.request)
        if isinstance(decision, Start):
            assert placement.start == plan.now
            _units_are_free(placement, free[placement.calendar])
        span = placement.span
        calendars[placement.calendar].take(span.start, span.end, placement.parts)
        if not isinstance(decision, Start):
            own[decision.request] = _as_booking(placement, decision.request)
    lacking = _openly_lacking(plan, snapshot)
    for name, calendar in calendars.items():
        was = snapshot.calendars[name].least_free(plan.now, FOREVER)
        least = calendar.least_free(plan.now, FOREVER)
        assert least >= min(0, was, -lacking[name]), f"pool {name} is overbooked"
    for decision in plan.decisions:
        if isinstance(decision, Start | Book | Move):
            placed = decision.placement
            least = calendars[placed.calendar].least_free(placed.start, placed.span.end, placed.parts)
            assert least >= 0, f"request {decision.request} is placed where {placed.calendar} is full"


def _openly_lacking(plan: Plan, snapshot: FleetSnapshot) -> Counter[str]:
    """How many units reservations are said to lack after the plan, by pool: booked, though not there."""
    told = {d.reservation: d.short for d in plan.decisions if isinstance(d, Bind)}
    lacking: Counter[str] = Counter()
    for number, reservation in snapshot.reservations.items():
        each = slices.units_each(reservation, snapshot.fleet.pool(reservation.pool))
        lacking[reservation.pool] += each * told.get(number, reservation.short)
    return lacking


def _gang_is_whole(placement: Placement, snapshot: FleetSnapshot, request_id: int) -> None:
    request = next(r for r in snapshot.queue if r.id == request_id)
    candidate = next(
        c
        for c in eligible(request, snapshot, snapshot.in_use, lend_idle_s=FOREVER)
        if (c.alternative, c.calendar) == (placement.alternative, placement.calendar)
    )
    assert placement.count == candidate.units, "a gang is all or nothing"
    if candidate.inside is not None:
        assert candidate.inside.span.contains(placement.span), "a run lies inside its reservation"
    asked = placement.span.length_s == candidate.length_s or candidate.until_end
    assert asked or placement.span.is_open
    cells = {p.cell for p in placement.parts}
    assert any(cells <= set(g) for g in candidate.pool.groups(candidate.within)), "one group"
    _stands_as_asked(placement, candidate)
    per_cell: Counter[int] = Counter()
    for part in placement.parts:
        per_cell[part.cell] += part.count
    assert not any(n % candidate.piece.size for n in per_cell.values()), "an instance is whole on one host"


def _stands_as_asked(placement: Placement, candidate: Candidate) -> None:
    """Pieces are together, and apart, in each domain of the level that the candidate names."""
    piece = candidate.piece
    if piece.level:
        domains = candidate.pool.domains_by_cell(piece.level)
        taken: Counter[int] = Counter()
        for part in placement.parts:
            taken[domains[part.cell]] += part.count
        for domain, units in taken.items():
            number = units // piece.units
            assert domain >= 0, f"all are in some {piece.level}"
            assert piece.usable(number) == number, f"{number} are in one {piece.level}"


def _hosts_are_bound(
    decision: Bind,
    snapshot: FleetSnapshot,
    calendars: dict[str, PoolCalendar],
    free: dict[str, set[int]],
) -> None:
    """A reservation keeps its size: drawn, or still to be; what it draws is free."""
    reservation = snapshot.reservations[decision.reservation]
    booking = snapshot.bookings[reservation.booking or 0]
    assert sum(p.count for p in decision.parts) == booking.count, "a reservation never shrinks by itself"
    drawn = {u for p in decision.parts for u in p.units}
    gone = set(booking.units) - drawn
    assert not gone & units_in_use(snapshot, booking), "nothing is taken from under what runs in it"
    pool = snapshot.fleet.pool(booking.pool)
    hold = Hold.of(pool, reservation, evolve(booking, parts=decision.parts))
    assert not gone or Hold.of(pool, reservation, booking).short(), "what is whole it keeps"
    assert all(len({hold.booked[c] for c in run}) == 1 for run in hold.runs), "pieces are whole"
    new = drawn - set(booking.units)
    assert new <= free[booking.pool], "what a reservation draws is free"
    free[booking.pool] = (free[booking.pool] - new) | gone
    free[inside_of(booking)] -= gone
    bound = evolve(booking, parts=decision.parts)
    calendars[booking.pool].remove(booking)
    calendars[booking.pool].add(bound)
    if gone:
        calendars[inside_of(booking)].set_inside(bound)


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
        parent=placement.parent,
    )
