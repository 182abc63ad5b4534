"""Modules: what each is for is written in it, and importing one does nothing."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
FILES = sorted((SOURCE / "dws").rglob("*.py"))
MIGRATIONS = SOURCE / "dws" / "store" / "migrations"

WATCH = """
import importlib, json, os, sys

found = []

def of_ours():
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("dws."):
            return name
        if not name.startswith(("os", "_collections_abc", "collections", "pathlib")):
            return ""
        frame = frame.f_back
    return ""

class Watched(type(os.environ)):
    def __getitem__(self, key):
        if of_ours():
            found.append(f"{of_ours()} reads ${key} when imported")
        return super().__getitem__(key)

def audit(event, args):
    if event == "open" and isinstance(args[0], str) and "__pycache__" not in args[0]:
        if args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            found.append(f"writes {args[0]}")
    elif event in ("os.mkdir", "os.remove", "os.rename") and "__pycache__" not in str(args[0]):
        found.append(f"{event} {args[0]}")
    elif event in ("socket.connect", "socket.bind", "subprocess.Popen", "os.system"):
        found.append(f"{event} {args[0]!r}")

os.environ.__class__ = Watched
sys.addaudithook(audit)
for name in json.loads(sys.argv[1]):
    before = len(found)
    importlib.import_module(name)
    found[before:] = [f"{name}: {what}" for what in found[before:]]
print(json.dumps(found))
"""


def module_name(path: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", FILES, ids=[module_name(f) for f in FILES])
def test_a_module_says_what_it_is_for(path: Path) -> None:
    """A newcomer would have to guess why a file exists."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, f"{path.relative_to(SOURCE)} has no docstring"


def test_importing_does_nothing() -> None:
    """`import dws` would write files, open connections or depend on who imports it."""
    modules = [module_name(f) for f in FILES if MIGRATIONS not in f.parents and f.name != "__main__.py"]
    done = subprocess.run(
        [sys.executable, "-c", WATCH, json.dumps(modules)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_nothing_is_called_by_a_word_for_anything() -> None:
    """Code without a noun of its own would gather in one place and grow."""
    banned = {
        "utils",
        "util",
        "helpers",
        "helper",
        "common",
        "misc",
        "managers",
        "manager",
        "services",
        "core",
    }
    assert [str(f.relative_to(SOURCE)) for f in FILES if banned & {*f.parts, f.stem}] == []
