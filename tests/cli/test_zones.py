"""Times as people write them: their zone, the clocks going forward and back, and the server's clock."""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest
from click.testing import Result

from dws.cli import zones
from dws.model.errors import InvalidArgument
from dws.wire.timefmt import echo_instant
from tests.cli.stub import NOW, REQUESTS, Stub, clock, waiting

NEW_YORK = ZoneInfo("America/New_York")
Run = Callable[..., Result]
ASK = ("submit", "--accelerators", "h100:16", "--for", "4h")


def when(text: str, zone: ZoneInfo = NEW_YORK) -> int:
    return zones.parse_when(text, zone, server_now=NOW, field="not-before")


def test_e03_a_skipped_hour_is_refused_with_its_neighbours() -> None:
    """A start at an hour that does not exist would silently become another hour."""
    with pytest.raises(InvalidArgument, match=r"does not exist .* 01:30 EST and 03:30 EDT") as caught:
        when("2027-03-14 02:30")
    assert caught.value.reason == "skippedTime"


def test_e03_a_repeated_hour_needs_an_offset() -> None:
    """A start at an hour that comes twice would be an hour off, half the time."""
    with pytest.raises(InvalidArgument, match=r"01:30-04:00.*01:30-05:00") as caught:
        when("2027-11-07 01:30")
    assert caught.value.reason == "ambiguousTime"
    assert when("2027-11-07 01:30-05:00") - when("2027-11-07 01:30-04:00") == 3600


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-05-03 09:00", "2027-05-03T13:00:00Z"),
        ("2027-05-03T09:00:30", "2027-05-03T13:00:30Z"),
        ("2027-05-03", "2027-05-03T04:00:00Z"),
        ("2027-05-03T09:00:00Z", "2027-05-03T09:00:00Z"),
        ("2027-05-03T09:00:00+09:00", "2027-05-03T00:00:00Z"),
        ("now", "2027-01-15T08:00:00Z"),
        ("+5m", "2027-01-15T08:05:00Z"),
        ("in 1h30m", "2027-01-15T09:30:00Z"),
        ("+ 1d", "2027-01-16T08:00:00Z"),
    ],
)
def test_what_people_write_is_the_instant_they_mean(text: str, expected: str) -> None:
    """A request would start at another time than the one written down."""
    assert echo_instant(when(text), NEW_YORK).endswith(f" = {expected}")


@pytest.mark.parametrize("text", ["tomorrow", "2027-13-01", "9 am", "+5 parsecs", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    """A typing error would be taken for some time."""
    with pytest.raises(InvalidArgument, match="not-before"):
        when(text)


def test_the_zone_is_the_users() -> None:
    """Times would be shown and read in a zone nobody there uses."""
    assert str(zones.user_zone("Asia/Tokyo", {"TZ": "UTC"})) == "Asia/Tokyo"
    assert str(zones.user_zone("", {"TZ": ":Europe/Paris"})) == "Europe/Paris"
    with pytest.raises(InvalidArgument, match="not a time zone"):
        zones.user_zone("Mars/Olympus", {})


def test_e04_local_time_is_echoed_in_local_and_utc_before_asking(dws: Run, stub: Stub) -> None:
    """Someone in Paris would book an hour or two away from what they meant, unseen."""
    stub.on(f"POST {REQUESTS}", {"items": [waiting()]}).on(f"GET {REQUESTS}/train-a", waiting())
    done = dws(*ASK, "--not-before", "2027-05-03 09:00")
    assert done.exit_code == 0
    assert "not-before: 2027-05-03 09:00:00 CEST (Europe/Paris) = 2027-05-03T07:00:00Z" in done.stderr
    assert stub.bodies(f"POST {REQUESTS}")[0]["notBefore"] == "2027-05-03T07:00:00Z"


def test_e03_a_skipped_hour_never_reaches_the_server(dws: Run, stub: Stub) -> None:
    """A request nobody can mean would be in the queue."""
    done = dws(*ASK, "--tz", "America/New_York", "--not-before", "2027-03-14 02:30")
    assert done.exit_code == 2
    assert not stub.bodies(f"POST {REQUESTS}")


def test_e06_relative_time_counts_from_the_servers_clock(dws: Run, stub: Stub) -> None:
    """A laptop ten minutes fast would ask for a start ten minutes late."""
    stub.on(f"POST {REQUESTS}", {"items": [waiting()]}).on(f"GET {REQUESTS}/train-a", waiting())
    done = dws(*ASK, "--not-before", "+5m", machine=stub.machine(wall=NOW + 600))
    assert stub.bodies(f"POST {REQUESTS}")[0]["notBefore"] == "2027-01-15T08:05:00Z"
    assert "this machine's clock is 10m ahead of the server's" in done.stderr


@pytest.mark.parametrize(
    ("wall", "virtual", "warned"),
    [(NOW + 31, False, True), (NOW - 31, False, True), (NOW + 30, False, False), (NOW + 900, True, False)],
)
def test_e06_a_wrong_clock_is_warned_about(
    dws: Run, stub: Stub, wall: float, virtual: bool, warned: bool
) -> None:
    """Absolute times would be compared with another clock unnoticed; under a virtual one it would nag."""
    stub.on("GET /dws/v1/clock", clock(virtual=virtual)).on("GET /dws/v1/queue", {"items": [waiting()]})
    done = dws("queue", machine=stub.machine(wall=wall))
    assert ("warning: this machine's clock" in done.stderr) is warned


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (125, "2m05s"), (1_200, "20m"), (7_500, "2h05m"), (273_600, "3d4h")],
)
def test_lengths_have_at_most_two_units(seconds: int, text: str) -> None:
    """A waiting time would be unreadable."""
    assert zones.rough(seconds) == text
