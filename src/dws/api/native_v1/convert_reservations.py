"""Native wire to commands about reservations and the calendar, and back. Pure.

Times may be told in three ways (see `moment`): what is relative counts from the server's `now`, never from
the clock of whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from dws.api.native_v1 import convert
from dws.engine import answers
from dws.engine.commands import AmendReservation, Reserve, Seek
from dws.model.demand import OPEN_ENDED_S, Alternative
from dws.model.errors import InvalidArgument, NoRoom
from dws.model.localtime import zone_named
from dws.model.recurrence import Recurrence, parse_recurrence
from dws.model.request import CapacityRequest
from dws.model.reservation import AtEnd, Reservation, Share, Terms
from dws.model.time import FOREVER
from dws.planner import plan
from dws.wire import native_v1 as wire
from dws.wire.timefmt import (
    FromNow,
    format_duration,
    format_instant,
    format_money,
    parse_instant,
    parse_moment,
)

HOURS_LOOKED_AT: Final = 400
SKEW_TOLERATED_S: Final = 30

# --- what is asked ----------------------------------------------------------------------------


def moment(text: str, field: str, time_zone: str, now: int) -> int:
    """Epoch seconds of an RFC 3339 instant with an offset, of a local time of `time_zone`, or of "in 5m".

    Raises InvalidArgument naming `field`, for a time without an offset where no zone is told too.
    """
    told = parse_moment(text, zone_named(time_zone) if time_zone else None, field=field)
    return now + told.seconds if isinstance(told, FromNow) else told


def reserve(project: str, told: wire.ReserveBody, now: int, call_id: str = "") -> Reserve:
    """The command to book."""
    if (told.duration and told.end) or not (told.duration or told.end or told.on_demand):
        raise InvalidArgument("duration: give either this ('7d') or 'end'", field="duration")
    start, start_in_s = _start(told, now)
    if not told.duration and not told.end:
        length = OPEN_ENDED_S
    elif told.end:
        length = moment(told.end, "end", told.time_zone, now) - start
        if length < 1:
            raise InvalidArgument("end: must lie after the start", field="end")
        start_in_s = None
    else:
        length = _length(told.duration)
    return Reserve(
        project=project,
        name=told.name,
        alternative=what(told, length),
        start=start,
        start_in_s=start_in_s,
        terms=terms_of(told),
        description=told.description,
        labels=told.labels,
        time_zone=told.time_zone,
        on_demand=told.on_demand,
        dry_run=told.dry_run,
        call_id=call_id,
    )


def _start(told: wire.ReserveBody, now: int) -> tuple[int, int | None]:
    """When, and how far from now when that is what was said."""
    if told.on_demand and told.start:
        raise InvalidArgument("start: a reservation that is onDemand starts now; leave it out", field="start")
    if told.on_demand:
        return now, 0
    if not told.start:
        raise InvalidArgument("start: is missing", field="start", reason="missingField")
    said = parse_moment(told.start, zone_named(told.time_zone) if told.time_zone else None, field="start")
    return (now + said.seconds, said.seconds) if isinstance(said, FromNow) else (said, None)


def _length(told: str | int) -> int:
    length = convert.duration(told, "duration")
    if length < 1:
        raise InvalidArgument("duration: at least 1 s is needed, for example '7d'", field="duration")
    return length


def what(told: wire.ReserveBody | wire.AdviseBody | wire.RepeatBody, length: int) -> Alternative:
    """What is to be booked, for `length` seconds."""
    return convert.alternative(
        wire.Alternative(
            duration=length,
            accelerators=told.accelerators,
            machine=told.machine,
            count=told.count,
            locations=told.locations,
            within=told.within,
            topology=told.topology,
        )
    )


def terms_of(told: wire.ReserveBody | wire.RepeatBody) -> Terms:
    """How it may be used."""
    return Terms(
        shares=_shares(told.shares),
        specific_only=told.specific_only,
        at_end=_at_end(told.at_end or AtEnd.DELETE.value),
        request_hosts_max=told.request_hosts_max,
        request_run_max_s=convert.duration(told.request_run_max, "requestRunMax"),
    )


def _shares(told: list[wire.Share]) -> tuple[Share, ...]:
    return tuple(Share(project=s.project, hosts_max=s.hosts_max) for s in told)


def _at_end(word: str) -> AtEnd:
    try:
        return AtEnd(word)
    except ValueError:
        known = ", ".join(AtEnd)
        raise InvalidArgument(f"atEnd: '{word}' is not one of {known}", field="atEnd") from None


def amend(
    reservation: Reservation, told: wire.AmendReservationBody, now: int, call_id: str = ""
) -> AmendReservation:
    """The command to change it: only what was sent. A new start alone moves the window as it is."""
    start, end = _window(reservation, told, now)
    return AmendReservation(
        project=reservation.project,
        name=str(reservation.id),
        new_name=told.name,
        start=start,
        end=end,
        count=told.count,
        terms=changed_terms(reservation.terms, told),
        description=told.description,
        labels=told.labels,
        time_zone=told.time_zone,
        force=told.force,
        dry_run=told.dry_run,
        call_id=call_id,
    )


def _window(
    reservation: Reservation, told: wire.AmendReservationBody, now: int
) -> tuple[int | None, int | None]:
    zone = reservation.time_zone if told.time_zone is None else told.time_zone
    if told.duration is not None and told.end is not None:
        raise InvalidArgument("duration: give either this or 'end'", field="duration")
    start = None if told.start is None else moment(told.start, "start", zone, now)
    begins = reservation.window.start if start is None else start
    if told.end is not None:
        end = moment(told.end, "end", zone, now)
        if end <= begins:
            raise InvalidArgument("end: must lie after the start", field="end")
        return start, end
    if told.duration is not None:
        return start, begins + _length(told.duration)
    return start, None if start is None else start + reservation.window.length_s


def changed_terms(had: Terms, told: wire.AmendReservationBody | wire.AmendSeriesBody) -> Terms | None:
    """The terms with what was sent changed; None when nothing of them was."""
    sent = (told.shares, told.specific_only, told.at_end, told.request_hosts_max, told.request_run_max)
    if all(each is None for each in sent):
        return None
    run_max = had.request_run_max_s
    if told.request_run_max is not None:
        run_max = convert.duration(told.request_run_max, "requestRunMax")
    return Terms(
        shares=had.shares if told.shares is None else _shares(told.shares),
        specific_only=had.specific_only if told.specific_only is None else told.specific_only,
        at_end=had.at_end if told.at_end is None else _at_end(told.at_end),
        request_hosts_max=(
            had.request_hosts_max if told.request_hosts_max is None else told.request_hosts_max
        ),
        request_run_max_s=run_max,
    )


def seek(project: str, told: wire.AdviseBody, now: int) -> Seek:
    """The command to search for windows: from now as far as can be booked, unless bounds are told."""
    shortest = _length(told.duration)
    longest = convert.duration(told.duration_max, "durationMax") if told.duration_max else shortest

    def at(text: str, field: str, default: int) -> int:
        return moment(text, field, told.time_zone, now) if text else default

    return Seek(
        project=project,
        alternative=what(told, shortest),
        start_from=at(told.start_from, "startFrom", now),
        start_to=at(told.start_to, "startTo", FOREVER),
        min_s=shortest,
        max_s=longest,
        end_to=at(told.end_by, "endBy", 0),
        hours=_hours(told.hours, now) if told.hours else None,
        limit=told.limit,
    )


def _hours(text: str, now: int) -> Recurrence:
    today = datetime.fromtimestamp(now, UTC).date()
    until = today + timedelta(days=HOURS_LOOKED_AT)
    try:
        return parse_recurrence(f"{text} from {today - timedelta(days=1)} until {until}", now=now)
    except InvalidArgument as error:
        raise InvalidArgument(error.message.replace("every:", "hours:", 1), field="hours") from None


# --- what is answered -------------------------------------------------------------------------


@contextmanager
def told_room() -> Iterator[None]:
    """Let a refusal for want of room tell its nearest windows as the API tells instants."""
    try:
        yield
    except NoRoom as error:
        details = dict(error.details)
        nearest = details.get("nearest")
        if isinstance(nearest, list):
            details["nearest"] = [_nearest(each) for each in nearest]
        error.details = details
        raise


def _nearest(told: dict[str, object]) -> dict[str, object]:
    start, end = told["start"], told["end"]
    assert isinstance(start, int), "windows are instants"
    assert isinstance(end, int), "windows are instants"
    return {
        "pool": told["pool"],
        "zone": told["zone"],
        "machine": told["shape"],
        "count": told["count"],
        "start": format_instant(start),
        "end": format_instant(end),
        "durationS": end - start,
    }


def skew(client_time: str, now: int, *, virtual: bool) -> list[str]:
    """What to tell a caller whose clock, as told, is far from a real server's."""
    if not client_time:
        return []
    off = parse_instant(client_time, field="clientTime") - now
    if virtual or abs(off) <= SKEW_TOLERATED_S:
        return []
    side = "ahead of" if off > 0 else "behind"
    return [
        f"your clock is {format_duration(abs(off))} {side} the server's; times are counted by the server's"
    ]


