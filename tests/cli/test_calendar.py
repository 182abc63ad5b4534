"""Booking ahead with the command, against a real server under a virtual clock."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result
from icalendar import Calendar

from dws.cli.main import cli
from tests.cli.test_against_server import Server

Run = Callable[..., Result]
ZONE = ("--zone", "us-central1-b", "--machine", "a2-highgpu-8g")


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = ("--clock", "virtual", "--start", "2027-01-11T08:00:00Z", "--log-level", "warning")
    started = Server(tmp_path_factory.mktemp("served"), "--fleet", "demo", *options)
    yield started
    assert started.stop() == 0


@pytest.fixture
def run(server: Server, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Type a command line."""
    monkeypatch.setenv("DWS_ADDRESS", server.address)
    monkeypatch.setenv("DWS_STATE_DIR", str(server.state_dir))
    monkeypatch.setenv("TZ", "Europe/Berlin")

    def invoke(*args: str) -> Result:
        return CliRunner().invoke(cli, list(args), prog_name="dws")

    return invoke


def data(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_one_evening_with_the_calendar(run: Run) -> None:
    """A person could not find, book, use, see, change and give back capacity with the command alone."""
    told = run("reserve", "spring", *ZONE, "--count", "3", "--start", "2027-01-12 09:00", "--for", "7d")
    assert told.exit_code == 0, told.output
    assert "start: 2027-01-12 09:00:00 CET (Europe/Berlin) = 2027-01-12T08:00:00Z" in told.stderr
    assert "spring is APPROVED: 3 x a2-highgpu-8g in us-central1-b" in told.stdout
    assert "it can be cancelled at no cost until Tue 12 Jan 08:45 CET" in told.stdout

    refused = run("reserve", "other", *ZONE, "--count", "2", "--start", "2027-01-13 09:00", "--for", "2d")
    assert refused.exit_code == 5
    assert "needs 2 hosts" in refused.stderr and "1 of 4 free" in refused.stderr
    offered = next(line for line in refused.stderr.splitlines() if line.strip().startswith("dws reserve"))
    assert "that window has room for 1 hosts" in refused.stderr
    assert run(*offered.split()[1:], "--dry-run").exit_code == 0, offered

    advice = data(run("advise", *ZONE, "--count", "2", "--for", "2d", "-o", "json"))
    assert advice["options"][0]["start"] == "2027-01-19T08:00:00Z"

    waiting = run("submit", *ZONE, "--count", "2", "--reservation", "spring", "--name", "vm")
    assert "waits for reservation spring" in waiting.stderr
    assert "ends with reservation default/spring, 2027-01-19 09:00:00 CET" in waiting.stderr
    explained = run("explain", "vm")
    assert explained.exit_code == 0 and "reservation spring" in explained.stdout

    drawn = run("calendar", "--days", "10", "--zone", "us-central1-b")
    assert "spring 3" in drawn.stdout and "↳ vm 2" in drawn.stdout

    data(run("clock", "advance", "1d1h", "-o", "json"))
    row = data(run("reservations", "describe", "spring", "-o", "json"))
    assert (row["state"], row["inUse"], [i["name"] for i in row["inside"]]) == ("FULFILLED", 2, ["vm"])
    assert "2/3" in run("reservations").stdout
    grown = data(run("reservations", "amend", "spring", "--for", "8d", "-o", "json"))["reservation"]
    assert grown["end"] == "2027-01-20T08:00:00Z"
    assert run("reservations", "release", "spring").stdout.startswith("spring: END")
    usage = run("usage").stdout
    assert "reserved, idle" in usage and "spring" in usage


def test_a_series_is_begun_shown_skipped_and_ended(run: Run) -> None:
    """A class would have to be booked week by week by hand."""
    every = "mon 09:00-11:00 Europe/Berlin from 2027-03-15 until 2027-04-05"
    begun = data(run("reserve", "class", *ZONE, "--count", "1", "--every", every, "-o", "json"))
    assert [one["start"] for one in begun["upcoming"]] == [
        "2027-03-15T08:00:00Z", "2027-03-22T08:00:00Z", "2027-03-29T07:00:00Z", "2027-04-05T07:00:00Z",
    ]  # fmt: skip
    assert [one["state"] for one in begun["upcoming"]] == ["", "", "", ""], "beyond the horizon"
    assert "not booked yet" in run("series", "describe", "class").stdout
    skipped = data(run("series", "skip", "class", "2027-03-22", "-o", "json"))
    assert [one["day"] for one in skipped["upcoming"]] == ["2027-03-15", "2027-03-29", "2027-04-05"]
    wrong = run("reserve", "other", *ZONE, "--every", "someday 09:00-11:00 UTC 2 times")
    assert wrong.exit_code == 2 and "every:" in wrong.stderr
    assert run("series", "cancel", "class").stdout == "class: CANCELLED\n"


def test_maintenance_shows_whom_it_touches_before_it_is_planned(run: Run) -> None:
    """An operator would take a host from a reservation without knowing."""
    run("reserve", "spring", *ZONE, "--count", "4", "--in", "1d", "--for", "2d")
    plan = ("fleet", "maintenance", "plan", "fans", "a2-b-0001", "--start", "+25h", "--for", "2h")
    asked = run(*plan, "--dry-run")
    assert "default/spring" in asked.stdout and "would lack 1 hosts" in asked.stdout
    refused = run(*plan, "--yes")
    assert refused.exit_code == 6 and "would touch spring" in refused.stderr
    assert run("fleet", "maintenance").stdout == "No maintenance is planned.\n"
    assert "Planned." in run(*plan, "--force", "--yes").stdout
    assert "fans" in run("fleet", "maintenance", "list").stdout
    assert "short 1" in run("reservations").stdout
    assert run("fleet", "maintenance", "cancel", "fans").exit_code == 0
    assert "short" not in run("reservations").stdout


def test_the_feed_is_read_by_a_calendar_program(run: Run) -> None:
    """A subscription would stay empty."""
    run("reserve", "spring", *ZONE, "--count", "1", "--in", "1d", "--for", "2d")
    feed = Calendar.from_ical(run("calendar", "--ics").stdout)
    assert [str(e["SUMMARY"]).split()[0] for e in feed.walk("VEVENT")] == ["spring"]
    assert os.environ["TZ"] == "Europe/Berlin"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("reserve", "x", *ZONE, "--for", "1d"), "say when it starts"),
        (("reserve", "x", *ZONE, "--in", "1d"), "say how long it lasts"),
        (("reserve", "x", "--in", "1d", "--for", "1d"), "say what you want"),
        (("reserve", "x", *ZONE, "--share", "p:x", "--in", "1d", "--for", "1d"), "--share 'p:x'"),
        (("reserve", "x", *ZONE, "--start", "2027-03-28 02:30", "--for", "1d"), "02:30"),
        (("submit", *ZONE), "say for how long"),
        (("submit", *ZONE, "--reservation", "any"), "say for how long"),
    ],
)
def test_what_is_missing_is_said(run: Run, args: tuple[str, ...], told: str) -> None:
    """A person would have to guess which option is needed."""
    done = run(*args)
    assert done.exit_code == 2
    assert told in done.stderr
