"""The announced way of working, typed at a real server: a block of 14 days, booked 8 weeks ahead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.server import Server

START = "2027-01-11T09:00:00Z"
EIGHT_WEEKS_ON = "2027-03-08T09:00:00Z"


def test_a_block_is_booked_delivered_consumed_and_erased(tmp_path: Path) -> None:
    """The workflow that people know from the public service would not work on one's own fleet, and a server
    that dies in the middle would forget what was booked."""
    options = ("--fleet", "demo", "--policy", "seed", "--clock", "virtual", "--start", START)
    server = Server(tmp_path / "served", *options).start()
    try:
        refused = type_at(server, "reserve block --accelerators h100:32 --start", EIGHT_WEEKS_ON, "--for 10d")
        assert refused.returncode == 2
        assert "7 days" in refused.stderr and "14 days" in refused.stderr
        booked = say(server, "reserve block --accelerators h100:32 --start", EIGHT_WEEKS_ON, "--for 14d")
        assert booked["reservation"]["state"] == "APPROVED"
        say(server, "submit --reservation block --accelerators h100:32 --name vm")
        server.kill()
        server.start()
        say(server, "clock advance 56d")
        assert say(server, "reservations describe block")["state"] == "FULFILLED"
        running = say(server, "describe vm")
        assert (running["state"], running["reservation"]) == ("ACTIVE", "default/block")
        say(server, "clock advance 14d")
        assert say(server, "describe vm")["state"] == "COMPLETED"
        assert say(server, "reservations describe block")["state"] == "ENDED"
        assert say(server, "reservations list")["items"] == []
        assert say(server, "ledger verify")["faults"] == []
    finally:
        server.stop()


def type_at(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    """Type a command."""
    line = " ".join(words).split()
    return subprocess.run(
        [sys.executable, "-m", "dws.cli", *line, "-o", "json"],
        env={**os.environ, "DWS_ADDRESS": server.address, "DWS_STATE_DIR": str(server.state_dir), "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=False,
    )


def say(server: Server, *words: str) -> Any:
    """Type a command that must succeed; its answer."""
    done = type_at(server, *words)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return json.loads(done.stdout)
