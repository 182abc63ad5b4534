"""A server that answers what it was told to, and values as a real one would answer them.

`Stub` is an HTTP transport: answers by method and path, and every call remembered.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

import httpx2
import msgspec

from dws.cli.session import Machine
from dws.model.errors import DwsError
from dws.wire import native_v1 as wire

NOW = 1_800_000_000  # 2027-01-15T08:00:00Z
PROJECT = "/dws/v1/projects/default"
REQUESTS = f"{PROJECT}/requests"


class Stub(httpx2.BaseTransport):
    """Answers are structs, errors, bytes (a stream), exceptions, or functions of the request making one;
    a list is answered one by one, its last for ever."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {"GET /dws/v1/clock": clock()}
        self.calls: list[tuple[str, str, dict[str, str], Any]] = []

    def on(self, call: str, answer: Any) -> Stub:
        """Answer `call`, "GET /path", so from now on."""
        self.answers[call] = answer
        return self

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        path = unquote(request.url.raw_path.decode().partition("?")[0])
        call = f"{request.method} {path}"
        body = json.loads(request.read() or b"null")
        self.calls.append((request.method, path, dict(request.url.params), body))
        answer = self.answers.get(call, DwsNotStubbed(call))
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if callable(answer) and not isinstance(answer, type):
            answer = answer(request)
        if isinstance(answer, DwsError):
            return failing(answer)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, bytes):
            return httpx2.Response(200, content=answer)
        return httpx2.Response(200, content=msgspec.json.encode(answer))

    def bodies(self, call: str) -> list[Any]:
        """The bodies of every such call."""
        return [body for method, path, _, body in self.calls if f"{method} {path}" == call]

    def machine(self, *, wall: float = NOW, pause: Callable[[float], None] | None = None) -> Machine:
        """A machine that reaches this server and never really sleeps."""
        return Machine(transport=self, wall=lambda: wall, pause=pause or (lambda _s: None))


class DwsNotStubbed(AssertionError):
    """A test's command called what the test did not expect."""


def failing(error: DwsError) -> httpx2.Response:
    """An error as the server sends it."""
    body = wire.ErrorBody(
        code=error.code,
        reason=error.reason,
        message=error.message,
        status=error.http_status,
        field=error.field,
        details=error.details,
    )
    return httpx2.Response(error.http_status, content=msgspec.json.encode(wire.ErrorEnvelope(error=body)))


def clock(now: int = NOW, *, virtual: bool = False) -> wire.Clock:
    return wire.Clock(now=instant(now), epoch=now, virtual=virtual)


def instant(at: int) -> str:
    from dws.wire.timefmt import format_instant

    return format_instant(at)


def a_reason(
    text: str = "needs {need} free hosts; a3 has {best} until {at:time}", **facts: Any
) -> wire.Reason:
    given = {"need": 2, "best": 1, "at": NOW + 7_500} | facts
    return wire.Reason(code="NOT_ENOUGH_FREE", message="needs 2 free hosts", text=text, facts=given)


def a_forecast(**changes: Any) -> wire.Forecast:
    given: dict[str, Any] = {
        "place": 3,
        "expected_start": instant(NOW + 7_500),
        "promised_start": "",
        "promise_by": instant(NOW + 600_000),
        "pool": "a3",
        "reason": a_reason(),
    }
    return wire.Forecast(**(given | changes))


def a_grant(*, hosts: int = 2, codes: list[int | None] | None = None, **changes: Any) -> wire.Grant:
    codes = codes or [None] * hosts
    given: dict[str, Any] = {
        "pool": "a3",
        "zone": "us-central1-a",
        "machine": "a3-highgpu-8g",
        "alternative": 0,
        "attempt": 1,
        "started_at": instant(NOW - 660),
        "delivered_at": instant(NOW - 600),
        "ends_at": instant(NOW + 13_800),
        "duration_s": 14_400,
        "unreachable_since": "",
        "instances": [
            wire.Instance(
                rank=rank, host=f"a3-000{rank + 1}", state="RUNNING", address="", exit_code=code, note=""
            )
            for rank, code in enumerate(codes)
        ],
    }
    return wire.Grant(**(given | changes))


def a_request(**changes: Any) -> wire.Request:
    given: dict[str, Any] = {
        "id": "12345",
        "name": "train-a",
        "project": "default",
        "principal": "kim",
        "state": "PENDING",
        "alternatives": [wire.Alternative(accelerators="h100:16", duration="4h")],
        "not_before": "",
        "not_after": "",
        "priority": 0,
        "labels": {},
        "workload": None,
        "on_host_loss": "end",
        "array": "",
        "array_index": 0,
        "submitted_at": instant(NOW - 720),
        "promised_start": "",
        "attempts": 0,
        "last_failure": "",
        "grant": None,
        "end_reason": "",
        "end_message": "",
        "ended_at": "",
        "exit_code": None,
        "cost": "0.00",
        "forecast": None,
    }
    return wire.Request(**(given | changes))


