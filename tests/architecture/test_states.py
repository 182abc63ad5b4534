"""States change in `dws.lifecycle` and nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "dws"
FILES = [f for f in sorted(SOURCE.rglob("*.py")) if f.parent != SOURCE / "lifecycle"]
OTHER_STATES = ("HostState.", "DeliveryState.")
"""What a host may be used for and what a backend answers are facts, not steps of a lifecycle."""


def assignments(tree: ast.AST) -> list[str]:
    """Each place where a state is given to a value that a lifecycle governs, except a birth as PENDING."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        for keyword in node.keywords:
            value = ast.unparse(keyword.value)
            if keyword.arg != "state" or value.startswith(OTHER_STATES):
                continue
            is_birth = name == "CapacityRequest" and value == "RequestState.PENDING"
            if name == "replace" or (name == "CapacityRequest" and not is_birth):
                found.append(f"line {node.lineno}: {ast.unparse(node.func)}(state={value})")
    return found


@pytest.mark.parametrize("path", FILES, ids=[str(f.relative_to(SOURCE)) for f in FILES])
def test_states_change_in_lifecycle_only(path: Path) -> None:
    """A request could come into a state that no table knows how to leave."""
    is_reading_rows = path.parent == SOURCE / "store"
    found = assignments(ast.parse(path.read_text(encoding="utf-8")))
    assert [f for f in found if not (is_reading_rows and "CapacityRequest" in f)] == []


@pytest.mark.parametrize(
    ("code", "is_change"),
    [
        ("replace(r, state=RequestState.ACTIVE)", True),
        ("dataclasses.replace(i, state=InstanceState.LOST)", True),
        ("CapacityRequest(id=1, state=RequestState.ACTIVE)", True),
        ("CapacityRequest(id=1, state=RequestState.PENDING)", False),
        ("replace(h, state=HostState.DOWN)", False),
        ("replace(r, priority=1)", False),
    ],
)
def test_the_scan_sees_changes(code: str, is_change: bool) -> None:
    """The rule would be broken and the scan would not see it."""
    assert bool(assignments(ast.parse(code))) is is_change
