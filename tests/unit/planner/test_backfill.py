"""The planner's loop on fleets of a few hosts: who starts, who is promised what, and what moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dws.model.booking import OwnerKind
from dws.model.demand import Demand
from dws.model.topology import Fleet, HostState
from dws.planner import invariants
from dws.planner.backfill import plan
from dws.planner.options import PolicyOptions
from dws.planner.plan import Book, Decision, Move, Plan, Start, Withdraw
from dws.planner.recheck import still_holds
from dws.planner.snapshot import FleetSnapshot, build
from tests.build import NOW, H, a_booking, a_fleet, a_pool, a_request, a_status, an_alternative, f1, f2

POLICY = PolicyOptions()


def decided(seen: FleetSnapshot, options: PolicyOptions = POLICY, now: int = NOW) -> dict[int, Decision]:
    """One checked plan, by request."""
    made = plan(seen, options, now)
    invariants.check(made, seen)
    return {d.request: d for d in made.decisions}


def starts(made: dict[int, Decision]) -> set[int]:
    return {r for r, d in made.items() if isinstance(d, Start)}


def test_c01_what_never_fits_delays_nobody() -> None:
    """A request larger than the fleet could block everyone behind it, or hold a promise for ever."""
    made = decided(build(f1(), queue=[a_request(1, gpus=40), a_request(2, gpus=8)]))
    assert starts(made) == {2} and 1 not in made


def test_c02_all_or_nothing() -> None:
    """A gang of three could be started on the two hosts that are free."""
    busy = a_booking(9, {0: (0, 1)}, end=NOW + 5 * H)
    made = decided(build(f1(), bookings=[busy], queue=[a_request(1, gpus=24), a_request(2, hosts=2, hours=5)]))
    assert isinstance(made[1], Book) and made[1].placement.start == NOW + 5 * H
    assert starts(made) == {2}, "the two free hosts are for those who are done in time"


def test_c04_backfill_may_not_delay_the_head() -> None:
    """A request behind the head could push its start back."""
    line = [a_request(1, gpus=32), a_request(2, gpus=8, hours=1), a_request(3, gpus=8, hours=3)]
    made = decided(build(f1(), bookings=[a_booking(9, {0: (0, 1)}, end=NOW + 2 * H)], queue=line))
    head = made[1]
    assert isinstance(head, Book) and head.placement.start == NOW + 2 * H
    assert starts(made) == {2}


def test_c08_a_head_blocked_on_one_type_leaves_the_other_protected_too() -> None:
    """A second type's head could go unprotected because the first type's head waits."""
    busy = [a_booking(8, {0: (0, 1), 1: (2, 3)}, end=NOW + H), a_booking(9, {0: (0,)}, pool="a100", end=NOW + H)]
    line = [
        a_request(1, gpus=32),
        a_request(2, gpus=16, accelerator="a100"),
        a_request(3, gpus=8, accelerator="a100", hours=2),
        a_request(4, gpus=8, accelerator="a100", hours=1),
    ]
    made = decided(build(f2(), bookings=busy, queue=line))
    assert isinstance(made[2], Book) and made[2].placement.start == NOW + H
    assert starts(made) == {4}


def test_a_head_that_takes_either_type_leaves_both_heads_protected() -> None:
    """A head with alternatives could take away the protection of who can only use one of the types."""
    busy = [a_booking(8, {0: (0, 1), 1: (2, 3)}, end=NOW + H), a_booking(9, {0: (0,)}, pool="a100", end=NOW + 2 * H)]
    either = a_request(1, an_alternative(gpus=32), an_alternative(gpus=16, accelerator="a100"))
    line = [either, a_request(2, gpus=16, accelerator="a100"), a_request(3, gpus=8, accelerator="a100", hours=3)]
    made = decided(build(f2(), bookings=busy, queue=line))
    assert made[1].placement.pool == "h100"  # type: ignore[union-attr]
    assert isinstance(made[2], Book) and made[2].placement.start == NOW + 2 * H
    assert 3 not in starts(made)


@pytest.mark.parametrize("first", ["never in its window", "not before tomorrow", "backing off"])
def test_who_cannot_start_takes_nobodys_protection(first: str) -> None:
    """The first who could start would wait without protection behind one who cannot."""
    ahead = {
        "never in its window": a_request(1, gpus=32, not_after=NOW + H),
        "not before tomorrow": a_request(1, gpus=32, not_before=NOW + 24 * H),
        "backing off": a_request(1, gpus=32, not_again_before=NOW + 60),
    }[first]
    busy = a_booking(9, {0: (0, 1)}, end=NOW + 2 * H)
    line = [ahead, a_request(2, gpus=32, hours=4), a_request(3, gpus=8, hours=3)]
    made = decided(build(f1(), bookings=[busy], queue=line))
    assert isinstance(made[2], Book) and made[2].placement.start == NOW + 2 * H
    assert 3 not in starts(made)


def test_j01_free_hosts_in_two_blocks_are_not_one_block() -> None:
    """A gang that must share a block could be torn over two."""
    busy = a_booking(9, {0: (0,), 1: (2,)}, end=NOW + H)
    line = [a_request(1, gpus=16, within="block"), a_request(2, gpus=16, hours=1)]
    made = decided(build(f1(), bookings=[busy], queue=line))
    assert isinstance(made[1], Book) and made[1].placement.start == NOW + H
    assert starts(made) == {2}


def test_j05_a_gang_is_of_one_type() -> None:
    """A gang could be given H100 and A100 hosts together."""
    either = a_request(1, an_alternative(gpus=32), an_alternative(gpus=32, accelerator="a100"))
    made = decided(build(f2(), bookings=[a_booking(9, {0: (0,)}, end=NOW + H)], queue=[either]))
    assert isinstance(made[1], Book) and made[1].placement.pool == "h100"


def test_j06_small_requests_leave_whole_blocks_whole() -> None:
    """Two small requests could break both blocks, and the next gang wait for nothing."""
    line = [a_request(1, gpus=8), a_request(2, gpus=8), a_request(3, gpus=16, within="block")]
    assert starts(decided(build(f1(), queue=line))) == {1, 2, 3}


def test_a_gang_within_a_block_takes_the_fullest_that_holds_it() -> None:
    """A small gang could break a whole block while a partly used one would do."""
    fleet = a_fleet(a_pool(blocks={"b1": 4, "b2": 4, "b3": 4}))
    busy = a_booking(9, {1: (4,)}, end=NOW + 9 * H)
    made = decided(build(fleet, bookings=[busy], queue=[a_request(1, hosts=2, within="block")]))
    assert [p.cell for p in made[1].placement.parts] == [1]  # type: ignore[union-attr]


def test_the_alternative_that_finishes_first_wins_even_if_it_starts_later() -> None:
    """A request could be started on a form that ends after another would."""
    either = a_request(1, an_alternative(hosts=2, hours=9), an_alternative(hosts=4, hours=2))
    made = decided(build(f1(), bookings=[a_booking(9, {0: (0, 1)}, end=NOW + H)], queue=[either]))
    assert isinstance(made[1], Book)
    assert (made[1].placement.alternative, made[1].placement.start) == (1, NOW + H)


def test_room_that_a_promise_leaves_in_this_very_pass_is_used_now() -> None:
    """A request could be promised this instant, not started in it, and be told a second later that it is late."""
    either = a_request(1, an_alternative(gpus=8, accelerator="a100"), an_alternative(gpus=8), booking=5)
    whole = a_request(2, hosts=4, hours=2, priority=10, not_after=NOW + H // 2)
    promise = a_booking(5, {0: 1}, start=NOW + H, end=NOW + 2 * H, owner=1)
    seen = build(f2(), bookings=[promise], queue=[either, whole])
    made = decided(seen, replace(POLICY, protected_depth=0))
    assert made[1].placement.pool == "a100"  # type: ignore[union-attr]
    assert starts(made) == {1, 2}


def test_a_promise_that_is_due_is_not_let_pass_for_something_later() -> None:
    """A request could ignore its promised start because another form, not promised, would finish earlier."""
    either = a_request(1, an_alternative(hosts=1, hours=9), an_alternative(hosts=3, hours=2), booking=5)
    bookings = [a_booking(5, {0: 1}, end=NOW + 9 * H, owner=1), a_booking(9, {1: (2, 3)}, end=NOW + H)]
    for depth in (0, 1):
        seen = build(f1(), bookings=bookings, queue=[either])
        assert starts(decided(seen, replace(POLICY, protected_depth=depth))) == {1}


def test_a_promise_improves_only_to_what_also_finishes_earlier() -> None:
    """A promise could be "improved" to an earlier start of a form that ends long after."""
    either = a_request(1, an_alternative(hosts=1, hours=20), an_alternative(hosts=4, hours=1), booking=5)
    bookings = [a_booking(5, {0: 2, 1: 2}, start=NOW + 2 * H, end=NOW + 3 * H, owner=1)]
    bookings.append(a_booking(9, {0: (0, 1), 1: (2,)}, end=NOW + 2 * H))
    assert decided(build(f1(), bookings=bookings, queue=[either])) == {}


def test_at_the_age_limit_the_depth_of_promises_is_no_bound() -> None:
    """Someone old far down the line could be left without a promise because many stand before."""
    busy = a_booking(9, {0: (0, 1), 1: (2, 3)}, end=NOW + H)
    line = [a_request(i, gpus=32, priority=5) for i in range(1, 5)]
    old = a_request(9, gpus=32, submitted_at=NOW - 1_000)
    options = replace(POLICY, promise_depth=1, max_wait_age_s=1_000)
    made = decided(build(f1(), bookings=[busy], queue=[*line, old]), options)
    assert set(made) == {1, 2, 9}


def test_beyond_the_horizon_or_the_cap_there_is_no_promise() -> None:
    """The calendar could be closed for months by promises."""
    busy = a_booking(9, {0: (0, 1), 1: (2, 3)}, end=NOW + H)
    line = [a_request(i, gpus=32, hours=10) for i in range(1, 6)]
    near = replace(POLICY, promise_horizon_s=25 * H)
    assert set(decided(build(f1(), bookings=[busy], queue=line), near)) == {1, 2}
    little = replace(POLICY, promise_cap_accelerator_hours=640)
    assert set(decided(build(f1(), bookings=[busy], queue=line), little)) == {1, 2}


# --- repair -----------------------------------------------------------------------------------------


def test_a_lost_host_moves_only_the_promises_of_its_own_block() -> None:
    """A host lost in one block could move promises that do not need it."""
    line = [a_request(1, hosts=2, within="block", booking=5), a_request(2, hosts=2, within="block", booking=6)]
    bookings = [
        a_booking(5, {0: 2}, start=NOW + H, end=NOW + 2 * H, owner=1),
        a_booking(6, {1: 2}, start=NOW + H, end=NOW + 2 * H, owner=2),
        a_booking(9, {0: (0,), 1: (2,)}, end=NOW + H),
    ]
    down = a_status(3, until=NOW + 2 * H)
    made = decided(build(f1(), bookings=bookings, hosts=[down], queue=line))
    assert set(made) == {2}
    moved = made[2]
    assert isinstance(moved, Move) and moved.placement.start == NOW + 2 * H
    assert "lost" in moved.cause


def test_a_reservation_that_lost_a_host_moves_no_promise() -> None:
    """A maintenance window too large for what is left could push every promise of the pool away."""
    window = a_booking(7, {0: 2}, start=NOW + H, end=NOW + 3 * H, owner_kind=OwnerKind.MAINTENANCE)
    promise = a_booking(5, {1: 2}, start=NOW + H, end=NOW + 2 * H, owner=1)
    busy = a_booking(9, {1: (2,)}, end=NOW + H)
    line = [a_request(1, hosts=2, within="block", booking=5)]
    made = decided(build(f1(), bookings=[window, promise, busy], hosts=[a_status(0)], queue=line))
    assert made == {}


def test_what_nothing_can_hold_any_more_is_withdrawn_with_a_cause() -> None:
    """A promise that cannot be kept could stand as if nothing had happened."""
    promise = a_booking(5, {0: 2, 1: 2}, start=NOW + H, end=NOW + 2 * H, owner=1)
    busy = a_booking(9, {0: (0,)}, end=NOW + H)
    line = [a_request(1, hosts=4, booking=5)]
    made = decided(build(f1(), bookings=[promise, busy], hosts=[a_status(3)], queue=line))
    assert isinstance(made[1], Withdraw) and made[1].cause


def overrun(now: int) -> FleetSnapshot:
    """Two promises one behind the other on four hosts, and a run that should be over since NOW."""
    line = [a_request(1, hosts=4, booking=5), a_request(2, hosts=4, booking=6)]
    bookings = [
        a_booking(5, {0: 2, 1: 2}, start=NOW, end=NOW + H, owner=1),
        a_booking(6, {0: 2, 1: 2}, start=NOW + H, end=NOW + 2 * H, owner=2),
    ]
    return build(f1(), bookings=[*bookings, a_booking(9, {0: (0,)}, start=NOW - H, end=now)], queue=line)


def test_hosts_not_confirmed_free_are_not_given_away() -> None:
    """A run that overruns could share its host with the next one."""
    assert decided(overrun(NOW)) == {}


def test_a_promise_that_is_overdue_is_moved_openly() -> None:
    """A promise that could not be kept could lie in the past for ever, and hide that those behind it slip."""
    made = decided(overrun(NOW + 60), now=NOW + 60)
    late, behind = made[1], made[2]
    assert isinstance(late, Move) and late.placement.start == NOW + 61 and "not free in time" in late.cause
    assert isinstance(behind, Move) and behind.placement.start == NOW + 61 + H


def test_an_overdue_promise_starts_as_soon_as_it_can() -> None:
    """When the hosts come back late, the one who waits for them could be passed over."""
    seen = overrun(NOW + 60)
    freed = build(seen.fleet, bookings=[seen.bookings[5], seen.bookings[6]], queue=seen.queue)
    made = decided(freed, now=NOW + 60)
    assert isinstance(made[1], Start)
    assert isinstance(made[2], Move) and made[2].placement.start == NOW + 60 + H


def test_a_promise_due_in_a_closed_pool_goes_elsewhere_or_is_withdrawn() -> None:
    """A promise in a pool that is closed could wait there without a word."""
    closed = a_fleet(a_pool(blocks={"b1": 2}, unavailable="power work"), a_pool("spare", {"b9": 2}, zone="z2"))
    promise = a_booking(5, {0: 2}, start=NOW - 60, end=NOW + H, owner=1)
    line = [a_request(1, hosts=2, booking=5)]
    made = decided(build(closed, bookings=[promise], queue=line))
    assert isinstance(made[1], Start) and made[1].placement.pool == "spare"
    alone = Fleet(zones=closed.zones, pools=closed.pools[:1])
    made = decided(build(alone, bookings=[promise], queue=line))
    assert isinstance(made[1], Withdraw) and "power work" in made[1].cause


# --- drawing and re-checking ------------------------------------------------------------------------


def test_units_of_draining_and_doubted_hosts_are_drawn_never_and_last() -> None:
    """A run could be put on a host that is being taken out, or on a silent one although others are free."""
    hosts = [a_status(0, HostState.DRAINING), a_status(2, HostState.READY)]
    made = decided(build(f1(), hosts=hosts, queue=[a_request(1, hosts=2), a_request(2, hosts=1)]))
    assert [u for p in made[1].placement.parts for u in p.units] == [2, 3]  # type: ignore[union-attr]
    assert [u for p in made[2].placement.parts for u in p.units] == [1]  # type: ignore[union-attr]


def test_a_decision_is_kept_only_for_what_is_still_asked_and_free() -> None:
    """A plan made before an amendment, or before someone else's start, could be committed all the same."""
    seen = build(f1(), queue=[a_request(1, hosts=2)])
    (start,) = plan(seen, POLICY, NOW).decisions
    assert still_holds(start, seen, NOW) is None
    gone = still_holds(start, build(f1()), NOW)
    assert gone is not None and gone.code == "NOT_WAITING"
    smaller = replace(seen.queue[0], demand=Demand(alternatives=(an_alternative(hosts=1),)))
    changed = still_holds(start, build(f1(), queue=[smaller]), NOW)
    assert changed is not None and changed.code == "CHANGED"
    later = replace(seen.queue[0], demand=replace(seen.queue[0].demand, not_before=NOW + 1))
    changed = still_holds(start, build(f1(), queue=[later]), NOW)
    assert changed is not None and changed.code == "CHANGED"
    other = a_booking(9, {0: (0,)}, end=NOW + H)
    taken = still_holds(start, build(f1(), bookings=[other], queue=seen.queue), NOW)
    assert taken is not None and taken.code == "TAKEN"
    promised = a_booking(9, {0: 1}, start=NOW + 60, end=NOW + H)
    taken = still_holds(start, build(f1(), bookings=[promised], queue=seen.queue), NOW)
    assert taken is not None and taken.code == "TAKEN"


def test_looking_again_when_time_alone_changes_something() -> None:
    """Nobody could look when a back-off ends or a host is expected back."""
    busy = a_booking(9, {0: (0, 1), 1: (2, 3)}, end=NOW + 9 * H)
    request = a_request(1, gpus=8, not_again_before=NOW + 50)

    def made(**changes: object) -> Plan:
        return plan(build(f1(), bookings=[busy], queue=[replace(request, **changes)]), POLICY, NOW)  # type: ignore[arg-type]

    assert made().look_again_at == NOW + 50
    assert made(not_again_before=0).look_again_at == NOW + 9 * H
    seen = build(f1(), bookings=[busy], hosts=[a_status(1, until=NOW + 70)], queue=[request])
    assert plan(replace(seen, queue=(replace(request, not_again_before=0),)), POLICY, NOW).look_again_at == NOW + 70
    assert plan(build(f1(), bookings=[busy]), POLICY, NOW).look_again_at is None
