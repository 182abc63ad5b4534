"""Reservations over time: booked, delivered, changed, ended (group E)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dws.engine.commands import PlanMaintenance, Seek
from dws.model import events as ev
from dws.model.demand import Alternative, Demand
from dws.model.errors import FailedPrecondition, InvalidArgument, NoRoom
from dws.model.recurrence import parse_recurrence
from dws.model.request import EndReason, RequestState
from dws.model.reservation import ReservationState
from dws.model.resources import Overheads
from dws.planner.options import PRESETS, PolicyOptions
from tests.scenarios.world import ANN, MONDAY_9, OPERATOR, H, World, a_gpu_pool, f1

S = ReservationState
DAY = 24 * H


def test_e01_two_reservations_that_touch_share_no_instant() -> None:
    """The second team would find the first one's hosts still taken at noon."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9 + H, hours=3)
    world.reserve("b", hosts=4, start=MONDAY_9 + 4 * H, hours=3)
    world.submit("in-a", hosts=4, hours=0, reservation="a")
    world.advance(hours=1)
    assert world.state("in-a") is RequestState.ACTIVE
    world.advance(hours=3)
    assert world.reservation("a").state is S.ENDED
    assert world.reservation("b").state is S.FULFILLED
    assert world.reservation("b").opened_at == MONDAY_9 + 4 * H
    assert world.request("in-a").end_reason is EndReason.DURATION_REACHED
    world.check()


def test_e01_the_time_to_clean_up_is_taken_from_the_first() -> None:
    """Tear-down of one reservation's work would make the next one late."""
    world = World(f1(Overheads(setup_s=60, grace_s=30, teardown_s=90)))
    world.reserve("a", hosts=4, start=MONDAY_9 + H, hours=3)
    world.reserve("b", hosts=4, start=MONDAY_9 + 4 * H, hours=3)
    world.submit("in-a", hosts=4, hours=0, reservation="a")
    world.advance(hours=4)
    ended = next(e for e in world.events(ev.Ended) if e.name == "in-a")
    assert ended.at <= MONDAY_9 + 4 * H - 120
    assert world.reservation("b").opened_at == MONDAY_9 + 4 * H


def test_e02_one_second_of_overlap_is_refused_with_what_would_fit() -> None:
    """The user would be told 'busy' and left to guess."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9, hours=3)
    before = world.everything()
    with pytest.raises(NoRoom) as refused:
        world.reserve("b", hosts=4, start=MONDAY_9 + 3 * H - 1, hours=3)
    assert world.everything() == before
    assert "needs 4 hosts; h100 has 0 of 4 free" in refused.value.message
    nearest = refused.value.details["nearest"]
    assert isinstance(nearest, list) and nearest[0]["start"] == MONDAY_9 + 3 * H
    world.reserve("b", hosts=4, start=nearest[0]["start"], hours=3)


def test_e02_fewer_hosts_are_named_where_the_window_has_room_for_some() -> None:
    """The user would not learn that two of four hosts are free just then."""
    world = World(f1())
    world.reserve("a", hosts=2, start=MONDAY_9, hours=3)
    with pytest.raises(NoRoom) as refused:
        world.reserve("b", hosts=4, start=MONDAY_9, hours=3)
    assert refused.value.details["most"] == 2


def test_e05_a_start_in_the_past_is_refused_and_a_moment_ago_is_now() -> None:
    """A booking would begin before it was made."""
    world = World(f1())
    with pytest.raises(InvalidArgument, match="start: lies 5 hours in the past"):
        world.reserve("a", hosts=1, start=MONDAY_9 - 5 * H, hours=1)
    made = world.reserve("b", hosts=1, start=MONDAY_9 - 10, hours=1)
    assert made.window.start == MONDAY_9
    assert world.reservation("b").state is S.FULFILLED


def test_e06_a_relative_start_is_resolved_by_the_server() -> None:
    """A client whose clock is wrong would book the wrong hour."""
    world = World(f1())
    made = world.reserve("a", hosts=1, start=0, hours=1, start_in_s=300)
    assert made.window.start == MONDAY_9 + 300


def test_e08_a_server_that_was_down_at_the_start_delivers_late_and_says_so() -> None:
    """A reservation whose start was missed would never be delivered."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9 + H, hours=3)
    world.clock.jump_to(MONDAY_9 + H + 1200)
    world.restart()
    reservation = world.reservation("a")
    assert reservation.state is S.FULFILLED
    assert (reservation.opened_at, reservation.window.end) == (MONDAY_9 + H + 1200, MONDAY_9 + 4 * H)
    delivered = world.events(ev.ReservationDelivered)[-1].body
    assert isinstance(delivered, ev.ReservationDelivered) and delivered.late_s == 1200


