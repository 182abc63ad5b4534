"""What the engine answers, where it is more than one model value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from dws.model.request import CapacityRequest, RequestState
from dws.model.reservation import Reservation
from dws.model.series import Series
from dws.model.time import Span
from dws.model.topology import HostStatus, Pool, Zone
from dws.planner.plan import Extension, Forecast, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestView:
    """A request as a reader sees it: the row, and while it waits what it can expect.

    `cost_micros` is what it has cost so far. `reservation` is the one it runs in, or has to.
    """

    request: CapacityRequest
    forecast: Forecast | None = None
    cost_micros: int = 0
    reservation: Reservation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPage:
    """A page of requests; `next_after` continues the list, None at its end."""

    items: tuple[RequestView, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """The answer to an extension: the request as it is now, and how far it could go."""

    view: RequestView
    extension: Extension
    applied_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """One request, or reservation, that a change to hosts touches, and how (`ends`, `requeued`,
    `replaced`, `promise moves`, `runs on`)."""

    request: CapacityRequest | Reservation
    effect: str
    hosts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of whom it touches."""
        return self.request.name


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChange:
    """The answer to a change of hosts: whom it affects, and whether it was done."""

    hosts: tuple[str, ...]
    state: str
    affected: tuple[Affected, ...]
    confirmed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """What a request has of a host, until when at the latest; `slots` are which of its accelerators, where
    hosts are shared."""

    request: str
    project: str
    until: int
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """One host: its state, and who uses it, the first of them in `request` and `project`, the last of them
    until `busy_until`. `free` of its units nobody has."""

    pool: str
    unit: int
    name: str
    status: HostStatus
    domains: Mapping[str, str] = field(default_factory=dict)
    request: str = ""
    project: str = ""
    busy_until: int = 0
    uses: tuple[HostUse, ...] = ()
    free: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """A pool and how its hosts stand now: `free` are wholly free, `busy` those that somebody uses some of.
    `free_by_cell` are hosts free now, per cell, or, where hosts are shared, units; `fits` is how many
    machines of each shape would find room now, `free_hosts` how many hosts are wholly free in each domain of
    each level, `largest` the largest slice that each pod of a TPU pool has room for (empty: none)."""

    pool: Pool
    hosts: tuple[HostView, ...]
    ready: int
    busy: int
    free: int
    draining: int
    down: int
    free_by_cell: Mapping[str, int]
    fits: Mapping[str, int] = field(default_factory=dict)
    free_hosts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    largest: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """The fleet and how it stands at `now`."""

    version: int
    now: int
    currency: str
    zones: tuple[Zone, ...]
    pools: tuple[PoolView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InTheWay:
    """Running work in the way of a shape: on which hosts, with how many accelerators (hosts, where there are
    none), until when at the most, and whether it could be moved elsewhere now."""

    request: str
    project: str
    hosts: tuple[str, ...]
    accelerators: int
    until: int
    fits_elsewhere: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragRoom:
    """Where a shape would have room in a pool, by the names of its cells, and who is in the
    way there; nobody when there is room now. `accelerator_s` is the running time in the way."""

    pool: str
    zone: str
    places: tuple[str, ...]
    in_the_way: tuple[InTheWay, ...]
    accelerator_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChange:
    """What applying a fleet would do or did: `lines` say it in words; hosts that would vanish under
    live work are refused."""

    version: int
    lines: tuple[str, ...]
    applied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLine:
    """Use summed over one key: seconds are instance-seconds, `accelerator_s` accelerator-seconds."""

    project: str
    principal: str
    request: str
    accelerator: str
    shape: str
    kind: str
    seconds: int
    accelerator_s: int
    cost_micros: int
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The answer of `dws ledger verify`: how much was checked, and every fault found, in words."""

    bookings: int
    requests: int
    events: int
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragments:
    """What is free in a pool now: so many accelerators (hosts, where there are none), and how many of them
    each of its shapes could use; of TPU pods also each slice, by topology, and the chips of the largest."""

    pool: str
    free: int
    usable: Mapping[str, int]
    in_slices: Mapping[str, int] = field(default_factory=dict)
    largest_slice: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What `/healthz` and `/metrics` are made of."""

    now: int
    ledger_version: int
    last_seq: int
    states: Mapping[RequestState, int]
    oldest_due_s: int
    stuck: int
    fragments: tuple[Fragments, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationView:
    """A reservation as a reader sees it. `in_use` are hosts that work inside it holds now, `waiting`
    requests inside that wait, `inside` what runs or waits in it; `hosts` are its hosts' names once it has
    started. `cost_micros` is for the whole window, 0 for one without an end."""

    reservation: Reservation
    in_use: int = 0
    waiting: int = 0
    inside: tuple[CapacityRequest, ...] = ()
    hosts: tuple[str, ...] = ()
    cost_micros: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """The answer to a booking or a change: the reservation as it is, or would be with `dry_run`, and the
    rules that hold for it, in words."""

    view: ReservationView
    dry_run: bool
    rules: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationPage:
    """A page of reservations; `next_after` continues the list, None at its end."""

    items: tuple[ReservationView, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    """One occurrence that is not over. It has a `reservation`, or a `cause` why it was missed, or will be
    booked at `books_at` (epoch seconds, else 0). `note` says how a change of the clocks touches it."""

    day: date
    span: Span
    note: str
    reservation: Reservation | None
    cause: str = ""
    books_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesView:
    """A series with its next occurrences."""

    series: Series
    upcoming: tuple[Upcoming, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceView:
    """A maintenance window that is not over."""

    id: int
    name: str
    pool: str
    hosts: tuple[str, ...]
    window: Span
    reason: str
    begun: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceChange:
    """The answer to a planned window: whom it touches, and the window once it is confirmed."""

    affected: tuple[Affected, ...]
    window: MaintenanceView | None


class BarKind(StrEnum):
    """What a bar of the calendar is."""

    RESERVATION = "RESERVATION"
    PROMISE = "PROMISE"
    RUN = "RUN"
    OUTAGE = "OUTAGE"
    MAINTENANCE = "MAINTENANCE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One booking on the calendar. `name` and `project` are empty where the reader may not see whose it
    is; `parent` names the reservation it lies inside."""

    kind: BarKind
    pool: str
    count: int
    start: int
    end: int
    name: str = ""
    project: str = ""
    state: str = ""
    own: bool = False
    parent: str = ""
    in_use: int = 0
    short: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCalendarView:
    """A pool's bookings over the asked span, and what is free as steps: (from when, how many). Both count
    units, of which a host has `host_units`."""

    pool: str
    zone: str
    shape: str
    hosts: int
    bars: tuple[Bar, ...]
    free: tuple[tuple[int, int], ...]
    host_units: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarView:
    """The calendar of the fleet over [start, end), as one reader may see it."""

    now: int
    start: int
    end: int
    pools: tuple[PoolCalendarView, ...]
