"""What every backend must do, whatever it runs on: subclass `BackendContract` and give it a harness.

    class TestMine(BackendContract):
        @pytest.fixture
        def harness(self) -> Iterator[Harness]: ...

A harness knows how to make the backend, how its time passes and what really exists. Workloads are written so
that real and simulated programs alike understand them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

import pytest

from dws.engine.ports import (
    Backend,
    Delivery,
    DeliveryState,
    Fact,
    FactKind,
    InstanceOrder,
    Order,
    SetsDeadlines,
    StreamsLogs,
)
from dws.model.errors import NotFound
from dws.model.request import Workload
from dws.model.resources import MachineShape

THREADS = 20


class Harness(Protocol):
    """One backend under test and the world around it."""

    backend: Backend
    pool: str
    shape: MachineShape
    hosts: tuple[str, ...]

    def now(self) -> int:
        """Domain time."""

    def until(self, holds: Callable[[], bool]) -> bool:
        """Let time pass until something holds; False when it does not within a reasonable time."""

    def existing(self) -> set[tuple[str, int]]:
        """(key, rank) of every instance that really exists, however the backend sees it."""

    def restart(self) -> None:
        """Replace `backend` by one that a new server would make, the world as it is."""


def workload(*, exits: int | None = None) -> Workload | None:
    """A program that ends at once with a status, or, without one, none: hold until released."""
    if exits is None:
        return None
    environment = {"DWS_SIM_RUN_S": "0", "DWS_SIM_EXIT": str(exits)}
    return Workload(command=("sh", "-c", "exit $DWS_SIM_EXIT"), environment=environment)


def order(
    harness: Harness,
    key: str = "101-1",
    *,
    ranks: Iterable[int] = (0,),
    size: int = 0,
    program: Workload | None = None,
    run_s: int = 600,
    grace_s: int = 5,
) -> Order:
    """An order for these ranks, rank i on unit i."""
    ranks = tuple(ranks)
    return Order(
        key=key,
        request=int(key.split("-")[0]),
        request_name="train",
        project="research",
        pool=harness.pool,
        zone="somewhere",
        shape=harness.shape,
        instances=tuple(InstanceOrder(rank=r, unit=r, host=harness.hosts[r]) for r in ranks),
        size=size or len(ranks),
        workload=program,
        environment={"DWS_REQUEST_ID": key.split("-")[0]},
        runs_until=harness.now() + run_s,
        duration_s=run_s,
        grace_s=grace_s,
        issued_at=harness.now(),
    )


class Watcher:
    """Observes as an engine does, and remembers; an answer to an order is news as well."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self.cursor = ""
        self.facts: list[Fact] = []

    def look(self) -> tuple[Fact, ...]:
        """What is new."""
        seen = self._harness.backend.observe(self.cursor)
        self.cursor = seen.cursor
        self.facts += seen.facts
        return seen.facts

    def ranks(self, kind: FactKind, key: str = "101-1") -> list[int]:
        """Ranks of an order of which this was told, in that order."""
        return [f.rank for f in self.facts if f.kind is kind and f.key == key]

    def told(self, kind: FactKind, *ranks: int, key: str = "101-1") -> bool:
        """Whether it is told of these ranks, looking again until it is."""

        def holds() -> bool:
            self.look()
            return set(ranks) <= set(self.ranks(kind, key))

        return self._harness.until(holds)

    def provision(self, wanted: Order) -> None:
        """Order, and wait until all of it is up."""
        answer = self._harness.backend.provision(wanted)
        assert answer.state in (DeliveryState.DELIVERED, DeliveryState.UNDER_WAY), answer.cause
        ranks = [i.rank for i in wanted.instances]
        assert answer.state is DeliveryState.DELIVERED or self.told(FactKind.RUNNING, *ranks, key=wanted.key)

    def release(self, wanted: Order, *, hard: bool = False) -> None:
        """Give back, and wait until all of it is gone."""
        answer = self._harness.backend.release(wanted, hard=hard)
        ranks = [i.rank for i in wanted.instances]
        assert answer.state is DeliveryState.DELIVERED or self.told(FactKind.GONE, *ranks, key=wanted.key)


