"""The page of situations is true: each has a test of its name, or says what it waits for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| ([A-Z]\d\d) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
NAMED = re.compile(r"def test_([a-z]\d\d)_\w+\(")


def situations() -> list[tuple[str, str]]:
    return ROW.findall((ROOT / "docs" / "reference" / "scenarios.md").read_text())


TESTED = {
    found for file in (ROOT / "tests").rglob("test_*.py") for found in NAMED.findall(file.read_text())
}


@pytest.mark.parametrize(("situation", "where"), situations())
def test_each_situation_has_a_test_or_says_what_it_waits_for(situation: str, where: str) -> None:
    """The page could promise a situation that nothing checks."""
    if where.startswith("waits for "):
        assert situation.lower() not in TESTED, "it does not wait any more"
    else:
        assert where == f"`-k {situation.lower()}_`"
        assert situation.lower() in TESTED


def test_the_page_forgets_none_that_is_tested() -> None:
    """A situation could be covered and nobody know."""
    assert {s.lower() for s, _ in situations()} >= TESTED
