"""-o json and -o yaml: the API's data, whole, and nothing else on standard output."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import Result

from dws.wire import native_v1 as wire
from tests.cli.stub import (
    NOW,
    PROJECT,
    REQUESTS,
    Stub,
    a_fleet,
    a_quote,
    an_event,
    clock,
    ended,
    instant,
    running,
    waiting,
)

Run = Callable[..., Result]

EVENTS = wire.EventList(items=[an_event(1, "Submitted", at=NOW)], last_seq=1)
USAGE = wire.Usage(start=instant(NOW - 60), end=instant(NOW), currency="USD", lines=[])
VERDICT = wire.Verification(bookings=0, requests=0, events=0, faults=[])
HOSTS = wire.ChangeHostsAnswer(hosts=["h1"], state="READY", affected=[], confirmed=True)

ANSWERS: list[tuple[tuple[str, ...], dict[str, Any], Any]] = [
    (("queue",), {"GET /dws/v1/queue": wire.RequestList(items=[waiting()])}, wire.RequestList),
    (("list",), {f"GET {REQUESTS}": wire.RequestList(items=[waiting(), ended()])}, wire.RequestList),
    (("describe", "train-a"), {f"GET {REQUESTS}/train-a": running()}, wire.Request),
    (("wait", "train-a"), {f"GET {REQUESTS}/train-a": ended()}, wire.Request),
    (
        ("submit", "--accelerators", "h100:16", "--for", "4h"),
        {f"POST {REQUESTS}": {"items": [waiting()]}},
        wire.Request,
    ),
    (
        ("quote", "--accelerators", "h100:16", "--for", "4h", "--not-before", "2027-05-03 09:00"),
        {f"POST {PROJECT}:quote": a_quote()},
        wire.Quote,
    ),
    (("cancel", "train-a"), {f"POST {REQUESTS}/train-a:cancel": waiting(state="CANCELLED")}, wire.Request),
    (("release", "train-a"), {f"POST {REQUESTS}/train-a:release": running()}, wire.Request),
    (("amend", "train-a", "--priority", "3"), {f"PATCH {REQUESTS}/train-a": waiting()}, wire.Request),
    (("fleet",), {"GET /dws/v1/fleet": a_fleet()}, wire.Fleet),
    (("fleet", "repair", "h1", "--yes"), {"POST /dws/v1/fleet:changeHosts": HOSTS}, wire.ChangeHostsAnswer),
    (("usage",), {"GET /dws/v1/usage": USAGE}, wire.Usage),
    (("audit",), {"GET /dws/v1/events": EVENTS}, wire.EventList),
    (("ledger", "verify"), {"GET /dws/v1/ledger:verify": VERDICT}, wire.Verification),
]


@pytest.mark.parametrize(("args", "answers", "kind"), ANSWERS, ids=[" ".join(a[0][:2]) for a in ANSWERS])
def test_data_is_the_apis_and_alone(
    dws: Run, stub: Stub, args: tuple[str, ...], answers: dict[str, Any], kind: Any
) -> None:
    """`| jq` would choke on prose, or miss what the API says."""
    for call, answer in answers.items():
        stub.on(call, answer)
    printed = dws(*args, "-o", "json")
    assert printed.exit_code == 0, printed.stderr
    value = msgspec.json.decode(printed.stdout, type=kind)
    answer = next(iter(answers.values()))
    expected = answer["items"][0] if isinstance(answer, dict) else answer
    assert value == expected
    assert json.loads(printed.stdout) == yaml.safe_load(dws(*args, "-o", "yaml").stdout)


def test_clock_now_is_two_numbers_and_nothing_more(dws: Run, stub: Stub) -> None:
    """Scripts that read the server's time would break."""
    assert json.loads(dws("clock", "now", "-o", "json").stdout) == {
        "now": "2027-01-15T08:00:00Z",
        "epoch": NOW,
    }


def test_followed_events_are_one_json_object_a_line(dws: Run, stub: Stub) -> None:
    """A program could not read the audit log as it grows."""

    def pressed(_request: object) -> object:
        raise KeyboardInterrupt

    stub.on("GET /dws/v1/events", EVENTS)
    event = msgspec.json.encode(an_event(2, "Booked", at=NOW))
    stub.on("GET /dws/v1/events:follow", [b"id: 2\ndata: " + event + b"\n\n", pressed])
    printed = dws("audit", "--follow", "-o", "json")
    assert [json.loads(line)["seq"] for line in printed.stdout.splitlines()] == [1, 2]
    assert printed.exit_code == 130


def test_logs_as_json_are_one_object_a_line(dws: Run, stub: Stub) -> None:
    """A program could not tell which instance said what."""

    def chunk(request: Any) -> wire.LogChunk:
        offset = int(request.url.params["offset"])
        rank = request.url.params["rank"]
        return wire.LogChunk(text="" if offset else f"from {rank}\n", offset=7, complete=bool(offset))

    stub.on(f"GET {REQUESTS}/train-a", ended()).on(f"GET {REQUESTS}/train-a:logs", chunk)
    lines = dws("logs", "train-a", "-o", "json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"rank": 0, "text": "from 0\n"},
        {"rank": 1, "text": "from 1\n"},
    ]
    assert dws("logs", "train-a").stdout == "[0] from 0\n[1] from 1\n"
    assert dws("logs", "train-a", "--rank", "1").stdout == "from 1\n"


def test_times_and_money_are_as_the_server_wrote_them(dws: Run, stub: Stub) -> None:
    """Rounded money or local times would end up in a program."""
    stub.on(f"GET {REQUESTS}/train-a", running(cost="1075.40"))
    told = json.loads(dws("describe", "train-a", "-o", "json", "--tz", "Asia/Tokyo").stdout)
    assert told["cost"] == "1075.40"
    assert told["submittedAt"] == "2027-01-15T07:48:00Z"


def test_no_colour_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Escape codes would appear on a terminal whose owner said no."""
    from dws.cli import output

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert "\x1b" in output.table(["STATE"], [["ACTIVE"]])
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in output.table(["STATE"], [["ACTIVE"]])


def test_a_table_folds_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long reason would wrap into the other columns."""
    from dws.cli import output

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    drawn = output.table(["NAME", "REASON"], [["train-a", "needs two free hosts " * 5]])
    assert max(map(len, drawn.splitlines())) <= 60
    assert len(drawn.splitlines()) > 2


def test_unused_answers_do_not_hide(dws: Run, stub: Stub) -> None:
    """The stub itself would answer what no test told it to."""
    assert clock().epoch == NOW
    assert dws("fleet").exit_code == 70
