"""Durable submits through HTTP: a real server on SQLite, the load from a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path

from benchmarks.measuring import Figure

CONCURRENCY = 16
BODY = {"alternatives": [{"accelerators": "h100:8", "duration": "1h"}]}


def load(address: str, token: str, number: int) -> dict[str, float]:
    """Submit `number` requests with 16 connections; the rate and the 50th and 99th percentile, in ms."""
    host = address.removeprefix("http://")
    body = json.dumps(BODY)
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    took: list[float] = []

    def one_client() -> None:
        connection = HTTPConnection(host)
        for _ in range(number // CONCURRENCY):
            began = time.perf_counter()
            connection.request("POST", "/dws/v1/projects/bench/requests", body, headers)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text
            took.append(time.perf_counter() - began)

    clients = [threading.Thread(target=one_client) for _ in range(CONCURRENCY)]
    began = time.perf_counter()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    spent = time.perf_counter() - began
    took.sort()
    return {
        "rate": len(took) / spent,
        "p50": took[len(took) // 2] * 1e3,
        "p99": took[int(len(took) * 0.99)] * 1e3,
    }


def run(*, short: bool) -> list[Figure]:
    """The figures of one server, warmed by a first round."""
    number = 1_600 if short else 4_800
    with tempfile.TemporaryDirectory() as folder:
        server, address = serve(Path(folder))
        try:
            token = (Path(folder) / "token").read_text().strip()
            _in_own_process(address, token, 320)
            seen = _in_own_process(address, token, number)
            memory = _memory_mb(server.pid)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
    return [
        Figure(f"submits at concurrency {CONCURRENCY}", seen["rate"], "req/s", ">= 500 req/s"),
        Figure("p50", seen["p50"], "ms"),
        Figure("p99", seen["p99"], "ms", "<= 100 ms", f"{seen['p99'] / seen['p50']:.1f} times p50"),
        Figure("memory of the server", memory, "MB"),
    ]


def serve(
    folder: Path, *, fleet: str = "demo", more: Sequence[str] = ()
) -> tuple[subprocess.Popen[bytes], str]:
    """A server of its own on a fleet and SQLite, with its state in `folder`; and its address. `more` are
    further options of `dws serve`."""
    log = folder / "server.log"
    with log.open("wb") as file:
        command = [sys.executable, "-m", "dws.cli", "serve", "--fleet", fleet, "--listen", "127.0.0.1:0"]
        command += ["--state-dir", str(folder), "--log-level", "error", *more]
        server = subprocess.Popen(
            command, stdout=file, stderr=file, env={**os.environ, "DWS_STATE_DIR": str(folder)}
        )
    for _ in range(600):
        if found := re.search(r"serving at (http://[\d.:]+)", log.read_text()):
            return server, found[1]
        time.sleep(0.1)
    raise SystemExit(f"the server did not start: {log.read_text()}")


def _in_own_process(address: str, token: str, number: int) -> dict[str, float]:
    call = f"load({address!r}, {token!r}, {number})"
    code = f"import json; from benchmarks.submitting import load; print(json.dumps({call}))"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seen: dict[str, float] = json.loads(told.stdout)
    return seen


def _memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0
