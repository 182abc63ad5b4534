"""From what backends saw to what became of a request.

A backend reports facts ("rank 3 is running", "host 7 is down"); this module concludes: delivered,
failed, replaced, over. Facts may come twice, late or out of order: each is compared with the row first,
and one that changes nothing writes nothing.

    facts ─▶ InstancesRan · InstanceExited · InstanceLost · InstancesReleased
                  └─ all up ─▶ Delivered    └─ last out ─▶ Ended    └─ all back ─▶ Returned
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from dws.engine import ledger, occupancy, orphans, trust
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.booking import Stage
from dws.model.names import BookingId
from dws.model.piece import Piece
from dws.model.request import (
    CapacityRequest,
    EndReason,
    Grant,
    HostLossPolicy,
    Instance,
    InstanceState,
    RequestState,
)
from dws.model.topology import Pool
from dws.model.usage import UsageKind, UsageRecord
from dws.model.work import WorkKind
from dws.planner import advise
from dws.planner.resolve import grouped

KEYS_KEPT: Final = 8_192
_UP = (InstanceState.RUNNING, InstanceState.EXITED)


def granted(request: CapacityRequest) -> Grant:
    """The request's grant; asserts that it has one."""
    assert request.grant is not None, f"request {request.id} is {request.state} without a grant"
    return request.grant


def order_key(request: CapacityRequest, incarnation: int = 0) -> str:
    """The exactly-once token of the request's present attempt, `ID-ATTEMPT[-INCARNATION]`."""
    key = f"{request.id}-{granted(request).attempt}"
    return f"{key}-{incarnation}" if incarnation else key


@lru_cache(maxsize=KEYS_KEPT)
def parse_key(key: str) -> tuple[int, int, int] | None:
    """(request id, attempt, incarnation) of an order key, None when it is not one of ours."""
    parts = key.split("-")
    if not 2 <= len(parts) <= 3 or not all(p.isdecimal() for p in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2]) if len(parts) == 3 else 0


# --- coming up --------------------------------------------------------------------------------


def ran(w: Write, request: CapacityRequest, addresses: dict[int, str]) -> CapacityRequest:
    """Instances are running; when the whole gang is up for the first time, it is delivered."""
    grant = granted(request)
    new = {
        i.rank: addresses[i.rank]
        for i in grant.instances
        if i.rank in addresses and i.state is InstanceState.STARTING
    }
    if request.state not in (RequestState.PROVISIONING, RequestState.ACTIVE) or not new:
        return request
    for instance in grant.instances:
        if instance.rank in new and (grant.pool, instance.unit) in w.books.hosts:
            trust.trust(w, w.books.fleet.pool(grant.pool), instance.unit)
    request = w.apply(request, ev.InstancesRan(attempt=grant.attempt, addresses=new))
    return _deliver_if_whole(w, request)


def _deliver_if_whole(w: Write, request: CapacityRequest) -> CapacityRequest:
    grant = granted(request)
    if request.state is not RequestState.PROVISIONING or not all(
        i.state in _UP for i in grant.instances
    ):
        return request
    pool = w.books.fleet.pool(grant.pool)
    ends_at = request.demand.ends_at(w.now, grant.duration_s)
    holder = w.books.bookings.get(BookingId(w.books.bookings[grant.booking].parent))
    if holder is not None:  # delivered late, it still ends with its reservation
        ends_at = max(w.now, min(ends_at, holder.span.end - pool.overheads.after_run_s))
    request = w.apply(request, ev.Delivered(ends_at=ends_at))
    ledger.set_end(w, grant.booking, ends_at + pool.overheads.after_run_s)
    if ends_at != grant.started_at + pool.overheads.setup_s + grant.duration_s:
        w.wake(request.id, WorkKind.SET_DEADLINE, w.now)
    schedule_warnings(w, request)
    return _end_if_programs_are_over(w, request)


def schedule_warnings(w: Write, request: CapacityRequest) -> None:
    """Timers for each lead time that still lies ahead."""
    ends_at = granted(request).ends_at
    w.tx.unschedule(request.id, (WorkKind.WARN,))
    for lead in w.policy.warning_leads_s:
        if ends_at - lead > w.now:
            w.wake(request.id, WorkKind.WARN, ends_at - lead, tag=str(lead))


def failed(
    w: Write, request: CapacityRequest, cause: str, *, may_retry: bool, phase: str
) -> CapacityRequest:
    """An attempt did not come up: give everything back, and wait again if another may succeed."""
    if request.state is not RequestState.PROVISIONING:
        return request
    failures = request.failures + 1
    may_retry = may_retry and (w.policy.attempts_max == 0 or failures < w.policy.attempts_max)
    event = ev.DeliveryFailed(
        cause=cause,
        may_retry=may_retry,
        not_again_before=w.now + back_off_s(w, request) if may_retry else 0,
    )
    request = w.apply(request, event, reason=phase)
    return give_back_soon(w, request)


