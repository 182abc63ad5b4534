"""The simulated backend: what it would be like to run on a fleet, in no time at all.

    provision ─▶ booting ──boot_s──▶ running ──program ends──▶ exited
    release   ─▶ stopping ──release_s──▶ gone

It is the world, not a part of the engine: it keeps its instances when the engine restarts, and it knows
nothing of requests or bookings beyond the order it was given. Domain time comes from `advance`. What goes
wrong is `faults.py`'s script and the verbs below (`lose`, `host_down`, `cut`, …); there is no chance here.
"""

from __future__ import annotations

import hashlib
import heapq
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dws.backends.simulated.faults import NO_FAULTS, Faults
from dws.backends.simulated.machine import Gang, Machine, program
from dws.engine.ports import (
    BackendUnavailable,
    Delivery,
    DeliveryState,
    Fact,
    FactKind,
    InstanceOrder,
    Observations,
    Order,
    OrderRejected,
)
from dws.model.errors import NotFound

LOG_MAX: Final = 100_000
_HOST_KINDS = (FactKind.HOST_DOWN, FactKind.HOST_UP)


@dataclass(order=True, slots=True)
class _Due:
    at: int
    number: int
    happen: Callable[[], None] = field(compare=False)


class SimulatedBackend:
    """Deterministic, thread-safe, idempotent by order key.

    `boot_s` seconds pass from order to running, and up to `boot_jitter_s` more that depend on `seed` and
    the instance alone. With both 0 an order is delivered at once.
    """

    def __init__(
        self,
        name: str = "simulated",
        *,
        seed: int = 0,
        boot_s: int = 0,
        boot_jitter_s: int = 0,
        faults: Faults = NO_FAULTS,
    ) -> None:
        self.name = name
        self.seed = seed
        self.boot_s = boot_s
        self.boot_jitter_s = boot_jitter_s
        self.faults = faults
        self._now = 0
        self._machines: dict[tuple[str, int], Machine] = {}
        self._gangs: dict[str, Gang] = {}
        self._dead_hosts: set[tuple[str, int]] = set()
        self._last_words: dict[object, Fact] = {}
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
            self._now = max(self._now, order.issued_at)
            failed = [i for i in order.instances if self._cannot_be_made(order.pool, i, attempt)]
            made = [self._make(order, i, attempt) for i in order.instances if i not in failed]
            if failed:
                return Delivery(
                    state=DeliveryState.FAILED,
                    cause=f"no capacity for rank {failed[0].rank}",
                    bad_hosts=tuple(i.unit for i in failed if (order.pool, i.unit) in self._dead_hosts),
                )
            if all(m.state == "running" for m in made):
                up = {m.rank: m.address for m in made}
                return Delivery(state=DeliveryState.DELIVERED, addresses=up)
            return Delivery(state=DeliveryState.UNDER_WAY)

    def release(self, order: Order, *, hard: bool = False) -> Delivery:
        """Give back; what is not there is given back already."""
        with self._lock:
            self._check_available()
            there = [
                m for i in order.instances if (m := self._machines.get((order.key, i.rank))) is not None
            ]
            if self.faults.lie_about_releases and not hard:
                for machine in there:  # seen running, it gives the lie away, also to who asks later
                    machine.state = "running" if machine.state == "booting" else machine.state
                    self._log.append(machine.running)
                return Delivery(state=DeliveryState.DELIVERED)
            if there and self.faults.lose_releases and not hard:
                return Delivery(state=DeliveryState.UNDER_WAY)
            pending = [m for m in there if self._stop(m)]
            state = DeliveryState.UNDER_WAY if pending else DeliveryState.DELIVERED
            return Delivery(state=state)

    def observe(self, cursor: str) -> Observations:
        """Facts since the cursor; from the empty one, or one too old, what is true now."""
        with self._lock:
            self._check_available()
            end = self._dropped + len(self._log)
            known = cursor and int(cursor) >= self._dropped
            if known and int(cursor) == end:
                return Observations(facts=(), cursor=cursor)
            facts = self._log[int(cursor) - self._dropped :] if known else self._true_now()
            if self.faults.stale:
                facts = [told for fact in facts for told in (fact, *_of_the_attempt_before(fact))]
            if self.faults.reverse:
                facts = facts[::-1]
            return Observations(facts=tuple(facts * self.faults.repeat), cursor=str(end))

    def set_deadline(self, order: Order) -> None:
        """Nothing to do: the engine ends simulated runs."""

    def read_log(self, key: str, rank: int, *, offset: int, limit: int) -> tuple[bytes, int]:
        """One line, for everyone who ever ran."""
        with self._lock:
            if (key, rank) not in self._machines and (key, rank) not in self._last_words:
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
            while self._due and self._due[0].at <= now:
                due = heapq.heappop(self._due)
                self._now = max(self._now, due.at)
                due.happen()
            self._now = max(self._now, now)

    # --- what a script does to the world --------------------------------------------------------

    def lose(self, key: str, rank: int, cause: str = "the instance vanished") -> None:
        """An instance is gone without a word. Harmless when there is none."""
        with self._lock:
            machine = self._machines.get((key, rank))
            if machine is not None:
                self._forget(machine, FactKind.LOST, detail=cause)

    def host_down(self, pool: str, unit: int, cause: str = "power failure") -> None:
        """A host dies with everything on it, and takes no orders until `host_up`."""
        with self._lock:
            self._dead_hosts.add((pool, unit))
            self._say(Fact(kind=FactKind.HOST_DOWN, pool=pool, unit=unit, detail=cause))
            # also each by itself: who asks only when the host is up again must hear of them
            for machine in [m for m in self._machines.values() if (m.pool, m.unit) == (pool, unit)]:
                self._forget(machine, FactKind.LOST, detail=cause)

    def host_up(self, pool: str, unit: int) -> None:
        """A host is there again."""
        with self._lock:
            self._dead_hosts.discard((pool, unit))
            self._say(Fact(kind=FactKind.HOST_UP, pool=pool, unit=unit))

    def cut(self, pool: str, unit: int, seconds: int) -> None:
        """What runs on a host cannot be seen for so long; it runs on all the same."""
        with self._lock:
            unseen = [m for m in self._machines.values() if (m.pool, m.unit) == (pool, unit)]
            for machine in unseen:
                self._say(machine.fact(FactKind.UNREACHABLE))
                self._at(self._now + seconds, lambda m=machine: self._seen_again(m))  # type: ignore[misc]

    def say(self, kind: FactKind, key: str, rank: int, *, detail: str = "") -> None:
        """Tell a fact about an instance, true or not."""
        with self._lock:
            self._log.append(Fact(kind=kind, key=key, rank=rank, detail=detail))

    def holds(self) -> Mapping[tuple[str, int], tuple[str, int]]:
        """What really exists: (pool, unit) of each (key, rank)."""
        with self._lock:
            return {place: (m.pool, m.unit) for place, m in self._machines.items()}

    # --- inside -------------------------------------------------------------------------------

    def _check_available(self) -> None:
        if self.faults.unavailable:
            raise BackendUnavailable("the simulated fleet does not answer")

    def _cannot_be_made(self, pool: str, instance: InstanceOrder, attempt: int) -> bool:
        dead = (pool, instance.unit) in self._dead_hosts
        return dead or (attempt, instance.rank) in self.faults.fail_ranks

    def _make(self, order: Order, instance: InstanceOrder, attempt: int) -> Machine:
        machine = self._machines.get((order.key, instance.rank))
        if machine is not None:
            return machine
        run_s, code = program(order.workload)
        machine = Machine(
            key=order.key,
            rank=instance.rank,
            pool=order.pool,
            unit=instance.unit,
            address=f"{instance.host}.simulated",
            run_s=run_s,
            exit_code=code,
        )
        self._machines[machine.place] = machine
        self._gangs.setdefault(machine.gang, Gang(order.size)).members[machine.place] = machine
        if attempt <= self.faults.silent_attempts or machine.unit in self.faults.silent_units:
            return machine
        boot_s = self._boot_s(machine)
        if boot_s == 0:
            self._run(machine)
        else:
            self._at(self._now + boot_s, lambda: self._booted(machine))
        return machine

    def _boot_s(self, machine: Machine) -> int:
        extra = self.faults.boot_extra_s if machine.unit in self.faults.slow_units else 0
        if not self.boot_jitter_s:
            return self.boot_s + extra
        seed = f"{self.seed}:{machine.key}:{machine.rank}".encode()
        jitter = int.from_bytes(hashlib.blake2b(seed, digest_size=4).digest()) % (self.boot_jitter_s + 1)
        return self.boot_s + jitter + extra

    def _booted(self, machine: Machine) -> None:
        if machine.state == "booting":
            self._run(machine)
            self._say(machine.running)

    def _run(self, machine: Machine) -> None:
        """It is up; with the last one of its gang the programs begin, a replacement's at once."""
        machine.state = "running"
        for ready in self._gangs[machine.gang].came_up(machine):
            if ready.run_s is not None:
                self._at(self._now + ready.run_s, lambda m=ready: self._exit(m))  # type: ignore[misc]

    def _exit(self, machine: Machine) -> None:
        if machine.state == "running":
            machine.state = "exited"
            self._say(machine.fact(FactKind.EXITED))

    def _stop(self, machine: Machine) -> bool:
        """Begin to stop it; False when that is done at once."""
        if not self.faults.release_s and machine.state != "stopping":
            self._forget(machine)
            return False
        if machine.state != "stopping":
            machine.state = "stopping"
            self._at(self._now + self.faults.release_s, lambda: self._stopped(machine))
        return True

    def _stopped(self, machine: Machine) -> None:
        if machine.state == "stopping":
            self._forget(machine, FactKind.GONE)

    def _seen_again(self, machine: Machine) -> None:
        if machine.state != "gone":
            self._say(machine.fact(FactKind.REACHABLE))

    def _forget(self, machine: Machine, why: FactKind | None = None, *, detail: str = "") -> None:
        machine.state = "gone"
        del self._machines[machine.place]
        gang = self._gangs[machine.gang]
        del gang.members[machine.place]
        if not gang.members:
            del self._gangs[machine.gang]
        if why is not None:
            self._say(machine.fact(why, detail=detail))
        else:  # given back: nothing left to say
            self._last_words.pop(machine.place, None)

    def _true_now(self) -> list[Fact]:
        """What instances and hosts are like, and the last word of those that are no more."""
        running = [m.running for m in self._machines.values() if m.state == "running"]
        return running + list(self._last_words.values())

    def _at(self, instant: int, happen: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._due, _Due(instant, self._number, happen))

    def _say(self, fact: Fact) -> None:
        """Tell it now, and again to whoever asks for everything, unless it is about running."""
        self._log.append(fact)
        subject = (fact.pool, fact.unit) if fact.kind in _HOST_KINDS else (fact.key, fact.rank)
        self._last_words.pop(subject, None)
        if fact.kind not in (FactKind.RUNNING, FactKind.REACHABLE):
            self._last_words[subject] = fact
        if len(self._last_words) > LOG_MAX:
            del self._last_words[next(iter(self._last_words))]
        if len(self._log) > LOG_MAX:
            half = len(self._log) // 2
            del self._log[:half]
            self._dropped += half


def _of_the_attempt_before(fact: Fact) -> tuple[Fact, ...]:
    request, dash, rest = fact.key.partition("-")
    attempt, more, incarnation = rest.partition("-")
    if not dash or int(attempt) < 2:
        return ()
    return (replace(fact, key=f"{request}-{int(attempt) - 1}{more}{incarnation}"),)
