"""Lists of the Compute door over many things, and what one of its calls costs beside the native door's."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

from benchmarks.measuring import Figure
from benchmarks.submitting import serve
from dws.api.compute_v1 import documents
from dws.api.compute_v1.group_members import RESIZE_REQUEST
from dws.bootstrap import Settings, open_system
from dws.engine import requests
from dws.engine.commands import Submit
from dws.engine.write import Write
from dws.model.access import SYSTEM
from dws.model.demand import Alternative, Demand
from dws.model.document import WITH_REQUEST

PROJECT = "/compute/v1/projects/bench"
TEMPLATES = f"{PROJECT}/global/instanceTemplates"
OPERATIONS = f"{PROJECT}/global/operations"
ZONE = f"{PROJECT}/zones/us-central1-a"
INSTANCES = f"{ZONE}/instances"
GROUPS = f"{ZONE}/instanceGroupManagers"
WISHES = f"{GROUPS}/short/resizeRequests"
NATIVE = "/dws/v1/projects/bench/requests"
BODY = {"alternatives": [{"machine": "e2-medium", "count": 1, "duration": "1h"}], "name": "one"}
PAGE = 500
PARTS = 500
CALLS = 400
ROUNDS = 5
LARGEST = 4_000
FLEET = """\
[[zones]]
name = "us-central1-a"

[[pools]]
name = "long"
zone = "us-central1-a"
machine = "a3-highgpu-8g"
hosts = {hosts}

[[pools]]
name = "short"
zone = "us-central1-a"
machine = "e2-medium"
hosts = 600
"""


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

    def post(self, path: str, body: object) -> None:
        """Post one thing."""
        self("POST", path, json.dumps(body))

    def post_all(self, path: str, bodies: list[dict[str, object]]) -> None:
        """Post many things in one batch."""
        head = f"POST {path} HTTP/1.1\r\nContent-Type: application/json"
        parts = [
            f"--xyz\r\nContent-Type: application/http\r\n\r\n{head}\r\n\r\n{json.dumps(body)}\r\n"
            for body in bodies
        ]
        text = "".join(parts) + "--xyz--\r\n"
        answer = self("POST", "/batch/compute/v1", text, "multipart/mixed; boundary=xyz")
        assert answer.count(b"200 OK") == len(bodies), answer[:2_000]


def run(*, short: bool) -> list[Figure]:
    """The figures of one server on SQLite, one caller at a time."""
    number = 1_000 if short else 10_000
    with tempfile.TemporaryDirectory() as folder:
        fleet = Path(folder) / "fleet.toml"
        fleet.write_text(FLEET.format(hosts=number), encoding="utf-8")
        _wish(Path(folder), fleet, number)
        server, address = serve(Path(folder), fleet=str(fleet), more=("--clock", "virtual"))
        try:
            call = _Caller(address, (Path(folder) / "token").read_text().strip())
            _furnish(call, number)
            lists = (("operations", OPERATIONS), ("instances", INSTANCES), ("resize requests", WISHES))
            figures = [
                figure
                for what, path in (("templates", TEMPLATES), *lists)
                for figure in _paged(call, what, path, number)
            ]
            call.post(NATIVE, BODY)
            template = _middle(lambda: call("GET", f"{TEMPLATES}/t00001"))
            instance = _middle(lambda: call("GET", f"{INSTANCES}/named"))
            native = _middle(lambda: call("GET", f"{NATIVE}/one"))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
    return [
        *figures,
        _beside("one template read by the Compute door", template, native),
        _beside("one instance read by the Compute door", instance, native),
        Figure("one request read by the native door", native * 1e3, "ms"),
    ]


def _wish(folder: Path, fleet: Path, number: int) -> None:
    """Make so many resize requests that are over, before there is a server: one by one takes long."""
    settings = Settings(state_dir=folder, fleet=str(fleet), clock="virtual")
    system = open_system(settings)
    system.start()
    one = Alternative(shape="e2-medium", count=1, duration_s=600, locations=("us-central1-a",))

    def work(w: Write, first: int) -> None:
        command = Submit(
            project="bench", name=f"r{first}", demand=Demand(alternatives=(one,)), array=PARTS
        )
        for rank, made in enumerate(requests.submit(w, SYSTEM, command)):
            documents.keep(
                w,
                RESIZE_REQUEST,
                "bench",
                "zones/us-central1-a",
                f"r{first + rank:05}",
                {"name": f"r{first + rank:05}", "resizeBy": 1},
                parent="short",
                request=made.id,
                ended_at=WITH_REQUEST,
            )

    for first in range(0, number, PARTS):
        system.engine.transact(SYSTEM, partial(work, first=first))
        system.engine.advance(SYSTEM, 1_200)
    system.close()


def _furnish(call: _Caller, number: int) -> None:
    """Make so many templates, with their operations, and so many running instances."""
    parts = {"labels": {"team": "a"}, "disks": [{"boot": True}]}
    for first in range(0, number, PARTS):
        properties = {"machineType": "a3-highgpu-8g", **parts}
        named = [{"name": f"t{n:05}", "properties": properties} for n in range(first, first + PARTS)]
        call.post_all(TEMPLATES, named)
    call.post(INSTANCES, {"name": "named", "machineType": "a3-highgpu-8g"})
    scheduling = {"maxRunDuration": {"seconds": "604800"}}
    properties = {"machineType": "a3-highgpu-8g", "scheduling": scheduling, **parts}
    call.post(TEMPLATES.replace("global", "regions/us-central1"), {"name": "t", "properties": properties})
    for first in (-1, *range(0, number - 1, LARGEST)):
        group = f"long-{first}" if first >= 0 else "short"
        template = "regions/us-central1/instanceTemplates/t"
        call.post(GROUPS, {"name": group, "instanceTemplate": template, "targetSize": 0})
        if first >= 0:
            size = min(LARGEST, number - 1 - first)
            call.post(f"{GROUPS}/{group}/resizeRequests", {"name": "r", "resizeBy": size})
    call.post("/dws/v1/clock:advance", {"by": "20m"})


def _paged(call: _Caller, what: str, path: str, number: int) -> list[Figure]:
    """How long each page takes, several times over all."""
    took = []
    for _ in range(ROUNDS):
        token, seen = "", 0
        while True:
            began = time.perf_counter()
            text = call("GET", f"{path}?maxResults={PAGE}&pageToken={token}")
            took.append(time.perf_counter() - began)
            page = json.loads(text)
            seen += len(page["items"])
            if not (token := page.get("nextPageToken", "")):
                break
        assert seen == number, f"{seen} of {number} {what} were listed"
    took.sort()
    p50, p99 = took[len(took) // 2] * 1e3, took[int(len(took) * 0.99)] * 1e3
    return [
        Figure(f"a page of {PAGE} of {number} {what}, p50", p50, "ms"),
        Figure(f"a page of {PAGE} of {number} {what}, p99", p99, "ms", "", f"{p99 / p50:.1f} times p50"),
    ]


def _beside(what: str, took: float, native: float) -> Figure:
    return Figure(what, took * 1e3, "ms", "", f"{took / native:.2f} times the native door's")


def _middle(act: Callable[[], object]) -> float:
    """The middle of many calls, in seconds."""
    took = []
    for _ in range(CALLS):
        began = time.perf_counter()
        act()
        took.append(time.perf_counter() - began)
    return sorted(took)[CALLS // 2]
