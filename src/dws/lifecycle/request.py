"""The lifecycle of a capacity request.

    PENDING ⇄ BOOKED ──▶ PROVISIONING ──▶ ACTIVE ──▶ ENDING ──▶ COMPLETED · CANCELLED · FAILED
       ▲                                               │
       └───────────── returned, back in line ──────────┘            PENDING · BOOKED ──▶ EXPIRED

PENDING and BOOKED wait; PROVISIONING and ENDING are transitional and always have a deadline, so that
nothing can be stuck unnoticed. Whatever was delivered is given back through ENDING, also after a
failed attempt: a request holds its hosts until the backend has confirmed them free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dws.lifecycle.effects import Do, Drop, Effect
from dws.lifecycle.machine import Handler, Step, Table, advance
from dws.model import events as ev
from dws.model.demand import Demand
from dws.model.evolve import evolve
from dws.model.request import (
    CapacityRequest,
    EndReason,
    Grant,
    Instance,
    InstanceState,
    RequestState,
)
from dws.model.time import FOREVER
from dws.model.work import WorkKind

RequestStep = Step[CapacityRequest]
RequestHandler = Handler[CapacityRequest]

_TERMINAL_FOR = {
    EndReason.DURATION_REACHED: RequestState.COMPLETED,
    EndReason.RELEASED: RequestState.COMPLETED,
    EndReason.PROGRAM_SUCCEEDED: RequestState.COMPLETED,
    EndReason.PROGRAM_FAILED: RequestState.FAILED,
    EndReason.PROVISIONING_FAILED: RequestState.FAILED,
    EndReason.HOST_LOST: RequestState.FAILED,
    EndReason.CANCELLED: RequestState.CANCELLED,
    EndReason.WAIT_LIMIT: RequestState.EXPIRED,
    EndReason.RESERVATION_ENDED: RequestState.COMPLETED,
}


def submitted(event: ev.Submitted, now: int) -> RequestStep:
    """The first step of every request: it enters the queue as it was admitted."""
    request = event.request
    return Step(request, _expiry(request.demand, now))


def _expiry(demand: Demand, now: int) -> tuple[Effect, ...]:
    if demand.not_after >= FOREVER:
        return ()
    return (Do(kind=WorkKind.EXPIRE, at=max(now, demand.not_after + 1)),)


def step(request: CapacityRequest, event: ev.RequestEvent, now: int) -> RequestStep:
    """The step `event` makes; raises InvalidTransition when there is none from the request's state."""
    return advance(TABLE, request, event, now)


# --- waiting ----------------------------------------------------------------------------------


def _booked(request: CapacityRequest, event: ev.Booked | ev.Moved, now: int) -> RequestStep:
    del now
    return Step(
        evolve(
            request,
            state=RequestState.BOOKED,
            booking=event.booking,
            promised_start=event.start,
        )
    )


def _unbooked(request: CapacityRequest, event: ev.Unbooked, now: int) -> RequestStep:
    del event, now
    return Step(evolve(request, state=RequestState.PENDING, booking=None, promised_start=0))


def _amended(request: CapacityRequest, event: ev.Amended, now: int) -> RequestStep:
    changed = evolve(
        request,
        demand=event.demand,
        priority=event.priority,
        labels=event.labels,
        workload=event.workload,
        on_host_loss=event.on_host_loss,
    )
    return Step(changed, (Drop(kinds=(WorkKind.EXPIRE,)), *_expiry(event.demand, now)))


def _started(request: CapacityRequest, event: ev.Started, now: int) -> RequestStep:
    attempt = str(event.grant.attempt)
    return Step(
        evolve(
            request,
            state=RequestState.PROVISIONING,
            booking=event.booking,
            attempts=event.grant.attempt,
            grant=event.grant,
        ),
        (
            Drop(kinds=(WorkKind.EXPIRE,)),
            Do(kind=WorkKind.PROVISION, at=now, tag=attempt),
        ),
    )


def _window_closed(request: CapacityRequest, event: ev.WindowClosed, now: int) -> RequestStep:
    why = event.cause or "waited as long as it was willing to"
    return _over(request, EndReason.WAIT_LIMIT, why, now)


def _cancelled_waiting(request: CapacityRequest, event: ev.CancelRequested, now: int) -> RequestStep:
    del event
    return _over(request, EndReason.CANCELLED, "cancelled while waiting", now)


def _over(request: CapacityRequest, why: EndReason, message: str, now: int) -> RequestStep:
    """A waiting request ends: nothing to give back."""
    return Step(
        evolve(
            request,
            state=_TERMINAL_FOR[why],
            end_reason=why,
            end_message=message,
            booking=None,
            ended_at=now,
        ),
        (Drop(),),
    )


# --- instances --------------------------------------------------------------------------------


def _granted(request: CapacityRequest) -> Grant:
    assert request.grant is not None, f"request {request.id} is {request.state} without a grant"
    return request.grant