def test_e09_a_host_lost_before_the_start_is_replaced_or_openly_missed() -> None:
    """The owner would learn at the start that hosts are missing."""
    world = World(f1())
    world.reserve("a", hosts=3, start=MONDAY_9 + 24 * H, hours=3)
    world.hosts("DOWN", "h100-h1")
    assert world.reservation("a").short == 0, "the fourth host takes its place"
    world.hosts("DOWN", "h100-h2")
    assert world.reservation("a").short == 1
    degraded = world.events(ev.ReservationDegraded)[-1]
    assert degraded.name == "a" and degraded.body.short == 1  # type: ignore[union-attr]
    world.hosts("READY", "h100-h2")
    assert world.reservation("a").short == 0
    world.advance(hours=24)
    assert world.reservation("a").state is S.FULFILLED
    world.check()


def test_e09_a_host_lost_while_it_is_open_is_replaced_or_openly_missed() -> None:
    """Work in the reservation would have fewer hosts and nobody would say so."""
    world = World(f1())
    world.reserve("a", hosts=3, start=MONDAY_9, hours=3)
    had = world.reserved("a").hosts
    world.hosts("DOWN", had[0])
    assert world.reservation("a").short == 0
    assert len(world.reserved("a").hosts) == 3 and had[0] not in world.reserved("a").hosts
    world.hosts("DOWN", had[1])
    assert (world.reservation("a").short, len(world.reserved("a").hosts)) == (1, 2)
    world.hosts("READY", had[0])
    assert (world.reservation("a").short, len(world.reserved("a").hosts)) == (0, 3)
    world.check()


def test_e09_a_promise_makes_room_for_a_reservation_that_lost_a_host() -> None:
    """A reservation would shrink so that a later request keeps its place."""
    world = World(f1())
    world.submit("now", hosts=4, hours=20)
    world.reserve("a", hosts=3, start=MONDAY_9 + 24 * H, hours=3)
    world.submit("next", hosts=1, hours=30)
    assert world.request("next").promised_start == MONDAY_9 + 20 * H
    world.hosts("DRAINING", "h100-h4")
    assert world.reservation("a").short == 0
    assert world.request("next").promised_start == MONDAY_9 + 27 * H
    world.advance(hours=24)
    assert world.reservation("a").state is S.FULFILLED


def test_e12_growing_is_refused_whole_and_says_how_much_is_possible() -> None:
    """A failed change would cost the hosts one already has."""
    world = World(f1())
    world.reserve("a", hosts=2, start=MONDAY_9, hours=5)
    world.submit("other", hosts=1, hours=8)
    before = world.everything()
    with pytest.raises(NoRoom, match="1 more hosts of h100 are free until its end, 2 more"):
        world.amend_reservation("a", count=4)
    assert world.everything() == before
    grown = world.amend_reservation("a", count=3)
    assert grown.count == 3 and len(world.reserved("a").hosts) == 3
    assert world.reservation("a").id == grown.id


def test_e13_a_window_moves_until_the_lock_and_not_after() -> None:
    """A change too late would silently do nothing, or lose the booking."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9 + 48 * H, hours=5)
    world.amend_reservation("a", start=MONDAY_9 + 50 * H, end=MONDAY_9 + 55 * H)
    assert world.reservation("a").window.start == MONDAY_9 + 50 * H
    world.advance(hours=50, minutes=-15)
    assert world.reservation("a").state is S.PROCURING
    before = world.everything()
    with pytest.raises(FailedPrecondition, match=r"locked since .* 15 minutes before its start"):
        world.amend_reservation("a", start=MONDAY_9 + 60 * H, end=MONDAY_9 + 65 * H)
    assert world.everything() == before


def test_e13_the_new_window_may_overlap_the_old_one() -> None:
    """A booking that only moves by an hour would be in its own way."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9 + 48 * H, hours=5)
    moved = world.amend_reservation("a", start=MONDAY_9 + 49 * H, end=MONDAY_9 + 54 * H)
    assert moved.window.start == MONDAY_9 + 49 * H and moved.sequence == 1


