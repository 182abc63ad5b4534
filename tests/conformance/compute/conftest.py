"""One server for all of Google's clients."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.served import Served, serving

Gcloud = Callable[..., Any]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture
def gcloud(served: Served, tmp_path: Path) -> Gcloud:
    """Runs `gcloud … --format=json` with a configuration of its own and no way to another server."""
    return gcloud_to(f"{served.address}/", tmp_path)


@pytest.fixture
def gcloud_v1(served: Served, tmp_path: Path) -> Gcloud:
    """`gcloud` with the other form of the endpoint, which sends all its tracks to `/compute/v1/`."""
    return gcloud_to(f"{served.address}/compute/v1/", tmp_path)


def gcloud_to(endpoint: str, tmp_path: Path) -> Gcloud:
    nowhere = "http://127.0.0.1:9/"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": endpoint,
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        "CLOUDSDK_CORE_PROJECT": "research",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "true",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        "HTTPS_PROXY": nowhere,
        "NO_PROXY": "127.0.0.1",
    }

    def run(*words: str, fails: bool = False, plain: bool = False) -> Any:
        done = subprocess.run(
            ["gcloud", *words, *(() if any(w.startswith("--format=") for w in words) else ("--format=json",))],
            env=environment,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stderr
        if fails:
            return done.stderr
        return done.stdout if plain else json.loads(done.stdout)

    return run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each call of the real gcloud starts a Python of its own and may take its 110 s: a test of several may take longer
    than others on a busy machine."""
    for item in items:
        if {"gcloud", "gcloud_v1"} & set(getattr(item, "fixturenames", ())) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))
