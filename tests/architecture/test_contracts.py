"""What may know what, and what the centre may not call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CENTRE = ("model", "lifecycle", "planner", "engine")


def _run(*command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, input=stdin, capture_output=True, text=True, check=False
    )


def test_layers_point_down() -> None:
    """A change in one place would break places that should not know of it."""
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", lint, "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_centre_reads_no_clock_and_no_environment() -> None:
    """Replays, the simulator and every promise about time would stop being exact."""
    done = _run("ruff", "check", "--select", "TID251,T20", *(f"src/dws/{part}" for part in CENTRE))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("part", [*CENTRE, "wire", "declared"])
@pytest.mark.parametrize(
    "line",
    [
        "import time\ntime.time()\n",
        "import random\n",
        "import os\nos.environ\n",
        "import time\ntime.sleep(1)\n",
    ],
    ids=["clock", "random", "environment", "sleep"],
)
def test_the_ban_bites(part: str, line: str) -> None:
    """The ban would be switched off for a whole layer and nobody would notice."""
    done = _run(
        "ruff", "check", "--select", "TID251", "--stdin-filename", f"src/dws/{part}/x.py", "-", stdin=line
    )
    assert "TID251" in done.stdout, done.stdout + done.stderr