@pytest.mark.parametrize(("rule", "possible"), [("never", False), ("until_lock", True)])
def test_e14_cancelling_follows_the_rule_told_at_booking(rule: str, possible: bool) -> None:
    """The owner would find out about the rule when it is too late."""
    world = World(f1(), PolicyOptions(reservation_cancel=rule, reservation_cancel_s=24 * H))  # type: ignore[arg-type]
    made = world.engine.reserve(ANN, _ask(start=MONDAY_9 + 72 * H))
    told = " ".join(rule.text for rule in made.rules)
    assert ("cannot be cancelled" in told) is not possible
    if not possible:
        with pytest.raises(FailedPrecondition, match="reservation_cancel = never"):
            world.engine.cancel_reservation(ANN, "p", "a")
        return
    assert made.view.reservation.cancel_until == MONDAY_9 + 48 * H
    world.engine.cancel_reservation(ANN, "p", "a")
    assert world.reservation("a").state is S.CANCELLED
    world.reserve("b", hosts=4, start=MONDAY_9 + 72 * H, hours=1)


def _ask(*, start: int):  # type: ignore[no-untyped-def]
    from dws.engine.commands import Reserve

    alternative = Alternative(shape="a3-highgpu-8g", count=4, duration_s=H)
    return Reserve(project="p", name="a", alternative=alternative, start=start)


def test_e14_too_late_to_cancel_names_the_rule() -> None:
    """A late cancellation would be accepted although the hosts are lost to others."""
    world = World(f1(), PolicyOptions(reservation_cancel_s=24 * H))
    world.reserve("a", hosts=4, start=MONDAY_9 + 20 * H, hours=1)
    with pytest.raises(FailedPrecondition, match="until 1 day before its start"):
        world.engine.cancel_reservation(ANN, "p", "a")


def test_e15_a_reservation_nobody_uses_is_warned_of_and_taken_back() -> None:
    """Idle hosts would be kept from everybody until the end."""
    world = World(f1(), PolicyOptions(no_show_warn_s=900, no_show_release_s=1800))
    world.reserve("a", hosts=4, start=MONDAY_9, hours=10)
    world.submit("waits", hosts=4, hours=1)
    world.advance(minutes=15)
    assert world.kinds("a")[-1] == "ReservationUnused"
    assert world.state("waits") is RequestState.BOOKED
    world.advance(minutes=15)
    assert world.reservation("a").state is S.ENDED
    assert world.state("waits") is RequestState.ACTIVE


def test_e15_a_reservation_that_is_used_is_kept() -> None:
    """Work would be thrown out of a reservation in use."""
    world = World(f1(), PolicyOptions(no_show_warn_s=900, no_show_release_s=1800))
    world.reserve("a", hosts=4, start=MONDAY_9, hours=10)
    world.submit("in-a", hosts=1, hours=2, reservation="a")
    world.advance(hours=2)
    assert world.reservation("a").state is S.FULFILLED
    world.advance(minutes=31)
    assert world.reservation("a").state is S.ENDED


