"""Whether every method of the Compute door was answered, under `Checked`, by some test: the hooks of a session.

A session that ran both folders of Compute's tests whole and well fails for each method that nothing called with
success. Each worker of pytest-xdist tells the session what it saw.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

FOLDERS = ("tests/api/compute", "tests/conformance/compute")
NEVER = {
    "compute.autoscalers.get": "there are none: it tells every caller so",
    "compute.regionAutoscalers.get": "there are none: it tells every caller so",
}
"""Methods that cannot answer with success, and why."""


class Coverage:
    """A plugin: what was answered so far, over all workers, and what is missing at the end."""

    def __init__(self) -> None:
        self.answered: set[str] = set()
        self.missing: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What a worker saw."""
        self.answered |= set(getattr(node, "workeroutput", {}).get("answered", ()))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Tell the session (a worker), or judge it."""
        answers = sys.modules.get("tests.conformance.compute.answers")
        self.answered |= answers.ANSWERED if answers is not None else set()
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["answered"] = sorted(self.answered)
        elif exitstatus == pytest.ExitCode.OK and runs_whole(session.config):
            from dws.api.compute_v1.methods import METHODS

            self.missing = sorted({method.id for method in METHODS} - self.answered - NEVER.keys())
            if self.missing:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """One line for each that is missing."""
        for method in self.missing:
            terminalreporter.write_line(f"FAILED: no test has {method} answered with success", red=True)


def runs_whole(config: pytest.Config) -> bool:
    """Whether a session runs every test of the folders."""
    option = config.option
    chosen = (option.keyword, option.markexpr, option.deselect, option.ignore, option.ignore_glob)
    if any(chosen) or option.collectonly or getattr(option, "lf", False):
        return False
    told = [(config.invocation_params.dir / each).resolve() for each in config.args]
    return all(any(_lies_in(config.rootpath / folder, each) for each in told) for folder in FOLDERS)


def _lies_in(folder: Path, told: Path) -> bool:
    return folder == told or told in folder.parents
