"""Reservations made for now, until they are given back: beside everything else that is promised."""

from __future__ import annotations

import pytest

from dws.model.demand import OPEN_ENDED_S
from dws.model.errors import FailedPrecondition, InvalidArgument, NoRoom, PermissionDenied
from dws.model.request import RequestState
from dws.model.reservation import Reservation, ReservationState
from dws.planner.options import PRESETS, PolicyOptions
from tests.scenarios.world import ANN, MONDAY_9, OPERATOR, H, World, f1

UNTIL_GIVEN_BACK = OPEN_ENDED_S / H


def reserve_now(
    world: World, name: str, hosts: int, hours: float = UNTIL_GIVEN_BACK, **more: object
) -> Reservation:
    """Reserve so many hosts from now on."""
    return world.reserve(name, hosts=hosts, hours=hours, start=0, on_demand=True, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", [PolicyOptions(), PRESETS["google"], PRESETS["seed"]])
def test_it_is_open_at_once_whatever_the_calendar_allows(policy: PolicyOptions) -> None:
    """A plain reservation would be refused where blocks last a week, or need days of notice."""
    world = World(f1(), policy)
    made = reserve_now(world, "mine", 2)
    assert made.state.is_open
    assert made.is_open_ended
    assert world.kinds("mine") == ["ReservationAsked", "ReservationStarted", "ReservationDelivered"]
    world.advance(hours=24 * 100)
    assert world.reservation("mine").state is ReservationState.FULFILLED
    world.check()
    world.engine.release_reservation(OPERATOR, "p", "mine")
    assert world.reservation("mine").state is ReservationState.ENDED
    assert world.booked_hosts() == 0
    world.check()


def test_it_leaves_every_promise_and_every_booking_alone() -> None:
    """Hosts promised to somebody for next week would be gone for good."""
    world = World(f1())
    world.reserve("block", hosts=2, start=MONDAY_9 + 30 * 24 * H, hours=24)
    world.submit("running", hosts=1, hours=2)
    with pytest.raises(NoRoom) as refused:
        reserve_now(world, "mine", 3)
    assert refused.value.details["most"] == 2
    assert world.engine.books.reservations.keys() == {world.reservation("block").id}
    reserve_now(world, "mine", 2)
    world.advance(hours=24 * 30)
    assert world.reservation("block").opened_at == MONDAY_9 + 30 * 24 * H
    assert world.reservation("mine").short == 0
    world.check()


def test_what_comes_later_is_booked_beside_it() -> None:
    """The calendar would sell its hosts a second time."""
    world = World(f1())
    reserve_now(world, "mine", 3)
    with pytest.raises(NoRoom):
        world.reserve("block", hosts=2, start=MONDAY_9 + 30 * 24 * H, hours=24)
    world.reserve("block", hosts=1, start=MONDAY_9 + 30 * 24 * H, hours=24)
    world.submit("waits", hosts=2, hours=1)
    assert world.state("waits").is_waiting
    world.engine.release_reservation(ANN, "p", "mine")
    assert world.state("waits") is RequestState.ACTIVE
    world.check()


def test_it_grows_and_shrinks_and_takes_an_end_where_blocks_may_not() -> None:
    """Who has one could not change it on a fleet that freezes its blocks."""
    world = World(f1(), PRESETS["google"])
    reserve_now(world, "mine", 2)
    assert world.amend_reservation("mine", count=4).count == 4
    assert world.reservation("mine").short == 0
    assert world.amend_reservation("mine", count=1).count == 1
    world.submit("inside", hosts=1, hours=1, reservation="mine")
    assert world.state("inside") is RequestState.ACTIVE
    ended = world.amend_reservation("mine", end=MONDAY_9 + 3 * H)
    assert not ended.is_open_ended
    assert world.amend_reservation("mine", end=MONDAY_9 + OPEN_ENDED_S).is_open_ended
    world.amend_reservation("mine", end=MONDAY_9 + 3 * H)
    world.advance(hours=3)
    assert world.reservation("mine").state is ReservationState.ENDED
    world.check()


def test_the_owners_policy_may_want_an_end_or_be_asked_first() -> None:
    """Hosts would be gone for good on a fleet whose owner does not want that."""
    world = World(f1(), PolicyOptions(open_ended=False))
    with pytest.raises(InvalidArgument, match="say when it ends"):
        reserve_now(world, "mine", 1)
    with pytest.raises(InvalidArgument, match=r"91 days is outside the allowed 1 second … 90 days"):
        reserve_now(world, "mine", 1, hours=91 * 24)
    reserve_now(world, "mine", 1, hours=0.01)
    careful = World(f1(), PolicyOptions(reservation_approval="approver"))
    with pytest.raises(PermissionDenied, match="none starts at once"):
        reserve_now(careful, "mine", 1)
    assert reserve_now(careful, "ours", 1, who=OPERATOR).state.is_open
    with pytest.raises(PermissionDenied, match="approved by an operator"):
        careful.amend_reservation("ours", count=2)
    careful.check()


def test_it_cannot_be_cancelled_only_given_back() -> None:
    """Work in it would be cut off by a word that sounds harmless."""
    world = World(f1())
    reserve_now(world, "mine", 1)
    with pytest.raises(FailedPrecondition, match="release"):
        world.engine.cancel_reservation(ANN, "p", "mine")


def test_it_is_there_after_a_restart() -> None:
    """A server that was down would forget who has what until when."""
    world = World(f1())
    reserve_now(world, "mine", 2)
    before = world.everything()
    world.restart()
    assert world.everything() == before
    world.check()
