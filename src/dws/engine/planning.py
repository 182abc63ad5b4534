"""One pass of planning: snapshot, plan, commit what still holds.

The planner proposes from a copy; the writer commits. When the ledger moved in between, each decision is
checked again on its own and dropped if it no longer holds: the next pass will see why.
"""

from __future__ import annotations

from dataclasses import replace

from dws.engine import ledger, occupancy, windows
from dws.engine.books import Books
from dws.engine.committer import Committer
from dws.engine.executing import Executor, Job
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.booking import Booking
from dws.model.errors import DoubleBooking
from dws.model.evolve import evolve
from dws.model.names import BookingId
from dws.model.piece import Piece
from dws.model.request import CapacityRequest, Grant, Instance
from dws.model.time import FOREVER
from dws.model.topology import Pool
from dws.model.tpu import Topology
from dws.model.work import WorkKind
from dws.planner import backfill, explain, mesh, slices
from dws.planner.backfill import Pass
from dws.planner.options import PolicyOptions
from dws.planner.plan import Bind, Book, Move, Placement, Plan, Reason, Start, Withdraw
from dws.planner.recheck import Recheck
from dws.planner.resolve import shape_for


def plan_once(
    books: Books, committer: Committer, executor: Executor, policy: PolicyOptions, now: int
) -> tuple[Plan, list[Job]]:
    """Plan at `now` and commit. Returns the plan, whose `look_again_at` says when time alone will make
    another pass worthwhile, and what it started: leased, for the executor to carry out."""
    plan = backfill.plan(books.snapshot(), policy, now)
    if not plan.decisions:
        return plan, []
    return plan, committer.write(lambda w: _commit_and_lease(w, plan, executor), actor="planner")


def _commit_and_lease(w: Write, plan: Plan, executor: Executor) -> list[Job]:
    commit_plan(w, plan)
    return executor.lease(w, w.now)


def start_now(w: Write, request: CapacityRequest) -> Reason | None:
    """Start a request that was submitted in this very write, where a pass of planning would start it now.

    Returns why it would not, and from when it could; None when it started, or will with what else that pass
    decides.
    """
    snapshot = w.books.snapshot()
    patient = evolve(request, demand=evolve(request.demand, not_after=FOREVER))
    queue = tuple(patient if r.id == request.id else r for r in snapshot.queue)
    shadow = Pass(replace(snapshot, queue=queue), w.policy, w.now)
    shadow.run()
    for decision in shadow.decisions:
        if isinstance(decision, Start) and decision.request == request.id:
            if Recheck(w.books.snapshot(), w.now, w.policy).why_not(decision) is None:
                start(w, request, decision.placement)
                _check_peaks(w, _cells(w, request.id))
            return None
    return explain.walk(shadow, until=request.id)[request.id].reason


def commit_plan(w: Write, plan: Plan) -> int:
    """Write the decisions that still hold; returns how many."""
    unmoved = w.books.version == plan.ledger_version
    again = None if unmoved else Recheck(w.books.snapshot(), w.now, w.policy)
    written = 0
    touched: set[tuple[str, int]] = set()
    for decision in plan.decisions:
        if isinstance(decision, Bind):
            if again is None or again.why_not(decision) is None:
                windows.bind(w, decision)
                written += 1
            continue
        request = w.books.waiting.get(decision.request)
        if request is None:
            continue
        if again is not None and again.why_not(decision) is not None:
            continue
        _write(w, request, decision)
        written += 1
        touched.update(_cells(w, decision.request))
    _check_peaks(w, touched)
    return written


def _cells(w: Write, request_id: int) -> set[tuple[str, int]]:
    request = w.books.waiting.get(request_id) or w.books.holding.get(request_id)
    booking = w.books.bookings.get(request.booking or 0) if request is not None else None
    if booking is None or booking.parent:
        return set()
    return {(booking.pool, part.cell) for part in booking.parts}


def _check_peaks(w: Write, cells: set[tuple[str, int]]) -> None:
    """The store's own count must agree that nothing is promised twice: if it does not, nothing of the plan
    is written."""
    for pool_name, index in sorted(cells):
        cell = w.books.fleet.pool(pool_name).cells[index]
        peak = w.tx.peak(pool_name, index, w.now, FOREVER)
        if peak > cell.size + ledger.openly_lacking(w.books, pool_name, index):
            what = "accelerators" if w.books.fleet.pool(pool_name).is_shared else "hosts"
            raise DoubleBooking(
                f"pool {pool_name}, {cell.level} {cell.name}: {peak} {what} would be booked at one instant, "
                f"there are {cell.size}; the plan was not committed"
            )


def _write(w: Write, request: CapacityRequest, decision: Start | Book | Move | Withdraw) -> None:
    match decision:
        case Start(placement=placement):
            start(w, request, placement)
        case Book(placement=placement):
            booking = ledger.promise(w, request, placement)
            w.apply(request, ev.Booked(booking=booking.id, start=placement.start))
        case Move(placement=placement, cause=cause):
            booking = ledger.promise(w, request, placement)
            event = ev.Moved(booking=booking.id, start=placement.start, cause=cause)
            w.apply(request, event, reason=cause)
        case Withdraw(cause=cause):
            ledger.end(w, request.booking)
            w.apply(request, ev.Unbooked(cause=cause), reason=cause)


def start(w: Write, request: CapacityRequest, placement: Placement) -> CapacityRequest:
    """Draw the hosts and ask for them."""
    pool = w.books.fleet.pool(placement.pool)
    booking = ledger.go_live(w, request, placement)
    holder = w.books.bookings.get(BookingId(placement.parent))
    reservation = w.books.reservations[holder.owner] if holder is not None else None
    alternative = request.demand.alternatives[placement.alternative]
    shape = shape_for(alternative, pool, reservation.shape if reservation is not None else "")
    topology = slices.in_pool(alternative, pool)
    grant = Grant(
        booking=booking.id,
        attempt=request.attempts + 1,
        alternative=placement.alternative,
        pool=pool.name,
        zone=pool.zone,
        shape=shape.name,
        duration_s=placement.duration_s,
        started_at=w.now,
        reservation=reservation.id if reservation is not None else 0,
        instances=_instances(pool, booking, pool.piece_held(shape.name), topology),
        topology=str(topology or ""),
        slices=slices.number(alternative) if topology is not None else 0,
    )
    request = w.apply(request, ev.Started(booking=booking.id, grant=grant))
    w.wake(request.id, WorkKind.DELIVERY_DEADLINE, w.now + pool.overheads.setup_s)
    if request.demand.reservation:  # what is lent is not used by its owner
        occupancy.used(w, grant.reservation)
    return request


def _instances(
    pool: Pool, booking: Booking, piece: Piece, topology: Topology | None
) -> tuple[Instance, ...]:
    """One instance for each piece of what was drawn, in the order of the line; those of slices row by row."""
    units = booking.units
    machines = [units[i : i + piece.size] for i in range(0, len(units), piece.size)]
    return tuple(
        Instance(
            rank=rank,
            unit=pool.host_of(own[0]),
            host=pool.hosts[pool.host_of(own[0])],
            slots=pool.slots_of(own),
        )
        for rank, own in enumerate(machines if topology is None else mesh.ranked(pool, topology, machines))
    )
