"""Exit codes and error lines: stable, documented, and never a traceback."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from click.testing import Result

from dws.cli.exits import Exit, of_ended
from dws.model import errors
from tests.cli.stub import REQUESTS, Stub, a_request

Run = Callable[..., Result]
DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"


def test_every_code_is_documented_and_none_else() -> None:
    """A script could not rely on a number nobody wrote down."""
    documented = {int(n) for n in re.findall(r"^\| (\d+) \|", DOCUMENT.read_text(), re.MULTILINE)}
    assert documented == {int(code) for code in Exit}


def test_codes_never_change() -> None:
    """Scripts that test for a number would break with a release."""
    assert {code.name: int(code) for code in Exit} == {
        "OK": 0,
        "FAILED": 1,
        "USAGE": 2,
        "NEVER_FITS": 3,
        "NOT_FOUND": 4,
        "CONFLICT": 5,
        "PRECONDITION": 6,
        "PERMISSION": 7,
        "QUOTA": 8,
        "UNAVAILABLE": 69,
        "INTERNAL": 70,
        "WAITED_TOO_LONG": 124,
        "CAPACITY_LOST": 125,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidArgument("count: too many", field="count"), 2),
        (errors.NeverFits("40 asked, 32 there"), 3),
        (errors.NotFound("no request 'train-a'"), 4),
        (errors.AlreadyExists("'train-a' exists"), 5),
        (errors.Conflict("changed"), 5),
        (errors.FailedPrecondition("it has ended"), 6),
        (errors.PermissionDenied("not yours"), 7),
        (errors.Unauthenticated("needs a token"), 7),
        (errors.QuotaExceeded("limit 16"), 8),
        (errors.Unavailable("busy"), 69),
        (errors.DwsError("bug"), 70),
        (httpx2.ConnectError("refused"), 69),
        (httpx2.ReadTimeout("slow"), 69),
    ],
)
def test_an_error_of_the_server_is_a_line_and_a_code(
    dws: Run, stub: Stub, error: Exception, code: int
) -> None:
    """A script could not tell errors apart, a person would read a traceback."""
    stub.on(f"GET {REQUESTS}/train-a", error)
    done = dws("describe", "train-a")
    assert done.exit_code == code
    assert done.stderr.startswith("dws: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    if isinstance(error, errors.DwsError):
        assert error.message in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        errors.NeverFits("no"),
        errors.NotFound("no"),
        errors.AlreadyExists("no"),
        errors.PermissionDenied("no"),
        errors.Unauthenticated("no"),
        errors.QuotaExceeded("no"),
        httpx2.ConnectError("no"),
    ],
)
def test_an_error_says_what_to_do_next(dws: Run, stub: Stub, error: Exception) -> None:
    """A user would be left with a refusal."""
    stub.on(f"GET {REQUESTS}/train-a", error)
    told = dws("describe", "train-a").stderr
    assert len(told.splitlines()) == 2 or "dws serve" in told


def test_our_own_fault_is_told_in_a_line(dws: Run, stub: Stub) -> None:
    """A bug of ours would pour a traceback over a user."""
    stub.on(f"GET {REQUESTS}/train-a", ZeroDivisionError("boom"))
    done = dws("describe", "train-a")
    assert done.exit_code == 70
    assert "ZeroDivisionError: boom" in done.stderr
    assert "DWS_DEBUG=1" in done.stderr
    assert "Traceback" not in done.stderr


def test_debugging_shows_where(dws: Run, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could find a bug from the line alone."""
    monkeypatch.setenv("DWS_DEBUG", "1")
    stub.on(f"GET {REQUESTS}/train-a", ZeroDivisionError("boom"))
    assert "Traceback" in dws("describe", "train-a").stderr


@pytest.mark.parametrize("args", [("desribe", "x"), ("describe",), ("list", "--nope"), ("clock", "advance")])
def test_a_wrong_command_line_points_to_help(dws: Run, args: tuple[str, ...]) -> None:
    """A typing error would leave a user without a way on."""
    done = dws(*args)
    assert done.exit_code == 2
    assert done.stderr.startswith("dws: ")
    assert "--help'" in done.stderr


def test_every_reason_to_end_has_a_status() -> None:
    """A new way to end would show as a fault of dws."""
    from dws.model.request import EndReason

    for reason in EndReason:
        for has_program in (True, False):
            assert of_ended(end_reason=reason, exit_code=None, has_program=has_program) != Exit.INTERNAL


def test_a_program_status_beyond_a_byte_is_still_a_failure() -> None:
    """A status of 256 would wrap around to success."""
    assert of_ended(end_reason="PROGRAM_FAILED", exit_code=256, has_program=True) == 255


def test_m02_deleting_what_is_gone_can_be_no_error(dws: Run, stub: Stub) -> None:
    """A clean-up script would fail because another was faster."""
    stub.on(f"DELETE {REQUESTS}/train-a", errors.NotFound("no"))
    stub.on(f"DELETE {REQUESTS}/train-b", {})
    done = dws("delete", "--ignore-missing", "train-a", "train-b")
    assert done.exit_code == 0
    assert "train-a: not there" in done.stderr
    assert dws("delete", "train-a").exit_code == 4


def test_wait_gives_up_with_its_own_code(dws: Run, stub: Stub) -> None:
    """A script could not tell "still waiting" from "ended badly"."""
    stub.on(f"GET {REQUESTS}/train-a", a_request())
    done = dws("wait", "train-a", "--timeout", "0s")
    assert done.exit_code == 124
    assert "still PENDING" in done.stderr