def test_e16_given_back_early_the_next_in_line_starts_at_once() -> None:
    """Hosts nobody wants any more would stand idle until the end."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9, hours=10)
    world.submit("in-a", hosts=1, hours=9, reservation="a")
    world.submit("next", hosts=4, hours=1)
    world.advance(hours=1)
    world.engine.release_reservation(ANN, "p", "a")
    assert world.reservation("a").state is S.ENDED
    assert world.request("in-a").end_reason is EndReason.RESERVATION_ENDED
    assert world.started_at("next") == MONDAY_9 + H
    world.check()


def test_e16_a_part_can_be_given_back_and_what_is_used_stays() -> None:
    """Giving two of four hosts back would stop the work on the others."""
    world = World(f1())
    world.reserve("a", hosts=4, start=MONDAY_9, hours=10)
    world.submit("in-a", hosts=2, hours=9, reservation="a")
    world.submit("next", hosts=2, hours=1)
    with pytest.raises(FailedPrecondition, match="2 of its 4 hosts are in use"):
        world.amend_reservation("a", count=1)
    world.amend_reservation("a", count=2)
    assert world.state("in-a") is RequestState.ACTIVE
    assert world.state("next") is RequestState.ACTIVE
    world.check()


def test_e17_work_aimed_at_a_reservation_waits_for_it_and_starts_with_it() -> None:
    """It would start elsewhere, or have to be submitted again at six in the morning."""
    world = World(f1())
    world.reserve("a", hosts=2, start=MONDAY_9 + 5 * H, hours=3)
    world.submit("in-a", hosts=2, hours=1, reservation="a")
    assert world.state("in-a") is RequestState.BOOKED
    assert "RESERVATION_NOT_OPEN" in world.reason("in-a")
    assert world.expected_start("in-a") == MONDAY_9 + 5 * H
    world.advance(hours=5)
    assert world.started_at("in-a") == MONDAY_9 + 5 * H
    assert set(world.hosts_of("in-a")) <= set(world.reserved("a").hosts)
    world.check()


def test_e17_work_waits_inside_an_open_reservation_for_its_turn() -> None:
    """A full reservation would refuse work instead of queueing it."""
    world = World(f1())
    world.reserve("a", hosts=2, start=MONDAY_9, hours=5)
    world.submit("first", hosts=2, hours=2, reservation="a")
    world.submit("second", hosts=1, hours=1, reservation="a")
    assert "RESERVATION_FULL" in world.reason("second")
    world.advance(hours=2)
    assert world.started_at("second") == MONDAY_9 + 2 * H


def test_e17_what_waits_for_a_reservation_that_ends_is_told() -> None:
    """It would wait for ever."""
    world = World(f1())
    world.reserve("a", hosts=2, start=MONDAY_9, hours=2)
    world.submit("first", hosts=2, hours=2, reservation="a")
    world.submit("second", hosts=1, hours=1, reservation="a")
    world.advance(hours=2)
    assert world.state("second") is RequestState.EXPIRED
    assert "reservation 'a' is over" in world.request("second").end_message


def test_a_quote_inside_a_reservation_is_answered_before_it_opens_and_after() -> None:
    """Asking what one can expect would hang the server."""
    world = World(f1())
    world.reserve("r", hosts=2, start=MONDAY_9 + 24 * H, hours=168)
    world.submit("a", hosts=2, hours=0, reservation="r")
    until_end = Alternative(shape="a3-highgpu-8g", count=2, duration_s=0)
    demand = Demand(alternatives=(until_end,))
    asked = world.engine.quote(ANN, "p", demand, reservation="r").asked
    assert asked.start is None, "the other one has it until the end"
    world.cancel("a")
    asked = world.engine.quote(ANN, "p", demand, reservation="r").asked
    assert (asked.start, asked.end) == (MONDAY_9 + 24 * H, MONDAY_9 + 192 * H)


def test_e18_the_first_window_that_fits_is_found_and_can_be_booked_as_it_is() -> None:
    """The user would try hour after hour by hand."""
    world = World(f1())
    world.reserve("a", hosts=3, start=MONDAY_9 + 2 * H, hours=4)
    world.submit("runs", hosts=4, hours=1)
    advice = world.engine.advise(ANN, _seek(hosts=2, min_hours=6, max_hours=6))
    assert [o.window.start for o in advice.options] == [MONDAY_9 + 6 * H]
    best = advice.options[0]
    world.reserve("b", hosts=2, start=best.window.start, hours=best.window.length_s / H)


def test_e18_the_longest_window_wins_and_a_zone_that_lost_says_why() -> None:
    """The user would not know whether to shorten the run or to look elsewhere."""
    world = World(f1())
    world.reserve("a", hosts=3, start=MONDAY_9 + 8 * H, hours=250)
    advice = world.engine.advise(ANN, _seek(hosts=2, min_hours=2, max_hours=24))
    assert advice.options[0].window.length_s == 8 * H
    none = world.engine.advise(ANN, _seek(hosts=2, min_hours=9, max_hours=24))
    assert none.options == () and none.lost[0].reason.code == "NO_ROOM"


def test_e18_only_within_the_hours_one_is_there() -> None:
    """A slot at three in the morning would be offered to somebody who has to sit beside it."""
    world = World(f1())
    world.reserve("a", hosts=3, start=MONDAY_9, hours=30)
    hours = parse_recurrence("weekday 08:00-20:00 Europe/Berlin until 2027-03-01", now=MONDAY_9)
    seek = replace(_seek(hosts=2, min_hours=6, max_hours=6), hours=hours)
    advice = world.engine.advise(ANN, seek)
    tuesday = MONDAY_9 + 30 * H
    wednesday_8_berlin = MONDAY_9 + 46 * H
    assert [o.window.start for o in advice.options][:1] == [wednesday_8_berlin]
    assert all(o.window.start != tuesday for o in advice.options)
    world.reserve("b", hosts=2, start=wednesday_8_berlin, hours=6)
    too_long = replace(_seek(hosts=2, min_hours=13, max_hours=13), hours=hours)
    assert world.engine.advise(ANN, too_long).lost[0].reason.code == "OUT_OF_HOURS"


def _seek(*, hosts: int, min_hours: int, max_hours: int) -> Seek:
    return Seek(
        project="p",
        alternative=Alternative(shape="a3-highgpu-8g", count=hosts, duration_s=min_hours * H),
        start_from=MONDAY_9,
        start_to=MONDAY_9 + 10 * 24 * H,
        min_s=min_hours * H,
        max_s=max_hours * H,
    )


def test_the_seed_preset_books_a_block_of_14_days_8_weeks_ahead() -> None:
    """The announced way of working would not be possible on this fleet."""
    world = World(f1(), PRESETS["seed"])
    start = MONDAY_9 + 56 * DAY
    with pytest.raises(InvalidArgument, match="10 days; reservations last 7 days or 14 days"):
        world.reserve("block", hosts=2, start=start, hours=10 * 24)
    world.reserve("block", hosts=2, start=start, hours=14 * 24)
    world.submit("vm", hosts=2, hours=0, reservation="block")
    world.advance(hours=56 * 24)
    assert world.reservation("block").state is S.FULFILLED
    assert world.state("vm") is RequestState.ACTIVE
    world.advance(hours=14 * 24)
    assert world.state("vm") is RequestState.COMPLETED
    assert world.reservation("block").state is S.ENDED
    assert world.booked_hosts() == 0
    world.check()


def test_a_reservation_may_take_no_more_than_its_share_of_a_pool() -> None:
    """The calendar would close the fleet to everybody else."""
    world = World(f1(), PolicyOptions(calendar_share=0.5))
    world.reserve("a", hosts=1, start=MONDAY_9, hours=5)
    with pytest.raises(NoRoom):
        world.reserve("b", hosts=2, start=MONDAY_9 + H, hours=5)
    world.reserve("b", hosts=2, start=MONDAY_9 + 5 * H, hours=5)


def test_an_approver_says_yes_or_no_and_silence_is_no() -> None:
    """Capacity would be booked without the owner's consent, or held for ever."""
    world = World(f1(), PolicyOptions(reservation_approval="approver", approval_expiry_s=H))
    for name in ("yes", "no", "silence"):
        made = world.reserve(name, hosts=1, start=MONDAY_9 + 5 * H, hours=1)
        assert made.state is S.PENDING_APPROVAL
    with pytest.raises(NoRoom):
        world.reserve("late", hosts=2, start=MONDAY_9 + 5 * H, hours=1)
    world.engine.approve_reservation(OPERATOR, "p", "yes")
    world.engine.decline_reservation(OPERATOR, "p", "no", "no budget")
    world.advance(hours=1)
    assert world.reservation("yes").state is S.APPROVED
    assert (world.reservation("no").state, world.reservation("no").end_message) == (S.DECLINED, "no budget")
    assert world.reservation("silence").state is S.DECLINED
    world.reserve("late", hosts=3, start=MONDAY_9 + 5 * H, hours=1, who=OPERATOR)
    world.check()


