"""Verbs on requests: `dws list`, `wait`, `amend`, `cancel`, `release`, `extend`, `delete`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import click

from dws.cli import demand, zones
from dws.cli.demand import Wish
from dws.cli.exits import Exit
from dws.cli.queue import moment
from dws.cli.run import conclude
from dws.cli.session import Session, complete_request, request_argument, with_session
from dws.model.errors import NotFound

if TYPE_CHECKING:
    from dws.wire.native_v1 import ExtendAnswer, Request

names_argument = click.argument("names", nargs=-1, required=True, shell_complete=complete_request)
ignore_missing = click.option("--ignore-missing", is_flag=True, help="One that is not there is no error.")


@click.command(name="list")
@with_session
@click.option("--filter", "condition", default="", help='Which, for example: state = "ACTIVE".')
@click.option("--order-by", default="", help="Field to sort by, with 'desc' to reverse it.")
@click.option("--limit", type=click.IntRange(min=1), default=None, help="At most so many.")
@click.option("--all-projects", is_flag=True, help="Every project you may see.")
def list_requests(
    session: Session, condition: str, order_by: str, limit: int | None, *, all_projects: bool
) -> None:
    """Requests of the project, newest first.

    \b
    Example:
      dws list --filter 'state = "ACTIVE"'
    """
    from itertools import islice

    order = order_by or "submittedAt desc"
    project = "-" if all_projects else None
    every = session.client.requests(filter=condition, order_by=order, project=project)
    found = list(islice(every, limit))
    session.emit({"items": found, "nextPageToken": ""}, lambda: _list_table(session, found))


def _list_table(session: Session, found: list[Request]) -> str:
    from dws.cli.output import table

    if not found:
        return "No such requests."
    now = session.now
    several = len({r.project for r in found}) > 1
    rows = [
        [
            f"{r.project}/{r.name}" if several else r.name,
            r.state,
            demand.words(r.alternatives[r.grant.alternative if r.grant else 0]),
            moment(session, r.submitted_at, now),
            moment(session, r.ended_at or (r.grant.ends_at if r.grant else ""), now),
            r.cost,
            r.end_message or r.end_reason.lower().replace("_", " "),
        ]
        for r in found
    ]
    headers = ["NAME", "STATE", "WHAT", "SUBMITTED", "ENDS", "COST", "ENDED BECAUSE"]
    caption = f"\nTimes in {session.zone}."
    return table(headers, rows, right=["COST"], fold=["WHAT"], below="ENDED BECAUSE", caption=caption)


@click.command()
@with_session
@request_argument()
@click.option(
    "--until",
    "--for",
    "until",
    type=click.Choice(["started", "ended"]),
    default="ended",
    show_default=True,
    help="What to wait for.",
)
@click.option("--timeout", default="", metavar="DURATION", help="Stop watching after this.")
def wait(session: Session, name: str, until: Literal["started", "ended"], timeout: str) -> int:
    """Wait until a request started or ended; the status is as for 'dws run'.

    \b
    Example:
      dws wait train-a --until started --timeout 2h
    """
    from dws.wire.timefmt import parse_duration

    seconds = parse_duration(timeout, field="timeout") if timeout else None
    try:
        request = session.client.wait(name, until=until, timeout=seconds)
    except TimeoutError as error:
        session.say(f"dws: {error}")
        return Exit.WAITED_TOO_LONG
    if until == "started" and not request.end_reason:
        session.emit(request, lambda: "")
        session.say(f"{name}: {request.state.lower()}")
        return Exit.OK
    return conclude(session, [request])


@click.command()
@with_session
@request_argument()
@demand.demand_options
@demand.window_options
@click.option("--wait", "wait_limit", default="", metavar="DURATION", help="Wait so much longer, from now.")
@click.option("--priority", type=int, default=None, help="Higher goes first.")
@click.option("--label", multiple=True, metavar="KEY=VALUE", help="All labels anew.")
@click.option(
    "--on-host-loss",
    type=click.Choice(["end", "requeue", "replace"]),
    default=None,
    help="What becomes of it when it loses a host.",
)
def amend(
    session: Session,
    name: str,
    *,
    wish: Wish,
    not_before: str,
    not_after: str,
    wait_limit: str,
    priority: int | None,
    label: tuple[str, ...],
    on_host_loss: str | None,
) -> None:
    """Change a waiting request; it keeps its age in the queue. What is not named stays.

    \b
    Example:
      dws amend train-a --for 2h --wait 6h
    """
    from dws.wire.native_v1 import AmendRequest

    if wish.reservation:
        raise click.UsageError("a request keeps to its reservation; cancel it and submit another")
    alternatives = None if wish.is_empty else demand.amended(session.client.get(name), wish)
    earliest, latest = demand.window(session, not_before=not_before, not_after=not_after)
    change = AmendRequest(
        alternatives=alternatives,
        wait=wait_limit or None,
        not_before=earliest or None,
        not_after=latest or None,
        priority=priority,
        labels=demand.pairs(label, option="--label") if label else None,
        on_host_loss=on_host_loss,
    )
    if change == AmendRequest():
        raise click.UsageError("say what to change, for example --for 2h")
    _tell(session, session.client.amend(name, change), "amended")


@click.command()
@with_session
@names_argument
@ignore_missing
def cancel(session: Session, names: tuple[str, ...], ignore_missing: bool) -> None:
    """Stop wanting requests that wait or are being provisioned.

    \b
    Example:
      dws cancel train-a train-b
    """
    _each(session, names, session.client.cancel, "cancelled", ignore_missing=ignore_missing)


@click.command()
@with_session
@request_argument()
@click.option("--rank", "ranks", type=click.IntRange(min=0), multiple=True, help="Only this instance.")
def release(session: Session, name: str, ranks: tuple[int, ...]) -> None:
    """Give back what a running request holds, all of it or some instances.

    \b
    Example:
      dws release train-a --rank 2 --rank 3
    """
    what = f"giving back rank {', '.join(map(str, ranks))}" if ranks else "giving back"
    _tell(session, session.client.release(name, ranks=ranks), what)


@click.command()
@with_session
@request_argument()
@click.argument("by", metavar="DURATION")
@click.option("--at-most", is_flag=True, help="Take what is possible when it is less.")
@click.option("--dry-run", is_flag=True, help="Only say what is possible.")
def extend(session: Session, name: str, by: str, at_most: bool, dry_run: bool) -> int:
    """Run longer, if that breaks no promise made to others.

    \b
    Example:
      dws extend train-a 3h --at-most
    """
    answer = session.client.extend(name, by, at_most=at_most, dry_run=dry_run)
    session.emit(answer, lambda: _extension(session, answer, dry_run=dry_run))
    enough = answer.longest_s >= answer.asked_s or (at_most and answer.longest_s > 0)
    return Exit.OK if enough else Exit.PRECONDITION


def _extension(session: Session, answer: ExtendAnswer, *, dry_run: bool) -> str:
    from dws.wire.timefmt import format_duration, render_reason

    lines = []
    grant = answer.request.grant
    ends = zones.instant_of(grant.ends_at) if grant else None
    if answer.applied_s and ends is not None:
        by = format_duration(answer.applied_s)
        lines.append(f"{answer.request.name}: {by} longer, until {zones.local_time(ends, session.zone)}")
    elif dry_run and answer.longest_s >= answer.asked_s:
        lines.append(f"{answer.request.name}: {format_duration(answer.asked_s)} longer is possible")
    if answer.longest_s < answer.asked_s:
        longest = format_duration(answer.longest_s)
        lines.append(f"not possible in full: the longest is {longest} of {format_duration(answer.asked_s)}")
        if not answer.applied_s and answer.longest_s:
            lines.append("--at-most takes that")
    if answer.reason is not None:
        lines.append(render_reason(answer.reason.text, answer.reason.facts, session.zone))
    return "\n".join(lines)


@click.command()
@with_session
@names_argument
@ignore_missing
def delete(session: Session, names: tuple[str, ...], ignore_missing: bool) -> None:
    """Put the records of finished requests away; their names are free then.

    \b
    Example:
      dws delete train-a --ignore-missing
    """
    _each(session, names, session.client.delete, "deleted", ignore_missing=ignore_missing)


def _each(
    session: Session,
    names: tuple[str, ...],
    act: Callable[[str], Any],
    done: str,
    *,
    ignore_missing: bool,
) -> None:
    """Act on each name in turn; answers are printed as a list unless there is one."""
    answers = []
    for name in names:
        try:
            answers.append(act(name) or {})
        except NotFound:
            if not ignore_missing:
                raise
            session.say(f"{name}: not there")
        else:
            if session.is_table:
                session.say(f"{name}: {done}")
    session.emit(answers[0] if len(names) == 1 and answers else answers, lambda: "")


def _tell(session: Session, request: Request, done: str) -> None:
    session.emit(request, lambda: "")
    session.say(f"{request.name}: {done}; {request.state.lower()}")
