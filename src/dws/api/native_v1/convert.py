"""Native wire to commands, and model to native wire. Pure; every enum's every member has its word.

Errors name the field as the caller wrote it: `alternatives[0].accelerators`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dws.engine import answers
from dws.engine.commands import Amend, ChangeHosts, Extend, Release, Submit
from dws.model import request as model
from dws.model.demand import ANY_RESERVATION, UNTIL_END, Alternative, Demand, Grouping
from dws.model.errors import InvalidArgument
from dws.model.time import FOREVER
from dws.model.topology import HostState, Pool, Zone
from dws.planner import plan
from dws.wire import native_v1 as wire
from dws.wire.timefmt import (
    format_instant,
    format_money,
    parse_duration,
    parse_instant,
    render_reason,
)

DURATION_MAX_S: Final = FOREVER
COUNT_MAX: Final = 1_000_000

# --- what is asked ----------------------------------------------------------------------------


@contextmanager
def under(prefix: str) -> Iterator[None]:
    """Let errors raised inside name their field below `prefix`."""
    try:
        yield
    except InvalidArgument as error:
        error.field = f"{prefix}.{error.field}" if error.field else prefix
        raise


def duration(value: str | int, field: str) -> int:
    """Seconds. Raises InvalidArgument naming `field`."""
    seconds = parse_duration(value, field=field)
    if seconds > DURATION_MAX_S:
        raise InvalidArgument(f"{field}: {seconds} s is longer than anything we plan", field=field)
    return seconds


def instant(value: str, field: str, default: int) -> int:
    """Epoch seconds, `default` for the empty string."""
    return parse_instant(value, field=field) if value else default


def run_length(value: str | int, *, may_be_open: bool) -> int:
    """Seconds of a run, at least one; UNTIL_END when nothing was told and that `may_be_open`."""
    if value == "" and may_be_open:
        return UNTIL_END
    seconds = duration(value, "duration")
    if seconds < 1:
        raise InvalidArgument(
            f"duration: {seconds} s is not possible, at least 1 s is needed, for example '4h' or '90m'",
            field="duration",
        )
    return seconds


def alternative(told: wire.Alternative, *, may_be_open: bool = False) -> Alternative:
    """One acceptable form; its duration may be left out where it `may_be_open`."""
    accelerator, count = "", told.count
    if told.accelerators:
        if told.machine or told.count:
            raise InvalidArgument(
                "accelerators: give either this ('h100:16') or 'machine' and 'count'", field="accelerators"
            )
        accelerator, _, number = told.accelerators.partition(":")
        if not accelerator or (number and not number.isascii()) or not (number or "1").isdecimal():
            raise InvalidArgument(
                f"accelerators: '{told.accelerators}' is not TYPE:COUNT, such as 'h100:16'",
                field="accelerators",
            )
        count = int(number[:9] or "1")
    if count > COUNT_MAX:
        raise InvalidArgument(f"count: at most {COUNT_MAX} can be asked for", field="count")
    return Alternative(
        count=count,
        duration_s=run_length(told.duration, may_be_open=may_be_open),
        shape=told.machine,
        accelerator=accelerator,
        locations=tuple(told.locations),
        within=told.within,
        topology=told.topology,
        grouping=_grouping(told.grouping),
        near=told.near,
    )


def _grouping(told: wire.Grouping | None) -> Grouping | None:
    if told is None:
        return None
    return Grouping(level=told.level, together=told.together, at_most=told.at_most)


def alternatives(told: list[wire.Alternative], *, may_be_open: bool = False) -> tuple[Alternative, ...]:
    """Acceptable forms, in order of preference."""
    made = []
    for index, each in enumerate(told):
        with under(f"alternatives[{index}]"):
            made.append(alternative(each, may_be_open=may_be_open))
    return tuple(made)


def demand(told: wire.SubmitRequest | wire.QuoteRequest) -> Demand:
    """What is wanted. In a named reservation it may last until the end of that."""
    may_be_open = told.reservation not in ("", "any")
    return Demand(
        alternatives=alternatives(told.alternatives, may_be_open=may_be_open),
        not_before=instant(told.not_before, "notBefore", 0),
        not_after=instant(told.not_after, "notAfter", FOREVER),
    )


def workload(told: wire.Workload | None) -> model.Workload | None:
    """What to run."""
    if told is None:
        return None
    with under("workload"):
        return model.Workload(
            command=tuple(told.command),
            environment=told.environment,
            directory=told.directory,
            signal_before_s=duration(told.signal_before, "signalBefore"),
        )


def host_loss(word: str | None) -> model.HostLossPolicy | None:
    """What becomes of a gang that loses a host; None for the server's default."""
    if not word:
        return None
    try:
        return model.HostLossPolicy(word)
    except ValueError:
        known = ", ".join(model.HostLossPolicy)
        raise InvalidArgument(f"onHostLoss: '{word}' is not one of {known}", field="onHostLoss") from None


