"""The local backend does what every backend must."""

from __future__ import annotations

import pytest

from tests.contract.backends.kit import BackendContract, Harness
from tests.contract.backends.local_machine import LocalMachine


class TestLocal(BackendContract):
    @pytest.fixture
    def harness(self, machine: LocalMachine) -> Harness:
        return machine
