"""The same reservation again and again (E11)."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from dws.backends.simulated.backend import SimulatedBackend
from dws.backends.simulated.faults import Faults
from dws.engine.answers import SeriesView
from dws.engine.commands import AmendReservation, AmendSeries, Repeat
from dws.model import events as ev
from dws.model.demand import Alternative
from dws.model.errors import AlreadyExists, InvalidArgument, NoRoom
from dws.model.recurrence import parse_recurrence
from dws.model.reservation import ReservationState
from dws.model.series import SeriesState
from dws.planner.options import PolicyOptions
from tests.scenarios.world import ANN, MONDAY_9, H, World, f1

S = ReservationState
CLASS = "every mon 09:00-11:00 Europe/Berlin from 2027-03-15 12 times"
WEEK = 7 * 24 * H


def repeat(world: World, text: str, *, hosts: int = 2, may_miss: bool = False) -> SeriesView:
    alternative = Alternative(shape="a3-highgpu-8g", count=hosts, duration_s=1)
    command = Repeat(
        project="p",
        name="class",
        alternative=alternative,
        recurrence=parse_recurrence(text, now=MONDAY_9),
        may_miss=may_miss,
    )
    return world.engine.repeat(ANN, command)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def test_e11_a_weekly_class_keeps_its_hour_on_the_wall_across_a_clock_change() -> None:
    """Half of the course would begin an hour early."""
    world = World(f1())
    view = repeat(world, CLASS)
    starts = [one.span.start for one in view.upcoming]
    assert len(starts) == 12
    assert starts[:3] == [at("2027-03-15 08:00"), at("2027-03-22 08:00"), at("2027-03-29 07:00")]


def test_e11_the_horizon_applies_to_each_occurrence() -> None:
    """A course of a year would be refused whole, or close the calendar for a year."""
    world = World(f1())
    view = repeat(world, "every mon 09:00-11:00 Europe/Berlin from 2027-01-18 until 2027-12-31")
    booked = [one for one in view.upcoming if one.reservation is not None]
    assert len(booked) == 8 and booked[-1].span.start <= MONDAY_9 + 8 * WEEK
    assert booked[0].reservation is not None and booked[0].reservation.series == "class"
    world.advance(hours=24 * 7)
    again = world.engine.get_series(ANN, "p", "class")
    assert sum(1 for one in again.upcoming if one.reservation is not None) == 9, "8, and the one under way"
    assert world.reservation("class-20270118").state is S.FULFILLED
    world.advance(hours=2)
    assert world.reservation("class-20270118").state is S.ENDED
    world.check()


def test_what_does_not_fit_refuses_the_series_and_nothing_is_booked() -> None:
    """Some weeks of a course would silently be missing."""
    world = World(f1())
    world.reserve("other", hosts=3, start=at("2027-01-25 08:30"), hours=1)
    before = world.everything()
    with pytest.raises(NoRoom, match=r"1 of its occurrences cannot be booked \(2027-01-25\)"):
        repeat(world, "every mon 09:00-11:00 Europe/Berlin from 2027-01-18 4 times")
    assert world.everything() == before
    view = repeat(world, "every mon 09:00-11:00 Europe/Berlin from 2027-01-18 4 times", may_miss=True)
    assert [m.day for m in view.series.missed] == [date(2027, 1, 25)]
    assert sum(1 for one in view.upcoming if one.reservation is not None) == 3
    assert len(world.events(ev.OccurrenceMissed)) == 1


def test_one_occurrence_is_cancelled_alone_and_all_together() -> None:
    """A holiday would cost the whole course, or the course would go on for ever."""
    world = World(f1())
    repeat(world, "every mon 09:00-11:00 Europe/Berlin from 2027-01-18 until 2027-06-28")
    world.engine.leave_out(ANN, "p", "class", date(2027, 1, 25))
    assert world.reservation("class-20270125").state is S.CANCELLED
    assert world.reservation("class-20270118").state is S.APPROVED
    with pytest.raises(InvalidArgument, match="no occurrence of 'class' on 2027-01-26"):
        world.engine.leave_out(ANN, "p", "class", date(2027, 1, 26))
    world.engine.cancel_series(ANN, "p", "class")
    assert world.reservation("class-20270118").state is S.CANCELLED
    view = world.engine.get_series(ANN, "p", "class")
    assert view.series.state is SeriesState.CANCELLED
    world.advance(hours=24 * 40)
    assert not world.engine.books.bookings
    world.check()


def test_a_series_is_changed_in_one_step_or_not_at_all() -> None:
    """A course that does not fit at ten would lose its place at nine."""
    world = World(f1())
    repeat(world, "every mon 09:00-11:00 Europe/Berlin from 2027-01-18 3 times")
    world.reserve("other", hosts=4, start=at("2027-01-25 10:00"), hours=2)
    before = world.everything()
    later = parse_recurrence("every mon 11:00-13:00 Europe/Berlin from 2027-01-18 3 times", now=MONDAY_9)
    with pytest.raises(NoRoom):
        world.engine.amend_series(ANN, AmendSeries(project="p", name="class", recurrence=later))
    assert world.everything() == before
    world.engine.cancel_reservation(ANN, "p", "other")
    world.engine.amend_series(ANN, AmendSeries(project="p", name="class", recurrence=later))
    assert world.reservation("class-20270125").window.start == at("2027-01-25 10:00")
    with pytest.raises(AlreadyExists):
        repeat(world, CLASS)
    world.check()


def test_each_occurrence_says_whether_it_is_booked_missed_or_when_it_will_be() -> None:
    """A gap in a course would look like one that is only not booked yet."""
    world = World(f1())
    world.reserve("other", hosts=3, start=at("2027-01-25 08:30"), hours=1)
    repeat(world, "every mon 09:00-11:00 Europe/Berlin from 2027-01-18 11 times", may_miss=True)
    world.engine.cancel_reservation(ANN, "p", "class-20270201")
    renamed = AmendReservation(project="p", name="class-20270208", new_name="exam")
    world.engine.amend_reservation(ANN, renamed)
    moved = AmendReservation(
        project="p", name="class-20270215", start=at("2027-02-15 10:00"), end=at("2027-02-15 12:00")
    )
    world.engine.amend_reservation(ANN, moved)
    one, gap, alone, exam, later, *rest = world.engine.get_series(ANN, "p", "class").upcoming
    assert one.reservation is not None and not one.cause and not one.books_at
    assert gap.reservation is None and "needs 2 hosts" in gap.cause and not gap.books_at
    assert alone.reservation is not None and alone.reservation.state is S.CANCELLED
    assert [u.books_at for u in rest if u.reservation is None] == [
        u.span.start - 8 * WEEK for u in rest if u.span.start > MONDAY_9 + 8 * WEEK
    ]
    assert exam.reservation is not None and exam.reservation.name == "exam"
    assert later.span.start == at("2027-02-15 10:00"), "where it was moved to"
    world.advance(hours=7 * 24 - 0.5)
    under_way = world.engine.get_series(ANN, "p", "class").upcoming[0]
    assert under_way.day == date(2027, 1, 18) and under_way.reservation is not None
    world.check()


def test_one_that_has_begun_or_waits_for_approval_is_skipped_rightly() -> None:
    """Skipping would say done and leave the hosts booked."""
    world = World(f1(), PolicyOptions(reservation_approval="approver"))
    repeat(world, "every day 09:00-11:00 UTC from 2027-01-12 3 times")
    assert world.reservation("class-20270113").state is S.PENDING_APPROVAL
    world.engine.leave_out(ANN, "p", "class", date(2027, 1, 13))
    assert world.reservation("class-20270113").state is S.CANCELLED
    world.advance(hours=24.5)
    with pytest.raises(InvalidArgument, match="on 2027-01-12 lies ahead"):
        world.engine.leave_out(ANN, "p", "class", date(2027, 1, 12))


def test_a_change_to_days_that_are_past_ends_nothing() -> None:
    """A mistyped year would cancel the whole course."""
    world = World(f1())
    repeat(world, "every mon 09:00-11:00 Europe/Berlin from 2027-01-18 3 times")
    before = world.everything()
    past = parse_recurrence("mon 09:00-11:00 UTC from 2026-01-01 until 2026-12-31", now=MONDAY_9)
    with pytest.raises(InvalidArgument, match="lies ahead"):
        world.engine.amend_series(ANN, AmendSeries(project="p", name="class", recurrence=past))
    assert world.everything() == before


def test_what_was_missed_is_forgotten_when_a_change_books_it() -> None:
    """A course would be shown with a gap that it has not."""
    world = World(f1())
    world.reserve("other", hosts=3, start=at("2027-01-25 08:30"), hours=1)
    repeat(world, "every mon 09:00-11:00 Europe/Berlin from 2027-01-18 3 times", may_miss=True)
    world.engine.cancel_reservation(ANN, "p", "other")
    view = world.engine.amend_series(ANN, AmendSeries(project="p", name="class", description="again"))
    assert view.series.missed == ()
    assert all(u.reservation is not None for u in view.upcoming)


def test_a_series_is_changed_while_one_of_it_is_just_ending() -> None:
    """Changing the course would be refused for minutes, with words about something else."""
    world = World(f1(), backend=SimulatedBackend(faults=Faults(release_s=600)))
    repeat(world, "every day 10:00 for 1h UTC from 2027-01-11 3 times")
    world.submit("in-it", hosts=1, hours=0, reservation="class-20270111")
    world.advance(hours=2)
    assert world.reservation("class-20270111").state is ReservationState.ENDING
    world.engine.amend_series(ANN, AmendSeries(project="p", name="class", description="moved"))
    world.engine.cancel_series(ANN, "p", "class")
    assert world.reservation("class-20270112").state is ReservationState.CANCELLED
