"""What every test may use: golden files are rewritten with `--update-golden`."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files with what is produced"
    )
