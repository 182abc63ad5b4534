"""Recurrences: the same time on the wall, whatever the clocks do; read and written as people write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from dws.model.errors import InvalidArgument
from dws.model.recurrence import Recurrence, occurrences, parse_recurrence
from dws.model.time import FOREVER, HOUR, Span

TODAY = date(2027, 1, 4)
NOW = 1_799_017_200  # that day begins in Berlin
BERLIN = ZoneInfo("Europe/Berlin")


def read(text: str) -> Recurrence:
    return parse_recurrence(text, now=NOW)


def spans(text: str) -> list[tuple[str, str, str]]:
    """Day, start and end in UTC of every occurrence."""
    return [(str(one.day), utc(one.span.start), utc(one.span.end)) for one in everything(read(text))]


def everything(recurrence: Recurrence) -> list:
    return occurrences(recurrence, after=0, before=FOREVER)


def utc(instant: int) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%m-%dT%H:%M")


def test_e11_a_weekly_class_stays_at_nine_across_the_clock_change() -> None:
    """Every class after the change would begin an hour away from its place in the timetable."""
    found = everything(read("every mon 09:00-11:00 Europe/Berlin from 2027-02-01 12 times"))
    local = [datetime.fromtimestamp(one.span.start, BERLIN) for one in found]
    assert len(found) == 12
    assert {f"{moment:%a %H:%M}" for moment in local} == {"Mon 09:00"}
    assert {one.span.length_s for one in found} == {2 * HOUR}
    hours = [datetime.fromtimestamp(one.span.start, UTC).hour for one in found]
    assert hours == [8] * 8 + [7] * 4
    assert all(one.note == "" for one in found)


def test_nights_belong_to_the_day_they_begin_on() -> None:
    """Friday's night would be left out, or Sunday's booked."""
    assert spans("every weekday 20:00-06:00 Europe/Berlin from 2027-01-07 until 2027-01-11") == [
        ("2027-01-07", "01-07T19:00", "01-08T05:00"),
        ("2027-01-08", "01-08T19:00", "01-09T05:00"),
        ("2027-01-11", "01-11T19:00", "01-12T05:00"),
    ]


def test_a_skipped_start_is_the_first_instant_after_the_jump() -> None:
    """An occurrence on the morning of the clock change would be missing or an hour late."""
    (one,) = everything(read("every sun 02:30-04:00 Europe/Berlin from 2027-03-28 1 times"))
    assert (utc(one.span.start), utc(one.span.end)) == ("03-28T01:00", "03-28T02:00")
    assert one.note == "starts at 03:00: the clocks go forward over 02:30 on 2027-03-28"


def test_a_doubled_start_is_the_first_of_the_two() -> None:
    """It would be open to chance which of two hours is booked."""
    (one,) = everything(read("every sun 02:30-03:30 Europe/Berlin from 2027-10-31 1 times"))
    assert (utc(one.span.start), utc(one.span.end)) == ("10-31T00:30", "10-31T02:30")
    assert one.note == "starts the first time it is 02:30: on 2027-10-31 the clocks go back"


def test_an_end_that_is_skipped_or_doubled_follows_the_same_rule() -> None:
    """A night would end an hour into what comes next."""
    text = "every sat 20:00-02:30 Europe/Berlin from {} 1 times"
    (spring,), (autumn,) = (everything(read(text.format(day))) for day in ("2027-03-27", "2027-10-30"))
    assert utc(spring.span.end) == "03-28T01:00" and "ends at 03:00" in spring.note
    assert utc(autumn.span.end) == "10-31T00:30" and "ends the first time it is 02:30" in autumn.note


def test_hours_that_are_skipped_altogether_are_empty_and_say_so() -> None:
    """An occurrence that cannot be would be booked for something else, unseen."""
    (one,) = everything(read("every sun 02:00-03:00 Europe/Berlin from 2027-03-28 1 times"))
    assert one.span.length_s == 0 and "clocks go forward" in one.note


def test_a_day_that_was_skipped_does_not_stop_the_series() -> None:
    """A zone that crosses the date line would break every later occurrence."""
    found = everything(read("every day 09:00-10:00 Pacific/Apia from 2011-12-29 until 2011-12-31"))
    assert [(str(one.day), one.span.length_s) for one in found] == [
        ("2011-12-29", HOUR),
        ("2011-12-30", 0),
        ("2011-12-31", HOUR),
    ]


def test_whole_weeks_never_overlap_when_an_hour_is_missing() -> None:
    """Two of one series would claim the same hosts for an hour."""
    found = everything(read("every sun 00:00 for 7d Europe/Berlin from 2027-03-21 3 times"))
    assert all(a.span.end == b.span.start for a, b in pairwise(found))
    assert [one.note != "" for one in found] == [False, True, False]


def test_a_length_is_exact_whatever_the_clocks_do() -> None:
    """Somebody who pays for twelve hours would get eleven."""
    (one,) = everything(read("every sat 20:00 for 12h Europe/Berlin from 2027-03-27 1 times"))
    assert one.span.length_s == 12 * HOUR


def test_days_left_out_count_but_do_not_occur() -> None:
    """Cancelling one lesson of twelve would add a thirteenth."""
    course = read("every mon,wed 09:00-11:00 UTC 4 times")
    without = course.without(date(2027, 1, 6))
    assert [str(one.day) for one in everything(course)] == [
        "2027-01-04",
        "2027-01-06",
        "2027-01-11",
        "2027-01-13",
    ]
    assert [str(one.day) for one in everything(without)] == ["2027-01-04", "2027-01-11", "2027-01-13"]


def test_only_what_starts_between_the_bounds_is_given() -> None:
    """An occurrence at the horizon would be booked twice or never."""
    daily = read("every day 09:00-10:00 UTC until 2027-01-08")
    starts = [one.span.start for one in everything(daily)]
    assert [o.span.start for o in occurrences(daily, after=starts[1], before=starts[3])] == starts[1:3]


def test_the_leap_day_is_a_day() -> None:
    """A nightly booking would be missing on 29 February."""
    assert [day for day, _, _ in spans("every day 23:00-24:00 UTC from 2028-02-28 until 2028-03-01")] == [
        "2028-02-28",
        "2028-02-29",
        "2028-03-01",
    ]
    (one,) = everything(read("every day 23:00-24:00 UTC from 2028-12-31 1 times"))
    start = int(datetime(2028, 12, 31, 23, tzinfo=UTC).timestamp())
    assert one.span == Span(start, start + HOUR)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (
            "every weekday 20:00–06:00 Europe/Berlin until 2027-03-01",
            "every weekday 20:00-06:00 Europe/Berlin from 2027-01-04 until 2027-03-01",
        ),
        (
            "Every Wednesday,mon 9:00-11:00 Europe/Berlin 12 times from 2027-02-01",
            "every mon,wed 09:00-11:00 Europe/Berlin from 2027-02-01 12 times",
        ),
        (
            "weekends 18:00 for 36h UTC until 2027-02-01",
            None,
        ),
        (
            "every fri 18:00 for 2d12h30m UTC until 2027-02-01 except 2027-01-15,2027-01-08",
            "every fri 18:00 for 2d12h30m UTC from 2027-01-04 until 2027-02-01 except 2027-01-08,2027-01-15",
        ),
        (
            "every mon,tue,wed,thu,fri,sat,sun 00:00-24:00 UTC 1 time",
            "every day 00:00-00:00 UTC from 2027-01-04 1 times",
        ),
    ],
)
def test_a_recurrence_is_read_and_written(text: str, canonical: str | None) -> None:
    """What is shown of a series would not be what was asked, or could not be typed in again."""
    if canonical is None:
        with pytest.raises(InvalidArgument, match="up to 1d"):
            read(text)
        return
    assert str(read(text)) == canonical
    assert read(canonical) == read(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("every weekday", "too short"),
        ("every someday 09:00-11:00 UTC until 2027-03-01", "'someday' is not a day"),
        ("every mo 09:00-11:00 UTC until 2027-03-01", "'mo' is not a day"),
        ("every day 25:00-26:00 UTC until 2027-03-01", "'25:00' is not a time of day"),
        ("every day 09:00-11:00:60 UTC until 2027-03-01", "'11:00:60' is not a time of day"),
        ("every day 09:00 UTC until 2027-03-01", "does not say when each one ends"),
        ("every day 09:00-11:00 for 2h UTC until 2027-03-01", "leave one of them out"),
        ("every day 09:00 for ages UTC until 2027-03-01", "'ages' is not a length"),
        ("every day 09:00 for 0h UTC until 2027-03-01", "at least a minute"),
        ("every day 09:00 for 25h UTC until 2027-03-01", "up to 1d"),
        ("every day 09:00-11:00 until 2027-03-01", "name the zone"),
        ("every day 09:00-11:00 Mars/Olympus until 2027-03-01", "'Mars/Olympus' is not a time zone"),
        ("every day 09:00-11:00 UTC until March", "'March' is not a date"),
        ("every day 09:00-11:00 UTC until", "'until' is the last word"),
        ("every day 09:00-11:00 UTC", "say when it ends"),
        ("every day 09:00-11:00 UTC until 2027-03-01 12 times", "say when it ends"),
        ("every day 09:00-11:00 UTC until 2026-03-01", "must end between"),
        ("every day 09:00-11:00 UTC 5000 times", "5000 times is not possible"),
        ("every day 09:00-11:00 UTC for ever", "'for' is not understood there"),
        ("every day 09:00-11:00 UTC from 9999-01-01 2 times", "cannot begin on 9999-01-01"),
    ],
)
def test_what_is_wrong_is_named(text: str, names: str) -> None:
    """Somebody would have to guess which word was not understood."""
    with pytest.raises(InvalidArgument, match=names) as caught:
        read(text)
    assert caught.value.field == "every"


def test_a_recurrence_without_days_is_refused() -> None:
    """A series that never occurs would be kept for ever."""
    with pytest.raises(InvalidArgument, match="at least one day"):
        Recurrence(days=frozenset(), start=time(9), end=time(10), zone="UTC", first=TODAY, count=1)


@pytest.mark.parametrize(
    ("now", "zone", "first"),
    [
        ("2027-01-11T08:00", "UTC", "2027-01-11"),
        ("2027-01-11T08:01", "UTC", "2027-01-12"),
        ("2027-01-11T15:30", "Asia/Tokyo", "2027-01-12"),
        ("2027-01-11T16:30", "America/Los_Angeles", "2027-01-12"),
    ],
)
def test_it_begins_with_the_next_one_by_the_clocks_of_its_zone(now: str, zone: str, first: str) -> None:
    """Of "3 times" the first would lie in the past, or the day be that of another zone."""
    at = int(datetime.fromisoformat(now).replace(tzinfo=UTC).timestamp())
    found = parse_recurrence(f"day 08:00-09:00 {zone} 3 times", now=at)
    assert str(found.first) == first
    assert len(occurrences(found, after=at, before=FOREVER)) == 3
