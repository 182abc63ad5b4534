"""kill -9 anywhere loses nothing and double-books nothing."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

import dws
from tests.e2e.server import Server

CLIENTS = 3
ROUNDS = 5


@pytest.mark.slow
def test_a_server_killed_again_and_again_loses_nothing_it_accepted(tmp_path: Path) -> None:
    """A request that was answered could be gone after a crash, or be there twice."""
    rng = random.Random(4)
    server = Server(tmp_path / "state", "--fleet", "demo")
    accepted: dict[str, str] = {}
    unknown: list[str] = []
    number = 0
    for _ in range(ROUNDS):
        server.start()
        stopping = threading.Event()
        numbers = range(number, number + 3000)
        number += 3000
        threads = [
            threading.Thread(
                target=_submit_until, args=(server, stopping, numbers[i::CLIENTS], accepted, unknown)
            )
            for i in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.3, 1.3))
        server.kill()
        stopping.set()
        for thread in threads:
            thread.join()
    server.start()
    try:
        with server.client() as client:
            there = {r.name: r.id for r in client.requests(project="p")}
            assert len(accepted) > 5
            assert {name: there.get(name) for name in accepted} == accepted
            for name in unknown:
                again = _submit(httpx2.Client(), server, name)
                assert name not in there or there[name] == again, "the same call makes the same request"
            assert client.verify_ledger().faults == []
    finally:
        assert server.stop() == 0


def _submit_until(
    server: Server,
    stopping: threading.Event,
    numbers: range,
    accepted: dict[str, str],
    unknown: list[str],
) -> None:
    with httpx2.Client() as http:
        for number in numbers:
            if stopping.is_set():
                return
            name = f"r{number}"
            try:
                accepted[name] = _submit(http, server, name)
            except httpx2.TransportError:
                unknown.append(name)
                return


def _submit(http: httpx2.Client, server: Server, name: str) -> str:
    answer = http.post(
        f"{server.address}/dws/v1/projects/p/requests",
        params={"requestId": f"once-{name}"},
        json={"name": name, "alternatives": [{"accelerators": "h100:8", "duration": "2s"}]},
        timeout=20,
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["items"][0]["id"])


@pytest.mark.slow
def test_promises_and_the_line_survive_a_crash(tmp_path: Path) -> None:
    """After a crash someone could be told a later start than before."""
    server = Server(tmp_path / "state", "--fleet", "demo", "--clock", "virtual", "--start", "2027-01-11T09:00Z")
    server.start()
    with server.client() as client:
        for i in range(6):
            wish = dws.Alternative(accelerators="h100:128", duration="4h", locations=["us-central1-a"])
            client.submit(wish, name=f"r{i}")
        before = [(r.name, r.state, r.promised_start) for r in client.queue().items]
    server.kill()
    server.start()
    with server.client() as client:
        assert [(r.name, r.state, r.promised_start) for r in client.queue().items] == before
        client.advance("48h")
        assert {r.state for r in client.requests()} == {"COMPLETED"}
        assert client.verify_ledger().faults == []
    server.stop()


SHOW = "import os, time; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); time.sleep(600)"


@pytest.mark.slow
def test_programs_keep_their_accelerators_when_the_server_is_killed(tmp_path: Path) -> None:
    """A program started after a crash could be given an accelerator that another one still computes on."""
    server = Server(tmp_path / "state", "--accelerators", "h100:4")
    server.start()
    try:
        with server.client() as client:
            _run(client, "pair", 2)
            _run(client, "gone", 1)
            before = _seen(client, "pair", 2) + _seen(client, "gone", 1)
            assert len(set(before)) == 3
        server.kill()
        server.start()
        with server.client() as client:
            assert {r.name: r.state for r in client.requests()} == {"pair": "ACTIVE", "gone": "ACTIVE"}
            assert client.verify_ledger().faults == []
            _run(client, "last", 1)
            after = _seen(client, "last", 1)
            assert {*before, *after} == {"0", "1", "2", "3"}
            client.release("gone")
            _run(client, "next", 1)
            assert _seen(client, "next", 1) == before[2:], "what was given back is given out again"
            assert client.verify_ledger().faults == []
    finally:
        try:
            with server.client() as client:
                active = [r.name for r in client.requests() if r.state == "ACTIVE"]
                for name in active:
                    client.release(name)
                until(lambda: all(client.get(name).state == "COMPLETED" for name in active))
        finally:
            assert server.stop() == 0


def until(holds: Callable[[], bool], wait_s: float = 30.0) -> None:
    give_up = time.monotonic() + wait_s
    while not holds():
        assert time.monotonic() < give_up, "it never came to that"
        time.sleep(0.05)


def _run(client: dws.Client, name: str, count: int) -> None:
    wish = dws.Alternative(accelerators=f"h100:{count}", duration="1h", locations=["local"])
    client.submit(wish, name=name, command=[sys.executable, "-c", SHOW])
    until(lambda: client.get(name).state == "ACTIVE")


def _seen(client: dws.Client, name: str, count: int) -> list[str]:
    """What each program of a request was shown."""
    found: list[str] = []
    for rank in range(count):
        until(lambda rank=rank: client.logs(name, rank=rank).text.endswith("\n"))  # type: ignore[misc]
        found.append(client.logs(name, rank=rank).text.strip())
    return found
