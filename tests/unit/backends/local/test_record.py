"""The directory where backend and supervisor of an instance meet, and the port where a gang does."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import dws
from dws.backends.local import meeting
from dws.backends.local.record import STOP, SUPERVISOR, Record, kept_in
from dws.engine.ports import BackendUnavailable

THREADS = 16
ROUNDS = 20


def at_once(ask: Callable[[], bool]) -> int:
    """How many of many threads that ask together hear yes."""
    gate = threading.Barrier(THREADS)
    heard: list[bool] = []

    def wait_and_ask() -> None:
        gate.wait()
        heard.append(ask())

    threads = [threading.Thread(target=wait_and_ask) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(heard) == THREADS
    return heard.count(True)


def test_it_is_made_and_claimed_once(tmp_path: Path) -> None:
    """Two supervisors would run one program each on the same host."""
    for number in range(ROUNDS):
        record = Record(tmp_path, f"{number}-1", 0)
        assert at_once(lambda record=record: record.make({"a": 1}, {"b": 2})) == 1
        assert at_once(lambda record=record: record.claim({"pid": 1})) == 1
        assert {p.name for p in record.path.iterdir()} == {"order.json", "deadline", "bell", SUPERVISOR}
        assert [p.name for p in record.path.parent.iterdir()] == ["0"]


def test_a_hard_stop_is_not_taken_back(tmp_path: Path) -> None:
    """A soft call that arrives late would give a program that does not listen its grace again."""
    record = Record(tmp_path, "1-1", 0)
    record.make({}, {})
    record.ask_to_stop(hard=True, grace_s=0)
    record.ask_to_stop(hard=False, grace_s=600)
    assert record.read(STOP) == {"hard": True, "grace_s": 0}


def test_what_a_killed_server_left_half_made_is_swept(tmp_path: Path) -> None:
    """State directories would fill with ruins, or a ruin be taken for an instance."""
    record = Record(tmp_path, "1-1", 0)
    record.make({}, {})
    (tmp_path / "1-1" / ".new-999999999-aa").mkdir()
    assert [(r.key, r.rank) for r in kept_in(tmp_path)] == [("1-1", 0)]
    assert [p.name for p in (tmp_path / "1-1").iterdir()] == ["0"]


def test_a_file_that_is_not_whole_is_not_there(tmp_path: Path) -> None:
    """A server would not start again after a power failure."""
    record = Record(tmp_path, "1-1", 0)
    record.make({}, {})
    (record.path / "order.json").write_text('{"com')
    assert record.read("order.json") is None


def test_gangs_that_run_share_no_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of one training would join another's before it listens."""
    monkeypatch.setattr(meeting, "PORTS", range(20_000, 20_002))
    monkeypatch.setattr(meeting, "_is_free", lambda port: True)
    ports = {key: meeting.master_port(tmp_path, key) for key in ("1-1", "2-1")}
    assert set(ports.values()) == {20_000, 20_001}
    assert meeting.master_port(tmp_path, "1-1-3") == ports["1-1"]
    with pytest.raises(BackendUnavailable, match="no port is free"):
        meeting.master_port(tmp_path, "3-1")


def test_a_port_in_use_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 could not listen."""
    monkeypatch.setattr(meeting, "PORTS", range(20_000, 20_002))
    monkeypatch.setattr(meeting, "_is_free", lambda port: port == 20_001)
    assert meeting.master_port(tmp_path, "1-1") == 20_001


def test_a_supervisor_imports_the_standard_library_only() -> None:
    """Every instance would start slowly and hold the memory of a whole server."""
    source = "import sys, dws.backends.local.supervisor; print(*{m.partition('.')[0] for m in sys.modules})"
    bare = [sys.executable, "-S", "-P", "-c", source]
    src = Path(dws.__file__).parents[1]
    told = subprocess.run(bare, env={"PYTHONPATH": str(src)}, capture_output=True, text=True, check=True)
    assert set(told.stdout.split()) - sys.stdlib_module_names == {"__main__", "dws"}
