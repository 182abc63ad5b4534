"""Timers: what falls due by time alone, each one small step of a lifecycle.

A timer compares with the row when it fires, so one that fires late, twice or after the fact does
nothing. Timers never call a backend.
"""

from __future__ import annotations

from typing import Final

from dws.engine import hosts, instances, ledger, maintenance, series, trust, windows
from dws.engine.committer import Committer
from dws.engine.executing import Executor, Job
from dws.engine.ports import Store
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.names import BookingId
from dws.model.request import CapacityRequest, EndReason, InstanceState, RequestState
from dws.model.work import WorkItem, WorkKind

FIRE_BATCH: Final = 256
FORGET_BATCH: Final = 500
ANSWER_GRACE_S: Final = 60
"""How long past its set-up limit an order may go unanswered before the attempt is given up."""
DAY_S: Final = 86_400
TIMERS: Final = tuple(k for k in WorkKind if not k.calls_backend)


def fire_due(store: Store, committer: Committer, executor: Executor, now: int) -> int:
    """Fire the timers due at `now`, and have carried out what they made due; returns how many fired."""
    with store.read() as reader:
        if not reader.due_work(now, limit=1, kinds=TIMERS):
            return 0
    fired, jobs = committer.write(lambda w: _fire_batch(w, executor, now), actor="scheduler")
    executor.carry_out(jobs)
    return fired


def _fire_batch(w: Write, executor: Executor, now: int) -> tuple[int, list[Job]]:
    items = w.tx.due_work(now, limit=FIRE_BATCH, kinds=TIMERS)
    for item in items:
        w.tx.unschedule(item.subject, (item.kind,), item.tag)
        _fire(w, item)
    return len(items), executor.lease(w, now)


def _fire(w: Write, item: WorkItem) -> None:
    if item.kind is WorkKind.OUTAGE_END:
        pool, _, unit = item.tag.rpartition("/")
        hosts.not_back_yet(w, pool, int(unit))
        return
    if item.kind is WorkKind.RETENTION:
        forgotten = w.tx.forget_before(w.now - w.policy.retention_s, limit=FORGET_BATCH)
        again = w.now if forgotten == FORGET_BATCH else w.now + DAY_S
        w.wake(0, WorkKind.RETENTION, again)
        return
    if item.kind in (WorkKind.MAINTENANCE_START, WorkKind.MAINTENANCE_END):
        window = w.books.bookings.get(BookingId(item.subject))
        if window is not None:
            step = maintenance.begin if item.kind is WorkKind.MAINTENANCE_START else maintenance.end
            step(w, window)
        return
    if item.kind is WorkKind.SERIES_NEXT:
        due = w.tx.series(item.subject)
        if due is not None:
            series.book_next(w, due)
        return
    reservation = w.books.reservations.get(item.subject)
    if reservation is not None:
        windows.fire(w, reservation, item)
        return
    waiting = w.books.waiting.get(item.subject)
    if waiting is not None and item.kind is WorkKind.EXPIRE:
        _expire(w, waiting)
    holding = w.books.holding.get(item.subject)
    if holding is not None:
        _fire_on_holder(w, holding, item)


def _expire(w: Write, request: CapacityRequest) -> None:
    if w.now > request.demand.not_after:
        ledger.end(w, request.booking)
        w.apply(request, ev.WindowClosed(), reason="waited as long as it was willing to")


def _fire_on_holder(w: Write, request: CapacityRequest, item: WorkItem) -> None:
    match item.kind:
        case WorkKind.DELIVERY_DEADLINE:
            _too_slow(w, request)
        case WorkKind.WARN:
            _warn(w, request, int(item.tag))
        case WorkKind.RUN_END:
            _run_is_over(w, request)
        case WorkKind.OVERRUN:
            _not_back_yet(w, request, told=item.attempt > 0)
        case WorkKind.UNREACHABLE:
            _still_unreachable(w, request)


def _too_slow(w: Write, request: CapacityRequest) -> None:
    if request.state is not RequestState.PROVISIONING:
        return
    grant = instances.granted(request)
    setup_s = w.books.fleet.pool(grant.pool).overheads.setup_s
    if _is_being_asked(w, request) and w.now < grant.started_at + setup_s + ANSWER_GRACE_S:
        w.wake(request.id, WorkKind.DELIVERY_DEADLINE, w.now + 1)
        return
    up = sum(1 for i in grant.instances if i.state is not InstanceState.STARTING)
    cause = f"{up} of {len(grant.instances)} instances were up after the set-up limit of {setup_s} s"
    for instance in grant.instances:
        if instance.state is InstanceState.STARTING:
            trust.doubt(w, w.books.fleet.pool(grant.pool), instance.unit, "did not come up in time")
    instances.failed(w, request, cause, may_retry=True, phase="provisioning")


def _is_being_asked(w: Write, request: CapacityRequest) -> bool:
    """True while the backend has not answered the order yet: what it says decides, not the clock."""
    return any(
        item.kind is WorkKind.PROVISION and item.due_at <= w.now for item in w.tx.work(request.id)
    )


def _warn(w: Write, request: CapacityRequest, lead_s: int) -> None:
    grant = instances.granted(request)
    if request.state is RequestState.ACTIVE and lead_s not in grant.warned_s:
        w.apply(request, ev.Warned(lead_s=lead_s, ends_at=grant.ends_at))


def _run_is_over(w: Write, request: CapacityRequest) -> None:
    grant = instances.granted(request)
    if request.state is not RequestState.ACTIVE:
        return
    if grant.ends_at > w.now:
        w.wake(request.id, WorkKind.RUN_END, grant.ends_at)
        return
    instances.ended(w, request, EndReason.DURATION_REACHED, "the run duration was reached")


def _not_back_yet(w: Write, request: CapacityRequest, *, told: bool) -> None:
    """Hosts not confirmed free in time are kept, openly, and asked for again, harder."""
    if request.state is not RequestState.ENDING:
        return
    grant = instances.granted(request)
    booking = w.books.bookings.get(grant.booking)
    if booking is None:
        return
    if booking.span.end > w.now:
        w.wake(request.id, WorkKind.OVERRUN, booking.span.end)
        return
    step_s = w.policy.overrun_step_s
    if not told:
        late = [i.host for i in grant.instances if i.is_held]
        reason = f"not confirmed free: {', '.join(late[:5])}"
        w.apply(request, ev.Overran(expected_by=booking.span.end), reason=reason)
    ledger.set_end(w, grant.booking, w.now + step_s)
    w.tx.schedule(
        (
            WorkItem(kind=WorkKind.RELEASE, subject=request.id, due_at=w.now, attempt=1),
            WorkItem(kind=WorkKind.OVERRUN, subject=request.id, due_at=w.now + step_s, attempt=1),
        )
    )


def _still_unreachable(w: Write, request: CapacityRequest) -> None:
    grant = instances.granted(request)
    since = grant.unreachable_since
    if not since or w.now < since + w.policy.unreachable_grace_s:
        return
    cause = f"unreachable for {w.now - since} s"
    for instance in grant.instances:
        current = w.books.holding.get(request.id)
        if current is not None and instance.is_held:
            instances.lost(w, current, instance.rank, cause)
