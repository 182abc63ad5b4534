"""`dws series`: the same reservation again and again; `dws reserve --every` begins one."""

from __future__ import annotations

import click

from dws.cli.groups import DefaultGroup
from dws.cli.reserve import series_table
from dws.cli.session import Session, with_session

name_argument = click.argument("name")


@click.group(cls=DefaultGroup, default="list")
def series() -> None:
    """Reservations that repeat: list, describe, change, skip a day, end.

    \b
    Example:
      dws series list
    """


@series.command("list")
@with_session
def list_series(session: Session) -> None:
    """Every series of a project.

    \b
    Example:
      dws series list
    """
    from dws.cli.output import table

    found = session.client.all_series()
    rows = [
        [s.name, s.state, s.accelerators or f"{s.count} x {s.machine}", s.every, str(len(s.missed))]
        for s in found
    ]
    headers = ["NAME", "STATE", "WHAT", "EVERY", "MISSED"]
    nothing = "Nothing repeats. 'dws reserve NAME --every …' begins a series."
    session.emit({"items": found}, lambda: table(headers, rows, right=["MISSED"]) if rows else nothing)


@series.command()
@with_session
@name_argument
def describe(session: Session, name: str) -> None:
    """A series and its next occurrences: booked, missed, or not booked yet.

    \b
    Example:
      dws series describe nights
    """
    row = session.client.series(name)
    session.emit(row, lambda: series_table(row))


@series.command()
@with_session
@name_argument
@click.option("--every", default=None, metavar="WHEN", help='"mon,wed 09:00-11:00 ZONE 12 times".')
@click.option("--count", type=click.IntRange(min=1), default=None, help="So many machines, or accelerators.")
@click.option("--description", default=None, help="A new description.")
@click.option("--may-miss", is_flag=True, help="Skip occurrences that do not fit.")
def amend(
    session: Session,
    name: str,
    *,
    every: str | None,
    count: int | None,
    description: str | None,
    may_miss: bool,
) -> None:
    """Change a series from now on, in one step.

    \b
    Example:
      dws series amend nights --count 32
    """
    from dws.wire.native_v1 import AmendSeriesBody

    body = AmendSeriesBody(every=every, count=count, description=description, may_miss=may_miss)
    row = session.client.amend_series(name, body)
    session.emit(row, lambda: series_table(row))


@series.command()
@with_session
@name_argument
@click.argument("day", metavar="DAY")
def skip(session: Session, name: str, day: str) -> None:
    """Cancel the occurrence of one day; the others are not touched.

    \b
    Example:
      dws series skip nights 2027-01-25
    """
    row = session.client.leave_out(name, day)
    session.emit(row, lambda: series_table(row))


@series.command()
@with_session
@name_argument
def cancel(session: Session, name: str) -> None:
    """End a series and cancel what of it has not started.

    \b
    Example:
      dws series cancel nights
    """
    row = session.client.cancel_series(name)
    session.emit(row, lambda: f"{row.name}: {row.state}")
