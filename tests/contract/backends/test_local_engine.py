"""The engine and the local backend together on the real clock: how a run's end is named. Real processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dws.bootstrap import Settings, System, open_system
from dws.engine.commands import Submit
from dws.model.access import SYSTEM
from dws.model.demand import Alternative, Demand
from dws.model.request import CapacityRequest, EndReason, RequestState, Workload
from tests.contract.backends.local_machine import PATIENCE_S, LocalMachine

RUN_S = 3


@contextmanager
def a_server(machine: LocalMachine) -> Iterator[System]:
    """A server on this machine alone; it stops when the block ends, its programs do not."""
    system = open_system(Settings(state_dir=machine.state_dir))
    machine.answers_for(observer.backend for observer in system.engine.observers)
    system.start()
    try:
        yield system
    finally:
        system.close()


def submit(system: System, *command: str, count: int = 1, name: str = "run") -> None:
    one = Alternative(shape="local-cpu", count=count, duration_s=RUN_S)
    workload = Workload(command=command)
    system.engine.submit(
        SYSTEM, Submit(project="p", name=name, demand=Demand(alternatives=(one,)), workload=workload)
    )


def request(system: System, name: str = "run") -> CapacityRequest:
    return system.engine.get(SYSTEM, "p", name).request


def until(holds: Callable[[], bool]) -> bool:
    give_up = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True


def test_a_run_that_reaches_its_duration_is_completed(machine: LocalMachine) -> None:
    """A run that used all its time would be reported as failed with status 143, or as a lost host."""
    with a_server(machine) as system:
        submit(system, "sleep", "600", name="program")
        submit(system, name="hold")
        for name in ("program", "hold"):
            assert until(lambda name=name: request(system, name).state.is_terminal)
            done = request(system, name)
            assert (done.state, done.end_reason) == (RequestState.COMPLETED, EndReason.DURATION_REACHED)


def test_the_end_is_the_same_when_no_server_saw_it(machine: LocalMachine) -> None:
    """Stopping the server over night would turn every run of the night into a failure."""
    with a_server(machine) as system:
        submit(system, "sleep", "600", name="program")
        submit(system, name="hold")
        assert until(lambda: request(system, "hold").state is RequestState.ACTIVE)
        assert until(lambda: request(system, "program").state is RequestState.ACTIVE)
    assert machine.until(lambda: machine.supervisors() == {})
    with a_server(machine) as system:
        for name in ("program", "hold"):
            assert until(lambda name=name: request(system, name).state.is_terminal)
            done = request(system, name)
            assert (done.state, done.end_reason) == (RequestState.COMPLETED, EndReason.DURATION_REACHED)


def test_d07_a_failed_program_ends_the_run_once(machine: LocalMachine) -> None:
    """A program that fails would be started again and again, or its run go on with nobody in it."""
    with a_server(machine) as system:
        submit(system, "sh", "-c", f"echo ran >> {machine.state_dir}/ran; exit 1")
        assert until(lambda: request(system).state.is_terminal)
        assert request(system).end_reason is EndReason.PROGRAM_FAILED
        assert (machine.state_dir / "ran").read_text() == "ran\n"
