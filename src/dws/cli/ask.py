"""Asking: `dws submit` and `dws quote`, and the options that `submit` shares with `run`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from dws.cli import demand, zones
from dws.cli.demand import Wish
from dws.cli.session import Session, with_session

if TYPE_CHECKING:
    from dws.wire.native_v1 import Quote, QuoteOption, Request, SubmitRequest

F = TypeVar("F", bound=Callable[..., Any])


def ask_options(command: F) -> F:
    """Everything a request can be asked with, gathered into `ask`: a function of the session."""

    @functools.wraps(command)
    def inner(session: Session, *args: Any, wish: Wish, **kwargs: Any) -> Any:
        said = {name: kwargs.pop(name) for name in _SAID}
        return command(session, *args, ask=lambda: build(session, wish, **said), **kwargs)

    inner = demand.demand_options(demand.window_options(inner))
    for option in reversed(_OPTIONS):
        inner = option(inner)
    return inner  # type: ignore[return-value]


def build(
    session: Session,
    wish: Wish,
    *,
    program: tuple[str, ...],
    not_before: str,
    not_after: str,
    wait_limit: str,
    label: tuple[str, ...],
    env: tuple[str, ...],
    workdir: str,
    signal_before: str,
    name: str,
    priority: int,
    on_host_loss: str | None,
    array: int,
) -> SubmitRequest:
    """The request to send. Raises UsageError or InvalidArgument; times are echoed before anything is sent."""
    from dws.wire.native_v1 import SubmitRequest, Workload

    alternatives = demand.alternatives(wish)
    earliest, latest = demand.window(session, not_before=not_before, not_after=not_after)
    if not program and (env or workdir or signal_before):
        raise click.UsageError("--env, --workdir and --signal-before need a program: … -- python train.py")
    workload = None
    if program:
        workload = Workload(
            command=list(program),
            environment=demand.pairs(env, option="--env"),
            directory=str(Path(workdir).absolute()),
            signal_before=signal_before or 0,
        )
    return SubmitRequest(
        alternatives=alternatives,
        name=name,
        wait=wait_limit or None,
        not_before=earliest,
        not_after=latest,
        priority=priority,
        labels=demand.pairs(label, option="--label"),
        workload=workload,
        on_host_loss=on_host_loss or "",
        array=array,
        reservation=wish.reservation,
    )


_SAID: Final = (
    "program",
    "not_before",
    "not_after",
    "wait_limit",
    "label",
    "env",
    "workdir",
    "signal_before",
    "name",
    "priority",
    "on_host_loss",
    "array",
)
_OPTIONS: Final = (
    click.option("--wait", "wait_limit", default="", metavar="DURATION", help="Give up waiting after this."),
    click.option("--name", default="", help="Name of the request. [default: one is made]"),
    click.option("--priority", type=int, default=0, help="Higher goes first."),
    click.option("--label", multiple=True, metavar="KEY=VALUE", help="Label; may be repeated."),
    click.option("--env", multiple=True, metavar="KEY=VALUE", help="Environment of the program."),
    click.option("--workdir", default="", metavar="DIR", help="Where the program runs. [default: here]"),
    click.option(
        "--signal-before", default="", metavar="DURATION", help="Warn the program so long before the end."
    ),
    click.option(
        "--on-host-loss",
        type=click.Choice(["end", "requeue", "replace"]),
        default=None,
        help="What becomes of it when it loses a host. [default: the server's policy]",
    ),
    click.option(
        "--array", type=click.IntRange(min=0), default=0, metavar="N", help="N such requests, NAME-0 and on."
    ),
    click.argument("program", nargs=-1, type=click.UNPROCESSED),
)


@click.command(context_settings={"allow_interspersed_args": False})
@with_session
@ask_options
def submit(session: Session, ask: Callable[[], SubmitRequest]) -> None:
    """Ask for capacity and return at once; prints the name of the request, or of each of an array.

    With a program it runs on every instance; without one the instances are held until released.

    \b
    Examples:
      dws submit --accelerators h100:16 --for 4h -- python train.py
      dws submit --machine a3-highgpu-8g --count 2 --for 8h --within block --name team-a
      dws submit --tpu v5e --topology 4x8 --for 4h -- python train.py
    """
    requests = session.client.submit_all(ask())
    session.emit(
        {"items": requests, "nextPageToken": ""} if len(requests) != 1 else requests[0],
        lambda: "\n".join(request.name for request in requests),
    )
    if session.is_table:
        first = session.client.get(requests[0].name)
        session.say(outlook(session, first, now=session.now))


def outlook(session: Session, request: Request, *, now: int) -> str:
    """In a line: where a request stands and what it can expect."""
    from dws.wire.timefmt import render_reason

    forecast = request.forecast
    ends = zones.instant_of(request.reservation_end)
    inside = ""
    if ends is not None:
        at = zones.local_time(ends, session.zone)
        inside = f"; ends with reservation {request.reservation}, {at}, at the latest"
    if forecast is None:
        return f"{request.name}: {request.state}{inside}"
    start = zones.instant_of(forecast.expected_start)
    reason = render_reason(forecast.reason.text, forecast.reason.facts, session.zone)
    text = f"{request.name}: place {forecast.place} in line"
    if start is not None:
        start = max(start, now)
        text += (
            f", expected {zones.relative(start, now=now)} "
            f"({zones.short_time(start, session.zone, now=now)} {session.zone})"
        )
    return f"{text}; {reason}{inside}" if reason else f"{text}{inside}"


@click.command()
@with_session
@demand.demand_options
@demand.window_options
@click.option("--priority", type=int, default=0, help="As it would be submitted with.")
def quote(session: Session, wish: Wish, not_before: str, not_after: str, priority: int) -> None:
    """When it would start, until when it would run and for how much, without asking for it.

    Also shows what would start sooner. Holds nothing: the answer may change until you submit.

    \b
    Examples:
      dws quote --accelerators h100:16 --for 4h
      dws quote --tpu v5litepod-16 --count 2 --for 4h
    """
    earliest, latest = demand.window(session, not_before=not_before, not_after=not_after)
    answer = session.client.quote(
        *demand.alternatives(wish),
        not_before=earliest,
        not_after=latest,
        priority=priority,
        reservation=wish.reservation,
    )
    session.emit(answer, lambda: quote_table(session, answer))


def quote_table(session: Session, answer: Quote) -> str:
    """The options as a small table, the reason, and what would be promised."""
    from dws.wire.timefmt import render_reason

    now = zones.instant_of(answer.now) or 0
    lines = [
        options_table(session, [answer.asked, *answer.options], now),
        "",
        render_reason(answer.reason.text, answer.reason.facts, session.zone),
    ]
    latest = zones.instant_of(answer.promised_latest)
    if latest is not None:
        lines.append(f"Submitted now it would be promised by {zones.local_time(latest, session.zone)}.")
    return "\n".join([*lines, f"Not a hold. Times in {session.zone}."])


def options_table(session: Session, options: list[QuoteOption], now: int) -> str:
    """Ways to have it, a row each."""
    from dws.cli.output import table

    headers = ["WHAT", "MACHINES", "WHERE", "FOR", "STARTS", "ENDS", "COST"]
    return table(
        headers, [_row(session, option, now) for option in options], right=["COST"], below="MACHINES"
    )


def _row(session: Session, option: QuoteOption, now: int) -> list[str]:
    from dws.wire.timefmt import format_duration

    start, end = zones.instant_of(option.start), zones.instant_of(option.end)
    machines = machines_of(option)
    where = option.zone + (f", one {option.within}" if option.within else "")
    if start is None or end is None:
        return [option.kind, machines, where, format_duration(option.duration_s), "not in sight", "", ""]
    return [
        option.kind,
        machines,
        where,
        format_duration(option.duration_s),
        zones.beside(start, session.zone, now=now),
        zones.short_time(end, session.zone, now=now),
        f"{option.cost} {option.currency}",
    ]


def machines_of(option: QuoteOption) -> str:
    """How many of which machines, with their accelerators; of slices which and how many first."""
    machines = f"{option.count} x {option.machine}"
    if not option.machine:  # no pool is or serves what was asked for
        if option.slices:
            return f"{option.slices} x {option.topology} ({option.accelerators} chips)"
        return f"{option.accelerators} accelerators"
    if option.slices:
        return f"{option.slices} x {option.topology} ({machines}, {option.accelerators} chips)"
    return f"{machines} ({option.accelerators} accelerators)" if option.accelerators else machines
