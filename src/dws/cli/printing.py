"""Printing what instances say: as it is for one, a rank before each line for several, JSON for programs."""

from __future__ import annotations

import json

import click


class LogPrinter:
    """Prints output of several instances line by line, so that lines never mix."""

    def __init__(self, *, prefix: bool, to_stderr: bool = False) -> None:
        self._prefix = prefix
        self._to_stderr = to_stderr
        self._open: dict[int, str] = {}

    def write(self, rank: int, text: str) -> None:
        """Take text of one instance; with prefixes only whole lines are printed."""
        if not self._prefix:
            click.echo(text, nl=False, err=self._to_stderr)
            return
        *lines, rest = (self._open.get(rank, "") + text).split("\n")
        self._open[rank] = rest
        for line in lines:
            click.echo(f"[{rank}] {line}", err=self._to_stderr)

    def close(self) -> None:
        """Print lines that were never finished."""
        for rank, line in sorted(self._open.items()):
            if line:
                click.echo(f"[{rank}] {line}", err=self._to_stderr)
        self._open.clear()


class JsonLogPrinter(LogPrinter):
    """Prints each piece as one line of JSON: `{"rank": 0, "text": "…"}`."""

    def __init__(self) -> None:
        super().__init__(prefix=False)

    def write(self, rank: int, text: str) -> None:
        """Print a piece."""
        click.echo(json.dumps({"rank": rank, "text": text}))
