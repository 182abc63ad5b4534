"""The simulated backend does what every backend must, with and without latencies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dws.backends.simulated.backend import SimulatedBackend
from dws.backends.simulated.faults import Faults
from dws.model.resources import MachineShape
from tests.contract.backends.kit import BackendContract, Harness

NOW = 1_800_000_000
LONGEST_WAIT_S = 3_600


class SimulatedFleet:
    """A harness: time passes by telling the backend; a new server finds the world as it is."""

    def __init__(self, backend: SimulatedBackend) -> None:
        self.backend = backend
        self.pool = "pool-a"
        self.shape = MachineShape(name="n2-standard-2", vcpus=2)
        self.hosts = tuple(f"h{i:03}" for i in range(8))
        self._now = NOW
        backend.advance(NOW)

    def now(self) -> int:
        return self._now

    def until(self, holds: Callable[[], bool]) -> bool:
        give_up = self._now + LONGEST_WAIT_S
        while not holds():
            due = self.backend.next_due()
            if due is None or due > give_up:
                return False
            self._now = max(self._now, due)
            self.backend.advance(self._now)
        return True

    def existing(self) -> set[tuple[str, int]]:
        return set(self.backend.holds())

    def restart(self) -> None:
        """The world is not the server's: it stays."""


class TestAtOnce(BackendContract):
    @pytest.fixture
    def harness(self) -> Harness:
        return SimulatedFleet(SimulatedBackend())


class TestSlow(BackendContract):
    @pytest.fixture
    def harness(self) -> Harness:
        return SimulatedFleet(SimulatedBackend(boot_s=30, boot_jitter_s=20, faults=Faults(release_s=5)))
