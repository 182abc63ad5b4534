"""One call: retried where that is safe, failing as the right error."""

from __future__ import annotations

import httpx2
import pytest

from dws.client import Client, NoServer
from dws.client.transport import error_from
from dws.model import errors
from dws.wire.native_v1 import Alternative
from tests.cli.stub import REQUESTS, Stub, a_request, clock, failing

WISH = Alternative(accelerators="h100:16", duration="4h")


@pytest.fixture(autouse=True)
def _no_token_of_mine(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("DWS_STATE_DIR", str(tmp_path))


def client(stub: Stub) -> Client:
    return Client(transport=stub, pause=lambda _s: None)


def listed(*requests: object) -> dict[str, object]:
    return {"items": list(requests), "nextPageToken": ""}


def test_a_submission_whose_answer_was_lost_is_repeated_under_the_same_request_id() -> None:
    """A user behind a flaky network would get two requests, and pay for both."""
    stub = Stub().on(f"POST {REQUESTS}", [httpx2.ReadError("reset"), listed(a_request())])
    assert client(stub).submit(WISH).name == "train-a"
    ids = [query["requestId"] for _, _, query, _ in stub.calls]
    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_two_submissions_have_different_request_ids() -> None:
    """The second of two equal asks would be swallowed as a repetition of the first."""
    stub = Stub().on(f"POST {REQUESTS}", listed(a_request()))
    with client(stub) as door:
        door.submit(WISH)
        door.submit(WISH)
    assert len({query["requestId"] for _, _, query, _ in stub.calls}) == 2


def test_a_clock_that_may_have_moved_is_never_moved_again() -> None:
    """A virtual clock would run on twice as far when one answer is lost."""
    stub = Stub().on("POST /dws/v1/clock:advance", httpx2.ReadError("reset"))
    with pytest.raises(NoServer):
        client(stub).advance("7d")
    assert len(stub.calls) == 1


def test_no_server_is_said_at_once_with_how_to_start_one() -> None:
    """Someone without a server would wait for retries and then not know what to do."""
    stub = Stub().on("GET /dws/v1/clock", httpx2.ConnectError("refused"))
    with pytest.raises(NoServer, match="dws serve") as caught:
        client(stub).clock()
    assert len(stub.calls) == 1
    assert "http://127.0.0.1:8470" in caught.value.message


def test_a_server_that_restarts_is_waited_for() -> None:
    """A long-running script would die when the server is restarted for an update."""
    stub = Stub().on("GET /dws/v1/clock", [clock(), httpx2.ConnectError("refused"), clock()])
    with client(stub) as door:
        door.clock()
        assert door.clock().epoch
    assert len(stub.calls) == 3


def test_a_busy_server_is_asked_again() -> None:
    """One moment of a locked store would fail a user's command."""
    stub = Stub().on("GET /dws/v1/clock", [errors.Unavailable("busy"), clock()])
    assert client(stub).clock().epoch


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (errors.InvalidArgument("no", field="count"), errors.InvalidArgument),
        (errors.NeverFits("no"), errors.NeverFits),
        (errors.NotFound("no"), errors.NotFound),
        (errors.AlreadyExists("no"), errors.AlreadyExists),
        (errors.Conflict("no", reason="requestIdReused"), errors.Conflict),
        (errors.InvalidTransition("no"), errors.FailedPrecondition),
        (errors.PermissionDenied("no"), errors.PermissionDenied),
        (errors.Unauthenticated("no"), errors.Unauthenticated),
        (errors.QuotaExceeded("no"), errors.QuotaExceeded),
        (errors.DwsError("no"), errors.DwsError),
    ],
)
def test_an_error_arrives_as_its_class(raised: errors.DwsError, expected: type[errors.DwsError]) -> None:
    """A program could not tell "there is no such request" from "you may not see it"."""
    answer = failing(raised)
    error = error_from(answer.status_code, answer.content)
    assert type(error) is expected
    assert (error.message, error.reason, error.field) == (raised.message, raised.reason, raised.field)


def test_an_answer_from_something_else_is_an_error_with_its_text() -> None:
    """A proxy's error page would show as a decoding fault of ours."""
    error = error_from(503, b"<html>upstream down</html>")
    assert type(error) is errors.Unavailable
    assert "upstream down" in error.message