class BackendContract:
    """The duties of `dws.engine.ports.Backend`."""

    @pytest.fixture
    def harness(self) -> Harness:
        raise NotImplementedError("a backend's tests say how to make it")

    @pytest.fixture
    def watcher(self, harness: Harness) -> Watcher:
        return Watcher(harness)

    def test_it_is_a_backend(self, harness: Harness) -> None:
        """The engine could not call it."""
        assert isinstance(harness.backend, Backend)
        assert harness.backend.name

    def test_every_instance_of_an_order_comes_up(self, harness: Harness, watcher: Watcher) -> None:
        """A gang would never be delivered, or believed to be without its hosts."""
        watcher.provision(order(harness, ranks=range(3)))
        assert harness.existing() == {("101-1", r) for r in range(3)}
        truth = harness.backend.observe("").facts
        assert {(f.kind, f.key, f.rank, f.pool, f.unit) for f in truth} == {
            (FactKind.RUNNING, "101-1", r, harness.pool, r) for r in range(3)
        }
        assert all(f.address for f in truth)

    def test_a_repeated_order_starts_nothing_twice(self, harness: Harness, watcher: Watcher) -> None:
        """A server that died between the call and its note of it would start the work again."""
        wanted = order(harness, ranks=range(2))
        watcher.provision(wanted)
        again = harness.backend.provision(wanted)
        assert again.state is not DeliveryState.FAILED
        watcher.look()
        assert len(harness.existing()) == 2
        assert len(watcher.ranks(FactKind.RUNNING)) <= 2

    def test_orders_repeated_at_the_same_time_start_one(self, harness: Harness, watcher: Watcher) -> None:
        """Two servers, or an impatient one, would run a program twice on one host."""
        wanted = order(harness)
        answers: list[Delivery] = []
        gate = threading.Barrier(THREADS)

        def ask() -> None:
            gate.wait()
            answers.append(harness.backend.provision(wanted))

        threads = [threading.Thread(target=ask) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == THREADS
        assert DeliveryState.FAILED not in {a.state for a in answers}
        watcher.provision(wanted)
        assert harness.existing() == {("101-1", 0)}

    @pytest.mark.parametrize("code", [0, 3])
    def test_the_exit_status_is_told(self, harness: Harness, watcher: Watcher, code: int) -> None:
        """A failed program would count as a success, or a success as failed."""
        harness.backend.provision(order(harness, program=workload(exits=code)))
        assert watcher.told(FactKind.EXITED, 0)
        assert {f.code for f in watcher.facts if f.kind is FactKind.EXITED} == {code}

    def test_what_is_given_back_is_confirmed_gone(self, harness: Harness, watcher: Watcher) -> None:
        """Hosts would stay booked for ever, or be given away while something runs on them."""
        wanted = order(harness, ranks=range(2))
        watcher.provision(wanted)
        watcher.release(wanted)
        assert harness.existing() == set()
        assert FactKind.RUNNING not in {f.kind for f in harness.backend.observe("").facts}

    def test_a_hard_release_ends_it_too(self, harness: Harness, watcher: Watcher) -> None:
        """There would be no way to end what does not listen."""
        wanted = order(harness, grace_s=600)
        watcher.provision(wanted)
        watcher.release(wanted, hard=True)
        assert harness.existing() == set()

    def test_a_second_release_is_harmless(self, harness: Harness, watcher: Watcher) -> None:
        """A repeated call after a lost answer would be an error, and the request stuck."""
        wanted = order(harness)
        watcher.provision(wanted)
        watcher.release(wanted)
        assert harness.backend.release(wanted).state is DeliveryState.DELIVERED

    def test_absent_is_success(self, harness: Harness) -> None:
        """A request could not end because what it wants to give back was never made."""
        assert harness.backend.release(order(harness, "404-1")).state is DeliveryState.DELIVERED

    def test_part_of_an_order_can_be_given_back(self, harness: Harness, watcher: Watcher) -> None:
        """Giving back one host would take the others along."""
        wanted = order(harness, ranks=range(3))
        watcher.provision(wanted)
        watcher.release(replace(wanted, instances=wanted.instances[1:2]))
        assert harness.existing() == {("101-1", 0), ("101-1", 2)}

    def test_a_replacement_is_an_instance_of_its_own(self, harness: Harness, watcher: Watcher) -> None:
        """A spare host would be taken for the lost one, or the lost one's end for its own."""
        watcher.provision(order(harness, ranks=range(2)))
        spare = replace(order(harness, "101-1-1", ranks=(2,), size=2))
        spare = replace(spare, instances=(replace(spare.instances[0], rank=1),))
        watcher.provision(spare)
        assert harness.existing() == {("101-1", 0), ("101-1", 1), ("101-1-1", 1)}

    def test_a_cursor_brings_only_news(self, harness: Harness, watcher: Watcher) -> None:
        """Each look would cost as much as the whole history."""
        watcher.provision(order(harness))
        while watcher.look():
            pass
        assert watcher.look() == ()
        watcher.provision(order(harness, "102-1", ranks=(1,)))
        watcher.look()
        assert watcher.ranks(FactKind.RUNNING, "101-1") in ([], [0])

    def test_a_new_server_is_told_what_is_true(self, harness: Harness, watcher: Watcher) -> None:
        """After a restart, running work would be orphaned and ended work run for ever."""
        watcher.provision(order(harness, "101-1"))
        ended = order(harness, "102-1", ranks=(1,), program=workload(exits=3))
        harness.backend.provision(ended)
        assert watcher.told(FactKind.EXITED, 1, key="102-1")
        harness.restart()
        watcher.facts.clear()
        watcher.cursor = ""
        watcher.look()
        assert watcher.ranks(FactKind.RUNNING, "101-1") == [0]
        assert watcher.ranks(FactKind.RUNNING, "102-1") == []
        assert {f.code for f in watcher.facts if f.kind is FactKind.EXITED} == {3}

    def test_news_unread_by_a_dead_server_are_told_again(self, harness: Harness, watcher: Watcher) -> None:
        """A server that died between hearing of an end and noting it would wait for that end for ever."""
        harness.backend.provision(order(harness, program=workload(exits=0)))
        assert watcher.told(FactKind.EXITED, 0)
        assert FactKind.EXITED in {f.kind for f in harness.backend.observe("").facts}

    def test_a_deadline_of_what_is_not_there_is_harmless(self, harness: Harness) -> None:
        """An extension that crosses a release would be an error."""
        if isinstance(harness.backend, SetsDeadlines):
            harness.backend.set_deadline(order(harness, "404-1"))

    def test_output_is_read_in_parts(self, harness: Harness, watcher: Watcher) -> None:
        """Following a log would repeat or skip bytes."""
        backend = harness.backend
        if not isinstance(backend, StreamsLogs):
            pytest.skip("this backend keeps no output")
        with pytest.raises(NotFound):
            backend.read_log("404-1", 0, offset=0, limit=10)
        said = Workload(command=("sh", "-c", "echo one two three"), environment={"DWS_SIM_RUN_S": "0"})
        backend.provision(order(harness, program=said))
        assert watcher.told(FactKind.EXITED, 0)
        whole, end = backend.read_log("101-1", 0, offset=0, limit=10_000)
        assert whole
        assert end == len(whole)
        first, at = backend.read_log("101-1", 0, offset=0, limit=5)
        rest, _ = backend.read_log("101-1", 0, offset=at, limit=10_000)
        assert first + rest == whole
        assert backend.read_log("101-1", 0, offset=end, limit=10) == (b"", end)