def submit(project: str, told: wire.SubmitRequest, call_id: str = "") -> Submit:
    """The command to ask for capacity."""
    return Submit(
        project=project,
        demand=demand(told),
        name=told.name,
        wait_s=None if told.wait is None else duration(told.wait, "wait"),
        priority=told.priority,
        labels=told.labels,
        workload=workload(told.workload),
        on_host_loss=host_loss(told.on_host_loss),
        array=told.array,
        reservation=told.reservation,
        call_id=call_id,
    )


def amend(project: str, name: str, told: wire.AmendRequest, call_id: str = "") -> Amend:
    """The command to change a waiting request: only what was sent."""
    return Amend(
        project=project,
        name=name,
        alternatives=None if told.alternatives is None else alternatives(told.alternatives, may_be_open=True),
        not_before=None if told.not_before is None else instant(told.not_before, "notBefore", 0),
        not_after=None if told.not_after is None else instant(told.not_after, "notAfter", FOREVER),
        wait_s=None if told.wait is None else duration(told.wait, "wait"),
        priority=told.priority,
        labels=told.labels,
        workload=workload(told.workload),
        on_host_loss=host_loss(told.on_host_loss),
        call_id=call_id,
    )


def release(project: str, name: str, told: wire.ReleaseRequest, call_id: str = "") -> Release:
    """The command to give back."""
    return Release(project=project, name=name, ranks=tuple(told.ranks), call_id=call_id)


def extend(project: str, name: str, told: wire.ExtendRequest, call_id: str = "") -> Extend:
    """The command to run longer."""
    return Extend(
        project=project,
        name=name,
        by_s=duration(told.by, "by"),
        at_most=told.at_most,
        dry_run=told.dry_run,
        call_id=call_id,
    )


def change_hosts(told: wire.ChangeHostsRequest) -> ChangeHosts:
    """The command to drain, fail or repair hosts."""
    return ChangeHosts(
        hosts=tuple(told.hosts),
        state=told.state,
        reason=told.reason,
        until=instant(told.until, "until", 0),
        confirm=told.confirm,
    )


# --- what is answered -------------------------------------------------------------------------


def reason(told: plan.Reason) -> wire.Reason:
    """One plain reason, filled in and as a template."""
    facts = dict(told.facts)
    message = render_reason(told.text, facts)
    return wire.Reason(code=told.code, message=message, text=told.text, facts=facts)


def wire_alternative(told: Alternative) -> wire.Alternative:
    """One acceptable form, as it can be sent again."""
    return wire.Alternative(
        duration="" if told.duration_s == UNTIL_END else f"{told.duration_s}s",
        accelerators=f"{told.accelerator}:{told.count}" if told.accelerator else "",
        machine=told.shape,
        count=told.count if told.shape else 0,
        locations=list(told.locations),
        within=told.within,
        topology=told.topology,
        grouping=_wire_grouping(told.grouping),
        near=told.near,
    )


def _wire_grouping(told: Grouping | None) -> wire.Grouping | None:
    if told is None:
        return None
    return wire.Grouping(level=told.level, together=told.together, at_most=told.at_most)


def wire_workload(told: model.Workload | None) -> wire.Workload | None:
    """What is run."""
    if told is None:
        return None
    return wire.Workload(
        command=list(told.command),
        environment=dict(told.environment),
        directory=told.directory,
        signal_before=f"{told.signal_before_s}s" if told.signal_before_s else 0,
    )


