"""What seeds once found about reservations, told by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dws.model.errors import NoRoom
from dws.model.request import RequestState
from dws.model.reservation import ReservationState, Terms
from dws.planner import backfill, invariants
from dws.planner.options import PolicyOptions
from dws.planner.plan import Start
from dws.planner.recheck import still_holds
from tests.build import a_request
from tests.scenarios.world import ANN, MONDAY_9, OPERATOR, H, World, f1


def test_a_host_lost_by_what_waits_for_approval_is_replaced() -> None:
    """One lost host could stop all planning while somebody waits for an operator's yes."""
    world = World(f1(), PolicyOptions(reservation_approval="approver"))
    world.reserve("a", hosts=2, start=MONDAY_9 + 5 * H, hours=3, within="block")
    booked = world.engine.books.bookings[world.reservation("a").booking or 0]
    lost = world.engine.books.fleet.pool("h100").cells[booked.parts[0].cell].first
    world.hosts("DOWN", f"h100-h{lost + 1}")
    assert world.kinds("a")[-1] == "ReservationReplaced"
    assert world.reservation("a").state is ReservationState.PENDING_APPROVAL
    assert world.reservation("a").short == 0
    world.submit("next", hosts=1, hours=1)
    assert world.state("next") is RequestState.ACTIVE
    world.check()


def test_a_promise_inside_a_reservation_given_back_is_made_elsewhere() -> None:
    """Work that any reservation would do for could stay promised in one that is gone, and stop planning."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9, hours=10, terms=Terms(specific_only=False))
    world.submit("first", hosts=4, hours=2, reservation="a")
    world.submit("any", hosts=4, hours=1, reservation="any")
    inside = world.engine.books.bookings[world.request("any").booking or 0]
    assert inside.parent == world.reservation("a").booking
    world.engine.release_reservation(ANN, "p", "a")
    assert world.state("any") is RequestState.ACTIVE
    grant = world.request("any").grant
    assert grant is not None and grant.reservation == 0
    world.check()


def test_what_is_lent_is_still_asked_for_when_somebody_else_wrote_meanwhile() -> None:
    """With many writers idle reserved hosts would never be lent."""
    policy = PolicyOptions(lend_idle_s=H, warning_leads_s=())
    world = World(f1(), policy)
    world.reserve("a", hosts=4, start=MONDAY_9, hours=10)
    snapshot = replace(world.engine.books.snapshot(), queue=(a_request(1, hosts=2),))
    made = backfill.plan(snapshot, policy, world.now())
    invariants.check(made, snapshot)
    starts = [d for d in made.decisions if isinstance(d, Start)]
    assert len(starts) == 1 and starts[0].placement.parent
    assert still_holds(starts[0], snapshot, world.now(), policy) is None


def test_a_reservation_that_lacks_a_host_can_do_without_it() -> None:
    """Its owner could not give up what is not there, and it would be called short for ever."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9, hours=5)
    world.hosts("DOWN", "h100-h1")
    assert world.reservation("a").short == 1
    world.amend_reservation("a", count=3)
    assert (world.reservation("a").short, len(world.reserved("a").hosts)) == (0, 3)
    world.amend_reservation("a", end=MONDAY_9 + 3 * H)
    assert world.reservation("a").window.end == MONDAY_9 + 3 * H
    world.check()


def test_a_reservation_that_lacks_a_host_can_be_extended_when_it_will_be_back() -> None:
    """A host that is down for an hour would keep a reservation from lasting a day longer."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9, hours=5)
    world.hosts("DOWN", "h100-h1", until=MONDAY_9 + H)
    world.amend_reservation("a", end=MONDAY_9 + 6 * H)
    world.reserve("b", hosts=1, start=MONDAY_9 + 7 * H, hours=1)
    with pytest.raises(NoRoom, match="it can last until 2027-01-11 16:00:00 UTC"):
        world.amend_reservation("a", end=MONDAY_9 + 8 * H)
    world.advance(hours=1)
    world.hosts("READY", "h100-h1")
    assert world.reservation("a").short == 0
    world.check()


def test_a_reservation_that_came_short_is_delivered_once_it_wants_no_more() -> None:
    """It would wait for hosts that nobody asks for any more."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9 + H, hours=5)
    world.hosts("DOWN", "h100-h2")
    world.advance(hours=1)
    assert world.reservation("a").state is ReservationState.PROVISIONING
    world.amend_reservation("a", count=3)
    assert world.reservation("a").state is ReservationState.FULFILLED
    world.check()


def test_what_an_operator_moves_beyond_its_lock_can_be_changed_again() -> None:
    """Its owner would be told that it is locked since an hour that lies ahead."""
    world = World(f1(), PolicyOptions(reservation_lock_s=H))
    world.reserve("a", hosts=3, start=MONDAY_9 + 2 * H, hours=5)
    world.advance(hours=1.5)
    assert world.reservation("a").state is ReservationState.PROCURING
    start = MONDAY_9 + 48 * H
    world.amend_reservation("a", who=OPERATOR, force=True, start=start, end=start + H)
    world.amend_reservation("a", count=2)
    world.advance(hours=46)
    assert world.reservation("a").state is ReservationState.PROCURING


def test_what_was_moved_forward_is_not_approved_after_its_start() -> None:
    """Hosts would be held for a window that nobody may use."""
    world = World(f1(), PolicyOptions(reservation_approval="approver"))
    world.reserve("a", hosts=3, start=MONDAY_9 + 5 * H, hours=5)
    world.amend_reservation("a", start=MONDAY_9 + H, end=MONDAY_9 + 3 * H)
    world.advance(hours=1)
    assert world.reservation("a").state is ReservationState.DECLINED
    world.check()