# --- maintenance ------------------------------------------------------------------------------


def _maintain(world: World, *hosts: str, start: int, hours: float, force: bool = False):  # type: ignore[no-untyped-def]
    command = PlanMaintenance(
        name="fans",
        hosts=hosts,
        start=start,
        end=start + int(hours * H),
        reason="new fans",
        force=force,
        confirm=True,
    )
    return world.engine.plan_maintenance(OPERATOR, command)


OVERLAPS = [(-1, 2), (2, 1), (3, 2), (-1, 6)]


@pytest.mark.parametrize(("start", "hours"), OVERLAPS)
def test_e10_maintenance_over_a_reservation_is_refused_and_names_it(start: int, hours: int) -> None:
    """An operator would take a host from a confirmed reservation without knowing."""
    world = World(f1())
    world.reserve("r", hosts=4, start=MONDAY_9 + 10 * H, hours=4)
    before = world.everything()
    with pytest.raises(FailedPrecondition, match="would touch r"):
        _maintain(world, "h100-h2", start=MONDAY_9 + (10 + start) * H, hours=hours)
    assert world.everything() == before


@pytest.mark.parametrize(("start", "hours"), OVERLAPS)
def test_e10_forced_the_reservation_is_openly_short_for_that_window(start: int, hours: int) -> None:
    """The owner would find a host missing and no word about it."""
    world = World(f1())
    world.reserve("r", hosts=4, start=MONDAY_9 + 10 * H, hours=4)
    _maintain(world, "h100-h2", start=MONDAY_9 + (10 + start) * H, hours=hours, force=True)
    assert world.reservation("r").short == 1
    first = max(10, 10 + start)
    world.advance(hours=first + 0.1)
    assert world.reservation("r").short == 1 and "h100-h2" not in world.reserved("r").hosts
    over = 10 + start + hours
    if over < 14:
        world.advance(hours=over - first)
        assert world.reservation("r").short == 0 and "h100-h2" in world.reserved("r").hosts
    world.advance(hours=24)
    assert world.engine.maintenance(OPERATOR) == ()
    world.check()


