"""A real server in a thread, over the real engine on a virtual clock: what the API's tests speak to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from dws.api.auth import load_or_create_token
from dws.api.http import create_app
from dws.api.server import Server
from dws.bootstrap import Settings, System, open_system
from dws.planner.options import DEFAULT_POLICY, PolicyOptions
from dws.telemetry.metrics import EngineMetrics
from tests.conformance.compute.answers import Checked

MONDAY_9 = 1_799_658_000
"""2027-01-11T09:00:00Z."""
SLICE = {"accelerators": "h100:16", "duration": "4h"}
REQUESTS = "/dws/v1/projects/research/requests"

FLEET = """\
currency = "USD"

[prices]
h100 = 4.20

[[zones]]
name = "us-central1-a"

[[zones]]
name = "us-central1-b"

[[zones]]
name = "us-east5-a"

[[pools]]
name = "a3"
zone = "us-central1-a"
machine = "a3-highgpu-8g"
hosts = 4

[[pools.blocks]]
name = "b1"
hosts = 2

[[pools.blocks]]
name = "b2"
hosts = 2

[[pools]]
name = "a2"
zone = "us-central1-b"
machine = "a2-highgpu-8g"
hosts = 2

[[pools]]
name = "cpu"
zone = "us-central1-b"
machine = "e2-medium"
hosts = 2
"""


class Served:
    """A server and ways to speak to it: `owner` shows the token, `anyone` none."""

    def __init__(self, system: System, server: Server, token: str) -> None:
        self.system = system
        self.engine = system.engine
        self.server = server
        self.token = token
        self.address = server.address
        self.owner = httpx2.Client(
            base_url=self.address, headers={"authorization": f"Bearer {token}"}, timeout=30
        )
        self.anyone = httpx2.Client(base_url=self.address, timeout=30)

    def submit(self, name: str, **more: Any) -> dict[str, Any]:
        """Submit, and give the one request there is then."""
        body = {"alternatives": [SLICE], "name": name} | more
        answer = self.owner.post(REQUESTS, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"][0]

    def get(self, name: str) -> dict[str, Any]:
        """One request."""
        return self.owner.get(f"{REQUESTS}/{name}").json()

    def advance(self, by: str) -> None:
        """Let time pass."""
        answer = self.owner.post("/dws/v1/clock:advance", json={"by": by})
        assert answer.status_code == 200, answer.text

    def last_seq(self) -> int:
        """How much has happened so far."""
        return self.engine.last_seq()


def open_world(
    folder: Path,
    metrics: EngineMetrics | None = None,
    policy: PolicyOptions = DEFAULT_POLICY,
    fleet: str = FLEET,
) -> System:
    """The engine over a fleet file's text, the small fleet unless said, Monday at nine."""
    file = folder / "fleet.toml"
    file.write_text(fleet)
    settings = Settings(
        db="memory:",
        state_dir=folder / "state",
        fleet=str(file),
        clock="virtual",
        start=MONDAY_9,
        policy=policy,
    )
    system = open_system(settings, meters=metrics)
    system.start()
    return system


@contextmanager
def serving(
    folder: Path,
    system: System | None = None,
    /,
    *,
    policy: PolicyOptions = DEFAULT_POLICY,
    fleet: str = FLEET,
    **options: Any,
) -> Iterator[Served]:
    """A server on a free port for as long as the block lasts, over `system` or a fleet file's text under `policy`.
    Fails at its end when an answer at the Compute door was not one its clients can read."""
    metrics = EngineMetrics()
    system = system or open_world(folder, metrics, policy, fleet)
    app = create_app(system, metrics=metrics, **options)
    batches = app.router.default
    batches._app = checked = Checked(batches._app)
    server = Server(app, "127.0.0.1", 0)
    ready = threading.Event()
    server._ready = lambda address: ready.set()
    thread = threading.Thread(target=server.serve_until_told, name="served")
    thread.start()
    try:
        assert ready.wait(10), "the server did not come up"
        served = Served(system, server, load_or_create_token(system.settings.state_dir))
        yield served
        served.owner.close()
        served.anyone.close()
    finally:
        server.should_exit = True
        thread.join(15)
        system.close()
        assert not thread.is_alive(), "the server did not stop"
    if checked.faults:
        raise AssertionError("\n".join(checked.faults))
