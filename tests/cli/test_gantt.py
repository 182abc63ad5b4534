"""The calendar in the terminal, as golden files, and what must hold at every width."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from zoneinfo import ZoneInfo

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dws.cli.gantt import LANES_MAX, SHARES, gantt
from dws.model.time import DAY, HOUR
from dws.wire.native_v1 import Bar, CalendarView, FreeStep, PoolCalendar
from tests.cli.stub import instant

PARIS = ZoneInfo("Europe/Paris")
START = 1_799_622_000  # 2027-01-11T00:00 in Paris, a Monday
NOW = START + DAY + 14 * HOUR
Golden = Callable[[str, str], None]


def a_bar(start: int, end: int, count: int, name: str = "", **changes: object) -> Bar:
    fields: dict = {
        "kind": "RESERVATION",
        "project": "",
        "state": "APPROVED",
        "own": False,
        "parent": "",
        "in_use": 0,
        "short": 0,
        "start": instant(start),
        "end": instant(end) if end else "",
    }
    return Bar(count=count, name=name, **(fields | changes))


def a_pool(*bars: Bar, free: list[tuple[int, int]], name: str = "h100", hosts: int = 16) -> PoolCalendar:
    return PoolCalendar(
        pool=name,
        zone="us-central1-a",
        machine="a3-highgpu-8g",
        hosts=hosts,
        bars=list(bars),
        free=[FreeStep(start=instant(at), hosts=count) for at, count in free],
    )


def a_view(
    *pools: PoolCalendar, start: int = START, end: int = START + 7 * DAY, now: int = NOW
) -> CalendarView:
    return CalendarView(now=instant(now), start=instant(start), end=instant(end), pools=list(pools))


def a_week() -> CalendarView:
    """Every kind of booking, own and foreign, over a week."""
    h100 = a_pool(
        a_bar(START + 9 * HOUR, START + 4 * DAY, 8, "train-week", own=True, in_use=6, state="FULFILLED"),
        a_bar(START + 10 * HOUR, START + 2 * DAY, 6, "tune", own=True, kind="RUN", parent="train-week"),
        a_bar(START - DAY, START + 3 * DAY, 4),
        a_bar(START + 4 * DAY, START + 9 * DAY, 12, "course", own=True, short=2),
        a_bar(START + 5 * DAY, START + 5 * DAY + HOUR, 2, "exam", own=True, state="PENDING_APPROVAL"),
        a_bar(START + 6 * DAY + 20 * HOUR, START + 6 * DAY + 22 * HOUR, 2, "sunday-night", own=True),
        a_bar(START + 3 * DAY, START + 3 * DAY + 12 * HOUR, 4, kind="PROMISE"),
        a_bar(START + DAY, 0, 1, kind="OUTAGE"),
        free=[
            (START, 11),
            (START + 9 * HOUR, 3),
            (START + 3 * DAY, 3),
            (START + 4 * DAY, 3),
            (START + 5 * DAY, 1),
            (START + 5 * DAY + HOUR, 3),
        ],
    )
    idle = a_pool(
        a_bar(START + 2 * DAY, START + 3 * DAY, 4, "firmware", kind="MAINTENANCE"),
        free=[(START, 4), (START + 2 * DAY, 0), (START + 3 * DAY, 4)],
        name="a100-spare",
        hosts=4,
    )
    return a_view(h100, idle)


@pytest.mark.parametrize("width", [80, 120])
def test_a_week_as_people_see_it(width: int, golden: Golden) -> None:
    """The calendar would be unreadable in a terminal of common size."""
    lines = gantt(a_week(), width=width, zone=PARIS)
    assert max(map(len, lines)) <= width
    golden(f"gantt-{width}", "\n".join(lines) + "\n")


def test_a_day_shows_hours(golden: Golden) -> None:
    """Nobody could read off at what hour a booking begins."""
    day = a_view(
        a_pool(
            a_bar(START + DAY + 9 * HOUR, START + DAY + 12 * HOUR, 16, "morning", own=True),
            free=[(START + DAY, 16), (START + DAY + 9 * HOUR, 0), (START + DAY + 12 * HOUR, 16)],
        ),
        start=START + DAY,
        end=START + 2 * DAY,
    )
    golden("gantt-day", "\n".join(gantt(day, width=100, zone=PARIS)) + "\n")


def test_colour_adds_nothing_but_colour() -> None:
    """Who sets NO_COLOR, or cannot see colours, would not be told what others are."""
    plain = gantt(a_week(), width=100, zone=PARIS)
    coloured = gantt(a_week(), width=100, zone=PARIS, colour=True)
    assert [click.unstyle(line).rstrip() for line in coloured] == plain
    own, foreign = (next(line for line in coloured if word in line) for word in ("train-week", "reserved 4"))
    assert "\x1b[32m█ train-week" in own and "\x1b[90m◀ reserved" in foreign
    assert not any("\x1b" in line for line in plain)


def test_days_stand_over_their_midnights_when_the_clocks_change() -> None:
    """After a clock change every label would be an hour away from its column."""
    begin = 1_806_058_800  # 2027-03-26T12:00+01:00
    view = a_view(a_pool(free=[(begin, 16)]), start=begin, end=begin + 4 * DAY, now=begin)
    _, days, _, ruler, *_ = gantt(view, width=6 + 96, zone=ZoneInfo("Europe/Berlin"))
    columns = [match.start() - 6 for match in re.finditer("[A-Z]", days.replace("Mar", "mar"))]
    hours = [column for column in columns if column > 0]
    assert [b - a for a, b in pairwise(hours)].count(23) == 1
    assert all(ruler[6 + column] == "┼" for column in hours)


@pytest.mark.parametrize(("free", "sign"), [(0, "·"), (1, "▁"), (500, "▄"), (999, "▇"), (1_000, "█")])
def test_the_last_free_host_and_the_first_taken_one_show(free: int, sign: str) -> None:
    """One host that is free in a thousand would look like none, one that is taken like none taken."""
    lines = gantt(a_view(a_pool(free=[(START, free)], hosts=1_000)), width=80, zone=PARIS)
    assert set(next(line for line in lines if line.startswith("free"))[6:]) == {sign}


def test_a_short_booking_takes_its_hosts_away_in_its_column() -> None:
    """A column would promise room that a booking of an hour has taken."""
    free = [(START, 16), (START + 73 * HOUR, 0), (START + 74 * HOUR, 16)]
    row = next(
        line for line in gantt(a_view(a_pool(free=free)), width=80, zone=PARIS) if line.startswith("free")
    )
    assert row[6:].count(SHARES[0]) == 1


def test_too_many_bookings_are_counted() -> None:
    """Bookings would be missing without a word."""
    bars = [a_bar(START, START + 7 * DAY, 1, f"b{n}", own=True) for n in range(LANES_MAX + 3)]
    lines = gantt(a_view(a_pool(*bars, free=[(START, 1)])), width=80, zone=PARIS)
    assert "      … and 3 more" in lines


def test_an_empty_fleet_is_drawn() -> None:
    """The first look at a new server would be an error."""
    assert gantt(a_view(), width=80, zone=PARIS)[0].startswith("Mon 2027-01-11 00:00 to Mon 2027-01-18 00:00")


def test_a_kind_that_is_not_known_yet_is_drawn() -> None:
    """An older command line would fail at a newer server's calendar."""
    bar = a_bar(START, START + DAY, 2, kind="AUCTION")
    assert "auction 2" in "\n".join(gantt(a_view(a_pool(bar, free=[(START, 1)])), width=80, zone=PARIS))


kinds = st.sampled_from(["RESERVATION", "RUN", "PROMISE", "OUTAGE", "MAINTENANCE"])
spans = st.tuples(st.integers(-3 * DAY, 10 * DAY), st.integers(0, 5 * DAY), kinds, st.booleans())


@settings(max_examples=150, deadline=None)
@given(st.lists(spans, max_size=8), st.integers(60, 160), st.integers(HOUR, 90 * DAY))
def test_every_booking_is_drawn_once_and_fits(spans: list, width: int, length: int) -> None:
    """A booking would be missing, hide another one, or break the lines of a narrow terminal."""
    shown = [
        a_bar(START + start, START + start + lasts if lasts else 0, 7, f"job{n}", kind=kind, own=own)
        for n, (start, lasts, kind, own) in enumerate(spans)
    ]
    lines = gantt(
        a_view(a_pool(*shown, free=[(START, 1)]), end=START + length, now=START), width=width, zone=PARIS
    )
    assert all(len(line) <= width for line in lines)
    drawn = "\n".join(lines)
    for n, (start, lasts, _, _) in enumerate(spans):
        is_visible = start < length and (lasts == 0 or start + lasts > 0)
        assert len(re.findall(rf"job{n} 7", drawn)) == is_visible
