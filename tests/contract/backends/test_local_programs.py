"""What a program on this machine is given, and what is kept of it. Real processes throughout."""

from __future__ import annotations

import json
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dws.backends.local import nvml
from dws.engine.ports import DeliveryState, FactKind, OrderRejected
from dws.model.request import Workload
from dws.model.resources import MachineShape
from tests.contract.backends.kit import Watcher, order
from tests.contract.backends.local_machine import NOW, LocalMachine, a_local_machine, python

SHOW = "import json, os; print(json.dumps(dict(os.environ)))"

MEET = """
import os, socket, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    with socket.create_server(place) as server:
        for _ in range(size - 1):
            peer, _ = server.accept()
            with peer:
                print("met", peer.recv(100).decode(), flush=True)
                peer.sendall(b"welcome")
else:
    for _ in range(300):
        try:
            peer = socket.create_connection(place)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    with peer:
        peer.sendall(b"rank %d" % rank)
        print("heard", peer.recv(100).decode())
"""


@pytest.fixture
def watcher(machine: LocalMachine) -> Watcher:
    return Watcher(machine)


def run(
    machine: LocalMachine, watcher: Watcher, *command: str, key: str = "101-1", **workload: object
) -> int:
    """Run a program to its end; its status."""
    program = Workload(command=command, **workload)  # type: ignore[arg-type]
    machine.backend.provision(order(machine, key, program=program))
    assert watcher.told(FactKind.GONE, 0, key=key)
    return next(f.code for f in watcher.facts if f.kind is FactKind.EXITED and f.key == key) or 0


def use_accelerators(machine: LocalMachine) -> None:
    machine.pool = "local-accelerators"
    machine.shape = MachineShape(name="local-1g", accelerator="nvidia-h100-80gb", accelerators=1)
    machine.hosts = tuple(f"local-{i}" for i in range(4))


def test_a_program_knows_who_it_is(machine: LocalMachine, watcher: Watcher) -> None:
    """A distributed program could not start without being told its rank and size by hand."""
    program = Workload(command=python(SHOW), environment={"MINE": "yes", "DWS_RANK": "7"})
    machine.backend.provision(order(machine, ranks=(0, 1), program=program))
    assert watcher.told(FactKind.GONE, 0, 1)
    seen = json.loads(machine.output(rank=1))
    assert (
        seen
        | {
            "RANK": "1",
            "WORLD_SIZE": "2",
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "NODE_RANK": "1",
            "NNODES": "2",
            "MASTER_ADDR": "127.0.0.1",
            "PET_NNODES": "2",
            "PET_NODE_RANK": "1",
            "PET_NPROC_PER_NODE": "1",
            "PET_MASTER_ADDR": "127.0.0.1",
            "DWS_REQUEST": "train",
            "DWS_REQUEST_ID": "101",
            "DWS_PROJECT": "research",
            "DWS_RANK": "1",
            "DWS_SIZE": "2",
            "DWS_DEADLINE": "2027-01-15T08:10:00Z",
            "DWS_DEADLINE_EPOCH": str(NOW + 600),
            "DWS_DEADLINE_FILE": str(machine.directory(rank=1) / "deadline"),
            "MINE": "yes",
        }
        == seen
    )
    assert seen["PET_MASTER_PORT"] == seen["MASTER_PORT"]
    assert json.loads(machine.output(rank=0))["MASTER_PORT"] == seen["MASTER_PORT"]


