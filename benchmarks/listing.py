"""Lists of the Compute door over many documents, and what one of its calls costs beside the native door's."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

from benchmarks.measuring import Figure
from benchmarks.submitting import BODY, serve

TEMPLATES = "/compute/v1/projects/bench/global/instanceTemplates"
NATIVE = "/dws/v1/projects/bench/requests"
PAGE = 500
PARTS = 500
CALLS = 400


class _Caller:
    def __init__(self, address: str, token: str) -> None:
        self._connection = HTTPConnection(address.removeprefix("http://"))
        self._token = token

    def __call__(self, verb: str, path: str, body: str = "", kind: str = "application/json") -> bytes:
        headers = {"authorization": f"Bearer {self._token}"} | ({"content-type": kind} if body else {})
        self._connection.request(verb, path, body or None, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        return text


def run(*, short: bool) -> list[Figure]:
    """The figures of one server on SQLite, one caller at a time."""
    number = 1_000 if short else 10_000
    with tempfile.TemporaryDirectory() as folder:
        server, address = serve(Path(folder))
        try:
            call = _Caller(address, (Path(folder) / "token").read_text().strip())
            for first in range(0, number, PARTS):
                call("POST", "/batch/compute/v1", _inserts(first), "multipart/mixed; boundary=xyz")
            pages = _pages(call, number)
            call("POST", NATIVE, json.dumps(BODY | {"name": "one"}))
            compute = _middle(lambda: call("GET", f"{TEMPLATES}/t00001"))
            native = _middle(lambda: call("GET", f"{NATIVE}/one"))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
    p50, p99 = pages[len(pages) // 2] * 1e3, pages[int(len(pages) * 0.99)] * 1e3
    ratio = f"{compute / native:.2f} times the native door's"
    return [
        Figure(f"a page of {PAGE} of {number} documents, p50", p50, "ms"),
        Figure(f"a page of {PAGE} of {number} documents, p99", p99, "ms", "", f"{p99 / p50:.1f} times p50"),
        Figure("one template read by the Compute door", compute * 1e3, "ms", "", ratio),
        Figure("one request read by the native door", native * 1e3, "ms"),
    ]


def _inserts(first: int) -> str:
    """A batch that makes templates."""
    properties = {"machineType": "a3-highgpu-8g", "labels": {"team": "a"}, "disks": [{"boot": True}]}
    parts = []
    for n in range(first, first + PARTS):
        body = json.dumps({"name": f"t{n:05}", "properties": properties})
        head = f"POST {TEMPLATES} HTTP/1.1\r\nContent-Type: application/json"
        parts.append(f"--xyz\r\nContent-Type: application/http\r\n\r\n{head}\r\n\r\n{body}\r\n")
    return "".join(parts) + "--xyz--\r\n"


def _pages(call: _Caller, number: int) -> list[float]:
    """How long each page took, five times over all, sorted."""
    took = []
    for _ in range(5):
        token, seen = "", 0
        while True:
            began = time.perf_counter()
            text = call("GET", f"{TEMPLATES}?maxResults={PAGE}&pageToken={token}")
            took.append(time.perf_counter() - began)
            page = json.loads(text)
            seen += len(page["items"])
            if not (token := page.get("nextPageToken", "")):
                break
        assert seen == number, f"{seen} of {number} were listed"
    return sorted(took)


def _middle(act: Callable[[], object]) -> float:
    """The middle of many calls, in seconds."""
    took = []
    for _ in range(CALLS):
        began = time.perf_counter()
        act()
        took.append(time.perf_counter() - began)
    return sorted(took)[CALLS // 2]