def reserved(told: answers.Reserved, *, now: int, warnings: list[str]) -> wire.Reserved:
    """What was booked, or would be."""
    return wire.Reserved(
        reservation=reservation(told.view),
        dry_run=told.dry_run,
        rules=[convert.reason(each) for each in told.rules],
        now=format_instant(now),
        warnings=warnings,
    )


def reservation(view: answers.ReservationView, *, full: bool = False) -> wire.Reservation:
    """A reservation; with `full` its hosts and what is inside too."""
    row, terms = view.reservation, view.reservation.terms
    return wire.Reservation(
        id=str(row.id),
        name=row.name,
        project=row.project,
        principal=row.principal,
        state=row.state.value,
        start=format_instant(row.window.start),
        end="" if row.is_open_ended else format_instant(row.window.end),
        duration_s=0 if row.is_open_ended else row.window.length_s,
        time_zone=row.time_zone,
        pool=row.pool,
        zone=row.zone,
        machine=row.shape,
        count=row.count,
        within=row.within,
        topology=row.topology,
        short=row.short,
        in_use=view.in_use,
        waiting=view.waiting,
        shares=shares(terms),
        specific_only=terms.specific_only,
        at_end=terms.at_end.value,
        request_hosts_max=terms.request_hosts_max,
        request_run_max_s=terms.request_run_max_s,
        description=row.description,
        labels=dict(row.labels),
        series=row.series,
        created_at=format_instant(row.created_at),
        lock_at=format_instant(row.lock_at),
        approve_by=format_instant(row.approve_by),
        cancel_until=format_instant(row.cancel_until),
        opened_at=format_instant(row.opened_at),
        idle_since=format_instant(row.idle_since),
        ended_at=format_instant(row.ended_at),
        end_message=row.end_message,
        sequence=row.sequence,
        version=row.version,
        cost="" if row.is_open_ended else format_money(view.cost_micros),
        hosts=list(view.hosts) if full else [],
        inside=[_inside(each) for each in view.inside] if full else [],
        on_demand=row.on_demand,
    )


