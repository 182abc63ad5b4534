"""Servers and supervisors come and go; programs on this machine do not notice, or end. Real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dws.backends.local import process
from dws.backends.local.backend import LocalBackend
from dws.backends.local.record import Record
from dws.engine.ports import BackendUnavailable, DeliveryState, Fact, FactKind
from dws.model.errors import InvalidArgument, NotFound
from dws.model.request import Workload
from tests.contract.backends.kit import Watcher, order, workload
from tests.contract.backends.local_machine import NOW, LocalMachine, a_local_machine, python

SERVER = """
import sys, time
from pathlib import Path
from tests.contract.backends.kit import order
from tests.contract.backends.local_machine import LocalMachine
from dws.model.request import Workload
machine = LocalMachine(Path(sys.argv[1]))
machine.backend.provision(
    order(machine, program=Workload(command=tuple(sys.argv[3:])), run_s=int(sys.argv[2]), grace_s=1)
)
print("done", flush=True)
time.sleep(600)
"""
COUNTS = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.1; done"


@pytest.fixture
def watcher(machine: LocalMachine) -> Watcher:
    return Watcher(machine)


def serve_and_die(machine: LocalMachine, *command: str, run_s: int = 600) -> None:
    """A server of its own gives the order and is killed."""
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(machine.state_dir), str(run_s), *command],
        cwd=root,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"done\n"
        server.kill()
    machine.restart()


def kill_supervisor(machine: LocalMachine, key: str = "101-1", rank: int = 0) -> None:
    (pid,) = machine.supervisors()[key, rank]
    os.kill(pid, signal.SIGKILL)


def last(watcher: Watcher, kind: FactKind) -> Fact:
    return [f for f in watcher.facts if f.kind is kind][-1]


class TestServerDies:
    def test_h01_the_program_runs_on_and_is_adopted(self, machine: LocalMachine, watcher: Watcher) -> None:
        """An upgrade of the server would cost everybody their runs."""
        serve_and_die(machine, "bash", "-c", COUNTS)
        assert watcher.told(FactKind.RUNNING, 0)
        before = machine.output()
        assert machine.until(lambda: len(machine.output()) > len(before))
        wanted = order(machine)
        assert machine.backend.provision(wanted).state is DeliveryState.DELIVERED
        assert len(machine.supervisors()) == 1
        watcher.release(wanted)
        assert machine.programs() == []

    def test_i05_the_end_comes_with_no_server_there(self, machine: LocalMachine, watcher: Watcher) -> None:
        """A server that is down would give every program an endless run."""
        serve_and_die(machine, "sleep", "600", run_s=2)
        assert machine.until(lambda: machine.programs() == [])  # nobody observes
        assert machine.until(lambda: machine.supervisors() == {})
        assert watcher.told(FactKind.GONE, 0)
        assert last(watcher, FactKind.EXITED).at_deadline

    def test_what_ended_meanwhile_is_told(self, machine: LocalMachine, watcher: Watcher) -> None:
        """A run that succeeded while the server was down would count as lost."""
        serve_and_die(machine, "sh", "-c", "exit 4")
        assert machine.until(lambda: machine.supervisors() == {})
        watcher.look()
        assert [(f.kind, f.code) for f in watcher.facts] == [(FactKind.EXITED, 4), (FactKind.GONE, None)]

    def test_a_record_without_a_supervisor_is_taken_up(
        self, machine: LocalMachine, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A server killed between the record and the start would leave an order that never starts."""
        wanted = order(machine, program=workload(exits=0))

        def killed(*_: object, **__: object) -> None:
            raise SystemExit

        monkeypatch.setattr("dws.backends.local.backend._start_supervisor", killed)
        with pytest.raises(SystemExit):
            machine.backend.provision(wanted)
        monkeypatch.undo()
        machine.restart()
        assert watcher.look() == ()
        machine.backend.provision(wanted)
        assert watcher.told(FactKind.GONE, 0)

    def test_what_is_released_before_it_began_never_begins(
        self, machine: LocalMachine, watcher: Watcher
    ) -> None:
        """A program would start on a host that is already given back."""
        record = Record(machine.state_dir / "instances", "101-1", 0)
        record.make({"pool": "local-cpu", "unit": 0}, {"boottime": process.boottime() + 600})
        machine.restart()
        assert machine.backend.release(order(machine)).state is DeliveryState.DELIVERED
        assert watcher.told(FactKind.GONE, 0)
        machine.backend.provision(order(machine, program=workload(exits=0)))
        late = subprocess.run(
            [sys.executable, "-m", "dws.backends.local.supervisor", str(record.path)], check=True, timeout=60
        )
        assert late.returncode == 0
        assert machine.supervisors() == {}
        assert machine.output() == ""


