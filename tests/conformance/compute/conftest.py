"""One server for all of Google's clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.served import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as server:
        yield server
