"""Booking ahead: `dws reserve` and `dws advise`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

import click

from dws.cli import demand, zones
from dws.cli.demand import Wish
from dws.cli.exits import of_error
from dws.cli.series import say_missed, series_table
from dws.cli.session import Session, with_session
from dws.model.errors import NoRoom
from dws.wire.timefmt import (
    FromNow,
    echo_instant,
    format_duration,
    format_instant,
    parse_duration,
    parse_moment,
    render_reason,
)

if TYPE_CHECKING:
    from dws.wire.native_v1 import Advice, RepeatBody, Reservation, Reserved, Share, WindowOption

UNTIL_GIVEN_BACK: Final = "until it is given back"
what_options = demand.only(
    *("accelerators", "machine", "tpu", "topology", "count", "zone", "region", "within")
)


@click.command()
@with_session
@click.argument("name")
@what_options
@click.option("--start", default="", metavar="TIME", help="'2027-01-11 09:00' in your zone (--tz), or +5m.")
@click.option("--in", "start_in", default="", metavar="DURATION", help="Start so long from now instead.")
@click.option("--now", is_flag=True, help="From now on; without --for or --until, until you give it back.")
@click.option("--for", "duration", default="", metavar="DURATION", help="For how long: 7d, 12h.")
@click.option("--until", default="", metavar="TIME", help="Until when, instead of --for.")
@click.option("--every", default="", metavar="WHEN", help='A series: "weekday 20:00-06:00 ZONE until DATE".')
@click.option("--may-miss", is_flag=True, help="With --every: skip occurrences that do not fit.")
@click.option("--share", "shares", multiple=True, metavar="PROJECT[:HOSTS]", help="Who may use it too.")
@click.option("--any-may-use", is_flag=True, help="Also work that does not name it.")
@click.option(
    "--request-hosts",
    type=click.IntRange(min=0),
    default=0,
    help="At most so many hosts for a request inside.",
)
@click.option("--request-run", default="", metavar="DURATION", help="The longest run inside.")
@click.option(
    "--at-end",
    type=click.Choice(["stop", "delete"]),
    default="delete",
    show_default=True,
    help="What becomes of instances that still run at its end.",
)
@click.option("--description", default="", help="What it is for.")
@click.option("--label", multiple=True, metavar="KEY=VALUE", help="Label; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Only say how it would be.")
def reserve(
    session: Session,
    name: str,
    wish: Wish,
    *,
    start: str,
    start_in: str,
    now: bool,
    duration: str,
    until: str,
    every: str,
    may_miss: bool,
    dry_run: bool,
    **terms: Any,
) -> int | None:
    """Book a block of capacity ahead, or from now on, or the same again and again.

    Checked at once against everything that is promised: booked, or refused with the nearest windows that
    would fit. Work uses it by naming it: 'dws submit --reservation NAME'.

    \b
    Examples:
      dws reserve spring-run --accelerators h100:64 --zone us-central1-a --start "2027-01-11 09:00" --for 7d
      dws reserve soon --machine a3-highgpu-8g --count 2 --in 5m --for 12h
      dws reserve lab --machine a3-highgpu-8g --count 2 --now
      dws reserve square --tpu v5e --topology 4x4 --count 2 --in 6h --for 2d
      dws reserve nights --accelerators h100:16 --every "weekday 20:00-06:00 Europe/Berlin until 2027-03-01"
    """
    from dws.wire.native_v1 import RepeatBody, ReserveBody

    what: dict[str, Any] = {
        "name": name,
        **demand.what_of(wish),
        "locations": list(wish.locations),
        "within": wish.within or None,
        "shares": shares_of(terms["shares"]),
        "specific_only": not terms["any_may_use"],
        "at_end": terms["at_end"],
        "request_hosts_max": terms["request_hosts"],
        "request_run_max": terms["request_run"] or 0,
        "description": terms["description"],
        "labels": demand.pairs(terms["label"], option="--label"),
    }
    if every:
        if start or start_in or now or duration or until or dry_run:
            raise click.UsageError(
                "--every says when; it goes without --start, --in, --now, --for, --until and --dry-run"
            )
        return _repeat(session, RepeatBody(every=every, may_miss=may_miss, **what))
    if may_miss:
        raise click.UsageError("--may-miss goes with --every")
    if bool(start) + bool(start_in) + now != 1:
        raise click.UsageError("say when it starts: --start TIME, --in DURATION or --now, one of them")
    if (duration and until) or not (duration or until or now):
        raise click.UsageError("say how long it lasts: either --for DURATION or --until TIME")
    ask = ReserveBody(
        start="" if now else f"in {start_in}" if start_in else _moment(session, start, "start"),
        duration=duration,
        end=_moment(session, until, "until") if until else "",
        time_zone=zones.name_of(session.zone),
        client_time=format_instant(int(session.machine.wall())),
        on_demand=now,
        dry_run=dry_run,
        **what,
    )
    try:
        told = session.client.reserve(ask)
    except NoRoom as error:
        if now:  # what would fit later is not what was asked for
            error.details.pop("nearest", None)
        return _refused(session, error, name, wish, _as_typed(terms))
    for warning in told.warnings:
        session.say(f"warning: {warning}")
    session.emit(told, lambda: _booked(session, told))
    return None


def _repeat(session: Session, ask: RepeatBody) -> int | None:
    """Begin a series, or say which days do not fit."""
    try:
        series = session.client.repeat(ask)
    except NoRoom as error:
        return say_missed(session, error)
    session.emit(series, lambda: series_table(series))
    return None


def _as_typed(terms: dict[str, Any]) -> str:
    """The options that say how it may be used, to be typed again."""
    words = [f"--share {text}" for text in terms["shares"]]
    words += ["--any-may-use"] if terms["any_may_use"] else []
    words += [f"--request-hosts {terms['request_hosts']}"] if terms["request_hosts"] else []
    words += [f"--request-run {terms['request_run']}"] if terms["request_run"] else []
    words += [f"--at-end {terms['at_end']}"] if terms["at_end"] != "delete" else []
    words += [f"--description {shlex.quote(terms['description'])}"] if terms["description"] else []
    words += [f"--label {shlex.quote(text)}" for text in terms["label"]]
    return "".join(f" {word}" for word in words)


def shares_of(said: tuple[str, ...]) -> list[Share]:
    """Who may use it too. Raises UsageError."""
    from dws.wire.native_v1 import Share

    shares = []
    for text in said:
        project, colon, hosts = text.partition(":")
        if not project or (colon and (not hosts.isdecimal() or not int(hosts))):
            raise click.UsageError(f"--share '{text}' is not PROJECT, or PROJECT:HOSTS with at least 1 host")
        shares.append(Share(project=project, hosts_max=int(hosts or 0)))
    return shares


def _moment(session: Session, text: str, field: str) -> str:
    """As the API reads it; a time on a clock is echoed first, a relative one is left to the server."""
    moment = parse_moment(text, session.zone, field=field)
    if isinstance(moment, FromNow):
        return f"in {moment.seconds}s"
    session.say(f"{field}: {echo_instant(moment, session.zone)}")
    return format_instant(moment)


def _booked(session: Session, told: Reserved) -> str:
    row = told.reservation
    done = "would be booked" if told.dry_run else f"is {row.state}"
    lines = [
        f"{row.name} {done}: {words(row)} in {row.zone} ({row.pool})",
        *(f"{word:<4} {at}" for word, at in zip(("from", "to"), window_times(session, row), strict=True)),
        *([f"cost: {row.cost}"] if row.cost else []),
        *(f"- {render_reason(r.text, r.facts, session.zone)}" for r in told.rules),
    ]
    return "\n".join(lines)


def words(row: Reservation | WindowOption) -> str:
    """How many of what, as a reservation counts them."""
    what = f"{row.topology} of {row.machine}" if row.topology else row.machine
    return f"{row.count} x {what}"


def window_times(session: Session, row: Reservation) -> tuple[str, str]:
    """From when and to when, in the reader's zone and UTC, and how long that is."""
    start, end = zones.instant_of(row.start) or 0, zones.instant_of(row.end)
    if not end:
        return echo_instant(start, session.zone), UNTIL_GIVEN_BACK
    return (
        echo_instant(start, session.zone),
        f"{echo_instant(end, session.zone)}, {zones.rough(end - start)}",
    )


