"""What runs in a reservation keeps to its window, its terms and its hosts, whatever goes wrong."""

from __future__ import annotations

import pytest

from dws.backends.simulated.backend import SimulatedBackend
from dws.backends.simulated.faults import Faults
from dws.model.errors import NeverFits, NoRoom
from dws.model.request import RequestState
from dws.model.reservation import Share, Terms
from dws.model.resources import Overheads
from dws.planner.options import PolicyOptions
from tests.scenarios.world import MONDAY_9, OPERATOR, H, World, f1

SLOW = Overheads(setup_s=60, grace_s=30, teardown_s=30)


def test_e17_a_run_that_came_up_late_still_ends_with_its_reservation() -> None:
    """It would hold the next reservation's hosts, or be told an end that will not be kept."""
    world = World(f1(SLOW), backend=SimulatedBackend(boot_s=30))
    world.reserve("a", hosts=4, start=MONDAY_9, hours=1)
    world.submit("in-a", hosts=4, seconds=3_300, reservation="a")
    world.clock.jump_to(MONDAY_9 + 1_000)
    world.engine.tick()
    grant = world.request("in-a").grant
    assert grant is not None and grant.delivered_at == MONDAY_9 + 1_000
    assert grant.ends_at == MONDAY_9 + H - 60
    world.advance(hours=1)
    assert world.state("in-a") is RequestState.COMPLETED
    world.check()


def test_e01_a_host_that_is_not_back_holds_up_nobody_before_the_reservation_is_over() -> None:
    """The next team would be told hours before that all of its hosts are missing, for one that is late."""
    world = World(f1(), backend=SimulatedBackend(faults=Faults(release_s=600)))
    world.reserve("a", hosts=4, start=MONDAY_9, hours=2)
    world.reserve("b", hosts=4, start=MONDAY_9 + 2 * H, hours=1)
    world.advance(hours=2, seconds=-30)
    world.submit("in-a", hosts=1, seconds=10, reservation="a")
    world.advance(seconds=20)
    assert world.state("in-a") is RequestState.ENDING
    assert world.reservation("b").short == 0
    world.check()
    world.advance(seconds=30)
    assert world.reservation("b").short == 1
    world.advance(hours=0.5)
    assert world.reservation("b").short == 0
    world.check()


def test_e01_hosts_that_come_back_while_the_server_is_down_are_free_when_it_is_up() -> None:
    """The server would refuse to write that they are back, again and again, and do nothing else."""
    world = World(f1(), backend=SimulatedBackend(faults=Faults(release_s=600)))
    world.reserve("a", hosts=4, start=MONDAY_9, hours=1)
    world.submit("in-a", hosts=1, hours=0, reservation="a")
    world.advance(hours=1, seconds=30)
    assert world.state("in-a") is RequestState.ENDING
    world.clock.jump_to(MONDAY_9 + H + 1_000)
    world.restart()
    assert world.state("in-a") is RequestState.COMPLETED
    assert world.booked_hosts() == 0
    world.check()


def test_e09_a_host_that_is_lost_while_its_reservation_is_ending_is_not_missed() -> None:
    """A host would be counted twice, as dead and as still to come, and nobody could be promised anything."""
    world = World(f1(), backend=SimulatedBackend(faults=Faults(release_s=600)))
    world.reserve("a", hosts=4, start=MONDAY_9, hours=1)
    world.submit("in-a", hosts=2, hours=0, reservation="a")
    held = world.hosts_of("in-a")
    world.advance(hours=1)
    world.hosts("DOWN", held[0])
    assert world.reserved("a").hosts == (held[1],) and world.booked_hosts() == 1 + 1 + 1, (
        "what in-a holds, its reservation because of that, and the outage"
    )
    world.check()


def test_e17_a_run_is_not_extended_beyond_what_its_reservation_allows() -> None:
    """A limit on each run would hold only until somebody asks for more."""
    world = World(f1())
    terms = Terms(request_run_max_s=2 * H)
    world.reserve("a", hosts=4, start=MONDAY_9, hours=8, terms=terms)
    world.submit("in-a", hosts=1, hours=1, reservation="a")
    assert world.extend("in-a", 3).extension.longest_s == H
    assert world.extend("in-a", 3, at_most=True).applied_s == H


