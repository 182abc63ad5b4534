"""What every command that talks to a server shares: its options, the client, the zone, the output.

`with_session` puts `-o`, `--tz`, `--project`, `--address`, `--token-file` on a command and hands it a
`Session`. Data goes to standard output and everything else to standard error, so that `-o json` prints
data alone.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from zoneinfo import ZoneInfo

import click

from dws.cli import zones
from dws.wire.timefmt import echo_instant, format_instant

if TYPE_CHECKING:
    import httpx2

    from dws.client import Client

F = TypeVar("F", bound=Callable[..., Any])
SKEW_TOLERATED_S: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a command touches of the machine it runs on; tests put their own in `click`'s `obj`."""

    transport: httpx2.BaseTransport | None = None
    wall: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep


@dataclass
class Session:
    """One command's dealings with one server."""

    machine: Machine
    address: str = ""
    token_file: str = ""
    project: str = ""
    output: str = "table"
    tz: str = ""

    @cached_property
    def client(self) -> Client:
        """The client, made on first use."""
        from dws.client import Client
        from dws.client.whereabouts import read_token

        return Client(
            self.address or None,
            read_token(Path(self.token_file)) if self.token_file else None,
            self.project or None,
            transport=self.machine.transport,
            pause=self.machine.pause,
        )

    @cached_property
    def zone(self) -> ZoneInfo:
        """The reader's time zone."""
        return zones.user_zone(self.tz)

    @cached_property
    def now(self) -> int:
        """The server's time, asked once; says so when this machine's clock is far from a real one."""
        clock = self.client.clock()
        skew_s = round(self.machine.wall() - clock.epoch)
        if not clock.virtual and abs(skew_s) > SKEW_TOLERATED_S:
            side = "ahead of" if skew_s > 0 else "behind"
            self.say(
                f"warning: this machine's clock is {zones.rough(abs(skew_s))} {side} the server's; "
                "times are counted by the server's clock"
            )
        return clock.epoch

    def look_at_clock(self) -> int:
        """The server's time at this moment, for what is shown again and again."""
        return self.client.clock().epoch

    @property
    def is_table(self) -> bool:
        """True when a person reads the answer."""
        return self.output == "table"

    @property
    def is_live(self) -> bool:
        """True when standard error is a terminal, where a line may be rewritten."""
        return sys.stderr.isatty()

    def say(self, text: str) -> None:
        """Tell a person something that is not data."""
        click.echo(text, err=True)

    def instant(self, field: str, text: str) -> str:
        """An instant a person wrote, as the API wants it; told back first in local time and UTC."""
        at = zones.parse_when(text, self.zone, server_now=self.now, field=field)
        self.say(f"{field}: {echo_instant(at, self.zone)}")
        return format_instant(at)

    def emit(self, value: Any, table: Callable[[], str]) -> None:
        """Print an answer: the API's JSON, the same as YAML, or what `table` makes of it."""
        if self.is_table:
            if text := table():
                click.echo(text)
            return
        from dws.cli.output import encoded

        click.echo(encoded(value, self.output))

    def confirmed(self, question: str, *, yes: bool) -> bool:
        """Ask before something that others will feel. Raises UsageError where nobody can be asked."""
        if yes:
            return True
        if not sys.stdin.isatty() or not self.is_table:
            raise click.UsageError("nobody is here to confirm this; add --yes")
        return click.confirm(question, err=True)


def with_session(command: F) -> F:
    """Give a command the shared options and, as its first argument, the session made of them."""
    return _with_options(command, (*_OUTPUT, *_SERVER))


def with_output(command: F) -> F:
    """As `with_session`, for a command that needs no server: only `-o` and `--tz`."""
    return _with_options(command, _OUTPUT)


def _with_options(command: F, options: Sequence[Callable[[Any], Any]]) -> F:
    @functools.wraps(command)
    def inner(*args: Any, output: str, tz: str, **kwargs: Any) -> Any:
        where = {name: kwargs.pop(name, "") for name in ("address", "token_file", "project")}
        machine = click.get_current_context().find_root().obj or Machine()
        return command(Session(machine=machine, output=output, tz=tz, **where), *args, **kwargs)

    own = inner.__dict__.pop("__click_params__", [])
    for option in reversed(options):
        inner = option(inner)
    inner.__dict__["__click_params__"] += own  # click reads the list backwards: these come last in --help
    return inner  # type: ignore[return-value]


def _complete_zone(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from zoneinfo import available_timezones

    return sorted(z for z in available_timezones() if z.startswith(incomplete))


_OUTPUT: Final = (
    click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json", "yaml"]),
        default="table",
        show_default=True,
        help="How to print the answer; json is the API's JSON.",
    ),
    click.option(
        "--tz",
        default="",
        metavar="ZONE",
        shell_complete=_complete_zone,
        help="Time zone to read and write times in. [default: yours]",
    ),
)
_SERVER: Final = (
    click.option("-p", "--project", default="", help="Project. [default: $DWS_PROJECT or 'default']"),
    click.option(
        "--address",
        default="",
        metavar="URL",
        help="Server. [default: $DWS_ADDRESS or http://127.0.0.1:8470]",
    ),
    click.option(
        "--token-file",
        default="",
        metavar="FILE",
        help="File with the token. [default: $DWS_TOKEN, or the state directory's]",
    ),
)


def complete_request(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Names of requests on the server that begin with what is typed; none when it does not answer soon."""
    return _complete(ctx, incomplete, lambda client: [r.name for r in client.page(page_size=200).items])


def complete_reservation(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The same for names of reservations."""
    return _complete(ctx, incomplete, lambda client: [r.name for r in client.reservations()])


def complete_series(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The same for names of series."""
    return _complete(ctx, incomplete, lambda client: [s.name for s in client.all_series()])


def complete_day(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The days on which the series NAME occurs next."""
    name = str(ctx.params.get("name"))
    return _complete(ctx, incomplete, lambda client: [one.day for one in client.series(name).upcoming])


def complete_maintenance(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The same for names of maintenance windows."""
    return _complete(ctx, incomplete, lambda client: [w.name for w in client.maintenance()])


def complete_host(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The same for names of hosts."""
    return _complete(ctx, incomplete, lambda client: [h.name for p in client.fleet().pools for h in p.hosts])


def _complete(ctx: click.Context, incomplete: str, names: Callable[[Client], list[str]]) -> list[str]:
    from dws.client import Client

    machine = ctx.find_root().obj or Machine()
    try:
        client = Client(
            ctx.params.get("address") or None,
            None,
            ctx.params.get("project") or None,
            timeout=0.8,
            transport=machine.transport,
            pause=lambda _s: None,
        )
        with client:
            found = names(client)
    except Exception:  # a completion that fails must not write into the line being typed
        if os.environ.get("DWS_DEBUG"):
            raise
        return []
    return [name for name in found if name.startswith(incomplete)]


def request_argument(**how: Any) -> Callable[[F], F]:
    """An argument NAME that completes to requests on the server."""
    return click.argument("name", shell_complete=complete_request, **how)
