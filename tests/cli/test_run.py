"""`dws run`: from asking to the program's status, and what Ctrl-C does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from click.testing import Result

from dws.cli.session import Session
from dws.model.errors import FailedPrecondition
from dws.wire import native_v1 as wire
from tests.cli.stub import (
    NOW,
    REQUESTS,
    Stub,
    a_forecast,
    a_grant,
    a_request,
    ended,
    instant,
    running,
    waiting,
)

Run = Callable[..., Result]
RUN = ("run", "--accelerators", "h100:16", "--for", "4h", "--", "python", "train.py")
GET = f"GET {REQUESTS}/train-a"


def output(texts: dict[int, str]) -> Callable[[httpx2.Request], wire.LogChunk]:
    """Instances that print these texts and nothing more."""

    def chunk(request: httpx2.Request) -> wire.LogChunk:
        rank, offset = int(request.url.params["rank"]), int(request.url.params["offset"])
        text = texts[rank][offset:]
        return wire.LogChunk(text=text, offset=offset + len(text), complete=not text)

    return chunk


def lives(stub: Stub, *stages: wire.Request, texts: dict[int, str] | None = None) -> Stub:
    """A request that goes through these stages, one at each look."""
    stub.on(f"POST {REQUESTS}", {"items": [a_request()]}).on(GET, list(stages))
    return stub.on(f"GET {REQUESTS}/train-a:logs", output(texts or {0: "", 1: ""}))


def interrupting(times: int = 1, after: int = 1) -> Callable[[float], None]:
    """A pause in which Ctrl-C is pressed: `times` in a row, after `after` quiet ones."""
    pauses = iter(range(10_000))

    def pause(_seconds: float) -> None:
        if after <= next(pauses) < after + times:
            raise KeyboardInterrupt

    return pause


def test_it_waits_streams_and_ends_with_the_programs_status(dws: Run, stub: Stub) -> None:
    """A script could not use `dws run` as it used the program."""
    gang = running(grant=a_grant(hosts=1))
    lives(stub, waiting(), gang, gang, ended(grant=gang.grant), texts={0: "epoch 1\nloss 0.5\n"})
    done = dws(*RUN)
    assert done.exit_code == 0
    assert done.stdout == "epoch 1\nloss 0.5\n"
    assert "place 3 in line, expected in 2h05m" in done.stderr
    assert "train-a: running on a3-0001" in done.stderr
    assert "train-a: completed" in done.stderr


def test_the_output_of_a_program_that_was_over_at_once_is_shown(dws: Run, stub: Stub) -> None:
    """A program that fails in its first second would seem to have said nothing."""
    over = ended("PROGRAM_FAILED", state="FAILED", code=1, grant=a_grant(hosts=1))
    lives(stub, waiting(), over, texts={0: "no such file\n"})
    done = dws(*RUN)
    assert (done.exit_code, done.stdout) == (1, "no such file\n")


def test_lines_of_several_instances_carry_their_rank_and_never_mix(dws: Run, stub: Stub) -> None:
    """Output of a gang would be unreadable."""
    gang = running()
    lives(stub, gang, gang, ended(), texts={0: "one\ntwo\n", 1: "uno\nlast without end"})
    assert dws(*RUN).stdout.splitlines() == ["[0] one", "[0] two", "[1] uno", "[1] last without end"]


@pytest.mark.parametrize(
    ("reason", "state", "code", "status"),
    [
        ("PROGRAM_SUCCEEDED", "COMPLETED", 0, 0),
        ("PROGRAM_FAILED", "FAILED", 3, 3),
        ("PROGRAM_FAILED", "FAILED", -9, 137),
        ("DURATION_REACHED", "COMPLETED", 0, 0),
        ("DURATION_REACHED", "COMPLETED", None, 124),
        ("WAIT_LIMIT", "EXPIRED", None, 124),
        ("HOST_LOST", "FAILED", None, 125),
        ("PROVISIONING_FAILED", "FAILED", None, 125),
        ("CANCELLED", "CANCELLED", None, 130),
        ("RELEASED", "COMPLETED", None, 130),
    ],
)
def test_the_status_says_how_it_ended(
    dws: Run, stub: Stub, reason: str, state: str, code: int | None, status: int
) -> None:
    """A workflow could not tell its program's failure from a lost host or a wait that was too long."""
    lives(stub, ended(reason, state=state, code=code))
    assert dws(*RUN).exit_code == status


def test_held_instances_that_reach_their_end_are_a_success(dws: Run, stub: Stub) -> None:
    """Holding machines without a program would always look like a failure."""
    lives(stub, ended("DURATION_REACHED", code=None, workload=None))
    assert dws(*RUN[:-3]).exit_code == 0