def _refused(session: Session, error: NoRoom, name: str, wish: Wish, terms: str) -> int:
    """Why not, and what would fit, ready to be typed."""
    session.say(f"dws: {error.message}")
    nearest = error.details.get("nearest")
    for each in nearest if isinstance(nearest, list) else []:
        command = booking_command(name, wish, each["zone"], each["start"], each["durationS"]) + terms
        start = zones.instant_of(each["start"]) or 0
        session.say(f"fits from {zones.local_time(start, session.zone)}:\n  {command}")
    most = error.details.get("most")
    if isinstance(most, int) and most > 0:
        what = "slices" if wish.tpu or wish.topology else "hosts"
        session.say(f"that window has room for {most} {what}")
    return of_error(error)


def booking_command(name: str, wish: Wish, zone: str, start: str, seconds: int) -> str:
    """The command that books just that window."""
    said = (("accelerators", wish.accelerators), ("machine", wish.machine), ("tpu", wish.tpu))
    what = " ".join(f"--{option} {value}" for option, value in said if value)
    if wish.topology:
        what += f" --topology {wish.topology}"
    if not wish.accelerators:
        what += f" --count {wish.count or 1}"
    if wish.within:
        what += f" --within {wish.within}"
    return f"dws reserve {name} {what} --zone {zone} --start {start} --for {format_duration(seconds)}"


