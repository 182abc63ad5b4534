"""The lifecycle of a capacity request, pair by pair: every state with every event."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from dws.lifecycle import request as lifecycle
from dws.lifecycle.effects import Do, Drop
from dws.model import events as ev
from dws.model.demand import Alternative, Demand
from dws.model.errors import InvalidTransition
from dws.model.names import BookingId, RequestId
from dws.model.request import (
    CapacityRequest,
    EndReason,
    Grant,
    HostLossPolicy,
    Instance,
    InstanceState,
    RequestState,
)
from dws.model.work import WorkKind

S = RequestState
NOW = 1_000
DEMAND = Demand(alternatives=(Alternative(shape="a3-highgpu-8g", count=2, duration_s=3600),), not_after=5_000)
GRANT = Grant(
    booking=BookingId(7),
    attempt=1,
    alternative=0,
    pool="p",
    zone="z",
    shape="a3-highgpu-8g",
    duration_s=3600,
    started_at=NOW,
    instances=(Instance(rank=0, unit=3, host="h3"), Instance(rank=1, unit=4, host="h4")),
)

EVENTS: dict[type, ev.RequestEvent] = {
    type(e): e
    for e in (
        ev.Booked(booking=BookingId(7), start=2_000),
        ev.Moved(booking=BookingId(7), start=3_000, cause="host lost"),
        ev.Unbooked(cause="amended"),
        ev.Amended(demand=DEMAND, priority=3, labels={}, workload=None, on_host_loss=HostLossPolicy.END),
        ev.Started(booking=BookingId(7), grant=GRANT),
        ev.InstancesRan(attempt=1, addresses={0: "a", 1: "b"}),
        ev.InstanceExited(rank=0, attempt=1, code=0),
        ev.InstanceLost(rank=0, attempt=1, host="h3", cause="power"),
        ev.InstancesReleased(attempt=1, ranks=(0,)),
        ev.InstanceReplaced(attempt=1, instance=Instance(rank=0, unit=9, host="h9", incarnation=1)),
        ev.Delivered(ends_at=NOW + 3600),
        ev.DeliveryFailed(cause="no capacity", may_retry=True, not_again_before=NOW + 10),
        ev.Warned(lead_s=60, ends_at=NOW + 3600),
        ev.Extended(ends_at=NOW + 7200),
        ev.Ended(why=EndReason.DURATION_REACHED),
        ev.PartReleased(ranks=(1,)),
        ev.CancelRequested(),
        ev.WindowClosed(),
        ev.Returned(),
        ev.Unreachable(since=NOW),
        ev.Reachable(),
        ev.Overran(expected_by=NOW),
        ev.Deleted(),
    )
}

HOLDING = {S.PROVISIONING, S.ACTIVE, S.ENDING}
EXPECTED: dict[type, dict[RequestState, RequestState]] = {
    ev.Booked: {S.PENDING: S.BOOKED, S.BOOKED: S.BOOKED},
    ev.Moved: {S.BOOKED: S.BOOKED},
    ev.Unbooked: {S.BOOKED: S.PENDING},
    ev.Amended: {S.PENDING: S.PENDING, S.BOOKED: S.BOOKED},
    ev.Started: {S.PENDING: S.PROVISIONING, S.BOOKED: S.PROVISIONING},
    ev.InstancesRan: {S.PROVISIONING: S.PROVISIONING, S.ACTIVE: S.ACTIVE},
    ev.InstanceExited: {s: s for s in HOLDING},
    ev.InstanceLost: {s: s for s in HOLDING},
    ev.InstancesReleased: {S.ACTIVE: S.ACTIVE, S.ENDING: S.ENDING},
    ev.InstanceReplaced: {S.ACTIVE: S.ACTIVE},
    ev.Delivered: {S.PROVISIONING: S.ACTIVE},
    ev.DeliveryFailed: {S.PROVISIONING: S.ENDING},
    ev.Warned: {S.ACTIVE: S.ACTIVE},
    ev.Extended: {S.ACTIVE: S.ACTIVE},
    ev.Ended: {S.ACTIVE: S.ENDING},
    ev.PartReleased: {S.ACTIVE: S.ACTIVE},
    ev.CancelRequested: {
        S.PENDING: S.CANCELLED,
        S.BOOKED: S.CANCELLED,
        S.PROVISIONING: S.ENDING,
        S.ENDING: S.ENDING,
    },
    ev.WindowClosed: {S.PENDING: S.EXPIRED, S.BOOKED: S.EXPIRED},
    ev.Returned: {S.ENDING: S.COMPLETED},
    ev.Unreachable: {S.PROVISIONING: S.PROVISIONING, S.ACTIVE: S.ACTIVE},
    ev.Reachable: {S.PROVISIONING: S.PROVISIONING, S.ACTIVE: S.ACTIVE},
    ev.Overran: {S.ENDING: S.ENDING},
    ev.Deleted: {s: s for s in S if s.is_terminal},
}


def a_request(state: RequestState) -> CapacityRequest:
    held = state in HOLDING or state.is_terminal
    return CapacityRequest(
        id=RequestId(1),
        name="train",
        project="p",
        principal="ann",
        demand=DEMAND,
        state=state,
        submitted_at=500,
        booking=BookingId(7) if state is S.BOOKED or state in HOLDING else None,
        grant=GRANT if held else None,
        end_reason=EndReason.DURATION_REACHED if state is S.ENDING or state.is_terminal else None,
    )


def test_the_examples_cover_every_event_of_a_request() -> None:
    """A new event without an example here would be untested in every state."""
    assert set(EVENTS) == set(typing.get_args(ev.RequestEvent)) - {ev.Submitted}
    assert set(EXPECTED) == set(EVENTS)


@pytest.mark.parametrize("event", EVENTS.values(), ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("state", list(S), ids=str)
def test_every_state_with_every_event(state: RequestState, event: ev.RequestEvent) -> None:
    """A request could take a step nobody decided, or refuse one it must take."""
    request = a_request(state)
    expected = EXPECTED[type(event)].get(state)
    if expected is None:
        with pytest.raises(InvalidTransition) as refused:
            lifecycle.step(request, event, NOW)
        assert "train" in refused.value.message and str(state) in refused.value.message
        return
    step = lifecycle.step(request, event, NOW)
    assert step.subject.state is expected
    assert step.subject.version == request.version + 1
    assert dataclasses.replace(request) == a_request(state), "the value before is untouched"


def test_a_terminal_state_never_changes_again() -> None:
    """A finished request could come back to life (invariant 3)."""
    for (state, event) in lifecycle.TABLE:
        if state.is_terminal:
            assert event is ev.Deleted


@pytest.mark.parametrize(
    ("why", "terminal"),
    [
        (EndReason.DURATION_REACHED, S.COMPLETED),
        (EndReason.RELEASED, S.COMPLETED),
        (EndReason.PROGRAM_SUCCEEDED, S.COMPLETED),
        (EndReason.PROGRAM_FAILED, S.FAILED),
        (EndReason.PROVISIONING_FAILED, S.FAILED),
        (EndReason.HOST_LOST, S.FAILED),
        (EndReason.CANCELLED, S.CANCELLED),
    ],
)
def test_how_it_ends_decides_where_it_ends(why: EndReason, terminal: RequestState) -> None:
    """A failed program could be reported as a success."""
    request = dataclasses.replace(a_request(S.ENDING), end_reason=why)
    over = lifecycle.step(request, ev.Returned(), NOW).subject
    assert (over.state, over.ended_at, over.booking) == (terminal, NOW, None)


def test_every_end_reason_has_a_terminal_state() -> None:
    """An end reason without a state would break the last step of a request."""
    assert set(lifecycle._TERMINAL_FOR) == set(EndReason)


def test_a_failed_attempt_goes_back_in_line_with_its_age() -> None:
    """A request that lost its attempt could lose its place in line too (C03)."""
    request = a_request(S.PROVISIONING)
    ending = lifecycle.step(
        request, ev.DeliveryFailed(cause="no capacity", may_retry=True, not_again_before=1_010), NOW
    ).subject
    assert (ending.failures, ending.last_failure, ending.not_again_before) == (1, "no capacity", 1_010)
    back = lifecycle.step(ending, ev.Returned(), NOW + 5)
    assert back.subject.state is S.PENDING
    assert back.subject.submitted_at == request.submitted_at
    assert back.subject.grant is None and back.subject.end_reason is None
    assert Do(kind=WorkKind.EXPIRE, at=5_001) in back.effects, "it still waits no longer than it said"


def test_cancelling_on_the_way_back_into_the_line_ends_it() -> None:
    """A cancelled request could start once more (C07)."""
    ending = lifecycle.step(
        a_request(S.PROVISIONING), ev.DeliveryFailed(cause="x", may_retry=True), NOW
    ).subject
    cancelled = lifecycle.step(ending, ev.CancelRequested(), NOW).subject
    assert lifecycle.step(cancelled, ev.Returned(), NOW).subject.state is S.CANCELLED


def test_delivery_starts_the_run_clock_and_its_end_timer() -> None:
    """The run could be counted from the order instead of from the delivery of the whole gang (I04)."""
    step = lifecycle.step(a_request(S.PROVISIONING), ev.Delivered(ends_at=NOW + 3600), NOW)
    assert step.subject.grant is not None
    assert step.subject.grant.delivered_at == NOW
    assert {i.metered_from for i in step.subject.grant.instances} == {NOW}
    assert Do(kind=WorkKind.RUN_END, at=NOW + 3600) in step.effects
    assert Drop(kinds=(WorkKind.DELIVERY_DEADLINE,)) in step.effects


def test_an_end_asks_for_every_held_instance_back() -> None:
    """An instance could be left running after its request ended."""
    step = lifecycle.step(a_request(S.ACTIVE), ev.Ended(why=EndReason.RELEASED), NOW)
    assert step.subject.grant is not None
    assert {i.state for i in step.subject.grant.instances} == {InstanceState.RELEASING}
    assert Do(kind=WorkKind.RELEASE, at=NOW) in step.effects


def test_a_lost_instance_is_not_asked_for_again() -> None:
    """The hosts of a finished gang could stay blocked by an instance that no longer exists."""
    lost = lifecycle.step(
        a_request(S.ACTIVE), ev.InstanceLost(rank=0, attempt=1, host="h3", cause="power"), NOW
    ).subject
    ended = lifecycle.step(lost, ev.Ended(why=EndReason.HOST_LOST), NOW).subject
    assert ended.grant is not None
    assert [i.state for i in ended.grant.instances] == [InstanceState.LOST, InstanceState.RELEASING]
