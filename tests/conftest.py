"""What every test may use.

Golden files are rewritten with `--update-golden`. Generated cases are the same on every run where CI is
set. A test that needs a real client program is reported as not run where the program is missing, and the
closing lines say so. Tests of the centre cannot sleep.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from tests.conformance.compute.coverage import Coverage

NOT_RUN = "not run: "
SLEEP_MAX_S = 0.5
SLEEPLESS = ("property", "scenarios", "unit")

settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", settings.get_profile("here"), derandomize=True, database=None, print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files with what is produced"
    )


def pytest_configure(config: pytest.Config) -> None:
    """A session of all of Compute's tests fails where one of its methods is never answered."""
    config.pluginmanager.register(Coverage())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A missing client program is not a failure, and not a silent pass either."""
    for item in items:
        for marker in item.iter_markers("real_client"):
            for program in marker.args:
                if shutil.which(program) is None:
                    reason = f"{NOT_RUN}{program} is not installed"
                    item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each client program that was missing."""
    reasons = [
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    ]
    for reason, count in sorted(Counter(r for r in reasons if r.startswith(NOT_RUN)).items()):
        terminalreporter.write_line(f"{count} test{'s' if count > 1 else ''} {reason}")


@pytest.fixture(autouse=True)
def no_long_sleep(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The centre has one clock and it is a parameter: its tests have nothing to wait for."""
    if request.path.relative_to(request.config.rootpath / "tests").parts[0] not in SLEEPLESS:
        return
    real_sleep = time.sleep

    def short_sleep(seconds: float) -> None:
        assert seconds <= SLEEP_MAX_S, f"a test slept {seconds} s; use a virtual clock"
        real_sleep(seconds)

    monkeypatch.setattr(time, "sleep", short_sleep)
