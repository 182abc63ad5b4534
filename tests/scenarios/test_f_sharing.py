"""Who may use a reservation (group F), and what idle time in it costs (K05)."""

from __future__ import annotations

import pytest

from dws.model import events as ev
from dws.model.errors import NotFound, PermissionDenied
from dws.model.request import RequestState
from dws.model.reservation import ReservationState, Share, Terms
from dws.planner.options import PolicyOptions
from tests.scenarios.world import MONDAY_9, OPERATOR, H, World, f1

OPEN = Terms(specific_only=False)
SHARED = Terms(shares=(Share(project="p2"), Share(project="p3", hosts_max=1)))


def test_f01_any_reservation_is_used_first_and_then_the_rest_of_the_fleet() -> None:
    """Reserved hosts would stand idle while the free ones are used up."""
    world = World(f1())
    world.reserve("r", hosts=2, start=MONDAY_9, hours=9, terms=OPEN)
    reserved = set(world.reserved("r").hosts)
    for name in ("a", "b", "c"):
        world.submit(name, hosts=1, hours=2, reservation="any")
    assert {*world.hosts_of("a"), *world.hosts_of("b")} == reserved
    assert world.reserved("r").in_use == 2
    assert world.state("c") is RequestState.ACTIVE and not set(world.hosts_of("c")) & reserved
    world.check()


def test_f01_a_reservation_that_must_be_named_is_not_any_reservation() -> None:
    """Strangers' work would fill a reservation kept for its owner's."""
    world = World(f1())
    world.reserve("r", hosts=2, start=MONDAY_9, hours=9)
    world.submit("a", hosts=1, hours=2, reservation="any")
    assert world.reserved("r").in_use == 0


def test_f02_named_and_full_it_waits_inside_and_never_goes_elsewhere() -> None:
    """Work that paid for a reservation would run, and be billed, outside it."""
    world = World(f1())
    world.reserve("r", hosts=2, start=MONDAY_9, hours=9)
    world.submit("full", hosts=2, hours=3, reservation="r")
    world.submit("next", hosts=1, hours=2, reservation="r")
    assert world.state("next") is RequestState.BOOKED
    assert "'free': 0, 'total': 2" in world.reason("next")
    assert world.expected_start("next") == MONDAY_9 + 3 * H


def test_f03_no_reservation_means_none() -> None:
    """Work that asked to stay out would use up a colleague's reservation."""
    world = World(f1())
    world.reserve("r", hosts=2, start=MONDAY_9, hours=9, terms=OPEN)
    world.submit("rest", hosts=2, hours=3)
    world.submit("plain", hosts=1, hours=2)
    assert world.state("plain") is not RequestState.ACTIVE
    assert world.reserved("r").in_use == 0


def test_f04_a_shared_reservation_is_named_with_its_owner() -> None:
    """The other team could not find it, or somebody not invited could."""
    world = World(f1())
    world.reserve("r", hosts=2, start=MONDAY_9, hours=9, terms=SHARED)
    world.submit("a", hosts=1, hours=2, reservation="p/r", project="p2")
    assert world.request("a", "p2").state is RequestState.ACTIVE
    with pytest.raises(NotFound, match="PROJECT/NAME"):
        world.submit("b", hosts=1, hours=2, reservation="r", project="p2")
    with pytest.raises(PermissionDenied):
        world.submit("c", hosts=1, hours=2, reservation="p/r", project="p9")
    with pytest.raises(PermissionDenied):
        world.submit("c", hosts=1, hours=2, reservation="p/none", project="p9")
    world.advance(hours=2)
    lines = world.engine.usage(OPERATOR, start=MONDAY_9, end=world.now())
    assert {(line.project, line.kind, line.seconds) for line in lines} == {
        ("p2", "RUN", 2 * H),
        ("p", "RESERVED_IDLE", 2 * H),
    }


def test_f04_a_project_uses_no_more_than_its_part() -> None:
    """One team would take the whole of what was lent to two."""
    world = World(f1())
    world.reserve("r", hosts=3, start=MONDAY_9, hours=9, terms=SHARED)
    world.submit("a", hosts=1, hours=2, reservation="p/r", project="p3")
    world.submit("b", hosts=1, hours=2, reservation="p/r", project="p3")
    assert world.request("b", "p3").state is not RequestState.ACTIVE
    forecast = world.view("b", "p3").forecast
    assert forecast is not None and forecast.reason.code == "SHARE_LIMIT"
    world.advance(hours=2)
    assert world.request("b", "p3").state is RequestState.ACTIVE


