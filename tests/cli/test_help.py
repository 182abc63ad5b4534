"""Every command explains itself, with examples that work; a bare look at the command loads little."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dws.cli.main import cli

_EXAMPLE = re.compile(r"^\s+(dws .+)$", re.MULTILINE)


def commands(group: click.Group, path: str = "dws") -> Iterator[tuple[str, click.Command]]:
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


EVERY = dict(commands(cli))


def examples() -> list[str]:
    found = []
    for path in EVERY:
        shown = CliRunner().invoke(cli, [*path.split()[1:], "--help"], prog_name="dws", terminal_width=200)
        assert shown.exit_code == 0, path
        own = _EXAMPLE.findall(shown.stdout)
        assert own, f"{path} --help has no example"
        assert all(line.startswith(path) for line in own), path
        found += own
    return found


@pytest.mark.parametrize("line", examples())
def test_an_example_parses(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who copies an example from --help would get a usage error."""
    monkeypatch.chdir(tmp_path)
    for name in ("fleet.toml", "snapshot.json", "dws-monday.db", "policy.toml", "trace.swf"):
        Path(name).touch()
    command: click.Command = cli
    ctx, args = None, shlex.split(line)
    while True:
        ctx = command.make_context(args[0], args[1:], parent=ctx)
        if not isinstance(command, click.Group):
            return
        _, found, args = command.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
        assert found is not None
        command = found
        args = [command.name or "", *args]


@pytest.mark.parametrize(("path", "command"), EVERY.items())
def test_every_option_is_explained(path: str, command: click.Command) -> None:
    """A user would have to guess what an option does."""
    bare = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert not bare, f"{path}: {bare}"


def test_the_table_of_commands_is_true() -> None:
    """`dws --help` would list a command that does not exist, or under another name."""
    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.name == name


def test_help_loads_neither_server_nor_http_nor_drawing() -> None:
    """Every keystroke of a completion and every short command would take half a second."""
    code = (
        "import sys; from dws.cli.main import cli\n"
        "try: cli.main(['--help'], prog_name='dws')\n"
        "except SystemExit: pass\n"
        "heavy = ('httpx2', 'numpy', 'sqlalchemy', 'starlette', 'msgspec', 'yaml', 'dws.engine')\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
