"""What is kept of what a program prints."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dws.backends.local.output import TAIL_BYTES, Output


def kept(path: Path, limit: int, *parts: bytes) -> bytes:
    """What is in the file when the program is over."""
    output = Output(path / "log", limit)
    for part in parts:
        output.take(part)
    output.close()
    return (path / "log").read_bytes()


def test_what_fits_is_kept_as_it_is(tmp_path: Path) -> None:
    """Logs would differ from what was printed."""
    assert kept(tmp_path, 8, b"1234", b"5678") == b"12345678"


def test_a_cut_is_marked_and_nothing_is_lost_that_fits_the_end(tmp_path: Path) -> None:
    """A reader would not notice that something is missing, or think that something is."""
    text = kept(tmp_path, 4, b"123", b"456789")
    assert text.startswith(b"1234\n[dws: the output limit is reached")
    assert text.endswith(b"\n56789")
    assert b"left out" not in text


def test_a_long_middle_is_counted(tmp_path: Path) -> None:
    """Nobody could tell a short gap from a long one."""
    text = kept(tmp_path, 4, b"1234", b"a" * TAIL_BYTES, b"b" * TAIL_BYTES)
    assert f"[dws: {TAIL_BYTES} bytes left out]\n".encode() + b"b" * TAIL_BYTES in text
    assert b"a" not in text.partition(b"left out]\n")[2]


def test_a_full_disk_does_not_stop_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor that fails to write would take its program with it."""
    output = Output(tmp_path / "log", 100)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    output.take(b"lost")
    output.take(b"too")
    monkeypatch.undo()
    output.close()
    assert b"lost" not in (tmp_path / "log").read_bytes()