def instance(told: model.Instance, *, number: int = 0, worker: int = 0) -> wire.Instance:
    """One machine of a grant; in a TPU slice its `number`, and the machine's rank in it."""
    return wire.Instance(
        rank=told.rank,
        host=told.host,
        state=told.state.value,
        address=told.address,
        exit_code=told.exit_code,
        note=told.note,
        slots=list(told.slots),
        slice=number,
        worker=worker,
    )


def grant(told: model.Grant) -> wire.Grant:
    """What was granted."""
    return wire.Grant(
        pool=told.pool,
        zone=told.zone,
        machine=told.shape,
        alternative=told.alternative,
        attempt=told.attempt,
        started_at=format_instant(told.started_at),
        delivered_at=format_instant(told.delivered_at),
        ends_at=format_instant(told.ends_at),
        duration_s=told.duration_s,
        unreachable_since=format_instant(told.unreachable_since),
        instances=[
            instance(each, number=told.slice_of(each.rank), worker=told.worker_of(each.rank))
            for each in told.instances
        ],
        topology=told.topology,
        slices=told.slices,
    )


def forecast(told: plan.Forecast) -> wire.Forecast:
    """What a waiting request can expect."""
    return wire.Forecast(
        place=told.place,
        expected_start=format_instant(told.expected_start),
        promised_start=format_instant(told.promised_start),
        promise_by=format_instant(told.promise_by),
        pool=told.placement.pool if told.placement else "",
        reason=reason(told.reason),
    )


def request(view: answers.RequestView, *, cost: bool = False) -> wire.Request:
    """A request. `cost` says that the view has been reckoned; it is empty otherwise."""
    row, inside = view.request, view.reservation
    return wire.Request(
        id=str(row.id),
        name=row.name,
        project=row.project,
        principal=row.principal,
        state=row.state.value,
        alternatives=[wire_alternative(each) for each in row.demand.alternatives],
        not_before=format_instant(row.demand.not_before),
        not_after=format_instant(row.demand.not_after),
        priority=row.priority,
        labels=dict(row.labels),
        workload=wire_workload(row.workload),
        on_host_loss=row.on_host_loss.value,
        array=row.array,
        array_index=row.array_index,
        submitted_at=format_instant(row.submitted_at),
        promised_start=format_instant(row.promised_start),
        attempts=row.attempts,
        last_failure=row.last_failure,
        grant=None if row.grant is None else grant(row.grant),
        end_reason=row.end_reason.value if row.end_reason else "",
        end_message=row.end_message,
        ended_at=format_instant(row.ended_at),
        exit_code=row.exit_code,
        cost=format_money(view.cost_micros) if cost else "",
        forecast=None if view.forecast is None else forecast(view.forecast),
        reservation=_reservation(view),
        reservation_start=format_instant(inside.window.start) if inside else "",
        reservation_end=format_instant(inside.window.end) if inside else "",
    )


def _reservation(view: answers.RequestView) -> str:
    """The reservation it runs in or has to, as a request may name it."""
    if view.reservation is not None:
        return f"{view.reservation.project}/{view.reservation.name}"
    return "any" if view.request.demand.reservation == ANY_RESERVATION else ""


def quote_option(told: plan.QuoteOption, currency: str) -> wire.QuoteOption:
    """One way to have it."""
    return wire.QuoteOption(
        kind=told.kind,
        machine=told.shape,
        count=told.count,
        accelerators=told.accelerators,
        topology=told.topology,
        slices=told.slices,
        duration_s=told.duration_s,
        zone=told.zone,
        pool=told.pool,
        within=told.within,
        start=format_instant(told.start),
        end=format_instant(told.end),
        cost=format_money(told.cost_micros),
        currency=currency,
        reason=None if told.reason is None else reason(told.reason),
    )


def quote(told: plan.Quote, currency: str) -> wire.Quote:
    """When, until when, for how much."""
    return wire.Quote(
        now=format_instant(told.now),
        asked=quote_option(told.asked, currency),
        options=[quote_option(each, currency) for each in told.options],
        promised_latest=format_instant(told.promised_latest),
        reason=reason(told.reason),
    )