def test_e10_with_room_elsewhere_nobody_is_touched() -> None:
    """Maintenance would be refused although other hosts are free."""
    world = World(f1())
    world.reserve("r", hosts=3, start=MONDAY_9 + 10 * H, hours=4)
    _maintain(world, "h100-h2", start=MONDAY_9 + 11 * H, hours=1)
    world.advance(hours=11.5)
    assert (world.reservation("r").short, len(world.reserved("r").hosts)) == (0, 3)
    assert world.reservation("r").state is S.FULFILLED
    world.check()


def test_e10_a_server_that_was_down_over_the_whole_window_goes_on() -> None:
    """It could never do anything again: the window would begin after its end, time after time."""
    world = World(f1())
    _maintain(world, "h100-h2", start=MONDAY_9 + H, hours=1)
    world.clock.jump_to(MONDAY_9 + 3 * H)
    world.restart()
    assert world.engine.maintenance(OPERATOR) == ()
    world.submit("all", hosts=4, hours=1)
    assert world.state("all") is RequestState.ACTIVE
    world.check()


def test_e10_maintenance_is_planned_for_a_host_that_is_down_until_then() -> None:
    """A start would be promised on a host that is back by then, and out again, and be moved on the day."""
    world = World(f1())
    every = tuple(f"h100-h{n}" for n in range(1, 5))
    _maintain(world, *every, start=MONDAY_9 + 2 * H, hours=2)
    world.hosts("DOWN", *every, until=MONDAY_9 + H)
    world.submit("x", hosts=1, hours=2)
    assert world.request("x").promised_start == MONDAY_9 + 4 * H
    world.submit("y", hosts=1, hours=1)
    assert world.expected_start("y") == MONDAY_9 + H


def test_e10_a_reservation_never_lacks_more_hosts_than_it_has() -> None:
    """The owner of one host would be told that three are missing."""
    pool = a_gpu_pool("h100", 4, {"b1": 4})
    world = World(replace(f1(), pools=(pool,)))
    world.reserve("r", hosts=1, start=MONDAY_9 + 2 * H, hours=1)
    world.submit("x", hosts=3, hours=10)
    _maintain(world, *world.hosts_of("x"), start=MONDAY_9 + H, hours=3, force=True)
    assert world.reservation("r").short <= 1
    world.advance(hours=2)
    assert world.reservation("r").state is S.FULFILLED
    world.check()


def test_a_run_that_would_last_into_maintenance_goes_to_another_host() -> None:
    """It would be started on a host that is taken away in the middle."""
    world = World(f1())
    _maintain(world, "h100-h1", "h100-h2", "h100-h3", start=MONDAY_9 + 2 * H, hours=2)
    world.submit("long", hosts=1, hours=3)
    assert world.hosts_of("long") == ["h100-h4"]
    world.submit("short", hosts=3, hours=2)
    assert world.started_at("short") == MONDAY_9
    world.submit("next", hosts=1, hours=1)
    world.advance(hours=24)
    assert world.started_at("next") == MONDAY_9 + 3 * H
    assert world.state("long") is RequestState.COMPLETED
    world.check()


def test_a_unit_free_until_maintenance_does_not_stand_for_one_free_after_it() -> None:
    """A promise by number would not be possible on any one host."""
    world = World(f1())
    world.hosts("DOWN", "h100-h1", "h100-h2")
    world.submit("left", hosts=1, hours=3)
    free = next(h for h in ("h100-h3", "h100-h4") if h not in world.hosts_of("left"))
    _maintain(world, free, start=MONDAY_9 + 3 * H + H // 2, hours=2)
    world.submit("v", hosts=1, hours=4)
    promised = world.request("v").promised_start
    world.advance(hours=24)
    assert world.started_at("v") == promised == MONDAY_9 + 3 * H
    world.check()