def shares(told: Terms) -> list[wire.Share]:
    """Which other projects may use it."""
    return [wire.Share(project=s.project, hosts_max=s.hosts_max) for s in told.shares]


def terms(told: Terms) -> dict[str, object]:
    """How it may be used, with the names a reservation has them under."""
    return {
        "shares": [{"project": s.project, "hostsMax": s.hosts_max} for s in told.shares],
        "specificOnly": told.specific_only,
        "atEnd": told.at_end.value,
        "requestHostsMax": told.request_hosts_max,
        "requestRunMaxS": told.request_run_max_s,
    }


def _inside(told: CapacityRequest) -> wire.Inside:
    grant = told.grant
    return wire.Inside(
        name=told.name,
        project=told.project,
        state=told.state.value,
        hosts=sum(1 for i in grant.instances if i.is_held) if grant else 0,
        ends_at=format_instant(grant.ends_at) if grant else "",
    )


def advice(told: plan.Advice, currency: str) -> wire.Advice:
    """Windows, best first, and why each other zone has none."""
    return wire.Advice(
        now=format_instant(told.now),
        options=[_option(each, currency) for each in told.options],
        lost=[
            wire.ZoneLoss(zone=each.zone, pool=each.pool, reason=convert.reason(each.reason))
            for each in told.lost
        ],
    )


def _option(told: plan.WindowOption, currency: str) -> wire.WindowOption:
    return wire.WindowOption(
        pool=told.pool,
        zone=told.zone,
        machine=told.shape,
        count=told.count,
        within=told.within,
        topology=told.topology,
        start=format_instant(told.window.start),
        end=format_instant(told.window.end),
        duration_s=told.window.length_s,
        cost=format_money(told.cost_micros),
        currency=currency,
        reason=convert.reason(told.reason),
    )


def calendar(told: answers.CalendarView) -> wire.CalendarView:
    """The calendar over a span."""
    return wire.CalendarView(
        now=format_instant(told.now),
        start=format_instant(told.start),
        end=format_instant(told.end),
        pools=[
            wire.PoolCalendar(
                pool=pool.pool,
                zone=pool.zone,
                machine=pool.shape,
                hosts=pool.hosts,
                bars=[_bar(each) for each in pool.bars],
                free=[wire.FreeStep(start=format_instant(at), hosts=n) for at, n in pool.free],
                host_units=pool.host_units,
            )
            for pool in told.pools
        ],
    )


def _bar(told: answers.Bar) -> wire.Bar:
    return wire.Bar(
        kind=told.kind.value,
        count=told.count,
        start=format_instant(told.start),
        end=format_instant(told.end),
        name=told.name,
        project=told.project,
        state=told.state,
        own=told.own,
        parent=told.parent,
        in_use=told.in_use,
        short=told.short,
    )