def test_the_servers_secrets_are_not_inherited(
    machine: LocalMachine, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone who may run a program could read the server's tokens."""
    monkeypatch.setenv("DWS_TOKEN", "secret")
    monkeypatch.setenv("CLOUD_SECRET_KEY", "secret")
    run(machine, watcher, *python(SHOW))
    seen = json.loads(machine.output())
    assert "secret" not in seen.values()
    assert seen["PATH"]


def test_c09_cpu_only_work_sees_no_accelerator(machine: LocalMachine, watcher: Watcher) -> None:
    """CPU-only work would take an accelerator that is promised to somebody else."""
    run(machine, watcher, *python(SHOW), environment={"CUDA_VISIBLE_DEVICES": "0"})
    seen = json.loads(machine.output())
    assert seen["CUDA_VISIBLE_DEVICES"] == ""
    assert seen["NVIDIA_VISIBLE_DEVICES"] == ""


def test_each_unit_sees_its_own_accelerator(machine: LocalMachine, watcher: Watcher) -> None:
    """Two programs would share an accelerator while another stands idle."""
    use_accelerators(machine)
    machine.backend.provision(order(machine, ranks=(1, 3), program=Workload(command=python(SHOW))))
    assert watcher.told(FactKind.GONE, 1, 3)
    seen = {r: json.loads(machine.output(rank=r))["CUDA_VISIBLE_DEVICES"] for r in (1, 3)}
    assert seen == {1: "1", 3: "3"}


def test_a_gang_meets_at_its_master_port(machine: LocalMachine, watcher: Watcher) -> None:
    """No distributed training would get past its first call."""
    machine.backend.provision(order(machine, ranks=range(3), program=Workload(command=python(MEET))))
    assert watcher.told(FactKind.GONE, 0, 1, 2)
    assert {f.code for f in watcher.facts if f.kind is FactKind.EXITED} == {0}
    assert sorted(machine.output(rank=0).splitlines()) == ["met rank 1", "met rank 2"]
    assert machine.output(rank=2) == "heard welcome\n"


def test_two_gangs_meet_at_different_ports(machine: LocalMachine, watcher: Watcher) -> None:
    """Processes of one training would join another's, and a replacement would find nobody."""
    for key, rank in (("101-1", 0), ("102-1", 1), ("101-1-1", 2)):
        machine.backend.provision(order(machine, key, ranks=(rank,), program=Workload(command=python(SHOW))))
    for key, rank in (("101-1", 0), ("102-1", 1), ("101-1-1", 2)):
        assert watcher.told(FactKind.GONE, rank, key=key)
    ports = [
        json.loads(machine.output(key, rank))["MASTER_PORT"]
        for key, rank in (("101-1", 0), ("102-1", 1), ("101-1-1", 2))
    ]
    assert ports[0] == ports[2] != ports[1]


@pytest.mark.skipif(shutil.which("torchrun") is None, reason="not run: torchrun is not installed")
def test_torchrun_needs_no_options(machine: LocalMachine, watcher: Watcher, tmp_path: Path) -> None:
    """People would have to spell out nodes, rank and address that the environment already has."""
    script = tmp_path / "all_reduce.py"
    script.write_text(
        "import torch, torch.distributed as d\n"
        "d.init_process_group('gloo')\n"
        "t = torch.ones(1)\n"
        "d.all_reduce(t)\n"
        "print('sum', int(t.item()))\n"
    )
    program = Workload(command=("torchrun", str(script)))
    machine.backend.provision(order(machine, ranks=(0, 1), program=program))
    assert watcher.told(FactKind.GONE, 0, 1)
    assert "sum 2" in machine.output(rank=1)


def test_d07_exit_statuses_are_those_of_a_shell(machine: LocalMachine, watcher: Watcher) -> None:
    """Nobody could tell a failed program from one that ran out of memory."""
    assert run(machine, watcher, "sh", "-c", "exit 7", key="1-1") == 7
    assert run(machine, watcher, "sh", "-c", "kill -9 $$", key="2-1") == 137
    assert run(machine, watcher, "no-such-program", key="3-1") == 127
    assert "no-such-program: No such file" in machine.output("3-1")


def test_a_program_runs_in_its_directory(machine: LocalMachine, watcher: Watcher, tmp_path: Path) -> None:
    """Relative paths would mean something else than where the request was made."""
    place = tmp_path / "work"
    place.mkdir()
    run(machine, watcher, "pwd", directory=str(place))
    assert machine.output().strip() == str(place)


def test_a_directory_that_is_not_there_is_refused_for_good(machine: LocalMachine) -> None:
    """Each attempt would fail anew, for a reason nobody is told."""
    program = Workload(command=("true",), directory="/no/such/place")
    with pytest.raises(OrderRejected, match="'/no/such/place' is not a directory"):
        machine.backend.provision(order(machine, program=program))
    assert machine.supervisors() == {}


def test_a_program_is_not_in_its_supervisors_clothes(machine: LocalMachine, watcher: Watcher) -> None:
    """Programs would inherit ignored signals, open files or a strange umask, and behave as nowhere else."""
    source = (
        "import os, signal\n"
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, len(os.listdir('/proc/self/fd')))\n"
        "print(open('/proc/self/status').read())\n"
        "print('umask', oct(os.umask(0)))"
    )
    run(machine, watcher, *python(source))
    told = machine.output()
    assert told.startswith("True 4\n")  # three, and the one that lists them
    assert "SigBlk:\t0000000000000000" in told
    assert "umask 0o22" in told


def test_output_is_bounded_and_its_end_is_kept(tmp_path: Path) -> None:
    """One chatty program would fill the disk, or the reason why it failed would be the part cut off."""
    with a_local_machine(tmp_path, output_max_mb=1) as machine:
        source = "print('\\n'.join(f'line {i}' for i in range(400_000)))"
        run(machine, Watcher(machine), *python(source))
        lines = machine.output().splitlines()
        kept = sum(len(line) + 1 for line in lines)
    assert kept < 1_000_000 + 70_000
    assert lines[0] == "line 0"
    assert lines[-1] == "line 399999"
    assert "[dws: the output limit is reached; only the end will follow]" in lines
    assert any(line.startswith("[dws: ") and line.endswith(" bytes left out]") for line in lines)