def waiting(**changes: Any) -> wire.Request:
    return a_request(**({"forecast": a_forecast()} | changes))


def running(**changes: Any) -> wire.Request:
    given = {"state": "ACTIVE", "grant": a_grant(), "workload": wire.Workload(command=["python", "train.py"])}
    return a_request(**(given | changes))


def ended(
    reason: str = "PROGRAM_SUCCEEDED", *, code: int | None = 0, state: str = "COMPLETED", **changes: Any
) -> wire.Request:
    given: dict[str, Any] = {
        "state": state,
        "end_reason": reason,
        "exit_code": code,
        "ended_at": instant(NOW),
    }
    return running(**(given | changes))


def a_quote(**changes: Any) -> wire.Quote:
    def option(kind: str, start: int, **more: Any) -> wire.QuoteOption:
        given: dict[str, Any] = {
            "kind": kind,
            "machine": "a3-highgpu-8g",
            "count": 2,
            "accelerators": 16,
            "duration_s": 14_400,
            "zone": "us-central1-a",
            "pool": "a3",
            "within": None,
            "start": instant(start),
            "end": instant(start + 14_400),
            "cost": "192.00",
            "currency": "USD",
            "reason": None,
        }
        return wire.QuoteOption(**(given | more))

    given: dict[str, Any] = {
        "now": instant(NOW),
        "asked": option("asked", NOW + 7_500),
        "options": [option("shorter", NOW, duration_s=7_200, end=instant(NOW + 7_200), cost="96.00")],
        "promised_latest": instant(NOW + 21_900),
        "reason": a_reason(),
    }
    return wire.Quote(**(given | changes))


def a_fleet() -> wire.Fleet:
    def host(index: int, **changes: Any) -> wire.Host:
        given: dict[str, Any] = {
            "name": f"a3-000{index}",
            "pool": "a3",
            "state": "READY",
            "reason": "",
            "since": "",
            "until": "",
            "domains": {"block": "b1" if index <= 2 else "b2"},
            "request": "",
            "project": "",
            "busy_until": "",
        }
        return wire.Host(**(given | changes))

    busy = {"request": "train-b", "project": "default", "busy_until": instant(NOW + 7_500)}
    pool = wire.Pool(
        name="a3",
        zone="us-central1-a",
        machine="a3-highgpu-8g",
        accelerator="nvidia-h100-80gb",
        accelerators_per_host=8,
        backend="simulated",
        unavailable="",
        price="3.00",
        hosts=[
            host(1, **busy),
            host(2),
            host(3, state="DRAINING", reason="firmware"),
            host(4, state="DOWN", reason="power supply", until=instant(NOW + 90_000)),
        ],
        ready=2,
        busy=1,
        free=1,
        draining=1,
        down=1,
        free_by_domain={"b1": 1, "b2": 0},
    )
    return wire.Fleet(
        version=3,
        now=instant(NOW),
        currency="USD",
        zones=[
            wire.Zone(name="us-central1-a", region="us-central1", unavailable=""),
            wire.Zone(name="local", region="local", unavailable="this server runs on a virtual clock"),
        ],
        pools=[pool],
    )


def an_event(seq: int, kind: str, *, at: int, actor: str = "planner", reason: str = "") -> wire.Event:
    return wire.Event(
        seq=seq,
        at=instant(at),
        actor=actor,
        kind=kind,
        subject_kind="REQUEST",
        subject="12345",
        project="default",
        name="train-a",
        reason=reason,
        data={},
    )


def occurrence(day: str, **changes: Any) -> wire.Occurrence:
    """A night of that day, 20:00 to 06:00 in Berlin in winter."""
    after = datetime.fromisoformat(day) + timedelta(days=1)
    given: dict[str, Any] = {
        "day": day,
        "start": f"{day}T19:00:00Z",
        "end": f"{after:%Y-%m-%d}T05:00:00Z",
        "note": "",
        "reservation": "",
        "state": "",
    }
    return wire.Occurrence(**(given | changes))


def a_series(*upcoming: wire.Occurrence, **changes: Any) -> wire.Series:
    given: dict[str, Any] = {
        "id": "9",
        "name": "nights",
        "project": "default",
        "principal": "kim",
        "state": "ACTIVE",
        "every": "weekday 20:00-06:00 Europe/Berlin from 2027-01-11 until 2027-04-01",
        "time_zone": "Europe/Berlin",
        "accelerators": "h100:16",
        "machine": "",
        "count": 16,
        "locations": [],
        "within": None,
        "description": "",
        "booked_until": instant(NOW + 56 * 86_400),
        "upcoming": list(upcoming),
        "missed": [],
    }
    return wire.Series(**(given | changes))


def a_window(**changes: Any) -> wire.Maintenance:
    given: dict[str, Any] = {
        "id": "12",
        "name": "fans",
        "pool": "a3",
        "hosts": ["a3-0001", "a3-0002"],
        "start": instant(NOW + 86_400),
        "end": instant(NOW + 100_800),
        "reason": "new fans",
        "begun": False,
    }
    return wire.Maintenance(**(given | changes))
