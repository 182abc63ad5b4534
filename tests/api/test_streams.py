"""Server-sent events from a real server: nothing missed, nothing twice, and an end when it ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from dws.api.native_v1 import events, logs
from dws.api.native_v1.logs import whole_characters
from dws.client.transport import server_sent
from dws.engine.ports import StreamsLogs
from tests.api.served import Served

FOLLOW = "/dws/v1/events:follow"


def follow(response: httpx2.Response) -> Iterator[dict[str, Any]]:
    """Events of an open stream, checked: the id is the number."""
    assert response.headers["content-type"] == "text/event-stream"
    for sent in server_sent(response.iter_lines()):
        event = json.loads(sent["data"])
        assert sent["id"] == str(event["seq"])
        yield event


def take(stream: Iterator[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    return [next(stream) for _ in range(count)]


def test_a_follower_sees_everything_once_and_in_order(fresh: Served) -> None:
    """A console or a script would miss what happens, or count it twice."""
    with fresh.owner.stream("GET", FOLLOW, params={"after": 0}) as response:
        stream = follow(response)
        first = take(stream, fresh.last_seq())
        fresh.submit("train")
        fresh.advance("5h")
        rest = take(stream, fresh.last_seq() - len(first))
    seqs = [e["seq"] for e in first + rest]
    assert seqs == list(range(1, fresh.last_seq() + 1))
    assert {"Submitted", "Started", "Delivered", "Ended", "Returned"} <= {e["kind"] for e in rest}
    listed = fresh.owner.get("/dws/v1/events", params={"limit": 1000}).json()
    assert listed["items"] == first + rest
    assert listed["lastSeq"] == seqs[-1]


def test_without_a_number_a_follower_begins_now(fresh: Served) -> None:
    """Old events would be taken for new ones."""
    fresh.submit("old")
    with fresh.owner.stream("GET", FOLLOW) as response:
        stream = follow(response)
        fresh.submit("new")
        assert next(stream)["name"] == "new"


def test_a_broken_stream_is_taken_up_where_it_broke(fresh: Served) -> None:
    """Browsers reconnect with Last-Event-ID and the old address: events would come twice."""
    fresh.submit("train")
    headers = {"last-event-id": "2"}
    with fresh.owner.stream("GET", FOLLOW, params={"after": 0}, headers=headers) as response:
        assert next(follow(response))["seq"] == 3
    answer = fresh.owner.get(FOLLOW, headers={"last-event-id": "x"})
    assert answer.status_code == 400


def test_one_request_can_be_followed(fresh: Served) -> None:
    """A user waiting for one request would get everyone's events."""
    fresh.submit("other")
    fresh.submit("train")
    query = {"after": 0, "project": "research", "name": "train"}
    with fresh.owner.stream("GET", FOLLOW, params=query) as response:
        stream = follow(response)
        assert {e["name"] for e in take(stream, 4)} == {"train"}
        fresh.submit("noise")
        fresh.advance("5h")
        assert next(stream)["kind"] in ("Warned", "Ended")
    answer = fresh.owner.get(FOLLOW, params=query | {"name": "nobody"})
    assert answer.status_code == 404, "an error before the first event is an ordinary one"


def test_a_quiet_stream_shows_that_it_lives(fresh: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies close a connection that is silent for a minute."""
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.05)
    with fresh.owner.stream("GET", FOLLOW) as response:
        lines = (line for line in response.iter_lines() if line)
        assert [next(lines)[:1] for _ in range(4)] == [":"] * 4


def test_streams_end_when_the_server_stops(fresh: Served) -> None:
    """A server would not stop while a console is open, or cut its followers off."""
    ended = threading.Event()

    def watch() -> None:
        with fresh.owner.stream("GET", FOLLOW) as response:
            watching.set()
            list(response.iter_lines())
        ended.set()

    watching = threading.Event()
    thread = threading.Thread(target=watch)
    thread.start()
    assert watching.wait(5)
    fresh.server.should_exit = True
    assert ended.wait(5), "the follower was not let go"
    thread.join()


def test_many_followers_cost_no_threads(fresh: Served) -> None:
    """A hundred open consoles would use up the threads that answer calls."""
    before = threading.active_count()
    with httpx2.Client(base_url=fresh.address, limits=httpx2.Limits(max_connections=200)) as client:
        streams = [client.stream("GET", FOLLOW) for _ in range(100)]
        opened = [stream.__enter__() for stream in streams]
        fresh.submit("train")
        assert {next(follow(response))["name"] for response in opened} == {"train"}
        assert threading.active_count() < before + 70
        for stream in streams:
            stream.__exit__(None, None, None)


# --- logs -------------------------------------------------------------------------------------


class Printed(StreamsLogs):
    """Lets the simulated backend have printed something."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def read_log(self, key: str, rank: int, *, offset: int, limit: int) -> tuple[bytes, int]:
        data = self.text[offset : offset + limit] if rank == 0 else b""
        return data, offset + len(data)


@pytest.fixture
def printed(fresh: Served, monkeypatch: pytest.MonkeyPatch) -> Printed:
    """What rank 0 of every request has printed."""
    printed = Printed("naïve 🚀\n".encode())
    backend = fresh.engine._backends["simulated"]
    monkeypatch.setattr(
        type(backend), "read_log", lambda self, *a, **k: printed.read_log(*a, **k), raising=False
    )
    return printed


def log(served: Served, **query: Any) -> dict[str, Any]:
    answer = served.owner.get("/dws/v1/projects/research/requests/train:logs", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_logs_come_in_whole_characters(fresh: Served, printed: Printed) -> None:
    """A letter would be broken into question marks where two chunks meet."""
    fresh.submit("train")
    size = len(printed.text)
    whole, offset = "", 0
    while offset < size:
        chunk = log(fresh, offset=offset, limit=4)
        assert chunk["offset"] > offset
        whole, offset = whole + chunk["text"], chunk["offset"]
        assert not chunk["complete"]
    assert whole == "naïve 🚀\n"
    fresh.advance("5h")
    assert log(fresh, offset=size) == {"text": "", "offset": size, "complete": True}


def test_logs_are_followed_to_their_end(
    fresh: Served, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dws run` would hang after its program, or lose its last line."""
    monkeypatch.setattr(logs, "POLL_FIRST_S", 0.01)
    fresh.submit("train")
    path = "/dws/v1/projects/research/requests/train:followLogs"
    with fresh.owner.stream("GET", path) as response:
        stream = server_sent(response.iter_lines())
        assert json.loads(next(stream)["data"])["text"] == "naïve 🚀\n"
        printed.text += b"done \xff\xf0\x9f"
        fresh.advance("5h")
        chunks = [json.loads(sent["data"]) for sent in stream]
    assert "".join(c["text"] for c in chunks) == "done \ufffd\ufffd"
    assert [c["complete"] for c in chunks][-1] is True
    assert sum(c["complete"] for c in chunks) == 1


@pytest.mark.parametrize(
    ("data", "text", "used"),
    [
        (b"", "", 0),
        (b"abc", "abc", 3),
        ("é".encode(), "é", 2),
        ("aé".encode()[:2], "a", 1),
        ("🚀".encode()[:1], "", 0),
        ("🚀".encode()[:3], "", 0),
        ("a🚀".encode(), "a🚀", 5),
        (b"a\xff", "a\ufffd", 2),
        (b"\x80\x80\x80\x80", "\ufffd" * 4, 4),
    ],
)
def test_only_a_character_that_is_not_complete_is_left(data: bytes, text: str, used: int) -> None:
    """Output that is no UTF-8 would never be shown, or a letter be broken."""
    assert whole_characters(data) == (text, used)
