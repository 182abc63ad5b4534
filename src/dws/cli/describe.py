"""`dws describe`: everything about a request; `dws explain`: why not now, when, and what would be sooner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dws.cli import demand, zones
from dws.cli.ask import options_table
from dws.cli.queue import moment
from dws.cli.session import Session, request_argument, with_session

if TYPE_CHECKING:
    from dws.wire.native_v1 import Event, Grant, Quote, Request

_STAND = {
    "PENDING": "waits in line",
    "BOOKED": "waits, with a promised latest start",
    "PROVISIONING": "is being provisioned",
    "ACTIVE": "runs",
    "ENDING": "is being given back",
}

ROUND_MAX = 8


@click.command()
@with_session
@request_argument()
def describe(session: Session, name: str) -> None:
    """Everything about a request: what it asked, where it stands, what it was granted, its story.

    \b
    Example:
      dws describe train-a
    """
    request = session.client.get(name)
    if not session.is_table:
        session.emit(request, lambda: "")
        return
    events = session.client.events(project=request.project, name=request.id)
    click.echo("\n".join(_sections(session, request, events.items)))


def _sections(session: Session, request: Request, events: list[Event]) -> list[str]:
    from dws.cli.output import facts

    lines = [facts(_about(session, request))]
    if request.grant is not None:
        lines += ["", facts(_granted(session, request, request.grant)), "", _instances(request.grant)]
    return [*lines, "", story(session, events)] if events else lines


def story(session: Session, events: list[Event]) -> str:
    """What happened, a row each."""
    from dws.cli.output import table

    rows = []
    for event, times in merged(events):
        at = zones.local_time(zones.instant_of(event.at) or 0, session.zone)
        why = "; ".join(part for part in (why_of(event), f"{times} times" if times > 1 else "") if part)
        rows.append([at, event.kind, event.actor, why])
    return table(["WHEN", "WHAT", "WHO", "WHY"], rows)


def why_of(event: Event) -> str:
    """Why it happened, with the cause that the world gave."""
    cause = str(event.data.get("cause", ""))
    return event.reason if cause in event.reason else ": ".join(p for p in (event.reason, cause) if p)


def merged(events: list[Event]) -> list[tuple[Event, int]]:
    """The story with what goes round and round told once, as it was the last time, and how often."""
    told: list[tuple[Event, int]] = []
    at = 0
    while at < len(events):
        length, times = _round(events, at)
        last = at + length * (times - 1)
        told += [(event, times) for event in events[last : last + length]]
        at += length * times
    return told


def _round(events: list[Event], at: int) -> tuple[int, int]:
    """How many events from `at` on repeat themselves, and how often; (1, 1) when none do."""
    said = [(e.kind, e.actor, why_of(e)) for e in events[at:]]
    for length in range(1, ROUND_MAX + 1):
        times = 1
        while said[:length] == said[length * times : length * (times + 1)]:
            times += 1
        if times > 1:
            return length, times
    return 1, 1


def _inside(session: Session, request: Request) -> str:
    """The reservation it runs in, or has to, and until when at the latest."""
    ends = zones.instant_of(request.reservation_end)
    if ends is None:
        return request.reservation
    return f"{request.reservation}, until {zones.local_time(ends, session.zone)} at the latest"


def _about(session: Session, request: Request) -> list[tuple[str, str]]:
    now, forecast = session.now, request.forecast
    labels = ", ".join(f"{k}={v}" for k, v in sorted(request.labels.items()))
    program = " ".join(request.workload.command) if request.workload else ""
    state = request.state + (f" ({_STAND[request.state]})" if request.state in _STAND else "")
    found = [
        ("Name", request.name),
        ("Project", request.project),
        ("Id", request.id),
        ("State", state),
        ("Wants", ", or ".join(demand.words(a) for a in request.alternatives)),
        ("Reservation", _inside(session, request)),
        ("Not before", _full(session, request.not_before)),
        ("Not after", _full(session, request.not_after)),
        ("Priority", str(request.priority)),
        ("Labels", labels),
        ("Program", program),
        ("On host loss", request.on_host_loss),
        ("Array", f"{request.array}, element {request.array_index}" if request.array else ""),
        ("Asked by", request.principal),
        ("Submitted", _full(session, request.submitted_at)),
        ("Attempts", str(request.attempts) if request.attempts else ""),
        ("Last failure", request.last_failure),
    ]
    if forecast is not None:
        found += [
            ("Place", str(forecast.place)),
            ("Expected", moment(session, forecast.expected_start, now) or "unknown"),
            ("Promised", moment(session, forecast.promised_start, now) or "not yet"),
            ("Reason", _sentence(session, request)),
        ]
    return [
        *found,
        ("Ended", _full(session, request.ended_at)),
        ("Ended because", request.end_message or request.end_reason.lower().replace("_", " ")),
        ("Status", "" if request.exit_code is None else str(request.exit_code)),
        ("Cost", request.cost),
        ("Times in", str(session.zone)),
    ]


def _granted(session: Session, request: Request, grant: Grant) -> list[tuple[str, str]]:
    machines = f"{len(grant.instances)} x {grant.machine}"
    what = f"{grant.slices} x {grant.topology}, {machines}" if grant.slices else machines
    return [
        ("Granted", f"{what} in {grant.zone} (pool {grant.pool})"),
        ("Attempt", str(grant.attempt)),
        ("Started", _full(session, grant.started_at)),
        ("Delivered", _full(session, grant.delivered_at)),
        ("Ends", "" if request.ended_at else moment(session, grant.ends_at, session.now)),
        ("Unreachable since", _full(session, grant.unreachable_since)),
    ]


def _instances(grant: Grant) -> str:
    from dws.cli.output import table

    rows = []
    for i in grant.instances:
        place = [str(i.slice), str(i.worker)] if grant.slices > 1 else []
        status = "" if i.exit_code is None else str(i.exit_code)
        rows.append([str(i.rank), *place, i.host, i.state, i.address, status, i.note])
    place = ["SLICE", "WORKER"] if grant.slices > 1 else []
    headers = ["RANK", *place, "HOST", "STATE", "ADDRESS", "STATUS", "NOTE"]
    return table(headers, rows, right=["RANK", *place])


def _full(session: Session, instant: str) -> str:
    at = zones.instant_of(instant)
    return "" if at is None else zones.local_time(at, session.zone)


def _sentence(session: Session, request: Request) -> str:
    from dws.wire.timefmt import render_reason

    if request.forecast is None:
        return ""
    reason = request.forecast.reason
    return render_reason(reason.text, reason.facts, session.zone)


@click.command()
@with_session
@request_argument()
def explain(session: Session, name: str) -> None:
    """Why a request is not running now, when it will be, and what would start sooner.

    \b
    Example:
      dws explain train-a
    """
    request = session.client.get(name)
    quote = None
    if request.forecast is not None:
        quote = session.client.quote(
            *request.alternatives,
            not_before=request.not_before,
            not_after=request.not_after,
            priority=request.priority,
            reservation=request.reservation,
        )
    session.emit(
        {"request": request, "quote": quote},
        lambda: "\n".join(_explanation(session, request, quote)),
    )


def _explanation(session: Session, request: Request, quote: Quote | None) -> list[str]:
    now, forecast = session.now, request.forecast
    if forecast is None or quote is None:
        ended = request.end_message or request.end_reason.lower().replace("_", " ")
        stand = _STAND.get(request.state, f"is {request.state.lower()}")
        return [f"{request.name} {stand}{f': {ended}' if ended else ''}."]
    expected = moment(session, forecast.expected_start, now)
    promised = moment(session, forecast.promised_start, now)
    promise_by = moment(session, forecast.promise_by, now)
    lines = [
        f"{request.name} is number {forecast.place} in line.",
        f"Why not now:  {_sentence(session, request)}",
        f"When:         {f'expected {expected}' if expected else 'not within the planned horizon'}",
    ]
    if promised:
        lines.append(f"Promised:     by {promised} at the latest")
    elif promise_by:
        lines.append(f"Promised:     not yet; a promise is given by {promise_by}")
    sooner = [o for o in quote.options if o.start and o.start < (forecast.expected_start or "9999")]
    if not sooner:
        return [*lines, "", "Nothing like it would start sooner."]
    return [*lines, "", "What would start sooner:", options_table(session, sooner, now), _times(session)]


def _times(session: Session) -> str:
    return f"\nTimes in {session.zone}."
