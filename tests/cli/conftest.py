"""Fixtures of the command line's tests: a stub server, a way to run a command line, golden files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dws.cli.main import cli
from tests.cli.stub import Stub

GOLDEN = Path(__file__).parent.parent / "golden" / "cli"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DWS_ADDRESS", "DWS_TOKEN", "DWS_TOKEN_FILE", "DWS_PROJECT", "DWS_DEBUG", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DWS_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TZ", "Europe/Paris")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def stub() -> Stub:
    """A server without answers yet."""
    return Stub()


@pytest.fixture
def dws(stub: Stub) -> Callable[..., Result]:
    """Run a command line against the stub."""

    def run(*args: str, machine: object = None) -> Result:
        return CliRunner().invoke(cli, list(args), obj=machine or stub.machine(), prog_name="dws")

    return run


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare text with tests/golden/cli/NAME.txt; `--update-golden` writes it instead."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if request.config.getoption("--update-golden", default=False):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; --update-golden accepts it"

    return compare
