"""What a caller can ask, as frozen values. Every face builds these; the engine checks them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dws.model.demand import Alternative, Demand
from dws.model.recurrence import Recurrence
from dws.model.request import HostLossPolicy, Workload
from dws.model.reservation import DEFAULT_TERMS, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Ask for capacity. `wait_s`, when given, is how long it may wait from now (the engine resolves it
    to `demand.not_after`). `array` > 0 makes that many requests `name-0` … `name-(n-1)`.
    `reservation` is the one it must run in, by NAME or PROJECT/NAME, or `any`. `never_fits` says what to do
    with what the fleet could never hold, None as the policy has it. `call_id` makes the call
    idempotent for 24 hours."""

    project: str
    demand: Demand
    name: str = ""
    wait_s: int | None = None
    priority: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    workload: Workload | None = None
    on_host_loss: HostLossPolicy | None = None
    array: int = 0
    reservation: str = ""
    never_fits: Literal["refuse", "wait"] | None = None
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amend:
    """Change a waiting request; None keeps what is. Its age in the queue stays. `wait_s` is how much
    longer it may wait, from now. `demand` replaces the whole demand; `alternatives`, `not_before` and
    `not_after` a part of it."""

    project: str
    name: str
    demand: Demand | None = None
    alternatives: tuple[Alternative, ...] | None = None
    not_before: int | None = None
    not_after: int | None = None
    wait_s: int | None = None
    priority: int | None = None
    labels: dict[str, str] | None = None
    workload: Workload | None = None
    on_host_loss: HostLossPolicy | None = None
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Give back what a request holds, whole (`ranks` empty) or by instance."""

    project: str
    name: str
    ranks: tuple[int, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extend:
    """Run `by_s` seconds longer. With `at_most` the longest possible extension up to that is taken."""

    project: str
    name: str
    by_s: int
    at_most: bool = False
    dry_run: bool = False
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeHosts:
    """Drain, fail or repair hosts by name. Nothing changes unless `confirm`; the answer says whom it
    affects either way. `until` is when an outage is expected to end (0: unknown)."""

    hosts: tuple[str, ...]
    state: str
    reason: str = ""
    until: int = 0
    confirm: bool = False


# --- reservations -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Book capacity from `start` to `start + alternative.duration_s`. The first of the alternative's
    locations with room is taken. `start_in_s`, when given, is from now instead of `start`. `time_zone` is
    the zone its owner thinks in. With `dry_run` nothing is booked. One that is `on_demand` starts now,
    whatever `start` says, and may last as long as it likes (`OPEN_ENDED_S`: until it is given back)."""

    project: str
    name: str
    alternative: Alternative
    start: int = 0
    start_in_s: int | None = None
    terms: Terms = DEFAULT_TERMS
    description: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    time_zone: str = ""
    on_demand: bool = False
    dry_run: bool = False
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmendReservation:
    """Change a reservation in one step; None keeps what is. `count` is in hosts. An open one may change
    its end, count, terms and texts; one that has not started everything. With `force` an operator may
    change what the policy no longer lets be changed."""

    project: str
    name: str
    new_name: str | None = None
    start: int | None = None
    end: int | None = None
    count: int | None = None
    terms: Terms | None = None
    description: str | None = None
    labels: dict[str, str] | None = None
    time_zone: str | None = None
    force: bool = False
    dry_run: bool = False
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seek:
    """Search the calendar for windows: a start in [start_from, start_to], an end in [end_from, end_to] (0: no
    bound), a length from `min_s` to `max_s`, and all of it within `hours` where these are given. The longest
    come first, or the `soonest`. Holds nothing."""

    project: str
    alternative: Alternative
    start_from: int
    start_to: int
    min_s: int
    max_s: int
    end_to: int = 0
    end_from: int = 0
    hours: Recurrence | None = None
    limit: int = 10
    soonest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """Begin a series: book `alternative` at every occurrence. With `may_miss` those that do not fit are
    missed openly; else none is booked when one does not fit."""

    project: str
    name: str
    alternative: Alternative
    recurrence: Recurrence
    terms: Terms = DEFAULT_TERMS
    description: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    may_miss: bool = False
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmendSeries:
    """Change a series from now on; None keeps what is."""

    project: str
    name: str
    recurrence: Recurrence | None = None
    alternative: Alternative | None = None
    terms: Terms | None = None
    description: str | None = None
    may_miss: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMaintenance:
    """Take hosts of one pool out of service from `start` to `end`. Without `confirm` only say whom it
    touches; with `force` also when it touches somebody."""

    name: str
    hosts: tuple[str, ...]
    start: int
    end: int
    reason: str = ""
    force: bool = False
    confirm: bool = False
