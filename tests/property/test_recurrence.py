"""Recurrences against another way to compute them: days by dateutil's rules, instants by walking minutes."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from dateutil.rrule import WEEKLY, rrule
from hypothesis import given, settings
from hypothesis import strategies as st

from dws.model.localtime import instants, reached
from dws.model.recurrence import Recurrence, occurrences, parse_recurrence
from dws.model.time import DAY, FOREVER, MINUTE

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",  # half an hour
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "Pacific/Apia",
)

times = st.times().map(lambda t: t.replace(second=0, microsecond=0))
early = st.builds(time, st.integers(0, 4), st.sampled_from([0, 1, 15, 30, 59]))
CHANGES = [
    "2027-03-13",
    "2027-03-27",
    "2027-04-03",
    "2027-10-02",
    "2027-10-30",
    "2027-11-06",
    "2011-12-29",
    "2028-02-28",
]
days_of_change = st.sampled_from(CHANGES).map(date.fromisoformat)
firsts = days_of_change | st.dates(date(1990, 1, 1), date(2036, 12, 31))


@st.composite
def recurrences(draw: st.DrawFn) -> Recurrence:
    first = draw(firsts)
    by_length = draw(st.booleans())
    by_count = draw(st.booleans())
    return Recurrence(
        days=draw(st.frozensets(st.integers(0, 6), min_size=1)),
        start=draw(early | times),
        end=None if by_length else draw(early | times),
        length_s=draw(st.integers(1, 1440)) * MINUTE if by_length else 0,
        zone=draw(st.sampled_from(ZONES)),
        first=first,
        until=None if by_count else first + timedelta(days=draw(st.integers(0, 20))),
        count=draw(st.integers(1, 8)) if by_count else 0,
        left_out=draw(st.frozensets(st.integers(0, 9).map(lambda n: first + timedelta(days=n)), max_size=3)),
    )


def walked(wall: datetime, zone: ZoneInfo) -> int:
    """The first minute at which clocks show `wall` or later, found by looking at them minute by minute."""
    instant = int(wall.replace(tzinfo=UTC).timestamp()) - 26 * 3600
    while datetime.fromtimestamp(instant, zone).replace(tzinfo=None) < wall:
        instant += MINUTE
    return instant


@settings(max_examples=150, deadline=None)
@given(recurrences())
def test_occurrences_agree_with_days_by_rule_and_clocks_by_walking(recurrence: Recurrence) -> None:
    """A series would be booked on another day, or an hour away from where its owner expects it."""
    zone = ZoneInfo(recurrence.zone)
    rule = rrule(
        WEEKLY,
        dtstart=datetime.combine(recurrence.first, recurrence.start),
        byweekday=sorted(recurrence.days),
        until=recurrence.until and datetime.combine(recurrence.until, recurrence.start),
        count=recurrence.count or None,
    )
    expected = [wall for wall in rule if wall.date() not in recurrence.left_out]
    found = occurrences(recurrence, after=0, before=FOREVER)
    assert [one.day for one in found] == [wall.date() for wall in expected]
    for one, wall in zip(found, expected, strict=True):
        assert one.span.start == walked(wall, zone)
        if recurrence.end is not None:
            end = datetime.combine(wall.date(), recurrence.end)
            assert one.span.end == walked(end if end > wall else end + timedelta(days=1), zone)
        elif not one.note:
            assert one.span.length_s == recurrence.length_s


@settings(max_examples=150, deadline=None)
@given(recurrences())
def test_occurrences_of_a_series_never_overlap(recurrence: Recurrence) -> None:
    """A series would compete with itself for hosts."""
    found = occurrences(recurrence, after=0, before=FOREVER)
    assert all(a.span.end <= b.span.start for a, b in pairwise(found))


@settings(max_examples=200, deadline=None)
@given(recurrences())
def test_what_is_written_is_read_back(recurrence: Recurrence) -> None:
    """A series would change by being shown and saved again."""
    assert parse_recurrence(str(recurrence), now=0) == recurrence


@settings(max_examples=100, deadline=None)
@given(recurrences(), st.integers(0, 20 * DAY), st.integers(0, 20 * DAY))
def test_a_series_in_pieces_is_the_whole(recurrence: Recurrence, a: int, b: int) -> None:
    """Booking as the horizon moves would leave one out or book it twice."""
    base = int(datetime.combine(recurrence.first, time(), UTC).timestamp()) - DAY
    cut, cut_again = sorted((base + a, base + b))
    pieces = [(0, cut), (cut, cut_again), (cut_again, FOREVER)]
    parts = [one for after, before in pieces for one in occurrences(recurrence, after=after, before=before)]
    assert parts == occurrences(recurrence, after=0, before=FOREVER)


@settings(max_examples=200, deadline=None)
@given(firsts, early | times, st.sampled_from(ZONES))
def test_all_instants_that_show_a_time_are_found(day: date, clock: time, zone_name: str) -> None:
    """A time that comes twice would be taken for one that is clear, or the other way round."""
    zone, wall = ZoneInfo(zone_name), datetime.combine(day, clock)
    middle = int(wall.replace(tzinfo=UTC).timestamp())
    near = range(middle - 26 * 3600, middle + 26 * 3600, MINUTE)
    shown = tuple(t for t in near if datetime.fromtimestamp(t, zone).replace(tzinfo=None, fold=0) == wall)
    assert instants(wall, zone) == shown
    assert reached(wall, zone) == walked(wall, zone)
