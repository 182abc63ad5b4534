"""The command and the client against a real server process, under a virtual clock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import dws
from dws.cli.main import cli

Run = Callable[..., Result]
DWS = [sys.executable, "-m", "dws.cli"]
PORTLESS = "127.0.0.1:0"


class Server:
    """A server process of its own, at a free port."""

    def __init__(self, state_dir: Path, *options: str) -> None:
        self.state_dir = state_dir
        self.process = subprocess.Popen(
            [*DWS, "serve", "--state-dir", str(state_dir), "--listen", PORTLESS, *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "serving at" in line:
                self.address = line.split("serving at ")[1].split(";")[0].strip()
                return
        raise AssertionError("".join(said))

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        status = self.process.wait(timeout=30)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return status


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(
        tmp_path_factory.mktemp("served"),
        *("--fleet", "demo", "--clock", "virtual", "--start", "2027-01-15T08:00:00Z"),
        *("--log-level", "warning"),
    )
    yield started
    assert started.stop() == 0


@pytest.fixture
def run(server: Server, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Run:
    """Run a command line against the server, in a project of the test's own."""
    monkeypatch.setenv("DWS_ADDRESS", server.address)
    monkeypatch.setenv("DWS_STATE_DIR", str(server.state_dir))
    monkeypatch.setenv("DWS_PROJECT", request.node.originalname.replace("_", "-").lower()[:60].strip("-"))

    def invoke(*args: str) -> Result:
        return CliRunner().invoke(cli, list(args), prog_name="dws")

    return invoke


def data(done: Result) -> object:
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


ALL_OF_B = ("--machine", "a2-highgpu-8g", "--count", "4", "--zone", "us-central1-b")


def test_the_life_of_a_request(run: Run) -> None:
    """A user could not take a request from asking to its end."""
    assert run("submit", *ALL_OF_B, "--for", "1h", "--name", "first").stdout == "first\n"
    assert run("submit", *ALL_OF_B, "--for", "1h", "--name", "second").stdout == "second\n"
    shown = run("queue", "--mine", "--tz", "UTC").stdout
    assert "second" in shown
    assert "first" not in shown
    assert "needs 4 free hosts" in shown
    assert "second is number 1 in line." in run("explain", "second").stdout
    assert run("wait", "first", "--until", "started").exit_code == 0
    assert run("clock", "advance", "1h").exit_code == 0
    assert run("wait", "first").exit_code == 0
    assert "second" in run("list", "--filter", 'state = "ACTIVE"').stdout
    assert run("release", "second").exit_code == 0
    assert "accelerator" in run("usage").stdout.lower()
    story = data(run("audit", "--name", "first", "-o", "json"))
    kinds = [event["kind"] for event in story["items"]]  # type: ignore[index]
    assert kinds[0] == "Submitted"
    assert "Delivered" in kinds
    assert run("delete", "first", "second").exit_code == 0
    assert run("describe", "first").exit_code == 4


def test_every_code_of_a_refusal(run: Run) -> None:
    """A script could not tell refusals apart."""
    assert run("submit", "--accelerators", "h100:9999", "--for", "1h").exit_code == 3
    assert run("describe", "nothing").exit_code == 4
    assert run("submit", *ALL_OF_B, "--for", "10m", "--name", "held").exit_code == 0
    assert run("submit", *ALL_OF_B, "--for", "10m", "--name", "held").exit_code == 5
    assert run("cancel", "held").exit_code == 6
    assert run("submit", *ALL_OF_B, "--for", "10m", "--wait", "1m", "--name", "late").exit_code == 0
    assert run("clock", "advance", "2m").exit_code == 0
    assert run("wait", "late").exit_code == 124
    assert run("submit", "--accelerators", "h100:8", "--for", "90d").exit_code == 2
    assert run("release", "held").exit_code == 0


def test_l01_a_quote_changes_nothing(run: Run) -> None:
    """Asking for a price would take a place in line."""
    before = data(run("ledger", "verify", "-o", "json"))
    for _ in range(5):
        quote = data(run("quote", "--accelerators", "h100:16", "--for", "4h", "-o", "json"))
    assert quote["hold"] is False  # type: ignore[index]
    assert data(run("ledger", "verify", "-o", "json")) == before


def test_an_amended_request_keeps_its_alternatives(run: Run) -> None:
    """A changed duration would lose the block, or the second choice."""
    busy = run("submit", *ALL_OF_B, "--for", "1h", "--name", "busy")
    assert busy.exit_code == 0
    ask = ("submit", *ALL_OF_B, "--for", "1h", "--or", "4 x a2-highgpu-8g for 30m in us-central1-b")
    assert run(*ask, "--name", "changed").exit_code == 0
    assert run("amend", "changed", "--for", "2h").exit_code == 0
    told = data(run("describe", "changed", "-o", "json"))
    assert [a["duration"] for a in told["alternatives"]] == ["7200s", "1800s"]  # type: ignore[index]
    assert run("cancel", "changed").exit_code == 0
    assert run("release", "busy").exit_code == 0


def test_m11_an_array_is_one_row_of_the_queue(run: Run) -> None:
    """A sweep would fill everyone's screen."""
    ask = ("--machine", "e2-medium", "--count", "16", "--for", "10m", "--array", "5", "--name", "sweep")
    names = run("submit", *ask).stdout.split()
    assert names == [f"sweep-{i}" for i in range(5)]
    assert run("queue", "--mine").stdout.count("sweep") == 1
    assert run("queue", "--mine", "--all").stdout.count("sweep") == 4
    assert run("clock", "advance", "1h").exit_code == 0
    assert all(run("wait", name).exit_code == 0 for name in names)


