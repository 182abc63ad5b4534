"""The `dws` command: which commands there are, and how each ends.

A command returns its exit status (None is 0) and raises the errors of `dws.model`; here, and only here,
they become one line on standard error, what to do next, and a status of `dws.cli.exits`. There is no
traceback unless DWS_DEBUG=1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import click

from dws.cli.exits import Exit, of_error
from dws.cli.groups import LazyGroup
from dws.model.errors import DwsError

SECTIONS: Final = {
    "Ask for capacity": {
        "run": ("dws.cli.run:run", "Ask, wait, run a program, stream its output, exit with its status."),
        "submit": ("dws.cli.ask:submit", "Ask for capacity and return at once; prints the name."),
        "quote": ("dws.cli.ask:quote", "When, until when and for how much, without asking."),
    },
    "Book ahead": {
        "reserve": ("dws.cli.reserve:reserve", "Book a block of capacity from then until then."),
        "advise": ("dws.cli.reserve:advise", "Windows that could be booked, best first."),
        "calendar": ("dws.cli.calendar:calendar", "What is booked and what is free, as a picture."),
        "reservations": ("dws.cli.reservations:reservations", "List, change and end what was booked."),
        "series": ("dws.cli.series:series", "Reservations that repeat."),
        "approve": ("dws.cli.reservations:approve", "Say yes to a reservation."),
        "decline": ("dws.cli.reservations:decline", "Say no to a reservation."),
    },
    "Look": {
        "queue": ("dws.cli.queue:queue", "Who waits, in line order, and when each can expect to start."),
        "list": ("dws.cli.requests:list_requests", "Requests, newest first."),
        "describe": ("dws.cli.describe:describe", "Everything about a request, with its story."),
        "explain": ("dws.cli.describe:explain", "Why not now, when, and what would start sooner."),
        "logs": ("dws.cli.logs:logs", "What a request's programs print."),
        "wait": ("dws.cli.requests:wait", "Wait until a request started or ended."),
        "usage": ("dws.cli.records:usage", "Who used how much."),
    },
    "Change": {
        "amend": ("dws.cli.requests:amend", "Change a waiting request; it keeps its age in the queue."),
        "cancel": ("dws.cli.requests:cancel", "Stop wanting requests that wait."),
        "release": ("dws.cli.requests:release", "Give back what a running request holds."),
        "extend": ("dws.cli.requests:extend", "Run longer, if that breaks no promise."),
        "delete": ("dws.cli.requests:delete", "Put the records of finished requests away."),
    },
    "Run the fleet": {
        "serve": ("dws.cli.serve:serve", "Start a server."),
        "fleet": ("dws.cli.fleet:fleet", "Show the fleet, change it, drain and repair hosts."),
        "audit": ("dws.cli.records:audit", "Who did what, when and why."),
        "ledger": ("dws.cli.records:ledger", "Check the ledger against itself."),
        "backup": ("dws.cli.store:backup", "Copy the store of a running server."),
        "restore": ("dws.cli.store:restore", "Put a copy in the place of a stopped server's store."),
        "migrate": ("dws.cli.store:migrate", "Bring a store to this version's schema."),
    },
    "Try things out": {
        "demo": ("dws.cli.demo:demo", "The main job in two minutes, worth watching."),
        "clock": ("dws.cli.clock:clock", "The server's time; move it when it is virtual."),
        "simulate": ("dws.cli.simulate:simulate", "The scheduler under simulated time: compare or break."),
        "planner": ("dws.cli.planner:planner", "The planner alone, on a snapshot file."),
    },
    "Other": {
        "completion": ("dws.cli.completion:completion", "The completion script of a shell."),
        "version": ("dws.cli.version:version", "The version of this command."),
    },
}

_NEXT: Final = {
    "NOT_FOUND": "'dws list' shows what there is; --project names another project",
    "ALREADY_EXISTS": "choose another name with --name, or look at that one with 'dws describe'",
    "ABORTED": "look again and repeat the command",
    "PERMISSION_DENIED": "ask an operator of this fleet, or use another token (--token-file)",
    "UNAUTHENTICATED": "give a token with DWS_TOKEN or --token-file; "
    "'dws serve' leaves one in its state directory",
    "RESOURCE_EXHAUSTED": "ask for less, or wait until something of the project ends; 'dws usage' shows it",
}


class Dws(LazyGroup):
    """The whole command."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run a command line and exit; every failure is told in a line."""
        extra["standalone_mode"] = False
        try:
            status = super().main(args, *rest, **extra)
        except click.UsageError as error:
            _usage(error)
            status = Exit.USAGE
        except click.ClickException as error:
            _tell(error.format_message())
            status = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            _tell("interrupted")
            status = Exit.INTERRUPTED
        except DwsError as error:
            _debug()
            _tell(error.message, _next_step(error))
            status = of_error(error)
        except Exception as error:
            _debug()
            _tell(
                f"{type(error).__name__}: {error}",
                "this is a fault of dws; DWS_DEBUG=1 shows where it happened",
            )
            status = Exit.INTERNAL
        sys.exit(int(status or 0))


def _next_step(error: DwsError) -> str:
    if error.reason == "neverFits":
        return "'dws fleet' shows what there is, 'dws quote' what would fit"
    return _NEXT.get(error.code, "")


def _usage(error: click.UsageError) -> None:
    _tell(error.format_message())
    if error.ctx is not None:
        click.echo(f"     try '{error.ctx.command_path} --help'", err=True)


def _tell(message: str, then: str = "") -> None:
    click.echo(f"dws: {message}", err=True)
    if then and "'dws " not in message:
        click.echo(f"     {then}", err=True)


def _debug() -> None:
    if os.environ.get("DWS_DEBUG") == "1":
        import traceback

        traceback.print_exc()


@click.command(
    cls=Dws,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Times are read and shown in your zone (TZ, --tz). Every command takes --help.",
)
def cli() -> None:
    """Accelerators when you need them: ask, and be told when.

    \b
    Example:
      dws run --accelerators h100:16 --for 4h -- python train.py
    """


def main() -> NoReturn:
    """Entry point of the `dws` command."""
    cli.main(prog_name="dws")
    raise AssertionError("a command exits")
