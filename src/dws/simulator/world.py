"""A world to run the engine in: virtual clock, arrivals, and the loop that steps from instant to instant.

    t = min(next arrival, engine.next_due());  clock.jump_to(t);  tick;  deliver what arrives at t

The engine is the product's own, on any store and with any backend. Ends and timers due at an instant come
before the arrivals of that instant. The store and the backend survive a restart; the engine does not.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from dws.engine.app import Engine
from dws.engine.clock import VirtualClock
from dws.engine.ports import Backend, Meters, Store
from dws.model.access import SYSTEM
from dws.model.time import HOUR
from dws.model.topology import Fleet
from dws.planner.options import PolicyOptions

Act = Callable[[], None]


@dataclass(frozen=True, slots=True)
class ProcessTime:
    """Leases last as long as they do in production, in simulated time."""

    clock: VirtualClock

    def now(self) -> int:
        """The virtual clock's seconds."""
        return self.clock.now()


@dataclass(order=True, slots=True)
class _Arrival:
    at: int
    number: int
    act: Act = field(compare=False)


class World:
    """An engine and everything around it. `start` is the first instant."""

    def __init__(
        self,
        *,
        store: Store,
        backend: Backend,
        policy: PolicyOptions,
        start: int,
        meters: Meters | None = None,
    ) -> None:
        self.clock = VirtualClock(start)
        self.store = store
        self.backend = backend
        self.policy = policy
        self._meters = meters
        self._arrivals: list[_Arrival] = []
        self._number = 0
        self._pruned_at = start
        self.engine = self.new_engine()

    def new_engine(self) -> Engine:
        """A process that takes over store and backend; the one before it is dead."""
        return Engine(
            store=self.store,
            backends={self.backend.name: self.backend},
            clock=self.clock,
            policy=self.policy,
            process_clock=ProcessTime(self.clock),
            meters=self._meters,
        )

    def open(self, fleet: Fleet) -> None:
        """Declare the fleet and begin."""
        self.engine.open()
        self.engine.apply_fleet(SYSTEM, fleet, confirm=True)
        self.engine.tick()

    def at(self, instant: int, act: Act) -> None:
        """Let something happen at an instant; several at one instant in the order they were given."""
        self._number += 1
        heapq.heappush(self._arrivals, _Arrival(instant, self._number, act))

    @property
    def is_idle(self) -> bool:
        """True when everything has arrived, and nothing waits or is held."""
        books = self.engine.books
        return not (self._arrivals or books.waiting or books.holding)

    def next_due(self) -> int | None:
        """The next instant at which something arrives or is due, None when nothing ever will."""
        dues = [self.engine.next_due(), self._arrivals[0].at if self._arrivals else None]
        return min((due for due in dues if due is not None), default=None)

    def step(self, until: int) -> bool:
        """Go to the next instant and do everything of it; False when there is none up to `until`."""
        due = self.next_due()
        if due is None or due > until:
            return False
        self.clock.jump_to(max(due, self.clock.now()))
        now = self.clock.now()
        self.engine.tick()
        while self._arrivals and self._arrivals[0].at <= now:
            heapq.heappop(self._arrivals).act()
        if now >= self._pruned_at + HOUR:
            self._pruned_at = now
            self.engine.books.prune(now)
        return True
