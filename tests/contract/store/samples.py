"""One value of everything that can be stored, with every field away from its default."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, time
from typing import Any, get_args

from dws.engine.ports import IdempotentReply
from dws.model import events as ev
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.demand import Alternative, Demand
from dws.model.names import BookingId, RequestId, ReservationId, SeriesId
from dws.model.recurrence import WEEKDAYS, Recurrence
from dws.model.request import (
    CapacityRequest,
    EndReason,
    Grant,
    HostLossPolicy,
    Instance,
    InstanceState,
    RequestState,
    Workload,
)
from dws.model.reservation import AtEnd, Reservation, ReservationState, Share, Terms
from dws.model.resources import MachineShape, Overheads
from dws.model.series import Missed, Series, SeriesState
from dws.model.time import FOREVER, Span
from dws.model.topology import Domain, Fleet, HostState, HostStatus, Pool, Zone
from dws.model.usage import UsageKind, UsageRecord
from dws.model.work import WorkItem, WorkKind

BIG = 2**62 + 12_345
"""An id as large as real ones: more than a float can hold."""

DEMAND = Demand(
    alternatives=(
        Alternative(count=16, duration_s=7_200, accelerator="h100", within="block", locations=("eu-west4",)),
        Alternative(count=2, duration_s=3_600, shape="a3-highgpu-8g"),
    ),
    not_before=1_000,
    not_after=FOREVER,
)
WORKLOAD = Workload(
    command=("python", "train.py", "--name", 'a "quoted" Größe\n'),
    environment={"KEY": "väl=ue", "EMPTY": ""},
    directory="/srv/run",
    signal_before_s=60,
)
INSTANCE = Instance(
    rank=1,
    unit=3,
    host="h004",
    incarnation=2,
    state=InstanceState.EXITED,
    address="10.0.0.4",
    exit_code=137,
    metered_from=1_500,
    note="replaced",
)
GRANT = Grant(
    booking=BookingId(BIG + 1),
    attempt=2,
    alternative=1,
    pool="h100",
    zone="eu-west4-a",
    shape="a3-highgpu-8g",
    duration_s=3_600,
    started_at=1_400,
    instances=(Instance(rank=0, unit=2, host="h003"), INSTANCE),
    delivered_at=1_500,
    ends_at=5_100,
    unreachable_since=2_000,
    warned_s=(1_800, 600),
)


def a_request(number: int = 1, **changes: Any) -> CapacityRequest:
    """A plain waiting request."""
    plain = CapacityRequest(
        id=RequestId(number),
        name=f"run-{number}",
        project="vision",
        principal="user:ada",
        demand=DEMAND,
        state=RequestState.PENDING,
        submitted_at=1_000,
    )
    return replace(plain, **changes)


def a_full_request(number: int = 1) -> CapacityRequest:
    """A request that has been through everything."""
    return a_request(
        number,
        state=RequestState.ENDING,
        priority=-3,
        labels={"team": "vision", "app.kubernetes.io/name": "train"},
        workload=WORKLOAD,
        on_host_loss=HostLossPolicy.REPLACE,
        array="sweep",
        array_index=7,
        promised_start=1_200,
        booking=BookingId(BIG + 1),
        attempts=2,
        failures=1,
        not_again_before=1_300,
        last_failure="host h002 refused",
        grant=GRANT,
        end_reason=EndReason.HOST_LOST,
        end_message="h004 went away",
        requeue=True,
        ended_at=4_000,
        deleted=True,
    )


TERMS = Terms(
    shares=(Share(project="speech", hosts_max=2), Share(project="maps")),
    specific_only=False,
    at_end=AtEnd.STOP,
    request_hosts_max=4,
    request_run_max_s=3_600,
)


def a_reservation(number: int = 1, window: tuple[int, int] = (1_000, 2_000), **changes: Any) -> Reservation:
    """A plain reservation that is booked."""
    plain = Reservation(
        id=ReservationId(number),
        name=f"block-{number}",
        project="vision",
        principal="user:ada",
        state=ReservationState.APPROVED,
        window=Span(*window),
        pool="h100",
        zone="eu-west4-a",
        shape="a3-highgpu-8g",
        count=4,
        created_at=500,
    )
    return replace(plain, **changes)


def a_full_reservation(number: int = 1) -> Reservation:
    """A reservation that has been through everything."""
    return a_reservation(
        number,
        state=ReservationState.ENDED,
        within="block",
        terms=TERMS,
        description="Training, two weeks",
        labels={"team": "vision"},
        time_zone="Europe/Berlin",
        series="nightly",
        booking=BookingId(BIG + 1),
        short=1,
        lock_at=900,
        approve_by=800,
        cancel_until=700,
        sequence=3,
        opened_at=1_010,
        idle_since=1_900,
        warned_s=(1_800, 600),
        ended_at=2_000,
        end_message="over by time",
        deleted=True,
    )


NIGHTS = Recurrence(
    days=WEEKDAYS, start=time(20), end=time(6), zone="Europe/Berlin", first=date(2027, 1, 4), count=20
)
WEEKENDS = Recurrence(
    days=frozenset({5, 6}),
    start=time(8, 30),
    length_s=5_400,
    zone="Asia/Tokyo",
    first=date(2027, 1, 2),
    until=date(2027, 3, 1),
    left_out=frozenset({date(2027, 1, 9), date(2027, 1, 10), date(2027, 2, 6)}),
)


def a_series(number: int = 1, **changes: Any) -> Series:
    """A plain series that has just begun."""
    plain = Series(
        id=SeriesId(number),
        name=f"nights-{number}",
        project="vision",
        principal="user:ada",
        alternative=DEMAND.alternatives[1],
        recurrence=NIGHTS,
        created_at=500,
    )
    return replace(plain, **changes)


def a_full_series(number: int = 1) -> Series:
    """A series that has been through everything."""
    return a_series(
        number,
        alternative=DEMAND.alternatives[0],
        recurrence=WEEKENDS,
        state=SeriesState.CANCELLED,
        terms=TERMS,
        description="Training, größer",
        labels={"team": "vision"},
        booked_until=BIG + 2,
        missed=(
            Missed(day=date(2027, 1, 16), start=BIG + 1, cause="pool h100 is full"),
            Missed(day=date(2027, 2, 7), start=BIG + 9, cause='host "h004" is down'),
        ),
        ended_at=2_000,
    )


def a_booking(
    number: int = 1,
    units: tuple[int, ...] = (),
    span: tuple[int, int] = (0, 100),
    *,
    count: int = 0,
    cell: int = 0,
    **changes: Any,
) -> Booking:
    """A booking of `units` of one cell, LIVE, or of a `count` only, FIRM."""
    plain = Booking(
        id=BookingId(number),
        pool="h100",
        span=Span(*span),
        stage=Stage.LIVE if units else Stage.FIRM,
        owner_kind=OwnerKind.REQUEST,
        owner=number,
        parts=(Part(cell=cell, count=len(units) or count, units=units),),
    )
    return replace(plain, **changes)


def ended(booking: Booking, at: int) -> Booking:
    """The next version of a booking: over, trimmed to `at`."""
    span = Span(min(booking.span.start, at), at)
    return replace(booking, span=span, stage=Stage.ENDED, version=booking.version + 1)


def an_event(subject: int = 1, body: ev.EventBody | None = None, **changes: Any) -> ev.NewEvent:
    """A fact about a request."""
    plain = ev.NewEvent(
        at=1_000,
        actor="user:ada",
        subject_kind=ev.SubjectKind.REQUEST,
        subject=subject,
        body=body or ev.CancelRequested(),
        project="vision",
        name=f"run-{subject}",
    )
    return replace(plain, **changes)


def an_item(
    subject: int = 1, kind: WorkKind = WorkKind.EXPIRE, due_at: int = 100, **changes: Any
) -> WorkItem:
    """Something due."""
    return replace(WorkItem(kind=kind, subject=subject, due_at=due_at), **changes)


def a_usage(request: int = 1, span: tuple[int, int] = (0, 100), **changes: Any) -> UsageRecord:
    """The use of one instance."""
    plain = UsageRecord(
        request=RequestId(request),
        request_name=f"run-{request}",
        project="vision",
        principal="user:ada",
        pool="h100",
        shape="a3-highgpu-8g",
        accelerator="nvidia-h100-80gb",
        accelerators=8,
        rank=3,
        start=span[0],
        end=span[1],
        price_micros_per_hour=2_500_000,
        kind=UsageKind.FAILED_ATTEMPT,
        reservation=BIG,
    )
    return replace(plain, **changes)


def a_reply(call_id: str = "c-1", subjects: tuple[int, ...] = (1, 2), **changes: Any) -> IdempotentReply:
    """What was answered to a call."""
    plain = IdempotentReply(
        principal="user:ada", method="submit", call_id=call_id, body_hash="ab12", subjects=subjects, at=1_000
    )
    return replace(plain, **changes)


def a_status(unit: int = 0, pool: str = "h100", **changes: Any) -> HostStatus:
    """A host out of order."""
    plain = HostStatus(
        pool=pool,
        unit=unit,
        state=HostState.DOWN,
        reason="memory fault",
        actor="operator:bo",
        since=1_000,
        until=5_000,
        unreachable_since=900,
    )
    return replace(plain, **changes)


FLEET = Fleet(
    zones=(Zone(name="eu-west4-a"), Zone(name="local", region="home", unavailable="virtual clock")),
    pools=(
        Pool(
            name="h100",
            zone="eu-west4-a",
            shape=MachineShape(
                name="a3-highgpu-8g",
                accelerator="nvidia-h100-80gb",
                accelerators=8,
                vcpus=208,
                memory_gb=1872,
            ),
            backend="simulated",
            hosts=("h001", "h002", "h003", "h004"),
            domains=(
                Domain(level="block", name="b1", first=0, size=2),
                Domain(level="block", name="b2", first=2, size=1),
            ),
            overheads=Overheads(setup_s=300, grace_s=60, teardown_s=120),
            price_micros_per_hour=2_500_000,
            unavailable="for now",
        ),
    ),
    version=7,
    currency="EUR",
)

BODIES: tuple[ev.EventBody, ...] = (
    ev.Submitted(request=a_full_request()),
    ev.Booked(booking=BookingId(BIG), start=5),
    ev.Moved(booking=BookingId(BIG), start=9, cause="event 12"),
    ev.Unbooked(cause="outage"),
    ev.Amended(
        demand=DEMAND, priority=4, labels={"a": "b"}, workload=WORKLOAD, on_host_loss=HostLossPolicy.REQUEUE
    ),
    ev.Started(booking=BookingId(BIG), grant=GRANT),
    ev.InstancesRan(attempt=1, addresses={0: "10.0.0.1", 12: "10.0.0.2"}),
    ev.InstanceExited(rank=3, attempt=1, code=-9),
    ev.InstanceLost(rank=3, attempt=1, host="h004", cause="power"),
    ev.InstancesReleased(attempt=2, ranks=(0, 3)),
    ev.InstanceReplaced(attempt=2, instance=INSTANCE),
    ev.Delivered(ends_at=500),
    ev.DeliveryFailed(cause="too slow", may_retry=True, not_again_before=70),
    ev.Warned(lead_s=600, ends_at=4_000),
    ev.Extended(ends_at=8_000),
    ev.Ended(why=EndReason.PROGRAM_FAILED, message="exit 1", requeue=True),
    ev.PartReleased(ranks=(1, 2)),
    ev.CancelRequested(),
    ev.WindowClosed(),
    ev.Returned(),
    ev.Unreachable(since=77),
    ev.Reachable(),
    ev.Overran(expected_by=99),
    ev.Deleted(),
    ev.ReservationAsked(reservation=a_full_reservation()),
    ev.ReservationApproved(),
    ev.ReservationDeclined(cause="too large"),
    ev.ReservationAmended(
        name="block",
        window=Span(5, 9),
        count=3,
        pool="a100",
        zone="local",
        terms=TERMS,
        description="less",
        labels={"a": "b"},
        time_zone="Asia/Tokyo",
        lock_at=4,
        cancel_until=3,
    ),
    ev.ReservationLocked(),
    ev.ReservationStarted(),
    ev.ReservationDelivered(late_s=20),
    ev.ReservationDegraded(short=2, cause="h004 is down"),
    ev.ReservationRestored(),
    ev.ReservationReplaced(hosts=("h004", "h005"), cause="h001 is down"),
    ev.ReservationUsed(),
    ev.ReservationIdle(),
    ev.ReservationUnused(idle_s=900, release_at=3_000),
    ev.ReservationWarned(lead_s=600),
    ev.ReservationCancelled(cause="not needed"),
    ev.ReservationClosing(cause="its time is over"),
    ev.ReservationClosed(cause="early"),
    ev.ReservationDeleted(),
    ev.SeriesBegun(series=a_series(BIG)),
    ev.SeriesAmended(series=a_full_series(BIG)),
    ev.OccurrenceMissed(day=date(2027, 1, 16), start=BIG + 1, cause="pool h100 is full"),
    ev.SeriesEnded(cause="its last occurrence is over"),
    ev.MaintenancePlanned(pool="h100", hosts=("h1", "h2"), window=Span(BIG, BIG + 60)),
    ev.MaintenanceBegun(),
    ev.MaintenanceOver(cause="cancelled"),
    ev.HostChanged(pool="h100", host="h001", state="DOWN", until=5),
    ev.FleetApplied(version=3, summary="2 hosts more"),
    ev.Noted(what="restart", facts={"pid": "12"}),
)
assert {type(body) for body in BODIES} == set(get_args(ev.EventBody)), "a sample of every event"