def _with_instance(
    request: CapacityRequest, rank: int, change: Callable[[Instance], Instance]
) -> CapacityRequest:
    grant = _granted(request)
    instances = tuple(change(i) if i.rank == rank else i for i in grant.instances)
    return evolve(request, grant=evolve(grant, instances=instances))


def _instances_ran(request: CapacityRequest, event: ev.InstancesRan, now: int) -> RequestStep:
    grant = _granted(request)
    metered_from = now if grant.delivered_at else 0
    instances = tuple(
        evolve(
            i,
            state=InstanceState.RUNNING,
            address=event.addresses[i.rank],
            metered_from=i.metered_from or metered_from,
        )
        if i.rank in event.addresses and i.state is InstanceState.STARTING
        else i
        for i in grant.instances
    )
    return Step(evolve(request, grant=evolve(grant, instances=instances)))


def _instance_exited(request: CapacityRequest, event: ev.InstanceExited, now: int) -> RequestStep:
    del now
    return Step(
        _with_instance(
            request,
            event.rank,
            lambda i: evolve(i, state=InstanceState.EXITED, exit_code=event.code),
        )
    )


def _exited_while_ending(request: CapacityRequest, event: ev.InstanceExited, now: int) -> RequestStep:
    """The status of a program that ends on the way out is kept; its host is free when confirmed."""
    del now
    return Step(_with_instance(request, event.rank, lambda i: evolve(i, exit_code=event.code)))


def _instance_lost(request: CapacityRequest, event: ev.InstanceLost, now: int) -> RequestStep:
    del now
    return Step(
        _with_instance(
            request,
            event.rank,
            lambda i: evolve(i, state=InstanceState.LOST, note=event.cause),
        )
    )


def _instances_released(request: CapacityRequest, event: ev.InstancesReleased, now: int) -> RequestStep:
    del now
    grant = _granted(request)
    instances = tuple(
        evolve(i, state=InstanceState.RELEASED) if i.rank in event.ranks and i.is_held else i
        for i in grant.instances
    )
    return Step(evolve(request, grant=evolve(grant, instances=instances)))


def _instance_replaced(request: CapacityRequest, event: ev.InstanceReplaced, now: int) -> RequestStep:
    return Step(
        _with_instance(request, event.instance.rank, lambda _: event.instance),
        (Do(kind=WorkKind.PROVISION, at=now, tag=f"{event.attempt}.r{event.instance.rank}"),),
    )


def _part_released(request: CapacityRequest, event: ev.PartReleased, now: int) -> RequestStep:
    grant = _granted(request)
    instances = tuple(
        evolve(i, state=InstanceState.RELEASING) if i.rank in event.ranks else i
        for i in grant.instances
    )
    ranks = "-".join(str(r) for r in event.ranks[:1])
    return Step(
        evolve(request, grant=evolve(grant, instances=instances)),
        (Do(kind=WorkKind.RELEASE, at=now, tag=f"part{ranks}"),),
    )


# --- delivery and the run ---------------------------------------------------------------------


def _delivered(request: CapacityRequest, event: ev.Delivered, now: int) -> RequestStep:
    grant = _granted(request)
    instances = tuple(
        evolve(i, metered_from=now) if i.is_held and not i.metered_from else i
        for i in grant.instances
    )
    return Step(
        evolve(
            request,
            state=RequestState.ACTIVE,
            deliveries=request.deliveries + 1,
            failures=0,
            last_failure="",
            grant=evolve(grant, delivered_at=now, ends_at=event.ends_at, instances=instances),
        ),
        (
            Drop(kinds=(WorkKind.DELIVERY_DEADLINE,)),
            Do(kind=WorkKind.RUN_END, at=event.ends_at),
        ),
    )


def _extended(request: CapacityRequest, event: ev.Extended, now: int) -> RequestStep:
    grant = evolve(_granted(request), ends_at=event.ends_at, warned_s=())
    return Step(
        evolve(request, grant=grant),
        (
            Do(kind=WorkKind.SET_DEADLINE, at=now),
            Do(kind=WorkKind.RUN_END, at=event.ends_at),
        ),
    )


def _warned(request: CapacityRequest, event: ev.Warned, now: int) -> RequestStep:
    del now
    grant = _granted(request)
    return Step(evolve(request, grant=evolve(grant, warned_s=(*grant.warned_s, event.lead_s))))


def _unreachable(request: CapacityRequest, event: ev.Unreachable, now: int) -> RequestStep:
    del now
    return Step(
        evolve(request, grant=evolve(_granted(request), unreachable_since=event.since))
    )


def _reachable(request: CapacityRequest, event: ev.Reachable, now: int) -> RequestStep:
    del event, now
    return Step(
        evolve(request, grant=evolve(_granted(request), unreachable_since=0)),
        (Drop(kinds=(WorkKind.UNREACHABLE,)),),
    )


# --- the end ----------------------------------------------------------------------------------


