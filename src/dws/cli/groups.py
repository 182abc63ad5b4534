"""Groups of commands: one that loads a command's module only when it is used, one with a default.

`dws --help` and shell completion read names and one-line helps from a table; importing every command
for them would cost more than everything else a short command does.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

Section = Mapping[str, tuple[str, str]]
"""Command name to (`module:attribute`, one-line help)."""


class LazyGroup(click.Group):
    """A group whose commands are named in sections and imported on use."""

    def __init__(self, *args: Any, sections: Mapping[str, Section], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        self._homes = {name: entry for section in sections.values() for name, entry in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, in the order of the sections."""
        del ctx
        return list(self._homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in self._homes:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._homes[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The sections with their one-line helps."""
        del ctx
        for title, section in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, short) for name, (_, short) in section.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names with their one-line helps, without importing anything."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=short)
            for name, (_, short) in self._homes.items()
            if name.startswith(incomplete)
        ]


class DefaultGroup(click.Group):
    """A group that means one of its commands when none is named: `dws fleet` is `dws fleet show`."""

    def __init__(self, *args: Any, default: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default's name in front where no command is named."""
        says_none = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        if says_none and not ctx.resilient_parsing:
            args = [self.default, *args]
        return super().parse_args(ctx, args)
