"""`dws clock`: the server's time, and moving it where it is virtual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from dws.cli import zones
from dws.cli.groups import DefaultGroup
from dws.cli.session import Session, with_session
from dws.wire.timefmt import echo_instant, parse_duration

if TYPE_CHECKING:
    from dws.wire.native_v1 import Clock

STEP_S: Final = 0.2


@click.group(cls=DefaultGroup, default="now")
def clock() -> None:
    """The server's time; move it when it is virtual.

    \b
    Example:
      dws clock now
    """


@clock.command()
@with_session
def now(session: Session) -> None:
    """The server's time.

    \b
    Example:
      dws clock now -o json
    """
    _show(session, session.client.clock())


@clock.command()
@with_session
@click.argument("by", metavar="DURATION")
def advance(session: Session, by: str) -> None:
    """Let a virtual clock run on; returns when everything due in that time has happened.

    \b
    Example:
      dws clock advance 7d
    """
    _show(session, session.client.advance(parse_duration(by, field="by")))


@clock.command()
@with_session
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Virtual seconds in a real one.",
)
def run(session: Session, speed: float) -> None:
    """Let a virtual clock run until Ctrl-C.

    \b
    Example:
      dws clock run --speed 3600
    """
    session.say(f"{speed:g} virtual seconds in a real one; Ctrl-C stops the clock")
    owed = 0.0
    try:
        while True:
            session.machine.pause(STEP_S)
            owed += STEP_S * speed
            if owed >= 1:
                answer = session.client.advance(int(owed))
                owed -= int(owed)
                if session.is_live:
                    click.echo(f"\r\x1b[K{zones.local_time(answer.epoch, session.zone)}", nl=False, err=True)
    except KeyboardInterrupt:
        session.say("")
        _show(session, session.client.clock())


def _show(session: Session, answer: Clock) -> None:
    kind = "virtual" if answer.virtual else "real"
    session.emit(
        {"now": answer.now, "epoch": answer.epoch},
        lambda: f"{echo_instant(answer.epoch, session.zone)}, {kind} clock",
    )