class TestSupervisorDies:
    def test_h03_it_is_lost_and_nothing_is_left(self, machine: LocalMachine, watcher: Watcher) -> None:
        """A run would look healthy for ever, or its workers go on with nobody to end them."""
        worker = ("sh", "-c", "setsid sleep 600 & setsid sh -c 'sleep 600' & sleep 600")
        watcher.provision(order(machine, program=Workload(command=worker)))
        assert machine.until(lambda: len(machine.programs()) >= 4)
        kill_supervisor(machine)
        assert watcher.told(FactKind.LOST, 0)
        assert machine.programs() == []
        assert last(watcher, FactKind.LOST).detail == "its supervisor died"
        assert (last(watcher, FactKind.LOST).pool, last(watcher, FactKind.LOST).unit) == ("local-cpu", 0)

    def test_nothing_runs_unsupervised_while_no_server_is_there(self, machine: LocalMachine) -> None:
        """A program without a supervisor would have no end until a server comes back."""
        serve_and_die(machine, "sleep", "600")
        assert machine.until(lambda: bool(machine.programs()))
        kill_supervisor(machine)
        assert machine.until(lambda: machine.programs() == [])

    def test_the_loss_is_told_to_every_later_server(self, machine: LocalMachine, watcher: Watcher) -> None:
        """A server that died before noting the loss would wait for the instance for ever."""
        watcher.provision(order(machine))
        kill_supervisor(machine)
        assert watcher.told(FactKind.LOST, 0)
        machine.restart()
        assert [f.kind for f in machine.backend.observe("").facts] == [FactKind.LOST]

    def test_i05_a_release_reaches_what_has_no_supervisor(
        self, machine: LocalMachine, watcher: Watcher
    ) -> None:
        """The host would be shown free while processes run on it, or never."""
        ignores = "trap '' TERM; while true; do sleep 1; done"
        wanted = order(machine, program=Workload(command=("sh", "-c", f'setsid sh -c "{ignores}" & wait')))
        watcher.provision(wanted)
        assert machine.until(lambda: len(machine.programs()) >= 2)
        kill_supervisor(machine)
        assert machine.until(lambda: machine.supervisors() == {})
        assert machine.programs() != []
        answers = [machine.backend.release(wanted)]
        while answers[-1].state is DeliveryState.UNDER_WAY:
            answers.append(machine.backend.release(wanted))
            time.sleep(0.02)
        assert machine.programs() == []
        assert watcher.told(FactKind.LOST, 0)

    def test_an_exit_already_seen_is_not_a_loss(self, machine: LocalMachine, watcher: Watcher) -> None:
        """A run that succeeded would be repeated because its supervisor died while clearing up."""
        leaves = ("sh", "-c", "setsid sh -c \"trap '' TERM; while true; do sleep 1; done\" & sleep 0.3")
        machine.backend.provision(order(machine, program=Workload(command=leaves), grace_s=600))
        assert watcher.told(FactKind.EXITED, 0)
        kill_supervisor(machine)
        assert watcher.told(FactKind.GONE, 0)
        assert watcher.ranks(FactKind.LOST) == []
        assert machine.programs() == []

    def test_another_process_with_its_pid_is_not_it(self, machine: LocalMachine, watcher: Watcher) -> None:
        """A dead supervisor would be believed alive because its pid was used again."""
        watcher.provision(order(machine))
        kill_supervisor(machine)
        assert machine.until(lambda: machine.supervisors() == {})
        claim = machine.directory() / "supervisor.json"
        claim.write_text(json.dumps(json.loads(claim.read_text()) | {"pid": os.getpid()}))
        machine.restart()
        assert watcher.told(FactKind.LOST, 0)

    def test_after_a_restart_of_the_machine_all_is_lost(
        self, machine: LocalMachine, watcher: Watcher
    ) -> None:
        """Runs that a power failure ended would be shown as running."""
        watcher.provision(order(machine))
        kill_supervisor(machine)
        assert machine.until(lambda: machine.supervisors() == {})
        claim = machine.directory() / "supervisor.json"
        before = {"pid": os.getpid(), "started": process.look(os.getpid()).started, "boot_id": "another"}  # type: ignore[union-attr]
        claim.write_text(json.dumps(before))
        machine.restart()
        assert watcher.told(FactKind.LOST, 0)
        assert last(watcher, FactKind.LOST).detail == "the machine was restarted"

    def test_one_that_cannot_start_says_why(
        self, machine: LocalMachine, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A broken installation would show as instances that take for ever."""
        broken = (sys.executable, "-c", "raise SystemExit('no such module')")
        monkeypatch.setattr("dws.backends.local.backend._SUPERVISOR", broken)
        machine.backend.provision(order(machine))
        assert watcher.told(FactKind.LOST, 0)
        assert last(watcher, FactKind.LOST).detail == "its supervisor did not start: no such module"


class TestOnce:
    def test_fifty_threads_and_two_servers_start_one(self, machine: LocalMachine, watcher: Watcher) -> None:
        """Impatient callers would run a program many times on one host."""
        other = machine.make()
        program = Workload(command=("sh", "-c", f"echo ran >> {machine.state_dir}/ran; sleep 600"))
        wanted = order(machine, program=program)
        gate = threading.Barrier(50)

        def ask(backend: LocalBackend) -> None:
            gate.wait()
            backend.provision(wanted)

        threads = [threading.Thread(target=ask, args=((machine.backend, other)[i % 2],)) for i in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert watcher.told(FactKind.RUNNING, 0)
        assert machine.until((machine.state_dir / "ran").exists)
        assert machine.until(lambda: sum(len(p) for p in machine.supervisors().values()) == 1)
        assert (machine.state_dir / "ran").read_text() == "ran\n"

    def test_a_key_that_has_run_does_not_run_again(self, machine: LocalMachine, watcher: Watcher) -> None:
        """A late repetition of a call would run a finished program a second time."""
        program = Workload(command=("sh", "-c", f"echo ran >> {machine.state_dir}/ran"))
        wanted = order(machine, program=program)
        machine.backend.provision(wanted)
        assert watcher.told(FactKind.GONE, 0)
        machine.restart()
        assert machine.backend.provision(wanted).state is DeliveryState.UNDER_WAY
        assert machine.until(lambda: machine.supervisors() == {})
        assert (machine.state_dir / "ran").read_text() == "ran\n"


class TestKept:
    def test_the_past_is_bounded(self, tmp_path: Path) -> None:
        """Outputs of years would fill the disk."""
        with a_local_machine(tmp_path, keep_instances=2) as machine:
            watcher = Watcher(machine)
            for number in range(4):
                key = f"{number}-1"
                machine.backend.provision(order(machine, key, program=workload(exits=0)))
                assert watcher.told(FactKind.GONE, 0, key=key)
            assert sorted(p.name for p in (tmp_path / "instances").iterdir()) == ["2-1", "3-1"]
            with pytest.raises(NotFound):
                machine.output("1-1")
            assert machine.output("2-1") == ""

    def test_so_is_what_was_printed(self, tmp_path: Path) -> None:
        """A few chatty programs would fill the disk."""
        with a_local_machine(tmp_path, keep_output_mb=1) as machine:
            watcher = Watcher(machine)
            for number in range(3):
                chatty = Workload(command=python("print('x' * 600_000)"))
                machine.backend.provision(order(machine, f"{number}-1", program=chatty))
                assert watcher.told(FactKind.GONE, 0, key=f"{number}-1")
            assert [p.name for p in (tmp_path / "instances").iterdir()] == ["2-1"]

    def test_forgetting_spares_what_runs(self, machine: LocalMachine, watcher: Watcher) -> None:
        """Clearing up an array's first element would end the second."""
        watcher.provision(order(machine, ranks=(0,), size=2))
        machine.backend.provision(order(machine, ranks=(1,), size=2, program=workload(exits=0)))
        assert watcher.told(FactKind.GONE, 1)
        machine.backend.forget("101-1")
        assert machine.existing() == {("101-1", 0)}
        assert not machine.directory(rank=1).exists()

    def test_hundreds_of_finished_instances_cost_nothing(
        self, machine: LocalMachine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Looking would become slower with every run there ever was."""
        root = machine.state_dir / "instances"
        for number in range(300):
            record = Record(root, f"{number}-1", 0)
            record.make({"pool": "local-cpu", "unit": 0}, {"boottime": 0.0})
            record.claim({"pid": 0, "started": 0, "boot_id": ""})
            record.set_status({"state": "gone", "code": 0, "started_at": NOW})
        machine.restart()
        seen = machine.backend.observe("")
        assert len(seen.facts) == 600
        monkeypatch.setattr(Record, "read", lambda *_: pytest.fail("a finished instance was read again"))
        assert machine.backend.observe(seen.cursor).facts == ()
        assert len(machine.backend.observe("").facts) == 600


class TestTrouble:
    def test_h11_a_full_disk_is_trouble_that_may_pass(
        self, machine: LocalMachine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A full disk would fail requests for good instead of making them wait."""

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device", "order.json")

        monkeypatch.setattr("dws.backends.local.record.write", full)
        monkeypatch.setattr("dws.backends.local.meeting.write", full)
        with pytest.raises(BackendUnavailable, match=r"order\.json: No space left"):
            machine.backend.provision(order(machine))
        monkeypatch.undo()
        assert not machine.directory().exists()
        Watcher(machine).provision(order(machine))

    def test_a_misspelt_policy_is_refused(self, tmp_path: Path) -> None:
        """A typing error would switch a protection off."""
        with pytest.raises(InvalidArgument, match="'igonre' is neither"):
            LocalBackend(tmp_path, lambda: NOW, foreign_process="igonre")