def test_a_drain_tells_whom_it_affects(run: Run) -> None:
    """An operator would not know whose run is on a host."""
    assert run("submit", *ALL_OF_B, "--for", "1h", "--name", "mine").exit_code == 0
    host = data(run("describe", "mine", "-o", "json"))["grant"]["instances"][0]["host"]  # type: ignore[index]
    assert "mine" in run("fleet", "drain", host, "--dry-run").stdout
    assert run("fleet", "drain", host, "--reason", "firmware", "--yes").exit_code == 0
    assert "firmware" in run("fleet", "show", "--hosts").stdout
    assert run("fleet", "repair", host, "--yes").exit_code == 0
    assert run("release", "mine").exit_code == 0


def test_a_backup_can_be_restored_and_served(run: Run, server: Server, tmp_path: Path) -> None:
    """A backup would turn out useless on the day it is needed."""
    assert run("submit", *ALL_OF_B, "--for", "1h", "--name", "kept").exit_code == 0
    copy = tmp_path / "copy.db"
    assert run("backup", str(copy)).exit_code == 0
    other = tmp_path / "other"
    assert run("restore", str(copy), "--state-dir", str(other)).exit_code == 0
    assert run("migrate", "--state-dir", str(other)).stdout == "up to date\n"
    again = Server(other, "--clock", "virtual", "--log-level", "warning")
    try:
        assert "kept" in run("list", "--address", again.address, "--token-file", str(other / "token")).stdout
    finally:
        assert again.stop(signal.SIGINT) == 0
    assert run("release", "kept").exit_code == 0


def test_ctrl_c_gives_the_capacity_back(run: Run, server: Server) -> None:
    """An interrupted `dws run` would leave machines taken and paid for."""
    line = [*DWS, "run", *ALL_OF_B, "--for", "1h", "--name", "interrupted"]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stderr is not None
    assert "running on" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert "given back" in said
    assert run("wait", "interrupted").exit_code == 0
    assert "RELEASED" in run("describe", "interrupted", "-o", "json").stdout


def test_the_client_repeats_itself_harmlessly(run: Run, server: Server) -> None:
    """A retried submission would ask twice."""
    wish = dws.Alternative(machine="e2-medium", count=1, duration="10m")
    with dws.Client() as client:
        ask = dws.SubmitRequest(alternatives=[wish], name="once")
        first = client.submit_all(ask, request_id="r-1")
        assert client.submit_all(ask, request_id="r-1")[0].id == first[0].id
        with pytest.raises(dws.AlreadyExists):
            client.submit(wish, name="once")
        assert client.release("once").name == "once"


def test_the_client_follows_events_and_pages(run: Run, server: Server) -> None:
    """A program could not keep up with what happens, or would see only the first page."""
    wish = dws.Alternative(machine="e2-medium", count=1, duration="1m")
    with dws.Client() as client:
        seen = client.events().last_seq
        names = [client.submit(wish, name=f"r-{i}").name for i in range(5)]
        following = client.follow_events(after=seen, project=client.project)
        submitted = []
        while len(submitted) < 5:
            event = next(following)
            if event.kind == "Submitted":
                submitted.append(event.name)
        assert submitted == names
        assert [r.name for r in client.requests()] == names
        page = client.page(page_size=2)
        assert len(page.items) == 2
        assert page.next_page_token
        client.advance("2m")
        assert {client.wait(name).state for name in names} == {"COMPLETED"}


def test_a_program_needs_a_token(run: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone on the machine, or a web page, could run programs as the server's owner."""
    monkeypatch.setenv("DWS_STATE_DIR", "/nonexistent")
    done = run("submit", *ALL_OF_B, "--for", "1h", "--", "true")
    assert done.exit_code == 7
    assert "DWS_TOKEN" in done.stderr
    assert run("fleet").exit_code == 0


def test_a_second_server_on_one_store_is_refused(run: Run, server: Server) -> None:
    """Two schedulers on one store would promise the same hosts twice."""
    line = [*DWS, "serve", "--state-dir", str(server.state_dir), "--clock", "virtual", "--listen", PORTLESS]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 6
    assert done.stderr.startswith("dws: ")
    assert "Traceback" not in done.stderr


def test_an_address_in_use_is_told(run: Run, server: Server, tmp_path: Path) -> None:
    """Starting a second server by mistake would end in a traceback."""
    port = server.address.rpartition(":")[2]
    line = [
        *DWS,
        "serve",
        "--state-dir",
        str(tmp_path),
        "--clock",
        "virtual",
        "--listen",
        f"127.0.0.1:{port}",
    ]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 6
    assert "cannot listen" in done.stderr


def test_a_real_program_is_run_and_its_status_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dws run -- python train.py` would not do on this machine what `python train.py` does."""
    here = Server(tmp_path / "s", "--log-level", "warning")
    monkeypatch.setenv("DWS_ADDRESS", here.address)
    monkeypatch.setenv("DWS_STATE_DIR", str(here.state_dir))
    try:
        line = [*DWS, "run", "--machine", "local-cpu", "--count", "1", "--for", "1m", "--env", "SAY=hello"]
        script = 'echo "$SAY from $PWD"; exit 3'
        done = subprocess.run(
            [*line, "--", "sh", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.stdout == f"hello from {tmp_path}\n", done.stderr
        assert done.returncode == 3
        with dws.Client() as client:
            name = next(client.requests()).name
            assert "".join(client.follow_logs(name)) == done.stdout
            assert client.get(name).exit_code == 3
    finally:
        assert here.stop() == 0
