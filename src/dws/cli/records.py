"""What was recorded: `dws usage`, `dws audit`, `dws ledger verify`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from dws.cli import zones
from dws.cli.describe import why_of
from dws.cli.exits import Exit
from dws.cli.groups import DefaultGroup
from dws.cli.session import Session, complete_reservation, with_session
from dws.wire.timefmt import format_instant

if TYPE_CHECKING:
    from dws.wire.native_v1 import Event, Usage


@click.command()
@with_session
@click.option("--start", default="", metavar="TIME", help="From. [default: the beginning of this month]")
@click.option("--end", default="", metavar="TIME", help="Until. [default: now]")
@click.option("--all-projects", is_flag=True, help="Every project you may see.")
def usage(session: Session, start: str, end: str, all_projects: bool) -> None:
    """Who used how much, in accelerator-hours and money, running work included.

    \b
    Example:
      dws usage --start 2027-01-01 --end 2027-02-01 --all-projects
    """
    zone, now = session.zone, session.now
    first = datetime.fromtimestamp(now, zone).replace(day=1, hour=0, minute=0, second=0, fold=0)
    since = zones.parse_when(start, zone, server_now=now, field="start") if start else int(first.timestamp())
    until = zones.parse_when(end, zone, server_now=now, field="end") if end else now
    answer = session.client.usage(
        start=format_instant(since),
        end=format_instant(until),
        project="" if all_projects else session.client.project,
    )
    session.emit(answer, lambda: _usage_table(session, answer))


def _usage_table(session: Session, answer: Usage) -> str:
    from dws.cli.output import table

    span = " to ".join(
        zones.local_time(at, session.zone)
        for at in (zones.instant_of(answer.start), zones.instant_of(answer.end))
        if at is not None
    )
    caption = f"\n{span} ({session.zone}); * still running; costs in {answer.currency}"
    if not answer.lines:
        return f"No use from {span} ({session.zone})."
    rows = [
        [
            line.project,
            line.principal,
            line.request + ("*" if line.open else ""),
            line.accelerator or line.machine,
            line.kind.lower().replace("reserved_idle", "reserved, idle").replace("_", " "),
            zones.rough(line.seconds),
            f"{line.accelerator_s / 3600:.1f}",
            line.cost,
        ]
        for line in answer.lines
    ]
    headers = ["PROJECT", "WHO", "REQUEST", "TYPE", "KIND", "HOST TIME", "ACCELERATOR-HOURS", "COST"]
    return table(
        headers,
        rows,
        right=["HOST TIME", "ACCELERATOR-HOURS", "COST"],
        fold=["WHO", "REQUEST", "TYPE"],
        spare=["PROJECT"] if len({line.project for line in answer.lines}) == 1 else [],
        caption=caption,
    )


@click.command()
@with_session
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens from now on.")
@click.option("--name", default="", help="Only this request's.")
@click.option(
    "--reservation", default="", shell_complete=complete_reservation, help="Only this reservation's."
)
@click.option("--all-projects", is_flag=True, help="Every project you may see, and the fleet.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="The newest N.")
def audit(
    session: Session, *, follow: bool, name: str, reservation: str, all_projects: bool, limit: int
) -> None:
    """Who did what, when and why: the event log, oldest of the newest first.

    With --follow and -o json each event is one line of JSON.

    \b
    Example:
      dws audit --all-projects --follow
    """
    if name and reservation:
        raise click.UsageError("--name and --reservation do not go together")
    project = "" if all_projects and not (name or reservation) else session.client.project
    answer = session.client.events(
        project=project, name=name, reservation=reservation, newest_first=True, limit=limit
    )
    answer.items.sort(key=lambda event: event.seq)
    if not follow:
        session.emit(answer, lambda: "\n".join(_line(session, e) for e in answer.items))
        return
    for event in answer.items:
        _print_event(session, event)
    after = max([answer.last_seq, *(e.seq for e in answer.items)])
    for event in session.client.follow_events(
        after=after, project=project, name=name, reservation=reservation
    ):
        _print_event(session, event)


def _print_event(session: Session, event: Event) -> None:
    if session.is_table:
        click.echo(_line(session, event))
        return
    import msgspec

    click.echo(msgspec.json.encode(event))


def _line(session: Session, event: Event) -> str:
    at = zones.local_time(zones.instant_of(event.at) or 0, session.zone)
    about = "/".join(part for part in (event.project, event.name or event.subject) if part)
    text = f"{event.seq:>6}  {at}  {event.actor:<12}  {event.kind:<16}  {about}"
    why = why_of(event)
    return f"{text}  {why}" if why else text


@click.group(cls=DefaultGroup, default="verify")
def ledger() -> None:
    """Check the ledger against itself.

    \b
    Example:
      dws ledger verify
    """


@ledger.command()
@with_session
def verify(session: Session) -> int:
    """Check every booking, request and event against the others; status 1 when something is wrong.

    \b
    Example:
      dws ledger verify -o json
    """
    answer = session.client.verify_ledger()
    checked = f"checked: bookings {answer.bookings}, requests {answer.requests}, events {answer.events}"
    verdict = f"faults: {len(answer.faults)}" if answer.faults else "no faults"
    session.emit(answer, lambda: "\n".join([*answer.faults, f"{checked}; {verdict}"]))
    return Exit.FAILED if answer.faults else Exit.OK
