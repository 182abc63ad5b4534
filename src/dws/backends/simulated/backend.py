"""The simulated backend: what it would be like to run on a fleet, in no time at all.

    provision ─▶ booting ──boot_s──▶ running ──program ends──▶ exited
    release   ─▶ stopping ──release_s──▶ gone

It is the world, not a part of the engine: it keeps its instances when the engine restarts, and it knows
nothing of requests or bookings beyond the order it was given. Domain time comes from `advance`.
A program is simulated by its environment: DWS_SIM_RUN_S is how long it runs once the whole gang is up
(`sleep N` says the same), DWS_SIM_EXIT the status it ends with; without either it runs to the end.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from dws.backends.simulated.faults import NO_FAULTS, Faults
from dws.engine.ports import (
    BackendUnavailable,
    Delivery,
    DeliveryState,
    Fact,
    FactKind,
    Observations,
    Order,
    OrderRejected,
)
from dws.model.errors import NotFound


_LOG_MAX = 100_000


@dataclass(slots=True)
class _Machine:
    """One simulated instance."""

    key: str
    rank: int
    pool: str
    unit: int
    address: str
    size: int
    run_s: int | None
    exit_code: int
    state: str = "booting"
    ran_at: int = -1


@dataclass(order=True, slots=True)
class _Due:
    at: int
    number: int
    what: str = field(compare=False)
    machine: _Machine = field(compare=False)


class SimulatedBackend:
    """Deterministic, thread-safe, idempotent by order key. `boot_s` seconds from order to running."""

    def __init__(
        self, name: str = "simulated", *, boot_s: int = 0, faults: Faults = NO_FAULTS
    ) -> None:
        self.name = name
        self.boot_s = boot_s
        self.faults = faults
        self.is_unavailable = False
        self._now = 0
        self._machines: dict[tuple[str, int], _Machine] = {}
        self._due: list[_Due] = []
        self._number = 0
        self._log: list[Fact] = []
        self._dropped = 0
        self._lock = threading.RLock()

    # --- the backend port ---------------------------------------------------------------------

    def provision(self, order: Order) -> Delivery:
        """Make the order's instances; a repeated key makes nothing twice."""
        with self._lock:
            self._check_available()
            if self.faults.reject:
                raise OrderRejected(self.faults.reject)
            if self.faults.refuse:
                return Delivery(state=DeliveryState.FAILED, cause=self.faults.refuse)
            attempt = int(order.key.split("-")[1])
            failed = [i.rank for i in order.instances if (attempt, i.rank) in self.faults.fail_ranks]
            made = [
                self._make(order, i.rank, i.unit, i.host, attempt)
                for i in order.instances
                if i.rank not in failed
            ]
            if failed:
                cause = f"no capacity for rank {failed[0]}"
                return Delivery(state=DeliveryState.FAILED, cause=cause)
            if all(m.state == "running" for m in made):
                return Delivery(
                    state=DeliveryState.DELIVERED, addresses={m.rank: m.address for m in made}
                )
            return Delivery(state=DeliveryState.UNDER_WAY)

    def release(self, order: Order, *, hard: bool = False) -> Delivery:
        """Give back; what is not there is given back already."""
        with self._lock:
            self._check_available()
            pending = False
            for instance in order.instances:
                machine = self._machines.get((order.key, instance.rank))
                if machine is None:
                    continue
                if self.faults.release_s:
                    if machine.state != "stopping":
                        machine.state = "stopping"
                        self._at(self._now + self.faults.release_s, "gone", machine)
                    pending = True
                else:
                    self._forget(machine)
            state = DeliveryState.UNDER_WAY if pending else DeliveryState.DELIVERED
            return Delivery(state=state)

    def observe(self, cursor: str) -> Observations:
        """Facts since the cursor; from the empty one, what is true now and what was said last."""
        with self._lock:
            self._check_available()
            end = self._dropped + len(self._log)
            if cursor:
                facts = self._log[int(cursor) - self._dropped :]
            else:
                facts = [self._running(m) for m in self._machines.values() if m.state == "running"]
                facts += [f for f in self._log if f.kind is not FactKind.RUNNING]
            if self.faults.reverse:
                facts = facts[::-1]
            return Observations(facts=tuple(facts * self.faults.repeat), cursor=str(end))

    def set_deadline(self, order: Order) -> None:
        """Nothing to do: the engine ends simulated runs."""

    def read_log(self, key: str, rank: int, *, offset: int, limit: int) -> tuple[bytes, int]:
        """One line, for everyone who ever ran."""
        with self._lock:
            if (key, rank) not in self._machines and not any(f.key == key for f in self._log):
                raise NotFound(f"nothing is kept of {key}")
        text = f"simulated instance {key} rank {rank}\n".encode()
        part = text[offset : offset + limit]
        return part, offset + len(part)

    # --- time ---------------------------------------------------------------------------------

    def next_due(self) -> int | None:
        """When something will happen by itself."""
        with self._lock:
            return self._due[0].at if self._due else None

    def advance(self, now: int) -> None:
        """Let everything happen that is due by `now`."""
        with self._lock:
            self._now = max(self._now, now)
            while self._due and self._due[0].at <= self._now:
                self._happen(heapq.heappop(self._due))

    # --- what a script does to the world --------------------------------------------------------

    def lose(self, key: str, rank: int, cause: str = "the instance vanished") -> None:
        """An instance is gone without a word."""
        with self._lock:
            machine = self._machines.pop((key, rank), None)
            if machine is not None:
                machine.state = "gone"
                self._say(FactKind.LOST, machine, detail=cause)

    def host_down(self, pool: str, unit: int, cause: str = "power failure") -> None:
        """A host dies with everything on it."""
        with self._lock:
            for place, machine in list(self._machines.items()):
                if (machine.pool, machine.unit) == (pool, unit):
                    machine.state = "gone"
                    del self._machines[place]
            self._log.append(Fact(kind=FactKind.HOST_DOWN, pool=pool, unit=unit, detail=cause))

    def host_up(self, pool: str, unit: int) -> None:
        """A host is there again."""
        with self._lock:
            self._log.append(Fact(kind=FactKind.HOST_UP, pool=pool, unit=unit))

    def say(self, kind: FactKind, key: str, rank: int) -> None:
        """Tell a fact about an instance, true or not."""
        with self._lock:
            self._log.append(Fact(kind=kind, key=key, rank=rank))

    def holds(self) -> Mapping[tuple[str, int], tuple[str, int]]:
        """What really exists: (pool, unit) of each (key, rank)."""
        with self._lock:
            return {place: (m.pool, m.unit) for place, m in self._machines.items()}

    # --- inside -------------------------------------------------------------------------------

    def _check_available(self) -> None:
        if self.is_unavailable:
            raise BackendUnavailable("the simulated fleet does not answer")

    def _make(self, order: Order, rank: int, unit: int, host: str, attempt: int) -> _Machine:
        place = (order.key, rank)
        machine = self._machines.get(place)
        if machine is not None:
            return machine
        run_s, code = _program(order)
        machine = _Machine(
            order.key, rank, order.pool, unit, f"{host}.simulated", order.size, run_s, code
        )
        self._machines[place] = machine
        silent = attempt <= self.faults.silent_attempts or unit in self.faults.silent_units
        extra = self.faults.boot_extra_s if unit in self.faults.slow_units else 0
        self._now = max(self._now, order.issued_at)
        if silent:
            return machine
        if self.boot_s + extra == 0:
            self._run(machine)
        else:
            self._at(self._now + self.boot_s + extra, "running", machine)
        return machine

    def _at(self, instant: int, what: str, machine: _Machine) -> None:
        self._number += 1
        heapq.heappush(self._due, _Due(instant, self._number, what, machine))

    def _happen(self, due: _Due) -> None:
        machine = due.machine
        if machine.state == "gone" or self._machines.get((machine.key, machine.rank)) is not machine:
            return
        if due.what == "running" and machine.state == "booting":
            self._run(machine)
            self._say(FactKind.RUNNING, machine)
        elif due.what == "exited" and machine.state == "running":
            machine.state = "exited"
            self._say(FactKind.EXITED, machine, code=machine.exit_code)
        elif due.what == "gone":
            self._forget(machine)
            self._say(FactKind.GONE, machine)

    def _run(self, machine: _Machine) -> None:
        machine.state = "running"
        machine.ran_at = self._now
        if machine.run_s is not None:
            self._at(self._now + machine.run_s, "exited", machine)

    def _forget(self, machine: _Machine) -> None:
        machine.state = "gone"
        self._machines.pop((machine.key, machine.rank), None)

    def _running(self, machine: _Machine) -> Fact:
        return Fact(
            kind=FactKind.RUNNING,
            key=machine.key,
            rank=machine.rank,
            pool=machine.pool,
            unit=machine.unit,
            address=machine.address,
        )

    def _say(
        self, kind: FactKind, machine: _Machine, *, code: int | None = None, detail: str = ""
    ) -> None:
        self._log.append(
            Fact(
                kind=kind,
                key=machine.key,
                rank=machine.rank,
                pool=machine.pool,
                unit=machine.unit,
                code=code,
                address=machine.address,
                detail=detail,
            )
        )
        if len(self._log) > _LOG_MAX:
            half = len(self._log) // 2
            del self._log[:half]
            self._dropped += half


def _program(order: Order) -> tuple[int | None, int]:
    """How long the order's program runs, None for as long as it may, and its exit status."""
    workload = order.workload
    if workload is None or not workload.command:
        return None, 0
    code = int(workload.environment.get("DWS_SIM_EXIT", "0"))
    told = workload.environment.get("DWS_SIM_RUN_S")
    if told is None and workload.command[0] == "sleep" and workload.command[-1].isdecimal():
        told = workload.command[-1]
    return (int(told) if told is not None and told.isdecimal() else None), code
