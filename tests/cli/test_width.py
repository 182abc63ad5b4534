"""Tables on a terminal: they are made to fit 80 columns, and what they say is never cut."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest
from click.testing import Result

from dws.cli import output
from dws.wire import native_v1 as wire
from tests.cli.stub import NOW, PROJECT, REQUESTS, Stub, a_fleet, a_forecast, a_quote, ended, instant, waiting

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output is a terminal of 80 columns without colours."""
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")


def a_line() -> wire.RequestList:
    alternatives = [
        wire.Alternative(accelerators="h100:16", duration="14400s"),
        wire.Alternative(accelerators="a100:16", duration="28800s"),
    ]
    forecast = a_forecast(place=1, promised_start=instant(NOW + 9_000))
    return wire.RequestList(items=[waiting(forecast=forecast, alternatives=alternatives)])


def test_l03_the_queue_fits_and_keeps_its_reasons(dws: Run, stub: Stub) -> None:
    """Why a request waits would be cut off at the edge of a usual terminal."""
    stub.on("GET /dws/v1/queue", a_line())
    printed = dws("queue").stdout
    assert max(len(line) for line in printed.splitlines()) <= 80
    said = " ".join(printed.split())
    for part in (
        "train-a",
        "h100:16 for 4h or a100:16 for 8h",
        "needs 2 free hosts; a3 has 1 until Fri 15 Jan",
    ):
        assert all(word in said for word in part.split()), printed
    assert "PROJECT" not in printed, "all are of one project"


def test_a_quote_fits_and_keeps_its_cost(dws: Run, stub: Stub) -> None:
    """What it costs stands last and would be the first to be cut."""
    stub.on(f"POST {PROJECT}:quote", a_quote())
    printed = dws("quote", "--accelerators", "h100:16", "--for", "4h").stdout
    assert max(len(line) for line in printed.splitlines()) <= 80
    assert "192.00 USD" in printed
    assert "2 x a3-highgpu-8g (16 accelerators)" in printed


def test_an_end_is_told_under_its_row(dws: Run, stub: Stub) -> None:
    """Why a request ended would push the list beyond the terminal."""
    why = "host a3-0004 is gone, and nothing else was free for the rest of the time"
    stub.on(f"GET {REQUESTS}", wire.RequestList(items=[ended("HOST_LOST", state="FAILED", end_message=why)]))
    printed = dws("list").stdout
    assert max(len(line) for line in printed.splitlines()) <= 80
    assert why in " ".join(printed.split())


def test_bars_of_the_fleet_are_whole(dws: Run, stub: Stub) -> None:
    """A bar folded into pieces of five says nothing."""
    stub.on("GET /dws/v1/fleet", a_fleet())
    printed = dws("fleet").stdout
    assert max(len(line) for line in printed.splitlines() if "unavailable" not in line) <= 80


def test_what_cannot_fit_is_left_to_the_terminal() -> None:
    """Cutting would hide that there is more."""
    printed = output.table(["NAME", "OTHER", "NOTE"], [["n" * 60, "o" * 60, "a word " * 5]])
    assert "n" * 60 + "  " + "o" * 60 in printed
    assert printed.count("word") == 5


def test_elsewhere_a_row_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """`dws queue | grep` would find half a row."""
    monkeypatch.setattr(output, "is_terminal", lambda: sys.stdout.isatty())
    printed = output.table(["NAME", "NOTE"], [["n" * 60, "a word " * 50]], below="NOTE")
    assert len(printed.splitlines()) == 2
