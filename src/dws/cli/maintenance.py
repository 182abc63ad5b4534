"""`dws fleet maintenance`: hosts out of service over a window, planned ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dws.cli import zones
from dws.cli.exits import Exit
from dws.cli.groups import DefaultGroup
from dws.cli.session import Session, complete_host, complete_maintenance, with_session

if TYPE_CHECKING:
    from dws.wire.native_v1 import Affected, Maintenance, MaintenanceBody


@click.group(cls=DefaultGroup, default="list")
def maintenance() -> None:
    """Maintenance windows: plan, list, cancel.

    \b
    Example:
      dws fleet maintenance list
    """


@maintenance.command("list")
@with_session
def list_windows(session: Session) -> None:
    """Windows that are not over, by start.

    \b
    Example:
      dws fleet maintenance list
    """
    found = session.client.maintenance()
    session.emit({"items": found}, lambda: _table(session, found))


def _table(session: Session, found: list[Maintenance]) -> str:
    from dws.cli.output import table

    if not found:
        return "No maintenance is planned."
    rows = []
    for row in found:
        start, end = zones.instant_of(row.start) or 0, zones.instant_of(row.end) or 0
        starts = "under way" if row.begun else zones.short_time(start, session.zone, now=session.now)
        ends = f"{zones.short_time(end, session.zone, now=session.now)} ({zones.rough(end - start)})"
        rows.append([row.name, starts, ends, ", ".join(row.hosts), row.reason])
    headers = ["NAME", "STARTS", "ENDS", "HOSTS", "REASON"]
    return table(headers, rows, below="REASON", caption=f"\nTimes in {session.zone}.")


@maintenance.command()
@with_session
@click.argument("name")
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...", shell_complete=complete_host)
@click.option("--start", required=True, metavar="TIME", help="'2027-01-11 09:00' in your zone, or +2d.")
@click.option("--for", "duration", default="", metavar="DURATION", help="For how long: 4h.")
@click.option("--until", default="", metavar="TIME", help="Until when, instead of --for.")
@click.option("--reason", default="", help="What for; kept in the audit log.")
@click.option("--force", is_flag=True, help="Even when it touches somebody.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say whom it touches.")
def plan(
    session: Session, name: str, hosts: tuple[str, ...], *, force: bool, yes: bool, dry_run: bool, **told: str
) -> int | None:
    """Take hosts of one pool out of service over a window, after showing whom it touches.

    Nothing is started there that would run into it. A reservation or a run in the way refuses it, unless it
    is forced: then they lose the hosts at its start, openly.

    \b
    Example:
      dws fleet maintenance plan fans a3-0001 a3-0002 --start "2027-01-11 09:00" --for 4h
    """
    import msgspec

    body = _body(session, name, hosts, force=force, **told)
    answer = session.client.plan_maintenance(body)
    if not dry_run:
        if session.is_table and not yes:
            session.say(_affected(answer.affected))
            if answer.affected and not force:
                session.say("Nothing was changed: choose another window, or --force this one.")
                return Exit.PRECONDITION
        if session.confirmed(f"Plan maintenance '{name}'?", yes=yes):
            answer = session.client.plan_maintenance(msgspec.structs.replace(body, confirm=True))
    done = "Planned." if answer.window else "Nothing was changed."
    session.emit(answer, lambda: f"{_affected(answer.affected)}\n{done}")
    return None


def _body(
    session: Session,
    name: str,
    hosts: tuple[str, ...],
    *,
    start: str,
    duration: str,
    until: str,
    reason: str,
    force: bool,
) -> MaintenanceBody:
    """What is asked, its times echoed. Raises UsageError when it does not say how long."""
    from dws.wire.native_v1 import MaintenanceBody

    if bool(duration) == bool(until):
        raise click.UsageError("say how long it lasts: either --for DURATION or --until TIME")
    times = {}
    for field, text in (("start", start), ("until", until)):
        if text:
            times[field] = session.instant(field, text)
    return MaintenanceBody(
        name=name,
        hosts=list(hosts),
        start=times["start"],
        end=times.get("until", ""),
        duration=duration,
        reason=reason,
        force=force,
    )


def _affected(affected: list[Affected]) -> str:
    from dws.cli.output import table

    if not affected:
        return "This touches nobody."
    rows = [[f"{a.project}/{a.name}", a.state, a.effect] for a in affected]
    return table(["TOUCHED", "STATE", "HOW"], rows)


@maintenance.command()
@with_session
@click.argument("name", shell_complete=complete_maintenance)
def cancel(session: Session, name: str) -> None:
    """Cancel a window, or end it before its time: its hosts are back.

    \b
    Example:
      dws fleet maintenance cancel fans
    """
    session.client.cancel_maintenance(name)
    session.emit({}, lambda: f"{name} is cancelled.")
