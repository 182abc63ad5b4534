"""`dws completion`: the script that makes a shell complete commands, options and names of requests."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete


class PlainBash(BashComplete):
    """Bash, without running bash to learn its version: the script may be made on another machine."""

    @staticmethod
    def _check_version() -> None:
        return


_SHELLS: dict[str, type[ShellComplete]] = {"bash": PlainBash, "zsh": ZshComplete, "fish": FishComplete}
_HOW = {
    "bash": 'eval "$(dws completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(dws completion zsh)"   # in ~/.zshrc',
    "fish": "dws completion fish | source   # in ~/.config/fish/config.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """The completion script of a shell, to be evaluated there; it completes names of requests too.

    \b
    Example:
      dws completion bash
    """
    made = _SHELLS[shell](ctx.find_root().command, {}, "dws", "_DWS_COMPLETE")
    click.echo(made.source())
    click.echo(f"# {_HOW[shell]}")
