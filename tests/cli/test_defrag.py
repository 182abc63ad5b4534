"""`dws fleet defrag --plan` against a real server whose hosts are shared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner, Result

from dws.cli.main import cli
from tests.cli.test_against_server import Server

Run = Callable[..., Result]
FLEET = """
[[zones]]
name = "us-central1-a"

[[pools]]
name = "a3"
zone = "us-central1-a"
machine = "a3-highgpu-8g"
shared = true
hosts = 2
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "fleet.toml").write_text(FLEET)
    started = Server(
        folder / "state",
        *("--fleet", str(folder / "fleet.toml"), "--clock", "virtual", "--start", "2027-01-15T08:00:00Z"),
        *("--log-level", "warning", "--db", "memory:"),
    )
    yield started
    assert started.stop() == 0


@pytest.fixture
def run(server: Server, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DWS_ADDRESS", server.address)
    monkeypatch.setenv("DWS_STATE_DIR", str(server.state_dir))
    monkeypatch.setenv("DWS_PROJECT", "research")
    return lambda *args: CliRunner().invoke(cli, list(args), prog_name="dws")


def test_who_is_in_the_way_of_a_whole_host_is_told_and_stays(run: Run, tmp_path: Path) -> None:
    """An operator could not learn whom to ask for a whole host, or asking would end somebody's work."""
    assert run("submit", "--machine", "a3-highgpu-4g", "--for", "2h", "--name", "half").exit_code == 0
    assert run("submit", "--machine", "a3-highgpu-8g", "--for", "9h", "--name", "whole").exit_code == 0
    whole = ("fleet", "defrag", "--plan", "--machine", "a3-highgpu-8g")
    shown = run(*whole, "--tz", "UTC")
    assert "a3 in us-central1-a, a3-0001: in the way, 8.0 accelerator-hours in all" in shown.stdout, shown
    row = next(line for line in shown.stdout.splitlines() if "research/half" in line).split()
    assert (row[1], row[2], row[-2:]) == ("4", "a3-0001", ["end", "it"])
    told = json.loads(run(*whole, "--count", "2", "-o", "json").stdout)
    assert [(w["request"], w["accelerators"]) for w in told["rooms"][0]["inTheWay"]] == [("half", 4), ("whole", 8)]
    assert "there is room now" in run("fleet", "defrag", "--plan", "--machine", "a3-highgpu-2g").stdout
    assert "no room even without" in run(*whole, "--count", "3").stdout
    states = {name: json.loads(run("describe", name, "-o", "json").stdout)["state"] for name in ("half", "whole")}
    assert states == {"half": "ACTIVE", "whole": "ACTIVE"}


def test_what_is_free_and_of_no_use_is_a_metric(run: Run, server: Server) -> None:
    """An operator could not see that free accelerators lie about in pieces too small."""
    assert run("submit", "--machine", "a3-highgpu-2g", "--for", "2h", "--name", "quarter").exit_code == 0
    told = dict(
        line.rsplit(" ", 1) for line in httpx2.get(f"{server.address}/metrics").text.splitlines() if line[0] != "#"
    )
    shares = {k: float(told[f'dws_fragmentation{{machine="a3-highgpu-{k}g",pool="a3"}}']) for k in (1, 4, 8)}
    free = float(told['dws_free_accelerators{pool="a3"}'])
    taken = json.loads(run("list", "--filter", 'state = "ACTIVE"', "-o", "json").stdout)["items"]
    assert free == 16 - sum(int(r["alternatives"][0]["machine"][-2]) for r in taken)
    assert (shares[1], shares[8]) == (0, 1 if free < 8 else (free - 8) / free)
    assert 0 < shares[4] <= 1


def test_what_no_pool_serves_is_refused_by_name(run: Run) -> None:
    """A typing error would be answered with "no room"."""
    refused = run("fleet", "defrag", "--plan", "--machine", "a3-megagpu-8g")
    assert refused.exit_code != 0
    assert "no pool serves 'a3-megagpu-8g'" in refused.stderr
    assert run("fleet", "defrag", "--machine", "a3-highgpu-8g").exit_code == 2
