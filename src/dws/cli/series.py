"""`dws series`: the same reservation again and again; `dws reserve --every` begins one."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from dws.cli import zones
from dws.cli.exits import Exit
from dws.cli.groups import DefaultGroup
from dws.cli.session import Session, complete_day, complete_series, with_session
from dws.model.errors import NoRoom

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from dws.wire.native_v1 import Occurrence, Series

name_argument = click.argument("name", shell_complete=complete_series)


def series_table(series: Series) -> str:
    """A series and its next occurrences, by the clocks of its own zone."""
    from dws.cli.output import table

    zone = zones.user_zone(series.time_zone)
    lines = [f"{series.name} is {series.state}: {_what(series)}, every {series.every}"]
    if rows := [_row(one, zone) for one in series.upcoming]:
        headers = ["DAY", "FROM", "TO", "STATE", "RESERVATION", "NOTE"]
        lines.append(table(headers, rows, below="NOTE"))
    shown = {one.day for one in series.upcoming}
    lines += [f"missed {m.day}: {m.cause}" for m in series.missed if m.day not in shown]
    return "\n".join([*lines, f"\nTimes in {zone}."])


def _what(series: Series) -> str:
    what = series.accelerators or f"{series.count} x {series.machine}"
    return f"{what} {series.topology}" if series.topology else what


def _row(one: Occurrence, zone: ZoneInfo) -> list[str]:
    start, end = _moment(one.start, zone), _moment(one.end, zone)
    later = (end.date() - start.date()).days
    return [
        f"{start:%a} {one.day}",
        f"{start:%H:%M %Z}",
        f"{end:%H:%M %Z}" + (f" +{later}d" if later else ""),
        _state(one, zone),
        one.reservation,
        "; ".join(text for text in (one.missed, one.note) if text),
    ]


def _state(one: Occurrence, zone: ZoneInfo) -> str:
    if one.missed:
        return "missed"
    if one.books_at:
        return f"not booked yet, due {_moment(one.books_at, zone):%Y-%m-%d}"
    return one.state or "not booked"


def _moment(text: str, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(zones.instant_of(text) or 0, zone)


def say_missed(session: Session, error: NoRoom) -> int:
    """Why nothing was booked, and each day that does not fit; returns the exit status."""
    session.say(f"dws: {error.message}")
    missed = error.details.get("missed")
    for each in missed if isinstance(missed, list) else []:
        session.say(f"{each['day']}: {each['cause']}")
    return Exit.CONFLICT


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

    def shown() -> str:
        if not found:
            return "Nothing repeats. 'dws reserve NAME --every …' begins a series."
        rows = [[s.name, s.state, _what(s), _next(s), str(len(_booked(s))), s.every] for s in found]
        headers = ["NAME", "STATE", "WHAT", "NEXT", "BOOKED", "EVERY"]
        return table(headers, rows, right=["BOOKED"], below="EVERY")

    session.emit({"items": found}, shown)


def _booked(series: Series) -> list[Occurrence]:
    return [o for o in series.upcoming if o.reservation and o.state not in ("CANCELLED", "DECLINED", "ENDED")]


def _next(series: Series) -> str:
    """When the next one that is booked or will be starts, by the clocks of its zone."""
    ahead = [o for o in series.upcoming if o.books_at or o in _booked(series)]
    return f"{_moment(ahead[0].start, zones.user_zone(series.time_zone)):%Y-%m-%d %H:%M %Z}" if ahead else ""


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
@click.option("--share", "shares", multiple=True, metavar="PROJECT[:HOSTS]", help="Who may use it too, anew.")
@click.option("--unshare", is_flag=True, help="Nobody else may use it any more.")
@click.option("--at-end", type=click.Choice(["stop", "delete"]), default=None, help="What its end does.")
@click.option("--description", default=None, help="A new description.")
@click.option("--may-miss", is_flag=True, help="Skip occurrences that do not fit.")
def amend(session: Session, name: str, *, may_miss: bool, **change: Any) -> int | None:
    """Change a series from now on, in one step; what has begun or can no longer be cancelled stays.

    --every says it whole: name days that stay skipped with 'except'.

    \b
    Examples:
      dws series amend nights --count 32
      dws series amend nights --every "weekday 21:00-06:00 Europe/Berlin until 2027-03-01"
    """
    from dws.cli.reserve import shares_of
    from dws.wire.native_v1 import AmendSeriesBody

    said = shares_of(change.pop("shares"))
    shares = [] if change.pop("unshare") else said or None
    if shares is None and all(value is None for value in change.values()):
        raise click.UsageError("say what changes, for example --count or --every")
    try:
        row = session.client.amend_series(name, AmendSeriesBody(may_miss=may_miss, shares=shares, **change))
    except NoRoom as error:
        return say_missed(session, error)
    session.emit(row, lambda: series_table(row))
    return None


@series.command()
@with_session
@name_argument
@click.argument("day", metavar="DAY", shell_complete=complete_day)
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