def test_nobody_else_can_read_a_programs_environment(machine: LocalMachine, watcher: Watcher) -> None:
    """Another user of the machine could read the tokens a program was given."""
    run(machine, watcher, "true", environment={"HF_TOKEN": "secret"})
    instances = machine.state_dir / "instances"
    for path in (instances, *instances.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == 0, f"{path} has mode {mode:o}"
    secret = next(p for p in instances.rglob("*") if p.is_file() and b"secret" in p.read_bytes())
    assert secret.name == "order.json"


class TestHealthCheck:
    """A command that must succeed on the unit before the user's program starts."""

    @pytest.fixture
    def checked(self, tmp_path: Path) -> Iterator[LocalMachine]:
        check = python(
            "import os, subprocess, sys, time\n"
            "print('looking at', os.environ['CUDA_VISIBLE_DEVICES'] or 'nothing')\n"
            f"what = open({str(tmp_path / 'health')!r}).read()\n"
            "subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
            "time.sleep(600) if what == 'hangs' else sys.exit(what or 0)\n"
        )
        with a_local_machine(tmp_path, health_check=check, health_check_timeout_s=2) as machine:
            yield machine

    def test_h06_a_failed_check_says_what_it_saw(self, checked: LocalMachine, tmp_path: Path) -> None:
        """The user's program would start on a broken accelerator and take the blame."""
        use_accelerators(checked)
        (tmp_path / "health").write_text("XID 79")
        watcher = Watcher(checked)
        touched = tmp_path / "started"
        program = Workload(command=("touch", str(touched)))
        checked.backend.provision(order(checked, ranks=(2,), program=program))
        assert watcher.told(FactKind.GONE, 2)
        failed = next(f for f in watcher.facts if f.kind is FactKind.FAILED_CHECK)
        assert (failed.pool, failed.unit) == ("local-accelerators", 2)
        assert "status 1: looking at 2" in failed.detail
        assert "XID 79" in failed.detail
        assert watcher.ranks(FactKind.RUNNING) == []
        assert not touched.exists()

    def test_a_passed_check_leaves_nothing_behind(self, checked: LocalMachine, tmp_path: Path) -> None:
        """What the check started would run beside the program, and its words stand in the program's log."""
        (tmp_path / "health").write_text("")
        watcher = Watcher(checked)
        program = Workload(command=("sleep", "600"))
        watcher.provision(order(checked, program=program))
        assert len(checked.programs()) == 1
        assert checked.output() == ""

    def test_d08_a_check_has_a_limit_of_its_own(self, checked: LocalMachine, tmp_path: Path) -> None:
        """A check that hangs would be seen only when the set-up limit is over, and blamed on set-up."""
        (tmp_path / "health").write_text("hangs")
        watcher = Watcher(checked)
        checked.backend.provision(order(checked))
        assert watcher.told(FactKind.FAILED_CHECK, 0)
        failed = next(f for f in watcher.facts if f.kind is FactKind.FAILED_CHECK)
        assert failed.detail == "no answer in 2 s: looking at nothing"
        assert watcher.told(FactKind.GONE, 0)

    def test_a_check_can_be_interrupted(self, checked: LocalMachine, tmp_path: Path) -> None:
        """Cancelling would wait for the check, and report a broken host where there is none."""
        (tmp_path / "health").write_text("hangs")
        watcher = Watcher(checked)
        wanted = order(checked)
        checked.backend.provision(wanted)
        assert checked.until(lambda: bool(checked.programs()))
        watcher.release(wanted, hard=True)
        assert watcher.ranks(FactKind.FAILED_CHECK) == []


class TestForeignProcess:
    """Somebody computes on an accelerator that is to be given away."""

    @pytest.fixture
    def occupied(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(nvml, "computing_on", lambda device: (1,) if device == "1" else ())

    @pytest.mark.usefixtures("occupied")
    def test_h08_a_half_used_accelerator_is_refused(self, machine: LocalMachine) -> None:
        """The owner of a run would silently get half an accelerator."""
        use_accelerators(machine)
        answer = machine.backend.provision(order(machine, ranks=(0, 1)))
        assert answer.state is DeliveryState.FAILED
        assert answer.may_retry
        assert answer.bad_hosts == (1,)
        assert answer.cause == "process 1 of user root computes on accelerator 1"
        assert machine.supervisors() == {}

    @pytest.mark.usefixtures("occupied")
    def test_h08_it_may_be_ignored(self, tmp_path: Path) -> None:
        """A desktop whose screen is drawn by the same accelerator could not be used at all."""
        with a_local_machine(tmp_path, foreign_process="ignore") as machine:
            use_accelerators(machine)
            Watcher(machine).provision(order(machine, ranks=(0, 1)))

    def test_our_own_processes_are_no_strangers(
        self, machine: LocalMachine, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A part of a gang started later would be refused because of the part that runs."""
        use_accelerators(machine)
        program = Workload(command=("sleep", "600"))
        watcher.provision(order(machine, ranks=(0,), size=2, program=program))
        monkeypatch.setattr(nvml, "computing_on", lambda device: tuple(machine.programs()))
        assert machine.programs()
        watcher.provision(order(machine, ranks=(0, 1), program=program))


def test_the_interpreter_is_this_one(machine: LocalMachine, watcher: Watcher) -> None:
    """A command of the server's own environment would not be found."""
    run(machine, watcher, sys.executable, "-c", "import sys; print(sys.executable)")
    assert machine.output().strip() == sys.executable