@click.command()
@with_session
@what_options
@click.option("--for", "duration", required=True, metavar="DURATION", help="At least for how long.")
@click.option("--up-to", default="", metavar="DURATION", help="At most for how long. [default: as --for]")
@click.option("--from", "start_from", default="", metavar="TIME", help="Start not before. [default: now]")
@click.option("--to", "start_to", default="", metavar="TIME", help="Start not after. [default: the horizon]")
@click.option("--hours", default="", metavar="WHEN", help='Only within "weekday 08:00-20:00 ZONE".')
@click.option("--end-by", default="", metavar="TIME", help="End not after.")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many.")
def advise(
    session: Session,
    wish: Wish,
    *,
    duration: str,
    up_to: str,
    start_from: str,
    start_to: str,
    end_by: str,
    hours: str,
    limit: int,
) -> None:
    """Windows that could be booked now: the longest first, then the earliest. Holds nothing.

    \b
    Example:
      dws advise --accelerators h100:16 --within block --for 6h --up-to 24h --to +10d
    """
    from dws.wire.native_v1 import AdviseBody

    what = demand.what_of(wish)
    parse_duration(duration, field="for")
    bounds = {
        field: _moment(session, text, word) if text else ""
        for field, word, text in (
            ("start_from", "from", start_from),
            ("start_to", "to", start_to),
            ("end_by", "end-by", end_by),
        )
    }
    ask = AdviseBody(
        duration=duration,
        duration_max=up_to,
        locations=list(wish.locations),
        within=wish.within or None,
        hours=hours,
        limit=limit,
        **what,
        **bounds,
    )
    answer = session.client.advise(ask)
    session.emit(answer, lambda: _advice(session, answer, wish))


def _advice(session: Session, answer: Advice, wish: Wish) -> str:
    from dws.cli.output import table

    now = zones.instant_of(answer.now) or 0
    rows = []
    for option in answer.options:
        start, end = zones.instant_of(option.start) or 0, zones.instant_of(option.end) or 0
        rows.append(
            [
                zones.short_time(start, session.zone, now=now),
                zones.short_time(end, session.zone, now=now),
                zones.rough(option.duration_s),
                words(option),
                option.zone,
                option.cost,
                render_reason(option.reason.text, option.reason.facts, session.zone),
            ]
        )
    headers: Final = ["FROM", "TO", "LENGTH", "MACHINES", "ZONE", "COST", "WHY"]
    lines = [table(headers, rows, right=["COST"], below="WHY")] if rows else ["No window fits."]
    for loss in answer.lost:
        why = render_reason(loss.reason.text, loss.reason.facts, session.zone)
        lines.append(f"{loss.zone}{f' ({loss.pool})' if loss.pool else ''}: {why}")
    if answer.options:
        lines.append("\nBook one of them, in this order, with:")
    for each in answer.options:
        lines.append(f"  {booking_command('NAME', wish, each.zone, each.start, each.duration_s)}")
    return "\n".join([*lines, f"Not a hold. Times in {session.zone}."])
