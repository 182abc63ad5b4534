"""Small builders for tests: fleets, requests and bookings in one line each.

    pool = a_pool(blocks={"b1": 2, "b2": 2})
    line = [a_request(1, hosts=3, hours=2), a_request(2, gpus=8, within="block")]
    snapshot = build(a_fleet(pool), bookings=[a_booking(7, {0: 2}, end=NOW + H)], queue=line)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.catalog import shape
from dws.model.demand import Alternative, Demand
from dws.model.names import BookingId, RequestId
from dws.model.request import CapacityRequest, Grant, Instance, RequestState
from dws.model.resources import NO_OVERHEADS, Overheads
from dws.model.time import FOREVER, Span
from dws.model.topology import Domain, Fleet, HostState, HostStatus, Pool, Zone

H = 3_600
NOW = int(datetime(2027, 1, 11, 9, tzinfo=UTC).timestamp())
"""Monday 2027-01-11 09:00:00Z, the day on which scenarios happen."""

Tree = Mapping[str, object]
"""Domains by name: a number of hosts, or a mapping of the domains inside."""


def a_pool(
    name: str = "h100",
    blocks: Tree | None = None,
    *,
    hosts: int = 0,
    levels: tuple[str, ...] = ("block", "subblock"),
    machine: str = "a3-highgpu-8g",
    zone: str = "z1",
    backend: str = "simulated",
    overheads: Overheads = NO_OVERHEADS,
    price: int = 4_200_000,
    unavailable: str = "",
) -> Pool:
    """Hosts `NAME-h1` … in (nested) blocks, or `hosts` of them without any domain; at 4.20 an hour."""
    known = shape(machine)
    assert known is not None, machine
    tree = blocks or {}
    domains = tuple(_domains(tree, levels, 0))
    count = hosts or _size(tree)
    by_level = sorted(domains, key=lambda d: levels.index(d.level))
    return Pool(
        name=name,
        zone=zone,
        shape=known,
        backend=backend,
        hosts=tuple(f"{name}-h{i + 1}" for i in range(count)),
        domains=tuple(by_level),
        overheads=overheads,
        price_micros_per_hour=price,
        unavailable=unavailable,
    )


def _size(inside: object) -> int:
    if isinstance(inside, Mapping):
        return sum(_size(i) for i in inside.values())
    assert isinstance(inside, int)
    return inside


def _domains(tree: Tree, levels: tuple[str, ...], first: int) -> Iterator[Domain]:
    for name, inside in tree.items():
        yield Domain(level=levels[0], name=name, first=first, size=_size(inside))
        if isinstance(inside, Mapping):
            yield from _domains(inside, levels[1:], first)
        first += _size(inside)


def a_fleet(*pools: Pool, unavailable: Mapping[str, str] | None = None) -> Fleet:
    """A fleet of these pools (F1 when none is given), its zones as the pools name them."""
    told = unavailable or {}
    every = pools or (a_pool(blocks={"b1": 2, "b2": 2}),)
    zones = dict.fromkeys(p.zone for p in every)
    return Fleet(zones=tuple(Zone(name=z, unavailable=told.get(z, "")) for z in zones), pools=every)


def f1(overheads: Overheads = NO_OVERHEADS) -> Fleet:
    """F1 of the scenarios: four hosts of 8 H100 in two blocks of two."""
    return a_fleet(a_pool(blocks={"b1": 2, "b2": 2}, overheads=overheads))


def f2(overheads: Overheads = NO_OVERHEADS) -> Fleet:
    """F2 of the scenarios: F1 plus two hosts of 8 A100 in a block."""
    a100 = a_pool("a100", {"b3": 2}, machine="a2-highgpu-8g", overheads=overheads)
    return a_fleet(*f1(overheads).pools, a100)


def an_alternative(
    *,
    hosts: int = 0,
    gpus: int = 0,
    hours: float = 1,
    seconds: int = 0,
    machine: str = "a3-highgpu-8g",
    accelerator: str = "h100",
    within: str | None = None,
    zones: tuple[str, ...] = (),
) -> Alternative:
    """So many hosts of a machine shape, or so many GPUs of a type, for so long."""
    duration_s = seconds or int(hours * H)
    if hosts:
        return Alternative(
            shape=machine, count=hosts, duration_s=duration_s, within=within, locations=zones
        )
    return Alternative(
        accelerator=accelerator, count=gpus, duration_s=duration_s, within=within, locations=zones
    )


def a_request(
    request_id: int = 1,
    *alternatives: Alternative,
    hosts: int = 0,
    gpus: int = 0,
    hours: float = 1,
    seconds: int = 0,
    machine: str = "a3-highgpu-8g",
    accelerator: str = "h100",
    within: str | None = None,
    not_before: int = 0,
    not_after: int = FOREVER,
    not_again_before: int = 0,
    submitted_at: int = NOW,
    priority: int = 0,
    project: str = "p",
    booking: int | None = None,
    promised_start: int = 0,
) -> CapacityRequest:
    """A waiting request: of these alternatives, or of one described by the keywords."""
    if not alternatives:
        one = an_alternative(
            hosts=hosts or (0 if gpus else 1),
            gpus=gpus,
            hours=hours,
            seconds=seconds,
            machine=machine,
            accelerator=accelerator,
            within=within,
        )
        alternatives = (one,)
    return CapacityRequest(
        id=RequestId(request_id),
        name=f"r{request_id}",
        project=project,
        principal="ann",
        demand=Demand(alternatives=alternatives, not_before=not_before, not_after=not_after),
        state=RequestState.PENDING if booking is None else RequestState.BOOKED,
        submitted_at=submitted_at,
        priority=priority,
        not_again_before=not_again_before,
        booking=None if booking is None else BookingId(booking),
        promised_start=promised_start,
    )


def a_booking(
    booking_id: int,
    parts: Mapping[int, int | tuple[int, ...]],
    *,
    pool: str = "h100",
    start: int = NOW,
    end: int = FOREVER,
    stage: Stage | None = None,
    owner: int = 0,
    owner_kind: OwnerKind = OwnerKind.REQUEST,
    parent: int = 0,
) -> Booking:
    """A booking of so many units, or of the units listed, of each cell: LIVE with units, else FIRM."""
    has_units = any(isinstance(taken, tuple) for taken in parts.values())
    return Booking(
        id=BookingId(booking_id),
        pool=pool,
        span=Span(start, end),
        stage=stage or (Stage.LIVE if has_units else Stage.FIRM),
        owner_kind=owner_kind,
        owner=owner or booking_id,
        parts=tuple(_part(cell, taken) for cell, taken in sorted(parts.items())),
        parent=parent,
    )


def _part(cell: int, taken: int | tuple[int, ...]) -> Part:
    if isinstance(taken, tuple):
        return Part(cell=cell, count=len(taken), units=taken)
    return Part(cell=cell, count=taken)


def a_status(
    unit: int, state: HostState = HostState.DOWN, *, pool: str = "h100", until: int = 0
) -> HostStatus:
    """The status of a host that is not simply ready."""
    return HostStatus(pool=pool, unit=unit, state=state, until=until)


def a_running_request(
    request_id: int, booking: Booking, *, pool: Pool, delivered_at: int = NOW, within: str | None = None
) -> CapacityRequest:
    """An ACTIVE request that holds a LIVE booking, whose run ends when the booking does."""
    count = len(booking.units)
    ends_at = booking.span.end - pool.overheads.after_run_s
    duration_s = ends_at - delivered_at
    one = an_alternative(hosts=count, seconds=duration_s, machine=pool.shape.name, within=within)
    grant = Grant(
        booking=booking.id,
        attempt=1,
        alternative=0,
        pool=pool.name,
        zone=pool.zone,
        shape=pool.shape.name,
        duration_s=duration_s,
        started_at=booking.span.start,
        instances=tuple(
            Instance(rank=i, unit=u, host=pool.hosts[u]) for i, u in enumerate(booking.units)
        ),
        delivered_at=delivered_at,
        ends_at=ends_at,
    )
    return CapacityRequest(
        id=RequestId(request_id),
        name=f"r{request_id}",
        project="p",
        principal="ann",
        demand=Demand(alternatives=(one,)),
        state=RequestState.ACTIVE,
        submitted_at=booking.span.start,
        booking=booking.id,
        grant=grant,
    )
