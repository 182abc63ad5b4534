"""A `dws serve` process of the test's own, which may be killed at any moment and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import dws

READY = re.compile(rb"serving at (\S+)")
START_S = 40.0


class Server:
    """A server on a directory; `start` and `kill` as often as one likes."""

    def __init__(self, state_dir: Path, *options: str) -> None:
        self.state_dir = state_dir
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def start(self) -> Server:
        """Start, and return when it listens."""
        self.state_dir.mkdir(parents=True, exist_ok=True)
        log = self.state_dir / "server.log"
        with log.open("ab") as file:
            began = file.tell()
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "dws.cli", "serve", *self._options),
                    *("--listen", "127.0.0.1:0", "--state-dir", str(self.state_dir), "--log-level", "error"),
                ],
                stdout=file,
                stderr=file,
                env={**os.environ, "DWS_STATE_DIR": str(self.state_dir)},
            )
        give_up = time.monotonic() + START_S
        while time.monotonic() < give_up:
            told = log.read_bytes()[began:]
            if found := READY.search(told):
                self.address = found[1].rstrip(b";").decode()
                return self
            assert self._process.poll() is None, told.decode()
            time.sleep(0.02)
        raise AssertionError(f"no server within {START_S} s: {log.read_text()}")

    def client(self, **options: object) -> dws.Client:
        """A client with the server's token."""
        token = (self.state_dir / "token").read_text().strip()
        return dws.Client(self.address, token, **options)  # type: ignore[arg-type]

    def kill(self) -> None:
        """kill -9: no warning, no goodbye."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to stop; returns its exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(how)
        status = self._process.wait(20)
        self._process = None
        return status
