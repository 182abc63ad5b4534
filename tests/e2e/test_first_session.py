"""The sessions shown in the README, in the tutorial and in how-tos, typed into a real server."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import Server

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "tutorial" / "first-run.md",
    ROOT / "docs" / "how-to" / "tpu-slices.md",
    ROOT / "docs" / "how-to" / "closeness.md",
]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_TYPED = ("dws serve", "make ", ". ")


def session(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Each command of a page with the lines shown below it."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for shown in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = shown.splitlines()
            if not command.startswith(NOT_TYPED):
                yield command, [plain(line) for line in lines if line.strip()]


def plain(line: str) -> str:
    """A line with the widths of its columns and the name of whoever types left out."""
    who = pwd.getpwuid(os.geteuid()).pw_name
    return " ".join(re.sub(rf"\b{re.escape(who)}\b", "ann", line).split())


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=[p.stem for p in PAGES])
def test_the_first_session_is_as_shown(page: Path, tmp_path: Path) -> None:
    """The first thing a person types would not do what the page says."""
    server = Server(
        tmp_path / "state", "--fleet", "demo", "--clock", "virtual", "--start", "2027-01-11T09:00:00Z"
    ).start()
    environment = {**os.environ, "TZ": "UTC", "DWS_ADDRESS": server.address, "COLUMNS": "200"}
    environment["DWS_STATE_DIR"] = str(server.state_dir)
    try:
        commands = [follow(command, shown, environment) for command, shown in session(page)]
        assert len(commands) >= 5
    finally:
        server.stop()


def follow(command: str, shown: list[str], environment: dict[str, str]) -> str:
    """Type a command; what the page shows must be said, in that order."""
    done = subprocess.run(
        [sys.executable, "-m", *["dws.cli" if w == "dws" else w for w in shlex.split(command)]],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    is_refused = any(line.startswith("dws: ") for line in shown)
    assert (done.returncode != 0) == is_refused, f"{command}: {done.stdout}"
    said = iter([plain(line) for line in done.stdout.splitlines()])
    for line in shown:
        assert line in said, f"{command}: does not say\n  {line}\nbut\n{done.stdout}"
    return command