def test_f04_a_part_is_kept_when_two_of_a_project_start_at_one_instant() -> None:
    """Both would start in one plan, each unaware of the other."""
    world = World(f1())
    world.reserve("r", hosts=3, start=MONDAY_9 + H, hours=9, terms=SHARED)
    for name in ("a", "b"):
        world.submit(name, hosts=1, hours=2, reservation="p/r", project="p3")
    world.advance(hours=1)
    states = [world.request(n, "p3").state for n in ("a", "b")]
    assert states.count(RequestState.ACTIVE) == 1


def test_f04_no_more_is_promised_to_a_project_than_its_part() -> None:
    """The second of two would be promised the minute of the first, and find the part used up."""
    world = World(f1(), PolicyOptions(promise_slack=0.0))
    world.reserve("r", hosts=3, start=MONDAY_9 + H, hours=9, terms=SHARED)
    for name in ("a", "b"):
        world.submit(name, hosts=1, hours=2, reservation="p/r", project="p3")
    world.advance(hours=3)
    assert world.events(ev.Unbooked) == []
    assert world.request("b", "p3").state is RequestState.ACTIVE
    world.check()


def test_f05_the_last_host_goes_to_exactly_one() -> None:
    """Two teams would be told that the same host is theirs."""
    world = World(f1())
    world.reserve("r", hosts=2, start=MONDAY_9, hours=9, terms=SHARED)
    world.submit("first", hosts=1, hours=9, reservation="r")
    world.submit("a", hosts=1, hours=9, reservation="p/r", project="p2")
    world.submit("b", hosts=1, hours=9, reservation="p/r", project="p3")
    assert world.request("a", "p2").state is RequestState.ACTIVE
    assert world.request("b", "p3").state is not RequestState.ACTIVE
    assert world.reserved("r").in_use == 2
    world.check()


def test_f07_who_shares_it_survives_a_change_of_something_else() -> None:
    """A new description would throw the other team out."""
    world = World(f1())
    world.reserve("r", hosts=2, start=MONDAY_9, hours=9, terms=SHARED)
    world.amend_reservation("r", description="for the demo")
    assert world.reservation("r").terms == SHARED
    world.submit("a", hosts=1, hours=2, reservation="p/r", project="p3")
    world.amend_reservation("r", terms=Terms(shares=(Share(project="p2"),)))
    assert world.request("a", "p3").state is RequestState.ACTIVE, "what runs keeps to its end"
    with pytest.raises(PermissionDenied):
        world.submit("b", hosts=1, hours=1, reservation="p/r", project="p3")


def test_k05_reserved_time_that_nobody_used_is_its_own_line() -> None:
    """A team could keep hosts from everybody and nobody would see it."""
    world = World(f1())
    world.reserve("r", hosts=1, start=MONDAY_9, hours=10)
    world.submit("a", hosts=1, hours=4, reservation="r")
    world.advance(hours=24)
    lines = world.engine.usage(OPERATOR, start=MONDAY_9, end=world.now())
    assert [(line.kind, line.request, line.seconds) for line in lines] == [
        ("RUN", "a", 4 * H),
        ("RESERVED_IDLE", "r", 6 * H),
    ]
    assert lines[1].cost_micros == 6 * 8 * 4_200_000


def test_idle_hosts_are_lent_to_what_is_done_within_the_notice_and_to_nothing_longer() -> None:
    """Reserved hosts would stand idle beside a queue, or their owner would wait for hours."""
    world = World(f1(), PolicyOptions(lend_idle_s=H))
    world.reserve("r", hosts=4, start=MONDAY_9, hours=10)
    world.submit("short", hosts=2, hours=1, project="p2")
    world.submit("long", hosts=2, hours=2, project="p2")
    assert world.request("short", "p2").state is RequestState.ACTIVE
    assert world.request("long", "p2").state is not RequestState.ACTIVE
    world.submit("mine", hosts=4, hours=3, reservation="r")
    assert world.state("mine") is RequestState.BOOKED
    world.advance(hours=1)
    assert world.started_at("mine") == MONDAY_9 + H
    world.check()


def test_nothing_is_lent_by_default() -> None:
    """An owner would find strangers on hosts that nobody said may be lent."""
    world = World(f1())
    world.reserve("r", hosts=4, start=MONDAY_9, hours=10)
    world.submit("short", hosts=2, hours=1, project="p2")
    assert world.request("short", "p2").state is not RequestState.ACTIVE


def test_what_is_lent_is_not_use_by_the_owner() -> None:
    """A reservation nobody came for would be kept because others used it."""
    world = World(f1(), PolicyOptions(lend_idle_s=H, no_show_release_s=2 * H))
    world.reserve("r", hosts=4, start=MONDAY_9, hours=10)
    world.submit("short", hosts=2, hours=1, project="p2")
    world.advance(hours=2)
    assert world.reservation("r").state is ReservationState.ENDED
    world.check()