def test_e17_to_the_end_is_no_way_around_the_longest_run_of_a_reservation() -> None:
    """A limit on each run would bind only who says how long."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9, hours=8, terms=Terms(request_run_max_s=2 * H))
    with pytest.raises(NeverFits, match="lasts at most 7200 s"):
        world.submit("in-a", hosts=1, hours=0, reservation="a")


def test_e17_a_reservation_too_short_to_start_anything_says_so() -> None:
    """It would wait, and be turned away at the end without ever having had a chance."""
    world = World(f1(SLOW))
    world.reserve("a", hosts=4, start=MONDAY_9 + H, hours=1 / 30)
    with pytest.raises(NeverFits, match="lasts at most 0 s"):
        world.submit("in-a", hosts=1, hours=0, reservation="a")


def test_a_lent_host_is_not_kept_longer_by_extending() -> None:
    """The owner of idle hosts would have to wait as long as a stranger likes."""
    world = World(f1(), PolicyOptions(lend_idle_s=H))
    world.reserve("r", hosts=4, start=MONDAY_9, hours=10)
    world.submit("short", hosts=1, hours=1)
    assert world.extend("short", 1).applied_s == 0
    world.advance(minutes=20)
    assert world.extend("short", 1, at_most=True).applied_s == 20 * 60


def test_e12_an_open_reservation_grows_within_the_share_of_reservations() -> None:
    """The calendar would close the fleet to everybody else, host by host."""
    world = World(f1(), PolicyOptions(calendar_share=0.75))
    world.reserve("a", hosts=1, start=MONDAY_9, hours=2)
    world.reserve("b", hosts=2, start=MONDAY_9 + H, hours=3)
    before = world.everything()
    with pytest.raises(NoRoom, match="leave 1 hosts of h100"):
        world.amend_reservation("a", count=2)
    assert world.everything() == before
    world.amend_reservation("a", end=MONDAY_9 + H)
    world.amend_reservation("a", count=2)
    with pytest.raises(NoRoom, match="leave 1 hosts of h100"):
        world.amend_reservation("a", end=MONDAY_9 + 2 * H)
    world.check()


def test_e12_a_change_of_the_name_can_be_repeated_by_the_old_one() -> None:
    """A client that repeats its call after a lost answer would be told that there is no such reservation."""
    world = World(f1())
    world.reserve("old", hosts=1, start=MONDAY_9 + H, hours=1)
    first = world.amend_reservation("old", new_name="new", call_id="c1")
    assert world.amend_reservation("old", new_name="new", call_id="c1") == first


def test_f07_who_is_thrown_out_is_promised_nothing_in_it_any_more() -> None:
    """It would keep its promise until the minute of its start, and somebody else their wait."""
    world = World(f1())
    shared = Terms(shares=(Share(project="p2"),))
    world.reserve("r", hosts=1, start=MONDAY_9 + H, hours=4, terms=shared)
    world.submit("out", hosts=1, hours=2, reservation="p/r", project="p2")
    world.submit("in", hosts=1, hours=2, reservation="r")
    assert world.expected_start("in") == MONDAY_9 + 3 * H
    world.amend_reservation("r", terms=Terms())
    assert world.request("out", "p2").state is RequestState.PENDING
    assert world.expected_start("in") == MONDAY_9 + H
    world.check()


def test_k05_what_ran_past_the_end_takes_nothing_off_the_idle_time() -> None:
    """A server that was down at the end would make idle hosts look used."""
    world = World(f1())
    world.reserve("r", hosts=2, start=MONDAY_9, hours=2)
    world.submit("a", hosts=1, hours=0, reservation="r")
    world.clock.jump_to(MONDAY_9 + 3 * H)
    world.restart()
    lines = world.engine.usage(OPERATOR, start=MONDAY_9, end=world.now())
    assert {line.kind: line.seconds for line in lines} == {"RUN": 3 * H, "RESERVED_IDLE": 2 * H}