def extended(told: answers.Extended) -> wire.ExtendAnswer:
    """How far an extension went."""
    longest = told.extension
    return wire.ExtendAnswer(
        request=request(told.view),
        asked_s=longest.asked_s,
        longest_s=longest.longest_s,
        applied_s=told.applied_s,
        reason=None if longest.reason is None else reason(longest.reason),
    )


def hosts_changed(told: answers.HostChange) -> wire.ChangeHostsAnswer:
    """Whom a change of hosts affects."""
    return wire.ChangeHostsAnswer(
        hosts=list(told.hosts),
        state=HostState(told.state).value,
        affected=[affected(each) for each in told.affected],
        confirmed=told.confirmed,
    )


def affected(told: answers.Affected) -> wire.Affected:
    """One request or reservation that a change touches."""
    return wire.Affected(
        name=told.request.name,
        project=told.request.project,
        state=told.request.state.value,
        effect=told.effect,
        hosts=list(told.hosts),
    )


def host(told: answers.HostView) -> wire.Host:
    """One host."""
    return wire.Host(
        name=told.name,
        pool=told.pool,
        state=told.status.state.value,
        reason=told.status.reason,
        since=format_instant(told.status.since),
        until=format_instant(told.status.until),
        domains=dict(told.domains),
        request=told.request,
        project=told.project,
        busy_until=format_instant(told.busy_until),
        uses=[
            wire.HostUse(
                request=use.request,
                project=use.project,
                until=format_instant(use.until),
                slots=list(use.slots),
            )
            for use in told.uses
        ],
        free=told.free,
    )


def pool(told: answers.PoolView) -> wire.Pool:
    """A pool and how it stands."""
    declared: Pool = told.pool
    return wire.Pool(
        name=declared.name,
        zone=declared.zone,
        machine=declared.shape.name,
        accelerator=declared.shape.accelerator,
        accelerators_per_host=declared.shape.accelerators,
        backend=declared.backend,
        unavailable=declared.unavailable,
        price=format_money(declared.price_micros_per_hour),
        hosts=[host(each) for each in told.hosts],
        ready=told.ready,
        busy=told.busy,
        free=told.free,
        draining=told.draining,
        down=told.down,
        free_by_domain=dict(told.free_by_cell),
        host_units=declared.host_units,
        fits=dict(told.fits),
        free_hosts={level: dict(hosts) for level, hosts in told.free_hosts.items()},
        topology=declared.topology,
        largest_slices=dict(told.largest),
    )


def zone(told: Zone) -> wire.Zone:
    """A zone."""
    return wire.Zone(name=told.name, region=told.region, unavailable=told.unavailable)


def fleet(told: answers.FleetView) -> wire.Fleet:
    """The fleet as it stands."""
    return wire.Fleet(
        version=told.version,
        now=format_instant(told.now),
        currency=told.currency,
        zones=[zone(each) for each in told.zones],
        pools=[pool(each) for each in told.pools],
    )


def defrag_room(told: answers.DefragRoom) -> wire.DefragRoom:
    """Where there would be room, and who is in the way."""
    return wire.DefragRoom(
        pool=told.pool,
        zone=told.zone,
        places=list(told.places),
        accelerator_s=told.accelerator_s,
        in_the_way=[
            wire.InTheWay(
                request=each.request,
                project=each.project,
                hosts=list(each.hosts),
                accelerators=each.accelerators,
                until=format_instant(each.until),
                fits_elsewhere=each.fits_elsewhere,
            )
            for each in told.in_the_way
        ],
    )


def usage_line(told: answers.UsageLine) -> wire.UsageLine:
    """Use of one request by kind."""
    return wire.UsageLine(
        project=told.project,
        principal=told.principal,
        request=told.request,
        accelerator=told.accelerator,
        machine=told.shape,
        kind=told.kind,
        seconds=told.seconds,
        accelerator_s=told.accelerator_s,
        cost=format_money(told.cost_micros),
        open=told.open,
    )
