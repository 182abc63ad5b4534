"""The one writer when the server stops: what was queued is written, and nobody waits for what will not be."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dws.backends.simulated.backend import SimulatedBackend
from dws.engine.app import Engine
from dws.engine.clock import VirtualClock
from dws.engine.commands import Submit
from dws.engine.loop import CallerPool, Loop
from dws.engine.ports import Order, RequestQuery
from dws.engine.write import Write
from dws.model.access import SYSTEM
from dws.model.catalog import MACHINE_TYPES
from dws.model.demand import Alternative, Demand
from dws.model.errors import Unavailable
from dws.model.request import RequestState
from dws.model.resources import Overheads
from dws.model.topology import Fleet, Pool, Zone
from dws.store.memory import MemoryStore


def test_who_comes_while_the_writer_stops_is_told_so_at_once() -> None:
    """A server that is told to stop would go on for a minute, waiting for a call that nobody will answer."""
    committer = Engine(store=MemoryStore(), backends={}, clock=VirtualClock(1_000)).committer
    committer.start()
    begun, go_on = threading.Event(), threading.Event()

    def slow(w: Write) -> int:
        begun.set()
        go_on.wait(10)
        return w.now

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(committer.write, slow, actor="first")
        assert begun.wait(10)
        stopped = pool.submit(committer.stop)
        while committer._queue.empty():  # the word to stop
            pass
        late = pool.submit(committer.write, lambda w: w.now, actor="late")
        while committer._queue.qsize() < 2:
            pass
        go_on.set()
        assert first.result(10) == 1_000
        stopped.result(10)
        with pytest.raises(Unavailable, match="is stopping"):
            late.result(10)


class Watched(SimulatedBackend):
    """Remembers by when it was told that orders end."""

    def __init__(self) -> None:
        super().__init__(boot_s=10)
        self.told: dict[str, int] = {}

    def set_deadline(self, order: Order) -> None:
        self.told[order.key] = order.runs_until


def test_a_deadline_that_is_known_is_told_before_the_server_stops() -> None:
    """A run that begins as the server is told to stop would go on a minute longer than was asked for."""
    pool = Pool(
        name="p",
        zone="z",
        shape=MACHINE_TYPES["e2-standard-4"],
        backend="simulated",
        hosts=("h",),
        overheads=Overheads(setup_s=60),
    )
    store, backend, clock = MemoryStore(), Watched(), VirtualClock(1_000)
    callers = CallerPool(lambda where, error: None)
    engine = Engine(store=store, backends={"simulated": backend}, clock=clock)
    engine.open()
    engine.apply_fleet(SYSTEM, Fleet(zones=(Zone(name="z"),), pools=(pool,)), confirm=True)
    one = Alternative(shape="e2-standard-4", count=1, duration_s=30)
    engine.submit(SYSTEM, Submit(project="p", name="run", demand=Demand(alternatives=(one,))))
    engine.tick()
    clock.jump_to(1_010)
    backend.advance(1_010)
    engine.observers[0].observe()
    with store.read() as reader:
        (active,) = reader.requests(RequestQuery())
    assert active.state is RequestState.ACTIVE and not backend.told
    faults: list[BaseException] = []
    Loop(engine, lambda where, error: faults.append(error), callers).stop()
    assert backend.told == {f"{active.id}-1": 1_040} and not faults
