"""`dws reservations`: list, describe, change and end what was booked; `dws approve` and `dws decline`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dws.cli import zones
from dws.cli.describe import story
from dws.cli.groups import DefaultGroup
from dws.cli.reserve import shares_of, window_times, words
from dws.cli.session import Session, complete_reservation, with_session
from dws.wire.timefmt import format_duration

if TYPE_CHECKING:
    from dws.wire.native_v1 import Reservation, Share

name_argument = click.argument("name", shell_complete=complete_reservation)


@click.group(cls=DefaultGroup, default="list")
def reservations() -> None:
    """What was booked ahead: list, describe, change, end.

    \b
    Example:
      dws reservations list
    """


@reservations.command("list")
@with_session
@click.option("--state", default="", metavar="STATE,...", help="Only in these states.")
@click.option("--all", "everything", is_flag=True, help="Of every project you may see, and what is over.")
def list_reservations(session: Session, state: str, everything: bool) -> None:
    """Reservations, the newest first; what is over only when asked for.

    \b
    Example:
      dws reservations list --all
    """
    project = "-" if everything else None
    found = list(session.client.reservations(state=state, newest_first=True, project=project))
    if not state and not everything:
        found = [r for r in found if r.state not in ("ENDED", "CANCELLED", "DECLINED")]
    value = {"items": found, "nextPageToken": ""}
    session.emit(value, lambda: _table(session, found))


def _table(session: Session, found: list[Reservation]) -> str:
    from dws.cli.output import table

    if not found:
        return "Nothing is booked. 'dws reserve --help' shows how to."
    rows = []
    for row in found:
        start, end = zones.instant_of(row.start) or 0, zones.instant_of(row.end)
        rows.append(
            [
                row.name,
                f"{row.state}{f' (short {row.short})' if row.short else ''}",
                words(row),
                row.zone,
                zones.short_time(start, session.zone, now=session.now),
                zones.rough(end - start) if end else "no end",
                f"{row.in_use}/{row.count}",
            ]
        )
    headers = ["NAME", "STATE", "MACHINES", "ZONE", "STARTS", "LENGTH", "USED"]
    return table(headers, rows, right=["USED"], caption=f"\nTimes in {session.zone}.")


@reservations.command()
@with_session
@name_argument
def describe(session: Session, name: str) -> None:
    """Everything about a reservation: window, hosts, terms, what runs and waits in it, its story.

    \b
    Example:
      dws reservations describe spring-run
    """
    row = session.client.reservation(name)
    if not session.is_table:
        session.emit(row, lambda: "")
        return
    events = session.client.events(project=row.project, reservation=row.id)
    click.echo(f"{_described(session, row)}\n\n{story(session, events.items)}")


def _share(share: Share) -> str:
    return f"{share.project}:{share.hosts_max}" if share.hosts_max else share.project


def _bounds(row: Reservation) -> str:
    """How much each request inside may have, empty where it may have all."""
    hosts = f"{row.request_hosts_max} hosts" if row.request_hosts_max else ""
    run = f"{format_duration(row.request_run_max_s)} a run" if row.request_run_max_s else ""
    return ", ".join(part for part in (hosts, run) if part)


def _size(row: Reservation) -> str:
    return f"{row.count} slices" if row.topology else f"{row.count} hosts"


def _waiting(row: Reservation) -> str:
    waits = {0: "", 1: ", 1 request waits inside"}.get(row.waiting, f", {row.waiting} requests wait inside")
    return f"{row.in_use} of {_size(row)}{waits}"


def _described(session: Session, row: Reservation) -> str:
    from dws.cli.output import facts, table

    pairs = [
        ("Name", f"{row.project}/{row.name}"),
        ("State", row.state + (f", DEGRADED: lacks {row.short} of {_size(row)}" if row.short else "")),
        ("What", f"{words(row)} in {row.zone} ({row.pool})"),
        *zip(("From", "To"), window_times(session, row), strict=True),
        ("Booked by", row.principal),
        ("Used", _waiting(row)),
        ("Hosts", ", ".join(row.hosts)),
        ("Shared with", ", ".join(_share(s) for s in row.shares)),
        ("Who may use it", "work that names it" if row.specific_only else "any work of its projects"),
        ("A request may have", _bounds(row)),
        ("At its end", "instances are stopped" if row.at_end == "stop" else "instances are deleted"),
        ("Series", row.series),
        ("Description", row.description),
        ("Cost", row.cost),
        ("Ended", row.end_message),
    ]
    for title, text in (
        ("Can be changed until", row.lock_at),
        ("Can be cancelled until", row.cancel_until),
        ("To be approved by", row.approve_by),
        ("Idle since", row.idle_since),
    ):
        instant = zones.instant_of(text)
        if instant is not None:
            pairs.append((title, zones.local_time(instant, session.zone)))
    shown = facts(pairs)
    if not row.inside:
        return shown
    inside = []
    for i in row.inside:
        at = zones.instant_of(i.ends_at)
        until = "" if at is None else zones.local_time(at, session.zone)
        inside.append([f"{i.project}/{i.name}", i.state, str(i.hosts), until])
    return f"{shown}\n\n{table(['INSIDE', 'STATE', 'HOSTS', 'UNTIL'], inside)}"


@reservations.command()
@with_session
@name_argument
@click.option("--name", "new_name", default=None, help="A new name.")
@click.option("--start", default=None, metavar="TIME", help="A new start; alone it moves the window.")
@click.option("--until", "end", default=None, metavar="TIME", help="A new end.")
@click.option("--for", "duration", default=None, metavar="DURATION", help="A new length.")
@click.option("--count", type=click.IntRange(min=1), default=None, help="So many machines.")
@click.option("--share", "shares", multiple=True, metavar="PROJECT[:HOSTS]", help="Who may use it too, anew.")
@click.option("--unshare", is_flag=True, help="Nobody else may use it any more.")
@click.option(
    "--request-hosts", type=click.IntRange(min=0), default=None, help="At most so many for a request; 0: all."
)
@click.option("--request-run", default=None, metavar="DURATION", help="The longest run inside; 0: no bound.")
@click.option("--at-end", type=click.Choice(["stop", "delete"]), default=None, help="What its end does.")
@click.option("--description", default=None, help="A new description.")
@click.option("--force", is_flag=True, help="As an operator, against the policy.")
@click.option("--dry-run", is_flag=True, help="Only say how it would be.")
def amend(session: Session, name: str, *, start: str | None, end: str | None, **change: Any) -> None:
    """Change size, window or name in one step: what it has is given up only for what it gets.

    An open one can be extended (--until, --for), grown and shrunk.

    \b
    Example:
      dws reservations amend spring-run --for 9d --dry-run
    """
    from dws.wire.native_v1 import AmendReservationBody

    body = AmendReservationBody(
        start=None if start is None else session.instant("start", start),
        end=None if end is None else session.instant("until", end),
        name=change["new_name"],
        duration=change["duration"],
        count=change["count"],
        shares=[] if change["unshare"] else shares_of(change["shares"]) or None,
        request_hosts_max=change["request_hosts"],
        request_run_max=change["request_run"],
        at_end=change["at_end"],
        description=change["description"],
        force=change["force"],
        dry_run=change["dry_run"],
    )
    told = session.client.amend_reservation(name, body)
    session.emit(told, lambda: _described(session, told.reservation))


@reservations.command()
@with_session
@name_argument
@click.option("--force", is_flag=True, help="As an operator, against the policy.")
def cancel(session: Session, name: str, force: bool) -> None:
    """Stop wanting one that has not started.

    \b
    Example:
      dws reservations cancel spring-run
    """
    row = session.client.cancel_reservation(name, force=force)
    session.emit(row, lambda: f"{row.name}: {row.state}")


@reservations.command()
@with_session
@name_argument
def release(session: Session, name: str) -> None:
    """Give an open one back early; what runs in it is stopped.

    \b
    Example:
      dws reservations release spring-run
    """
    row = session.client.release_reservation(name)
    session.emit(row, lambda: f"{row.name}: {row.state}")


@reservations.command()
@with_session
@name_argument
def delete(session: Session, name: str) -> None:
    """Put the record of one that is over away.

    \b
    Example:
      dws reservations delete spring-run
    """
    session.client.delete_reservation(name)
    session.emit({}, lambda: "")


@click.command()
@with_session
@name_argument
def approve(session: Session, name: str) -> None:
    """Say yes to a reservation that waits for approval.

    \b
    Example:
      dws approve spring-run --project vision
    """
    row = session.client.approve(name)
    session.emit(row, lambda: f"{row.name}: {row.state}")


@click.command()
@with_session
@name_argument
@click.option("--reason", default="", help="Told to its owner.")
def decline(session: Session, name: str, reason: str) -> None:
    """Say no to a reservation that waits for approval.

    \b
    Example:
      dws decline spring-run --project vision --reason "no budget"
    """
    row = session.client.decline(name, reason=reason)
    session.emit(row, lambda: f"{row.name}: {row.state}")
