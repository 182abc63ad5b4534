"""The client's loops: pages, waiting, following; and where it finds server and token."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx2
import msgspec
import pytest

import dws
from dws.client import Client, NoServer, whereabouts
from dws.model.errors import InvalidArgument, Unauthenticated
from dws.wire import native_v1 as wire
from tests.cli.stub import REQUESTS, Stub, a_grant, a_request, an_event, clock, ended, running

NOW = 1_800_000_000


@pytest.fixture(autouse=True)
def _no_token_of_mine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DWS_STATE_DIR", str(tmp_path))


def client(stub: Stub) -> Client:
    return Client(transport=stub, pause=lambda _s: None)


def sse(*values: object, kind: str = "message") -> bytes:
    return b"".join(b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(v)) for v in values)


def test_requests_goes_over_all_pages() -> None:
    """A list longer than a page would be silently cut."""
    pages = [
        wire.RequestList(items=[a_request(name="a")], next_page_token="t1"),
        wire.RequestList(items=[a_request(name="b")], next_page_token="t2"),
        wire.RequestList(items=[a_request(name="c")]),
    ]
    stub = Stub().on(f"GET {REQUESTS}", pages)
    assert [r.name for r in client(stub).requests(filter='state = "ACTIVE"')] == ["a", "b", "c"]
    assert [query.get("pageToken") for _, _, query, _ in stub.calls] == [None, "t1", "t2"]
    assert {query["filter"] for _, _, query, _ in stub.calls} == {'state = "ACTIVE"'}


def test_wait_outlives_a_restart_of_the_server() -> None:
    """A script that waits for hours would fail when the server is restarted."""
    gone = [httpx2.ConnectError("refused")] * 5
    stub = Stub().on(f"GET {REQUESTS}/train-a", [a_request(), *gone, running(), ended()])
    assert client(stub).wait("train-a").state == "COMPLETED"


def test_wait_until_started_does_not_wait_for_the_end() -> None:
    """A script that wants to log in to its hosts would wait until they are gone."""
    stub = Stub().on(f"GET {REQUESTS}/train-a", [a_request(), running(), ended()])
    assert client(stub).wait("train-a", until="started").state == "ACTIVE"


def test_wait_gives_up_when_told_to() -> None:
    """A script could not bound how long it waits."""
    stub = Stub().on(f"GET {REQUESTS}/train-a", a_request())
    with pytest.raises(TimeoutError, match="still PENDING"):
        client(stub).wait("train-a", timeout=0)


def test_events_are_followed_on_from_where_the_connection_broke() -> None:
    """A follower would miss, or see twice, what happened around a broken connection."""
    events = [an_event(n, "Booked", at=NOW) for n in (7, 8, 9)]
    stub = Stub().on(
        "GET /dws/v1/events:follow", [sse(*events[:2]), httpx2.ReadError("reset"), sse(events[2])]
    )
    following = client(stub).follow_events(after=6)
    assert [next(following).seq for _ in range(3)] == [7, 8, 9]
    assert [query["after"] for _, _, query, _ in stub.calls] == ["6", "8", "8"]


def test_following_where_no_server_is_fails() -> None:
    """A mistyped address would look like a quiet server for ever."""
    stub = Stub().on("GET /dws/v1/events:follow", httpx2.ConnectError("refused"))
    with pytest.raises(NoServer):
        next(client(stub).follow_events(after=0))


def test_logs_are_followed_until_nothing_more_will_come() -> None:
    """The end of a program's output would be lost, or never noticed."""
    chunks = [
        wire.LogChunk(text="one\n", offset=4, complete=False),
        wire.LogChunk(text="two\n", offset=8, complete=True),
    ]
    stub = Stub().on(f"GET {REQUESTS}/train-a:followLogs", [sse(chunks[0]), sse(chunks[1])])
    assert "".join(client(stub).follow_logs("train-a")) == "one\ntwo\n"
    assert [query["offset"] for _, _, query, _ in stub.calls] == ["0", "4"]


def test_logs_of_all_instances_are_read_to_their_ends() -> None:
    """The last lines of all but the first instance would be lost."""
    texts = {0: "zero\n", 1: "one\n"}

    def chunk(request: httpx2.Request) -> wire.LogChunk:
        rank, offset = int(request.url.params["rank"]), int(request.url.params["offset"])
        text = texts[rank][offset : offset + 3]
        return wire.LogChunk(text=text, offset=offset + len(text), complete=not text)

    stub = Stub().on(f"GET {REQUESTS}/train-a", [running(), ended()])
    stub.on(f"GET {REQUESTS}/train-a:logs", chunk)
    said: dict[int, str] = {}
    for rank, text in client(stub).follow_all_logs("train-a"):
        said[rank] = said.get(rank, "") + text
    assert said == texts


