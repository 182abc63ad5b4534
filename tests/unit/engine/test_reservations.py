"""What seeds once found about reservations, told by hand."""

from __future__ import annotations

from dataclasses import replace

from dws.model.request import RequestState
from dws.model.reservation import ReservationState, Terms
from dws.planner import backfill, invariants
from dws.planner.options import PolicyOptions
from dws.planner.plan import Start
from dws.planner.recheck import still_holds
from tests.build import a_request
from tests.scenarios.world import ANN, MONDAY_9, H, World, f1


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