def back_off_s(w: Write, request: CapacityRequest) -> int:
    """Capped exponential back-off with a jitter that depends on nothing but the request."""
    plain = min(
        w.policy.retry_backoff_s << min(request.failures, 30), w.policy.retry_backoff_max_s
    )
    seed = hashlib.blake2b(f"{request.id}:{request.failures}".encode(), digest_size=4).digest()
    return plain + int.from_bytes(seed) % (plain // 4 + 1)


# --- going away -------------------------------------------------------------------------------


def exited(w: Write, request: CapacityRequest, rank: int, code: int) -> CapacityRequest:
    """The program of an instance ended by itself."""
    grant = granted(request)
    instance = instance_of(grant, rank)
    if instance is None or instance.exit_code is not None or not instance.is_held:
        return request
    if request.state is RequestState.ENDING:
        return w.apply(request, ev.InstanceExited(rank=rank, attempt=grant.attempt, code=code))
    if request.state not in (RequestState.PROVISIONING, RequestState.ACTIVE):
        return request
    if instance.state is InstanceState.RELEASING:
        return request
    if instance.state is InstanceState.STARTING:
        request = ran(w, request, {rank: instance.address})
        if request.state is RequestState.ENDING:
            return request
    request = w.apply(request, ev.InstanceExited(rank=rank, attempt=grant.attempt, code=code))
    request = _deliver_if_whole(w, request)
    return _end_if_programs_are_over(w, request)


def _end_if_programs_are_over(w: Write, request: CapacityRequest) -> CapacityRequest:
    """One program that failed ends the gang; the last one to succeed ends it well."""
    if request.state is not RequestState.ACTIVE:
        return request
    grant = granted(request)
    bad = next((i for i in grant.instances if i.exit_code not in (None, 0)), None)
    if bad is not None:
        message = f"the program of rank {bad.rank} on {bad.host} exited with status {bad.exit_code}"
        return ended(w, request, EndReason.PROGRAM_FAILED, message)
    at_work = [i for i in grant.instances if i.is_held and i.state is not InstanceState.EXITED]
    if not at_work:
        return ended(w, request, EndReason.PROGRAM_SUCCEEDED, "every program exited with status 0")
    return request


def ended(
    w: Write,
    request: CapacityRequest,
    why: EndReason,
    message: str,
    *,
    requeue: bool = False,
    actor: str = "",
) -> CapacityRequest:
    """The run is over: meter it, and give the instances back."""
    _meter(w, request, {i.rank for i in granted(request).instances})
    request = w.apply(
        request, ev.Ended(why=why, message=message, requeue=requeue), reason=message, actor=actor
    )
    return give_back_soon(w, request)


def give_back_soon(w: Write, request: CapacityRequest) -> CapacityRequest:
    """On its way out: the booking shrinks to grace and tear-down, with a deadline to look again."""
    grant = granted(request)
    booking = w.books.bookings.get(grant.booking)
    if booking is None or not any(i.is_held for i in grant.instances):
        return _return_if_empty(w, request)
    after = w.books.fleet.pool(grant.pool).overheads.after_run_s
    by = min(booking.span.end, w.now + after)
    ledger.set_end(w, grant.booking, by)
    w.wake(request.id, WorkKind.OVERRUN, max(by, w.now + 1))
    return request


def released(w: Write, request: CapacityRequest, ranks: set[int]) -> CapacityRequest:
    """The backend confirmed that instances are gone: their hosts are free, or the request is over."""
    grant = granted(request)
    gone = [i for i in grant.instances if i.rank in ranks and i.is_held]
    if request.state not in (RequestState.ACTIVE, RequestState.ENDING) or not gone:
        return request
    event = ev.InstancesReleased(attempt=grant.attempt, ranks=tuple(i.rank for i in gone))
    request = w.apply(request, event)
    pool = w.books.fleet.pool(grant.pool)
    ledger.give_back(w, grant.booking, _free_with(request, pool, gone))
    return _return_if_empty(w, request)


def _free_with(request: CapacityRequest, pool: Pool, gone: Iterable[Instance]) -> set[int]:
    """The units that are free now that these instances are gone: a slice is free as a whole."""
    together = [granted(request).slice_mates(i.rank) for i in gone]
    free = [i for mates in together if not any(m.is_held for m in mates) for i in mates]
    return {u for i in free for u in pool.units_at(i.unit, i.slots)}


def _return_if_empty(w: Write, request: CapacityRequest) -> CapacityRequest:
    grant = granted(request)
    if any(i.is_held for i in grant.instances):
        return request
    if request.state is RequestState.ACTIVE:
        request = w.apply(
            request, ev.Ended(why=EndReason.RELEASED, message="every instance was given back")
        )
    if not grant.delivered_at:
        _note_failed_attempt(w, request)
    ledger.end(w, grant.booking)
    request = w.apply(request, ev.Returned())
    if grant.reservation:
        occupancy.left(w, request, grant.reservation)
    return request


def lost(
    w: Write, request: CapacityRequest, rank: int, cause: str, *, may_replace: bool = True
) -> CapacityRequest:
    """An instance is gone for good: the gang fails, waits again or gets a spare, by its policy. No spare
    stands where one of a slice did, so who asked for one waits again: it moves as a whole.

    Not `may_replace`: the backend has just refused a spare, and asking for the next one at once would
    never end.
    """
    grant = granted(request)
    instance = instance_of(grant, rank)
    if instance is None or not instance.is_held or request.state.is_terminal:
        return request
    _meter(w, request, {rank})
    was = request.state
    request = w.apply(
        request,
        ev.InstanceLost(rank=rank, attempt=grant.attempt, host=instance.host, cause=cause),
        reason=cause,
    )
    pool = w.books.fleet.pool(grant.pool)
    is_running = was is RequestState.ACTIVE and instance.state is not InstanceState.RELEASING
    wants_spare = is_running and may_replace and request.on_host_loss is HostLossPolicy.REPLACE
    is_replaced = wants_spare and not grant.is_torn_by_loss and _replace(w, request, instance)
    gone = set(pool.units_at(instance.unit, instance.slots))
    ledger.give_back(w, grant.booking, gone | _free_with(request, pool, [instance]))
    orphans.give_back(
        w,
        backend=pool.backend,
        key=order_key(request, instance.incarnation),
        rank=rank,
        unit=instance.unit,
    )
    message = f"lost {instance.host}: {cause}"
    if was is RequestState.PROVISIONING:
        return failed(w, request, message, may_retry=True, phase="provisioning")
    if not is_running:
        return _return_if_empty(w, request)
    if is_replaced:
        return w.books.holding[request.id]
    requeue = request.on_host_loss is HostLossPolicy.REQUEUE or (wants_spare and grant.is_torn_by_loss)
    return ended(w, request, EndReason.HOST_LOST, message, requeue=requeue)


def _replace(w: Write, request: CapacityRequest, lost: Instance) -> bool:
    """Put a spare host in the place of a lost one for the time that remains, if there is one. The lost one is
    still booked: a booking without hosts would be over."""
    grant = granted(request)
    booking = w.books.bookings.get(grant.booking)
    if booking is None or booking.stage is not Stage.LIVE:
        return False
    alternative = request.demand.alternatives[grant.alternative]
    pool = w.books.fleet.pool(grant.pool)
    gone = pool.units_at(lost.unit, lost.slots)
    piece = grouped(Piece(size=len(gone)), alternative, pool)
    units = advise.spare(
        w.books.snapshot(), w.policy, w.now, booking, gone, within=alternative.within, piece=piece
    )
    if not units:
        return False
    ledger.take_over(w, grant.booking, pool, units)
    spare = Instance(
        rank=lost.rank,
        unit=pool.host_of(units[0]),
        host=pool.hosts[pool.host_of(units[0])],
        slots=pool.slots_of(units),
        incarnation=lost.incarnation + 1,
        note=f"replaces {lost.host}",
    )
    w.apply(
        request,
        ev.InstanceReplaced(attempt=grant.attempt, instance=spare),
        reason=f"{spare.host} replaces {lost.host}",
    )
    return True


# --- metering ---------------------------------------------------------------------------------


def part_released(w: Write, request: CapacityRequest, ranks: tuple[int, ...]) -> CapacityRequest:
    """The owner gives back some instances: they are metered until now, the others run on."""
    _meter(w, request, set(ranks))
    return w.apply(request, ev.PartReleased(ranks=ranks))


def _meter(w: Write, request: CapacityRequest, ranks: set[int]) -> None:
    """Close the usage of instances whose use ends now: from delivery to the end or the release."""
    grant = granted(request)
    running = [
        i
        for i in grant.instances
        if i.rank in ranks
        and i.metered_from
        and i.is_held
        and i.state is not InstanceState.RELEASING
    ]
    pool = w.books.fleet.pool(grant.pool)
    w.tx.put_usage(
        usage_record(request, pool, i, i.metered_from, w.now) for i in running
    )


def _note_failed_attempt(w: Write, request: CapacityRequest) -> None:
    grant = granted(request)
    pool = w.books.fleet.pool(grant.pool)
    w.tx.put_usage(
        usage_record(request, pool, i, grant.started_at, w.now, kind=UsageKind.FAILED_ATTEMPT)
        for i in grant.instances
    )


def usage_record(
    request: CapacityRequest,
    pool: Pool,
    instance: Instance,
    start: int,
    end: int,
    *,
    kind: UsageKind = UsageKind.RUN,
) -> UsageRecord:
    """One instance's use over [start, end)."""
    grant = granted(request)
    return UsageRecord(
        request=request.id,
        request_name=request.name,
        project=request.project,
        principal=request.principal,
        pool=pool.name,
        shape=grant.shape,
        accelerator=pool.shape.accelerator,
        accelerators=pool.accelerators_of(len(instance.slots)),
        rank=instance.rank,
        start=start,
        end=end,
        price_micros_per_hour=pool.price_micros_per_hour,
        kind=kind,
        reservation=grant.reservation,
    )


def instance_of(grant: Grant, rank: int) -> Instance | None:
    """The instance of a rank, None when the grant has none of that rank: they stand in order of rank."""
    return grant.instances[rank] if 0 <= rank < len(grant.instances) else None
