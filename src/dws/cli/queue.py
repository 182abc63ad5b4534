"""`dws queue`: who waits, in line order, with what each can expect and why it is not starting.

Elements of one array are one row unless `--all` is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dws.cli import demand, zones
from dws.cli.session import Session, with_session

if TYPE_CHECKING:
    from dws.wire.native_v1 import Request

HEADERS = ["PLACE", "NAME", "PROJECT", "WANTS", "WAITING", "EXPECTED", "PROMISED", "REASON"]


@click.command()
@with_session
@click.option("--all", "everything", is_flag=True, help="A row for each element of an array.")
@click.option("--mine", is_flag=True, help="Only this project's.")
def queue(session: Session, everything: bool, mine: bool) -> None:
    """Who waits, in line order, when each can expect to start, and why not now.

    EXPECTED is when it will likely start; PROMISED is the latest start it was promised.

    \b
    Example:
      dws queue --mine
    """
    answer = session.client.queue()
    if mine:
        answer.items = [r for r in answer.items if r.project == session.client.project]
    session.emit(answer, lambda: queue_table(session, answer.items, everything=everything))


def queue_table(session: Session, waiting: list[Request], *, everything: bool) -> str:
    """The line as a table; says so when nobody waits."""
    from dws.cli.output import table

    if not waiting:
        return "Nobody waits."
    groups = [[r] for r in waiting] if everything else gathered(waiting)
    now = session.now
    return table(
        HEADERS,
        [_row(session, group, now) for group in groups],
        right=["PLACE"],
        fold=["WANTS"],
        below="REASON",
        spare=["PROJECT"] if len({r.project for r in waiting}) == 1 else [],
        caption=f"\n{len(waiting)} waiting at {zones.local_time(now, session.zone)} ({session.zone})",
    )


def gathered(waiting: list[Request]) -> list[list[Request]]:
    """Requests in line order, elements of one array together at the place of the first."""
    groups: dict[tuple[str, str], list[Request]] = {}
    for request in waiting:
        key = (request.project, f"array {request.array}" if request.array else request.id)
        groups.setdefault(key, []).append(request)
    return list(groups.values())


def _row(session: Session, group: list[Request], now: int) -> list[str]:
    from dws.wire.timefmt import render_reason

    first, forecast = group[0], group[0].forecast
    submitted = zones.instant_of(first.submitted_at) or now
    name = first.name if len(group) == 1 else f"{first.array} ({len(group)} waiting)"
    wants = " or ".join(demand.words(a) for a in first.alternatives)
    waiting = zones.rough(now - submitted)
    if forecast is None:
        return ["", name, first.project, wants, waiting, "", "", ""]
    return [
        str(forecast.place),
        name,
        first.project,
        wants,
        waiting,
        moment(session, forecast.expected_start, now) or "unknown",
        moment(session, forecast.promised_start, now) or "not yet",
        render_reason(forecast.reason.text, forecast.reason.facts, session.zone),
    ]


def moment(session: Session, instant: str, now: int) -> str:
    """An instant of the API, short and relative: "14:05 (in 2h05m)"; empty stays empty."""
    at = zones.instant_of(instant)
    if at is None:
        return ""
    return zones.beside(at, session.zone, now=now)
