"""Times that people type: one instant, or a refusal that says what to type instead."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dws.model.errors import InvalidArgument
from dws.wire.timefmt import FromNow, echo_instant, format_instant, parse_moment

NEW_YORK = ZoneInfo("America/New_York")
PARIS = ZoneInfo("Europe/Paris")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-05-03 09:00", "2027-05-03T07:00:00Z"),
        ("2027-05-03T09:00", "2027-05-03T07:00:00Z"),
        ("2027-01-11t09:00:30", "2027-01-11T08:00:30Z"),
        ("2027-05-03", "2027-05-02T22:00:00Z"),
        ("2027-05-03 09:00Z", "2027-05-03T09:00:00Z"),
        ("2027-05-03T09:00:00+09:00", "2027-05-03T00:00:00Z"),
        ("2027-10-31T02:30+01:00", "2027-10-31T01:30:00Z"),
        ("2028-02-29 12:00", "2028-02-29T11:00:00Z"),
    ],
)
def test_local_time_is_what_the_clocks_there_show(text: str, expected: str) -> None:
    """A booking would begin at another hour than the one typed."""
    moment = parse_moment(text, PARIS)
    assert isinstance(moment, int)
    assert format_instant(moment) == expected


@pytest.mark.parametrize(
    ("text", "seconds"), [("now", 0), ("+5m", 300), ("in 5m", 300), ("In 1h30m", 5_400), ("+ 1d", 86_400)]
)
def test_e06_what_is_relative_stays_relative(text: str, seconds: int) -> None:
    """A machine whose clock is wrong would book ten minutes away from what was meant."""
    assert parse_moment(text, PARIS) == parse_moment(text) == FromNow(seconds)


def test_e03_a_skipped_time_is_refused_with_its_neighbours() -> None:
    """A start that never is would silently become another."""
    with pytest.raises(
        InvalidArgument, match=r"start: 2027-03-14 02:30 does not exist in America/New_York"
    ) as caught:
        parse_moment("2027-03-14 02:30", NEW_YORK, field="start")
    assert "the nearest times are 01:30 EST and 03:30 EDT" in caught.value.message
    assert (caught.value.reason, caught.value.field) == ("skippedTime", "start")


def test_e03_a_doubled_time_needs_an_offset() -> None:
    """Half of those who type it would be an hour off."""
    with pytest.raises(InvalidArgument, match="comes twice in America/New_York") as caught:
        parse_moment("2027-11-07T01:30", NEW_YORK)
    assert caught.value.reason == "ambiguousTime"
    for way in ("2027-11-07 01:30-04:00", "2027-11-07 01:30-05:00"):
        assert f"'{way}'" in caught.value.message
    first, second = (parse_moment(f"2027-11-07T01:30{offset}", NEW_YORK) for offset in ("-04:00", "-05:00"))
    assert isinstance(first, int) and isinstance(second, int)
    assert second - first == 3_600


def test_e04_without_a_zone_an_offset_is_asked_for() -> None:
    """A program's local time would be taken for the server's."""
    with pytest.raises(InvalidArgument, match="has no offset; add 'Z' or one such as"):
        parse_moment("2027-05-03T09:00:00", field="start")


@pytest.mark.parametrize("text", ["2027-12-31 23:59:60", "2027-12-31T23:59:60Z", "2027-12-31T23:59:60+01:00"])
def test_e19_second_sixty_is_refused_with_a_message(text: str) -> None:
    """A booking at the edge of a year would be a second or a minute off, unseen."""
    with pytest.raises(InvalidArgument, match="second 60; write the next minute"):
        parse_moment(text, PARIS)


@pytest.mark.parametrize("text", ["", "tomorrow", "2027-02-29", "2027-13-01", "9 am", "+5 parsecs", "25:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """A typing error would be taken for some time."""
    with pytest.raises(InvalidArgument, match="start"):
        parse_moment(text, PARIS, field="start")


def test_an_instant_is_echoed_in_local_time_and_utc_with_its_zone() -> None:
    """Somebody in another zone could not see what was understood."""
    assert (
        echo_instant(1_809_327_600, PARIS) == "2027-05-03 09:00:00 CEST (Europe/Paris) = 2027-05-03T07:00:00Z"
    )


@given(
    st.dates(date(2000, 1, 1), date(2036, 1, 1)),
    st.times().map(lambda t: t.replace(second=0, microsecond=0)),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
)
def test_what_is_accepted_shows_as_typed(day: date, clock: time, zone_name: str) -> None:
    """A time typed and then shown would not be the same."""
    zone, wall = ZoneInfo(zone_name), datetime.combine(day, clock)
    try:
        moment = parse_moment(wall.isoformat(), zone)
    except InvalidArgument as error:
        readings = {wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
        assert len(readings) == 2 and error.reason in ("skippedTime", "ambiguousTime")
        return
    assert isinstance(moment, int)
    assert datetime.fromtimestamp(moment, zone).replace(tzinfo=None) == wall
