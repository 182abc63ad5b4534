"""`dws calendar`: what is booked and what is free, as a picture, as JSON, or as a feed."""

from __future__ import annotations

import shutil

import click
import msgspec

from dws.cli import zones
from dws.cli.session import Session, with_session
from dws.model.time import DAY
from dws.wire.native_v1 import CalendarView
from dws.wire.timefmt import format_instant


@click.command()
@with_session
@click.option("--zone", default="", metavar="ZONE,...", help="Only these zones.")
@click.option("--pool", default="", metavar="POOL,...", help="Only these pools.")
@click.option("--from", "start", default="", metavar="TIME", help="From when on. [default: now]")
@click.option("--days", type=click.IntRange(1, 366), default=14, show_default=True, help="How many days.")
@click.option("--mine", is_flag=True, help="Only bookings of your projects.")
@click.option("--ics", is_flag=True, help="The feed for calendar programs, of --project or of all.")
def calendar(
    session: Session, *, zone: str, pool: str, start: str, days: int, mine: bool, ics: bool
) -> None:
    """Pools by time: your bookings and others', how full each reservation is, and what is free.

    \b
    Examples:
      dws calendar --days 7
      dws calendar --ics
    """
    if ics:
        if zone or pool or start or mine:
            raise click.UsageError("--ics is the whole feed; it goes without --zone, --pool, --from, --mine")
        click.echo(session.client.feed(project=session.project), nl=False)
        return
    begins = session.now
    if start:
        begins = zones.parse_when(start, session.zone, server_now=begins, field="from")
    view = session.client.calendar(
        start=format_instant(begins), end=format_instant(begins + days * DAY), zone=zone, pool=pool
    )
    if mine:
        view = _mine(view)
    session.emit(view, lambda: _drawn(session, view))


def _mine(view: CalendarView) -> CalendarView:
    pools = [msgspec.structs.replace(p, bars=[b for b in p.bars if b.own]) for p in view.pools]
    return msgspec.structs.replace(view, pools=pools)


def _drawn(session: Session, view: CalendarView) -> str:
    from dws.cli.gantt import gantt
    from dws.cli.output import may_colour

    width = shutil.get_terminal_size((80, 24)).columns
    return "\n".join(gantt(view, width=width, zone=session.zone, colour=may_colour()))