def test_a_new_attempt_is_read_from_its_beginning() -> None:
    """After a lost host the output of the second attempt would be cut where the first one's ended."""
    logs = {1: "first attempt\n", 2: "second\n"}
    stages = [running(grant=a_grant(hosts=1, attempt=n)) for n in (1, 2)]
    at = {"attempt": 0}

    def look(_request: httpx2.Request) -> wire.Request:
        at["attempt"] = min(2, at["attempt"] + 1)
        return stages[0] if at["attempt"] == 1 else ended(grant=stages[1].grant)

    def chunk(request: httpx2.Request) -> wire.LogChunk:
        offset = int(request.url.params["offset"])
        text = logs[at["attempt"]][offset:]
        return wire.LogChunk(text=text, offset=offset + len(text), complete=at["attempt"] == 2 and not text)

    stub = Stub().on(f"GET {REQUESTS}/train-a", look).on(f"GET {REQUESTS}/train-a:logs", chunk)
    said = [text for _, text in client(stub).follow_all_logs("train-a")]
    assert said == ["first attempt\n", "second\n"]


def test_run_submits_shows_what_is_printed_and_gives_the_end() -> None:
    """A program that asks for capacity would have to put submit, wait and logs together itself."""
    gang = running(grant=a_grant(hosts=1))
    stub = Stub().on(f"POST {REQUESTS}", {"items": [a_request()]})
    stub.on(f"GET {REQUESTS}/train-a", [a_request(), gang, ended(grant=gang.grant)])
    chunks = [
        wire.LogChunk(text="epoch 1\n", offset=8, complete=False),
        wire.LogChunk(text="", offset=8, complete=True),
    ]
    stub.on(f"GET {REQUESTS}/train-a:logs", chunks)
    said: list[tuple[int, str]] = []
    wish = wire.Alternative(accelerators="h100:8", duration="4h")
    done = client(stub).run(wish, command=["python", "t.py"], show=lambda *told: said.append(told), wait="2h")
    assert done.end_reason == "PROGRAM_SUCCEEDED"
    assert said == [(0, "epoch 1\n")]
    assert stub.bodies(f"POST {REQUESTS}")[0]["wait"] == "2h"


def test_a_newer_server_may_say_more_than_we_know() -> None:
    """Every client would have to be updated together with the server."""
    stub = Stub().on("GET /dws/v1/clock", {**msgspec.to_builtins(clock()), "drift": 3})
    assert client(stub).clock().epoch == NOW


def test_names_are_escaped_in_paths() -> None:
    """A name with a slash would call another method."""
    stub = Stub().on(f"GET {REQUESTS}/a/b", a_request())
    client(stub).get("a/b")
    assert stub.calls[0][1] == f"{REQUESTS}/a/b"


# --- whereabouts ------------------------------------------------------------------------------


def test_the_token_the_server_left_is_found(tmp_path: Path) -> None:
    """`dws run` on the machine of `dws serve` would ask for a token."""
    path = tmp_path / "token"
    path.write_text("secret\n")
    path.chmod(0o600)
    assert whereabouts.find_token(None, {"DWS_STATE_DIR": str(tmp_path)}) == "secret"
    assert whereabouts.find_token(None, {"DWS_STATE_DIR": str(tmp_path), "DWS_TOKEN": "mine"}) == "mine"
    assert whereabouts.find_token("given", {"DWS_TOKEN": "mine"}) == "given"


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """A leaked token would be used on without anyone noticing."""
    path = tmp_path / "token"
    path.write_text("secret\n")
    path.chmod(0o644)
    with pytest.raises(Unauthenticated, match="chmod 600"):
        whereabouts.find_token(None, {"DWS_STATE_DIR": str(tmp_path)})


def test_no_token_is_no_error() -> None:
    """Looking at a local server would need a token nobody made."""
    assert whereabouts.find_token(None, {"DWS_STATE_DIR": "/nonexistent"}) == ""


def test_an_address_without_scheme_is_http() -> None:
    """DWS_ADDRESS=host:8470 would not work."""
    assert whereabouts.find_address("head:8470/") == "http://head:8470"
    with pytest.raises(InvalidArgument):
        whereabouts.find_address("ftp://head")


# --- the package ------------------------------------------------------------------------------


def test_what_the_package_names_is_there() -> None:
    """`dws.Client` and its neighbours would fail on first use."""
    assert all(getattr(dws, name).__name__ == name for name in dws.__all__)
    with pytest.raises(AttributeError):
        dws.Nothing


def test_importing_the_package_loads_nothing() -> None:
    """Every program that imports dws, and every start of the command, would take longer."""
    code = "import dws, sys; print([m for m in sys.modules if m.startswith('dws.') or m == 'httpx2'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
