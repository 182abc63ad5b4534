"""How a run on this machine ends: in time, softly first, and with everything it started. Real processes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from dws.backends.local import process
from dws.backends.local.record import Record
from dws.engine.ports import Fact, FactKind
from dws.model.request import Workload
from tests.contract.backends.kit import Watcher, order
from tests.contract.backends.local_machine import NOW, LocalMachine, python

SAVES_ITS_WORK = python(
    "import signal, sys, time\n"
    "def save(*_):\n"
    "    print('saved', flush=True)\n"
    "    sys.exit(0)\n"
    "signal.signal(signal.SIGTERM, save)\n"
    "print('ready', flush=True)\n"
    "time.sleep(600)"
)
DOES_NOT_LISTEN = python(
    "import signal, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: print('no', flush=True))\n"
    "print('ready', flush=True)\n"
    "while True: time.sleep(600)"
)
LAUNCHER = python(
    "import subprocess, sys, time\n"
    "worker = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); '\\\n"
    "         'print(\"ready\", flush=True); time.sleep(600)'\n"
    "middle = 'import subprocess, sys; subprocess.Popen([sys.executable, \"-c\", sys.argv[1]], '\\\n"
    "         'start_new_session=True, env={})'\n"
    "subprocess.run([sys.executable, '-c', middle, worker], start_new_session=True)\n"
    "time.sleep(600)"
)


@pytest.fixture
def watcher(machine: LocalMachine) -> Watcher:
    return Watcher(machine)


class Stopwatch:
    """Seconds on the boot-time clock since it was made."""

    def __init__(self) -> None:
        self._start = process.boottime()

    def __call__(self) -> float:
        return process.boottime() - self._start


def ready(machine: LocalMachine, rank: int = 0) -> Callable[[], bool]:
    return lambda: "ready" in machine.output(rank=rank)


def the(watcher: Watcher, kind: FactKind) -> Fact:
    return next(f for f in watcher.facts if f.kind is kind)


def test_i01_the_signal_comes_before_the_end(machine: LocalMachine, watcher: Watcher) -> None:
    """A training would be killed without the minutes it asked for to save itself."""
    program = Workload(command=SAVES_ITS_WORK, signal_before_s=57)
    clock = Stopwatch()
    machine.backend.provision(order(machine, program=program, run_s=60))
    assert watcher.told(FactKind.EXITED, 0)
    assert 3.0 <= clock() < 13.0
    exited = the(watcher, FactKind.EXITED)
    assert exited.code == 0
    assert not exited.at_deadline
    assert machine.output() == "ready\nsaved\n"


def test_i01_without_it_the_soft_stop_is_at_the_end(machine: LocalMachine, watcher: Watcher) -> None:
    """A run would be stopped early, or not at all while no server is there."""
    clock = Stopwatch()
    machine.backend.provision(order(machine, program=Workload(command=SAVES_ITS_WORK), run_s=2))
    assert watcher.told(FactKind.GONE, 0)
    assert 2.0 <= clock() < 12.0
    exited = the(watcher, FactKind.EXITED)
    assert exited.code == 0
    assert exited.at_deadline
    assert "saved" in machine.output()


def test_i02_who_does_not_listen_is_killed_after_the_grace(machine: LocalMachine, watcher: Watcher) -> None:
    """The next run on the host would start late, whenever this one feels like ending."""
    clock = Stopwatch()
    wanted = order(machine, program=Workload(command=DOES_NOT_LISTEN), run_s=2, grace_s=1)
    machine.backend.provision(wanted)
    assert watcher.told(FactKind.GONE, 0)
    assert 3.0 <= clock() < 13.0
    assert the(watcher, FactKind.EXITED).code == 137
    assert machine.output() == "ready\nno\n"


def test_i02_a_warned_program_is_stopped_at_the_end(machine: LocalMachine, watcher: Watcher) -> None:
    """A program that goes on after its early signal would run past its end."""
    program = Workload(command=DOES_NOT_LISTEN, signal_before_s=1)
    machine.backend.provision(order(machine, program=program, run_s=4, grace_s=1))
    assert watcher.told(FactKind.GONE, 0)
    assert machine.output() == "ready\nno\nno\n"
    assert the(watcher, FactKind.EXITED).at_deadline


def test_e07_a_host_whose_clock_is_wrong_ends_a_run_by_what_remains_of_it(
    machine: LocalMachine, watcher: Watcher
) -> None:
    """A host five minutes behind would run on into the next reservation, one ahead would end at once."""
    assert abs(time.time() - NOW) > 300, "this machine's clock and the scheduler's are far apart"
    clock = Stopwatch()
    machine.backend.provision(order(machine, program=Workload(command=SAVES_ITS_WORK), run_s=3))
    assert watcher.told(FactKind.GONE, 0)
    assert 3.0 <= clock() < 13.0
    assert the(watcher, FactKind.EXITED).at_deadline


def test_a_hold_ends_at_its_deadline(machine: LocalMachine, watcher: Watcher) -> None:
    """Capacity held without a program would never come back while no server is there."""
    machine.backend.provision(order(machine, run_s=1))
    assert watcher.told(FactKind.GONE, 0)
    assert the(watcher, FactKind.GONE).at_deadline
    assert FactKind.EXITED not in {f.kind for f in watcher.facts}


def test_processes_in_sessions_of_their_own_end_too(machine: LocalMachine, watcher: Watcher) -> None:
    """Workers of a launcher would go on computing on accelerators that are given to somebody else."""
    wanted = order(machine, program=Workload(command=LAUNCHER), grace_s=1)
    machine.backend.provision(wanted)
    assert machine.until(ready(machine))
    (supervisor,) = machine.supervisors()["101-1", 0]
    below = process.descendants(supervisor)
    assert len(below) == 2  # the launcher, and a worker that nothing but descent connects with it
    assert len({p.session for p in below}) == 2
    watcher.release(wanted)
    assert [p.pid for p in below if process.is_alive(p.identity)] == []


def test_what_a_program_leaves_behind_ends_with_it(machine: LocalMachine, watcher: Watcher) -> None:
    """A host would be free by the books with something still running on it."""
    left = ("sh", "-c", "setsid sleep 600 & exit 5")
    machine.backend.provision(order(machine, program=Workload(command=left), grace_s=1))
    assert watcher.told(FactKind.GONE, 0)
    assert the(watcher, FactKind.EXITED).code == 5
    assert machine.programs() == []


def test_a_release_is_soft_first(machine: LocalMachine, watcher: Watcher) -> None:
    """Giving back early would cost the work since the last checkpoint."""
    wanted = order(machine, program=Workload(command=SAVES_ITS_WORK))
    machine.backend.provision(wanted)
    assert machine.until(ready(machine))
    watcher.release(wanted)
    assert "saved" in machine.output()
    assert not the(watcher, FactKind.EXITED).at_deadline


def test_a_hard_release_cuts_the_grace_short(machine: LocalMachine, watcher: Watcher) -> None:
    """An operator who needs the host now would have to wait for a program that does not listen."""
    wanted = order(machine, program=Workload(command=DOES_NOT_LISTEN), grace_s=600)
    machine.backend.provision(wanted)
    assert machine.until(ready(machine))
    machine.backend.release(wanted)
    assert machine.until(lambda: "no" in machine.output())
    clock = Stopwatch()
    watcher.release(wanted, hard=True)
    assert clock() < 10.0
    assert the(watcher, FactKind.EXITED).code == 137


def test_a_soft_release_does_not_take_back_a_hard_one(machine: LocalMachine, watcher: Watcher) -> None:
    """Calls that arrive out of order would bring the grace back."""
    wanted = order(machine, program=Workload(command=DOES_NOT_LISTEN), grace_s=600)
    machine.backend.provision(wanted)
    assert machine.until(ready(machine))
    machine.backend.release(wanted, hard=True)
    machine.backend.release(wanted)
    assert watcher.told(FactKind.GONE, 0)


def test_i03_an_extension_moves_the_end(machine: LocalMachine, watcher: Watcher) -> None:
    """An extension that was granted would not keep the program alive."""
    wanted = order(machine, program=Workload(command=SAVES_ITS_WORK), run_s=2)
    clock = Stopwatch()
    machine.backend.provision(wanted)
    machine.backend.set_deadline(replace(wanted, runs_until=NOW + 4))
    assert watcher.told(FactKind.GONE, 0)
    assert 4.0 <= clock() < 14.0


def test_i04_delivery_sets_the_end(machine: LocalMachine, watcher: Watcher) -> None:
    """What a gang did not need of its set-up time would be added to its run."""
    wanted = order(machine, program=Workload(command=SAVES_ITS_WORK), run_s=600)
    watcher.provision(wanted)
    machine.backend.set_deadline(replace(wanted, runs_until=NOW + 1))
    assert watcher.told(FactKind.GONE, 0)


def test_an_extension_moves_the_early_signal(machine: LocalMachine, watcher: Watcher) -> None:
    """A program would save itself and leave although it was given more time."""
    program = Workload(command=SAVES_ITS_WORK, signal_before_s=60)
    wanted = order(machine, program=program, run_s=62)
    clock = Stopwatch()
    machine.backend.provision(wanted)
    machine.backend.set_deadline(replace(wanted, runs_until=NOW + 64))
    assert watcher.told(FactKind.EXITED, 0)
    assert 4.0 <= clock() < 14.0


def test_more_time_brings_another_early_signal(machine: LocalMachine, watcher: Watcher) -> None:
    """A program that was given more time after its signal would not be told of its second end."""
    program = Workload(command=DOES_NOT_LISTEN, signal_before_s=60)
    wanted = order(machine, program=program, run_s=63)
    machine.backend.provision(wanted)
    assert machine.until(lambda: machine.output() == "ready\nno\n")
    machine.backend.set_deadline(replace(wanted, runs_until=NOW + 66))
    assert machine.until(lambda: machine.output() == "ready\nno\nno\n")
    watcher.release(wanted, hard=True)


def test_a_program_can_read_its_end(machine: LocalMachine, watcher: Watcher) -> None:
    """A training could not plan its last checkpoint, nor notice that it was given more time."""
    wanted = order(machine, program=Workload(command=("sh", "-c", 'cat "$DWS_DEADLINE_FILE"; sleep 600')))
    watcher.provision(wanted)
    assert machine.until(lambda: machine.output() != "")
    assert json.loads(machine.output()) | {"at": "2027-01-15T08:10:00Z", "epoch": NOW + 600} == json.loads(
        machine.output()
    )
    machine.backend.set_deadline(replace(wanted, runs_until=NOW + 1200))
    told = json.loads((machine.directory() / "deadline").read_text())
    assert told["epoch"] == NOW + 1200
    assert told["boottime"] == pytest.approx(process.boottime() + 1200, abs=30)


def test_a_step_of_the_wall_clock_ends_nothing(machine: LocalMachine, watcher: Watcher) -> None:
    """Setting the machine's time would end every run on it, or let them run on."""
    wanted = order(machine, program=Workload(command=SAVES_ITS_WORK), run_s=600)
    watcher.provision(wanted)
    deadline = machine.directory() / "deadline"
    stepped = json.loads(deadline.read_text()) | {"epoch": 1, "at": "1970-01-01T00:00:01Z"}
    Record.at(machine.directory()).set_deadline(stepped)  # by the wall clock, long over
    time.sleep(1.5)
    watcher.look()
    assert watcher.ranks(FactKind.EXITED) == []


def test_a_supervisor_that_is_asked_to_end_ends_its_program(machine: LocalMachine, watcher: Watcher) -> None:
    """A machine that shuts down would pull the plug without a word to programs that could save themselves."""
    machine.backend.provision(order(machine, program=Workload(command=SAVES_ITS_WORK)))
    assert machine.until(ready(machine))
    (supervisor,) = machine.supervisors()["101-1", 0]
    os.kill(supervisor, 15)
    assert watcher.told(FactKind.GONE, 0)
    assert "saved" in machine.output()


def test_a_hundred_children_end(machine: LocalMachine, watcher: Watcher) -> None:
    """A program that starts processes while it is being killed would escape."""
    forks = python(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "for i in range(100):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        while True:\n"
        "            time.sleep(0.25)\n"
        "            if os.fork() > 0: os._exit(0)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)"
    )
    wanted = order(machine, program=Workload(command=forks), grace_s=0)
    machine.backend.provision(wanted)
    assert machine.until(ready(machine))
    watcher.release(wanted)
    assert machine.programs() == []
