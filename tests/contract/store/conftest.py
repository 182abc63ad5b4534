"""A fresh store of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dws.engine.ports import Store
from dws.store.memory import MemoryStore
from dws.store.sql import SqlStore


def url_of(path: Path) -> str:
    """The URL of a SQLite file."""
    return f"sqlite:///{path}"


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store; the test runs once with each kind."""
    opened: Store = MemoryStore() if request.param == "memory" else SqlStore(url_of(tmp_path / "dws.db"))
    yield opened
    opened.close()


@pytest.fixture
def sql(tmp_path: Path) -> Iterator[Callable[..., SqlStore]]:
    """Opens SQLite stores in a folder of their own, by file name."""
    opened: list[SqlStore] = []

    def open_one(name: str = "dws.db", **options: float) -> SqlStore:
        opened.append(SqlStore(url_of(tmp_path / name), **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()