def _ended(request: CapacityRequest, event: ev.Ended, now: int) -> RequestStep:
    grant = _granted(request)
    instances = tuple(
        evolve(i, state=InstanceState.RELEASING) if i.is_held else i for i in grant.instances
    )
    return Step(
        evolve(
            request,
            state=RequestState.ENDING,
            end_reason=event.why,
            end_message=event.message,
            requeue=event.requeue,
            grant=evolve(grant, instances=instances),
        ),
        (
            Drop(),
            Do(kind=WorkKind.RELEASE, at=now),
        ),
    )


def _delivery_failed(request: CapacityRequest, event: ev.DeliveryFailed, now: int) -> RequestStep:
    failed = evolve(
        request,
        failures=request.failures + 1,
        last_failure=event.cause,
        not_again_before=event.not_again_before,
    )
    end = ev.Ended(
        why=EndReason.PROVISIONING_FAILED, message=event.cause, requeue=event.may_retry
    )
    return _ended(failed, end, now)


def _cancelled_provisioning(request: CapacityRequest, event: ev.CancelRequested, now: int) -> RequestStep:
    del event
    end = ev.Ended(why=EndReason.CANCELLED, message="cancelled before it was delivered")
    return _ended(request, end, now)


def _cancelled_ending(request: CapacityRequest, event: ev.CancelRequested, now: int) -> RequestStep:
    """On its way back into the line, its owner no longer wants it: it will end instead."""
    del event, now
    return Step(
        evolve(request, end_reason=EndReason.CANCELLED, end_message="cancelled", requeue=False)
    )


def _overran(request: CapacityRequest, event: ev.Overran, now: int) -> RequestStep:
    del event, now
    return Step(request)


def _returned(request: CapacityRequest, event: ev.Returned, now: int) -> RequestStep:
    del event
    if request.requeue:
        return Step(
            evolve(
                request,
                state=RequestState.PENDING,
                booking=None,
                promised_start=0,
                grant=None,
                end_reason=None,
                end_message="",
                requeue=False,
            ),
            (Drop(), *_expiry(request.demand, now)),
        )
    why = request.end_reason or EndReason.RELEASED
    return Step(
        evolve(request, state=_TERMINAL_FOR[why], booking=None, ended_at=now), (Drop(),)
    )


def _deleted(request: CapacityRequest, event: ev.Deleted, now: int) -> RequestStep:
    del event, now
    return Step(evolve(request, deleted=True))


_WAITING = (RequestState.PENDING, RequestState.BOOKED)
_HOLDING = (RequestState.PROVISIONING, RequestState.ACTIVE, RequestState.ENDING)
_OVER = tuple(s for s in RequestState if s.is_terminal)


def _rows(
    states: tuple[RequestState, ...], event: type, handler: RequestHandler
) -> dict[Any, RequestHandler]:
    return {(state, event): handler for state in states}


TABLE: Table[CapacityRequest] = {
    **_rows(_WAITING, ev.Booked, _booked),
    (RequestState.BOOKED, ev.Moved): _booked,
    (RequestState.BOOKED, ev.Unbooked): _unbooked,
    **_rows(_WAITING, ev.Amended, _amended),
    **_rows(_WAITING, ev.Started, _started),
    **_rows(_WAITING, ev.WindowClosed, _window_closed),
    **_rows(_WAITING, ev.CancelRequested, _cancelled_waiting),
    **_rows((RequestState.PROVISIONING, RequestState.ACTIVE), ev.InstancesRan, _instances_ran),
    **_rows((RequestState.PROVISIONING, RequestState.ACTIVE), ev.InstanceExited, _instance_exited),
    (RequestState.ENDING, ev.InstanceExited): _exited_while_ending,
    **_rows(_HOLDING, ev.InstanceLost, _instance_lost),
    **_rows((RequestState.ACTIVE, RequestState.ENDING), ev.InstancesReleased, _instances_released),
    (RequestState.ACTIVE, ev.InstanceReplaced): _instance_replaced,
    (RequestState.ACTIVE, ev.PartReleased): _part_released,
    (RequestState.PROVISIONING, ev.Delivered): _delivered,
    (RequestState.PROVISIONING, ev.DeliveryFailed): _delivery_failed,
    (RequestState.PROVISIONING, ev.CancelRequested): _cancelled_provisioning,
    (RequestState.ENDING, ev.CancelRequested): _cancelled_ending,
    (RequestState.ACTIVE, ev.Warned): _warned,
    (RequestState.ACTIVE, ev.Extended): _extended,
    **_rows((RequestState.PROVISIONING, RequestState.ACTIVE), ev.Unreachable, _unreachable),
    **_rows((RequestState.PROVISIONING, RequestState.ACTIVE), ev.Reachable, _reachable),
    (RequestState.ACTIVE, ev.Ended): _ended,
    (RequestState.ENDING, ev.Overran): _overran,
    (RequestState.ENDING, ev.Returned): _returned,
    **_rows(_OVER, ev.Deleted, _deleted),
}
"""Every legal step. What is not here cannot happen."""
