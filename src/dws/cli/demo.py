"""`dws demo`: the main job, worth watching, in under two minutes.

It types the same commands a person would, at a server of its own in a directory of its own, and leaves
that server running at the end so that there is something to look at.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

STATE_DIR: Final = Path("demo-state")
ZONE: Final = "us-central1-b"
SERVER_WAIT_S: Final = 30
TRACES: Final = Path("../shared/traces")
TRACE: Final = "philly-2017-last15k.csv.gz"
TRACE_JOBS: Final = 400
TRACE_HOSTS: Final = 640


@click.command()
@click.option(
    "--state-dir", default=STATE_DIR, show_default=True, type=click.Path(path_type=Path), help="Where."
)
@click.option(
    "--traces", default=TRACES, show_default=True, type=click.Path(path_type=Path), help="Public traces."
)
@click.option("--stop", is_flag=True, help="Stop the server that a demo left running.")
def demo(*, state_dir: Path, traces: Path, stop: bool) -> int:
    """Show the main job: a gang on this machine, a queue, a promise kept, a trace replayed.

    \b
    Example:
      dws demo
      dws demo --stop
    """
    if stop:
        return _stop(state_dir)
    stage = Stage.open(state_dir)
    _gang(stage)
    _queue(stage)
    _calendar(stage)
    _trace(stage, traces)
    _leave(stage)
    return 0


@dataclass(frozen=True, slots=True)
class Stage:
    """A server of the demo's own, and how to talk to it."""

    address: str
    state_dir: Path

    @classmethod
    def open(cls, state_dir: Path) -> Stage:
        """Start a server, or take the one that runs there."""
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        address = _running(state_dir)
        if address is None:
            port = _free_port()
            address = f"http://127.0.0.1:{port}"
            _say("A server on embedded SQLite, with a demo fleet and this machine as zone 'local'.")
            _start(state_dir, port)
        return cls(address, state_dir)

    def dws(self, line: str, *, quiet: bool = False, then: Sequence[str] = ()) -> int:
        """Type a dws command, show it and what it says; returns its status."""
        args = [*shlex.split(line), *then]
        if not quiet:
            shown = shlex.join(args).replace(sys.executable, "python")
            click.secho(f"\n$ dws {shown}", bold=True)
        environment = {
            **os.environ,
            "DWS_ADDRESS": self.address,
            "DWS_STATE_DIR": str(self.state_dir.absolute()),
        }
        output = subprocess.DEVNULL if quiet else None
        return subprocess.run(
            [sys.executable, "-m", "dws.cli", *args], env=environment, stdout=output, check=False
        ).returncode


def _gang(stage: Stage) -> None:
    _say("1. A gang of two processes on this machine, started together, computing pi together.")
    program = ["--", sys.executable, "-m", "dws.examples.pi"]
    status = stage.dws("run --machine local-cpu --count 2 --zone local --for 1m", then=program)
    if status:
        raise click.ClickException(f"the gang ended with status {status}")


def _queue(stage: Stage) -> None:
    _say(
        "2. More than fits: four simulated hosts of 8 A100 in us-central1-b. 'train' needs all four and\n"
        "   waits for 'busy'; 'short' ends in time and goes first; 'long' would delay 'train', so it waits."
    )
    ask = f"submit --zone {ZONE} --machine a2-highgpu-8g"
    stage.dws(f"{ask} --count 3 --for 40s --name busy")
    stage.dws(f"{ask} --count 4 --for 12s --name train")
    stage.dws(f"{ask} --count 1 --for 20s --name short")
    stage.dws(f"{ask} --count 1 --for 90s --name long")
    time.sleep(0.5)
    stage.dws("queue")
    _say("   A question is not a hold: what would two more hosts cost, and when?")
    stage.dws(f"quote --zone {ZONE} --machine a2-highgpu-8g --count 2 --for 30s")
    time.sleep(4)
    _say("   'busy' is done early. Its hosts are free at once; 'train' starts as soon as 'short' is over.")
    stage.dws("release busy")
    stage.dws("wait train --for started")
    stage.dws("describe train")
    stage.dws("usage")


def _calendar(stage: Stage) -> None:
    _say(
        "3. Booked ahead: three of the four hosts for tomorrow, work that waits for it, and what is left.\n"
        "   A second booking that does not fit is told when it would."
    )
    ask = f"--zone {ZONE} --machine a2-highgpu-8g"
    stage.dws(f"reserve block {ask} --count 3 --in 1d --for 2d")
    stage.dws(f"submit {ask} --count 2 --reservation block --name nightly")
    stage.dws(f"reserve other {ask} --count 2 --in 36h --for 1d")
    stage.dws(f"calendar --zone {ZONE} --days 5")


def _trace(stage: Stage, traces: Path) -> None:
    file = traces / TRACE
    if file.is_file():
        _say(
            f"4. A public trace, {TRACE_JOBS} jobs of {TRACE}, through the same engine under a virtual clock."
        )
        source = str(file)
    else:
        _say(
            f"4. No public traces at {traces}: a generated workload with their published statistics instead."
        )
        source = "generated"
    stage.dws(f"simulate --trace {shlex.quote(source)} --jobs {TRACE_JOBS} --hosts {TRACE_HOSTS}")


def _leave(stage: Stage) -> None:
    stage.dws("ledger verify")
    _say(
        f"The server is still there: look at {stage.address}/ , and try\n"
        f"   export DWS_ADDRESS={stage.address} DWS_STATE_DIR={stage.state_dir}\n"
        "   dws fleet; dws queue; dws audit\n"
        "   'make demo-stop' (or 'dws demo --stop') ends it."
    )


def _say(text: str) -> None:
    click.secho(f"\n{text}", fg="cyan")


# --- the server -------------------------------------------------------------------------------


def _free_port() -> int:
    """8470 when it is free, else any."""
    for port in (8470, 0):
        with socket.socket() as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                door.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(door.getsockname()[1])
    raise click.ClickException("no free port on 127.0.0.1")


def _start(state_dir: Path, port: int) -> None:
    """Start a detached server and wait until it listens."""
    command = [
        *(sys.executable, "-m", "dws.cli", "serve", "--fleet", "demo"),
        *("--listen", f"127.0.0.1:{port}", "--state-dir", str(state_dir), "--log-level", "warning"),
    ]
    log = state_dir / "server.log"
    with log.open("ab") as file:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    (state_dir / "server.pid").write_text(f"{server.pid} {port}\n", encoding="ascii")
    for _ in range(SERVER_WAIT_S * 10):
        if server.poll() is not None:
            raise click.ClickException(f"the server ended at once; see {log}")
        with socket.socket() as door:
            if door.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise click.ClickException(f"the server did not listen within {SERVER_WAIT_S} s; see {log}")


def _server(state_dir: Path) -> tuple[int, int] | None:
    """(pid, port) of the demo's server, None when it does not run."""
    try:
        pid, port = (state_dir / "server.pid").read_text(encoding="ascii").split()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return (int(pid), int(port)) if b"serve" in command and b"dws" in command else None


def _running(state_dir: Path) -> str | None:
    found = _server(state_dir)
    return None if found is None else f"http://127.0.0.1:{found[1]}"


def _stop(state_dir: Path) -> int:
    found = _server(state_dir)
    if found is None:
        click.echo("no demo server is running")
        return 0
    os.kill(found[0], signal.SIGTERM)
    for _ in range(100):
        if _server(state_dir) is None:
            break
        time.sleep(0.1)
    click.echo("stopped")
    return 0
