"""Fixtures of the backends' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.backends.local_machine import LocalMachine, a_local_machine

pytest.register_assert_rewrite("tests.contract.backends.kit")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[LocalMachine]:
    """This machine with four declared accelerators and eight CPU slots."""
    with a_local_machine(tmp_path) as made:
        yield made