def test_progress_is_a_line_for_each_change_away_from_a_terminal(dws: Run, stub: Stub) -> None:
    """A CI log would fill with one line a second, for hours."""
    booked = waiting(state="BOOKED", forecast=a_forecast(place=1, promised_start=instant(NOW + 60)))
    lives(stub, *[waiting()] * 5, *[booked] * 5, ended())
    lines = [line for line in dws(*RUN).stderr.splitlines() if "in line" in line]
    assert [line.split(",")[0] for line in lines] == ["train-a: place 3 in line", "train-a: place 1 in line"]


def test_progress_rewrites_its_line_on_a_terminal(
    dws: Run, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone watching could not see the start come nearer."""
    monkeypatch.setattr(Session, "is_live", True)
    lives(stub, *[waiting()] * 3, ended())
    assert dws(*RUN).stderr.count("\r") == 3


def test_json_is_the_ended_request_and_the_programs_output_goes_aside(dws: Run, stub: Stub) -> None:
    """`dws run -o json | jq` would choke on what the program prints."""
    gang = running(grant=a_grant(hosts=1))
    lives(stub, gang, gang, ended(grant=gang.grant), texts={0: "epoch 1\n"})
    done = dws(RUN[0], "-o", "json", *RUN[1:])
    assert json.loads(done.stdout)["endReason"] == "PROGRAM_SUCCEEDED"
    assert "epoch 1" in done.stderr


# --- Ctrl-C -----------------------------------------------------------------------------------


def test_ctrl_c_while_waiting_cancels(dws: Run, stub: Stub) -> None:
    """The request would go on waiting, start without its user and be paid for."""
    lives(stub, *[waiting()] * 20).on(f"POST {REQUESTS}/train-a:cancel", a_request(state="CANCELLED"))
    done = dws(*RUN, machine=stub.machine(pause=interrupting()))
    assert done.exit_code == 130
    assert len(stub.bodies(f"POST {REQUESTS}/train-a:cancel")) == 1
    assert "train-a: given back" in done.stderr


def test_ctrl_c_while_running_releases(dws: Run, stub: Stub) -> None:
    """The hosts would stay taken until the end of the duration."""
    lives(stub, *[running()] * 20)
    stub.on(f"POST {REQUESTS}/train-a:cancel", FailedPrecondition("it runs"))
    stub.on(f"POST {REQUESTS}/train-a:release", running(state="ENDING"))
    done = dws(*RUN, machine=stub.machine(pause=interrupting()))
    assert done.exit_code == 130
    assert len(stub.bodies(f"POST {REQUESTS}/train-a:release")) == 1


def test_ctrl_c_after_the_end_is_no_fault(dws: Run, stub: Stub) -> None:
    """A race between the end and the user's Ctrl-C would end in an error."""
    lives(stub, *[running()] * 20)
    for verb in ("cancel", "release"):
        stub.on(f"POST {REQUESTS}/train-a:{verb}", FailedPrecondition("it has ended"))
    assert dws(*RUN, machine=stub.machine(pause=interrupting())).exit_code == 130


def test_a_second_ctrl_c_leaves_it_as_it_is(dws: Run, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could stop watching without losing the place in line."""
    monkeypatch.setattr(Session, "is_live", True)
    lives(stub, *[waiting()] * 20)
    done = dws(*RUN, machine=stub.machine(pause=interrupting(times=2)))
    assert done.exit_code == 130
    assert "giving it back; Ctrl-C again within 3 s leaves it" in done.stderr
    assert "left train-a as it is" in done.stderr
    assert not [call for call in stub.calls if call[1].endswith((":cancel", ":release"))]


# --- arrays -----------------------------------------------------------------------------------


def test_m11_an_array_runs_to_its_end_with_one_summary(dws: Run, stub: Stub) -> None:
    """Two failures would stop the rest, or be lost among a hundred."""

    def element(index: int, **how: Any) -> wire.Request:
        return ended(name=f"sweep-{index}", array="sweep", array_index=index, **how)

    last = [element(0), element(1, reason="PROGRAM_FAILED", state="FAILED", code=4), element(2)]
    first = [waiting(name=f"sweep-{i}", array="sweep", array_index=i) for i in range(3)]
    stub.on(f"POST {REQUESTS}", {"items": first})
    stub.on(f"GET {REQUESTS}", [wire.RequestList(items=first), wire.RequestList(items=last)])
    for request in last:
        stub.on(f"GET {REQUESTS}/{request.name}", request)
    done = dws("run", "--array", "3", *RUN[1:])
    assert done.exit_code == 4
    assert "sweep: 3 pending" in done.stderr
    assert "sweep: 2 of 3 succeeded" in done.stderr
    assert "sweep-1: failed, program failed (status 4)" in done.stderr
