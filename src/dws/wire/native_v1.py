"""The native API's JSON, `/dws/v1/…`: camelCase, ids as strings, instants as RFC 3339 UTC.

Durations are whole seconds as numbers in fields ending in `S` (`durationS`); in requests a string
such as "4h" or "5400s" is accepted too.
"""

from __future__ import annotations

import msgspec


class Wire(msgspec.Struct, rename="camel", omit_defaults=False, forbid_unknown_fields=True, kw_only=True):
    """Base of every struct of the native API."""


# --- what is asked ----------------------------------------------------------------------------


class Grouping(Wire, omit_defaults=True):
    """How machines, or slices, stand beside each other: always `together` of them in one domain of a `level`,
    and at most `atMost` in each (0: as many as there is room for)."""

    level: str
    together: int = 1
    at_most: int = 0


class Alternative(Wire, omit_defaults=True):
    """Either `machine` and `count` instances of it, or `accelerators` such as "h100:16".

    `duration` is "4h", "90m", "5400s" or seconds, or left out in a named reservation for until its end;
    `locations` are zones or regions; `within` is a level such as "block", or one domain of it, "block/b1".
    With a `topology` such as "4x8" it is so many TPU slices of that: "v5e:2" is two. The name of a slice,
    "v5p-128", says both. `grouping` says how its parts stand; with `near` they stand as close as they can at
    the start that they get.
    """

    duration: str | int = ""
    accelerators: str = ""
    machine: str = ""
    count: int = 0
    locations: list[str] = []
    within: str | None = None
    topology: str = ""
    grouping: Grouping | None = None
    near: bool = False


class Workload(Wire, omit_defaults=True):
    """What to run on each instance. An empty command holds the instances."""

    command: list[str] = []
    environment: dict[str, str] = {}
    directory: str = ""
    signal_before: str | int = 0


class SubmitRequest(Wire, omit_defaults=True):
    """POST /dws/v1/projects/{project}/requests. `alternatives` are in order of preference.

    `wait` is how long it may wait from now; `notBefore`/`notAfter` bound the start (RFC 3339 with an
    offset). `onHostLoss` is "end", "requeue" or "replace". `reservation` is the one it has to run in: NAME,
    or PROJECT/NAME of another project that shares it, or "any" for one that is open to it before anything
    else.
    """

    alternatives: list[Alternative]
    name: str = ""
    reservation: str = ""
    wait: str | int | None = None
    not_before: str = ""
    not_after: str = ""
    priority: int = 0
    labels: dict[str, str] = {}
    workload: Workload | None = None
    on_host_loss: str = ""
    array: int = 0


class AmendRequest(Wire, omit_defaults=True):
    """PATCH …/requests/{name}. What is left out stays."""

    alternatives: list[Alternative] | None = None
    wait: str | int | None = None
    not_before: str | None = None
    not_after: str | None = None
    priority: int | None = None
    labels: dict[str, str] | None = None
    workload: Workload | None = None
    on_host_loss: str | None = None


class QuoteRequest(Wire, omit_defaults=True):
    """POST …/projects/{project}:quote. `reservation` as when submitting."""

    alternatives: list[Alternative]
    reservation: str = ""
    not_before: str = ""
    not_after: str = ""
    priority: int = 0


class ReleaseRequest(Wire, omit_defaults=True):
    """POST …/requests/{name}:release. No ranks: everything."""

    ranks: list[int] = []


class ExtendRequest(Wire, omit_defaults=True):
    """POST …/requests/{name}:extend. `atMost` takes what is possible; `dryRun` only answers."""

    by: str | int
    at_most: bool = False
    dry_run: bool = False


class DefragRequest(Wire, omit_defaults=True):
    """POST /dws/v1/fleet:defrag. The shape for which there should be room; its duration does not matter."""

    wanted: Alternative


class ChangeHostsRequest(Wire, omit_defaults=True):
    """POST /dws/v1/fleet:changeHosts. `state` is "DRAINING", "DOWN" or "READY"."""

    hosts: list[str]
    state: str
    reason: str = ""
    until: str = ""
    confirm: bool = False


class ApplyFleetRequest(Wire, omit_defaults=True):
    """POST /dws/v1/fleet:apply. `toml` is the text of a fleet file."""

    toml: str
    confirm: bool = False


class AdvanceRequest(Wire, omit_defaults=True):
    """POST /dws/v1/clock:advance."""

    by: str | int


class BackupRequest(Wire, omit_defaults=True):
    """POST /dws/v1/backup. `path` is on the server's machine."""

    path: str


class Share(Wire, omit_defaults=True):
    """A project that may use a reservation too, at most `hostsMax` hosts at once (0: no limit of its own)."""

    project: str
    hosts_max: int = 0


class ReserveBody(Wire, omit_defaults=True):
    """POST /dws/v1/projects/{project}/reservations. Checked at once: booked, or refused with the nearest
    windows that would fit.

    What is wanted is told as in `Alternative`, `duration` being the length of the window; its `end` may be
    told instead. `start` is an RFC 3339 instant with an offset, or the local time of `timeZone`, or relative
    to the server's time ("in 5m"); `clientTime`, when told, is compared with that time. `timeZone` is the
    zone (`Europe/Berlin`) its owner thinks in. `specificOnly`: only requests that name it may use it.
    `atEnd` is "stop" or "delete". `requestHostsMax` and `requestRunMax` bound each request inside it (0: no
    bound). One that is `onDemand` starts now, so it has no `start`, and without an end it lasts until it is
    given back. With `dryRun` nothing is booked.
    """

    name: str
    start: str = ""
    duration: str | int = ""
    end: str = ""
    accelerators: str = ""
    machine: str = ""
    count: int = 0
    locations: list[str] = []
    within: str | None = None
    topology: str = ""
    time_zone: str = ""
    shares: list[Share] = []
    specific_only: bool = True
    at_end: str = ""
    request_hosts_max: int = 0
    request_run_max: str | int = 0
    description: str = ""
    labels: dict[str, str] = {}
    client_time: str = ""
    on_demand: bool = False
    dry_run: bool = False


class AmendReservationBody(Wire, omit_defaults=True):
    """PATCH …/reservations/{name}. What is left out stays; all of it happens, or nothing. `count` is in
    hosts, or slices; `end` and `duration` say the same thing, so that at most one is given. A new `start`
    alone moves the window as it is. `force` is an operator's, against the policy."""

    name: str | None = None
    start: str | None = None
    end: str | None = None
    duration: str | int | None = None
    count: int | None = None
    time_zone: str | None = None
    shares: list[Share] | None = None
    specific_only: bool | None = None
    at_end: str | None = None
    request_hosts_max: int | None = None
    request_run_max: str | int | None = None
    description: str | None = None
    labels: dict[str, str] | None = None
    force: bool = False
    dry_run: bool = False


class CancelBody(Wire, omit_defaults=True):
    """POST …/reservations/{name}:cancel. `force` is an operator's, against the policy."""

    force: bool = False


class AdviseBody(Wire, omit_defaults=True):
    """POST …/projects/{project}:advise. Windows of `duration` at least and `durationMax` at most (empty: of
    exactly `duration`) that start from `startFrom` to `startTo`, end by `endBy` (empty: no bound) and lie
    within `hours` ("weekday 08:00-20:00 Europe/Berlin"; empty: any)."""

    duration: str | int
    start_from: str = ""
    start_to: str = ""
    end_by: str = ""
    duration_max: str | int = ""
    accelerators: str = ""
    machine: str = ""
    count: int = 0
    locations: list[str] = []
    within: str | None = None
    topology: str = ""
    time_zone: str = ""
    hours: str = ""
    limit: int = 10


class DeclineBody(Wire, omit_defaults=True):
    """POST …/reservations/{name}:decline. `reason` is told to the owner."""

    reason: str = ""


class RepeatBody(Wire, omit_defaults=True):
    """POST …/projects/{project}/series. `every` is a recurrence in words: "weekday 20:00-06:00 Europe/Berlin
    until 2027-03-01". What each occurrence books is told as in `ReserveBody`. With `mayMiss` occurrences
    that do not fit are missed openly; else nothing is booked when one does not fit."""

    name: str
    every: str
    accelerators: str = ""
    machine: str = ""
    count: int = 0
    locations: list[str] = []
    within: str | None = None
    topology: str = ""
    shares: list[Share] = []
    specific_only: bool = True
    at_end: str = ""
    request_hosts_max: int = 0
    request_run_max: str | int = 0
    description: str = ""
    labels: dict[str, str] = {}
    may_miss: bool = False


class AmendSeriesBody(Wire, omit_defaults=True):
    """PATCH …/series/{name}: from now on. What is left out stays; occurrences that have not started are
    booked anew, in one step. `every` says it whole: days that were left out stay so only when it names them
    (`except`)."""

    every: str | None = None
    count: int | None = None
    shares: list[Share] | None = None
    specific_only: bool | None = None
    at_end: str | None = None
    request_hosts_max: int | None = None
    request_run_max: str | int | None = None
    description: str | None = None
    may_miss: bool = False


class LeaveOutBody(Wire, omit_defaults=True):
    """POST …/series/{name}:leaveOut. `day` is the one on which the occurrence starts, 2027-01-25."""

    day: str


class MaintenanceBody(Wire, omit_defaults=True):
    """POST /dws/v1/maintenance. Without `confirm` only told whom it touches; with `force` planned also when
    it touches somebody. `end` or `duration` says until when."""

    name: str
    hosts: list[str]
    start: str
    end: str = ""
    duration: str | int = ""
    time_zone: str = ""
    reason: str = ""
    force: bool = False
    confirm: bool = False


# --- what is answered -------------------------------------------------------------------------


class Answer(Wire, forbid_unknown_fields=False):
    """Base of what the server answers: a client skips fields that a newer server adds."""


class Reason(Answer):
    """`message` has times in UTC; `text` and `facts` let a client write them in another zone."""

    code: str
    message: str
    text: str
    facts: dict[str, int | str]


class Instance(Answer):
    """One machine of a grant; `slots` are which accelerators of its host it has, where hosts are shared. In a
    TPU slice, `slice` is the number of that and `worker` its rank in it, row by row."""

    rank: int
    host: str
    state: str
    address: str
    exit_code: int | None
    note: str
    slots: list[int] = []
    slice: int = 0
    worker: int = 0


class Grant(Answer):
    """What was granted. `endsAt` is empty until delivered. Of TPU slices, `slices` of a `topology`."""

    pool: str
    zone: str
    machine: str
    alternative: int
    attempt: int
    started_at: str
    delivered_at: str
    ends_at: str
    duration_s: int
    unreachable_since: str
    instances: list[Instance]
    topology: str = ""
    slices: int = 0


class Forecast(Answer):
    """What a waiting request can expect."""

    place: int
    expected_start: str
    promised_start: str
    promise_by: str
    pool: str
    reason: Reason


class Request(Answer):
    """A capacity request. Empty strings are instants not reached yet; `cost` is empty except where one
    request is got by name. `reservation` is PROJECT/NAME of the one it runs in or has to, whose window is
    `reservationStart` to `reservationEnd`; "any" while it takes one that is open to it."""

    id: str
    name: str
    project: str
    principal: str
    state: str
    alternatives: list[Alternative]
    not_before: str
    not_after: str
    priority: int
    labels: dict[str, str]
    workload: Workload | None
    on_host_loss: str
    array: str
    array_index: int
    submitted_at: str
    promised_start: str
    attempts: int
    last_failure: str
    grant: Grant | None
    end_reason: str
    end_message: str
    ended_at: str
    exit_code: int | None
    cost: str
    forecast: Forecast | None
    reservation: str = ""
    reservation_start: str = ""
    reservation_end: str = ""


class RequestList(Answer):
    """A page; `nextPageToken` is empty at the end."""

    items: list[Request]
    next_page_token: str = ""


class QuoteOption(Answer):
    """One way to have it: `count` machines; of TPU slices `slices` of a `topology`. `cost` is decimal, in the
    fleet's currency."""

    kind: str
    machine: str
    count: int
    accelerators: int
    duration_s: int
    zone: str
    pool: str
    within: str | None
    start: str
    end: str
    cost: str
    currency: str
    reason: Reason | None
    topology: str = ""
    slices: int = 0


class Quote(Answer):
    """Not a hold."""

    now: str
    asked: QuoteOption
    options: list[QuoteOption]
    promised_latest: str
    reason: Reason
    hold: bool = False


class ExtendAnswer(Answer):
    """`longestS` is the longest possible extension up to what was asked; `appliedS` what was done."""

    request: Request
    asked_s: int
    longest_s: int
    applied_s: int
    reason: Reason | None


class Affected(Answer):
    """One request a change of hosts touches."""

    name: str
    project: str
    state: str
    effect: str
    hosts: list[str]


class ChangeHostsAnswer(Answer):
    """`confirmed` is false when this only told whom it would affect."""

    hosts: list[str]
    state: str
    affected: list[Affected]
    confirmed: bool


class HostUse(Answer):
    """What a request has of a host; `slots` are which of its accelerators, where hosts are shared."""

    request: str
    project: str
    until: str
    slots: list[int]


class InTheWay(Answer):
    """Running work in the way of a shape; `fitsElsewhere` when it could be moved now."""

    request: str
    project: str
    hosts: list[str]
    accelerators: int
    until: str
    fits_elsewhere: bool


class DefragRoom(Answer):
    """Where a shape would have room in a pool, and who is in the way there; nobody when there is room now.
    `places` are blocks, or hosts where these are shared."""

    pool: str
    zone: str
    places: list[str]
    in_the_way: list[InTheWay]
    accelerator_s: int


class DefragAnswer(Answer):
    """The cheapest pool first; empty when nothing that runs is in the way and there is no room either."""

    rooms: list[DefragRoom]


class Host(Answer):
    """One host; `request` is the first of its `uses`. `free` of its units (one, or where hosts are shared its
    accelerators) nobody has."""

    name: str
    pool: str
    state: str
    reason: str
    since: str
    until: str
    domains: dict[str, str]
    request: str
    project: str
    busy_until: str
    uses: list[HostUse] = []
    free: int = 1


class Pool(Answer):
    """A pool and how it stands. A host is `hostUnits` units: accelerators where hosts are shared, else one.
    `fits` is how many machines of each shape it serves would find room now, `freeHosts` how many hosts are
    wholly free in each domain of each level. Of TPU pods, `topology` is what each has, and `largestSlices`
    the largest slice that each has room for."""

    name: str
    zone: str
    machine: str
    accelerator: str
    accelerators_per_host: int
    backend: str
    unavailable: str
    price: str
    hosts: list[Host]
    ready: int
    busy: int
    free: int
    draining: int
    down: int
    free_by_domain: dict[str, int]
    host_units: int = 1
    fits: dict[str, int] = {}
    free_hosts: dict[str, dict[str, int]] = {}
    topology: str = ""
    largest_slices: dict[str, str] = {}


class Zone(Answer):
    """A zone."""

    name: str
    region: str
    unavailable: str


class Fleet(Answer):
    """The fleet as it stands."""

    version: int
    now: str
    currency: str
    zones: list[Zone]
    pools: list[Pool]


class ApplyFleetAnswer(Answer):
    """What applying does, in words."""

    version: int
    lines: list[str]
    applied: bool


class Inside(Answer):
    """A request that runs or waits inside a reservation. `endsAt` is empty until delivered."""

    name: str
    project: str
    state: str
    hosts: int
    ends_at: str


class Reservation(Answer):
    """A future reservation. Empty strings are instants not reached, or that do not apply.

    `count` is hosts booked, or slices where there is a `topology`, and `short` how many of them it lacks (it
    is degraded while that is not 0); `inUse` of them are held by requests inside it and `waiting` requests
    wait inside. `lockAt` is when it can no longer be changed, `cancelUntil` the last instant of a free
    cancellation, `approveBy` when an approval would come too late. `idleSince` is since when nothing runs in
    it. `sequence` counts its changes. `cost` is decimal, for the whole window; `hosts` and `inside` are
    empty except where one reservation is got by name. One that was made `onDemand` may be without an end:
    then `end` and `cost` are empty and `durationS` is 0.
    """

    id: str
    name: str
    project: str
    principal: str
    state: str
    start: str
    end: str
    duration_s: int
    time_zone: str
    pool: str
    zone: str
    machine: str
    count: int
    within: str | None
    short: int
    in_use: int
    waiting: int
    shares: list[Share]
    specific_only: bool
    at_end: str
    request_hosts_max: int
    request_run_max_s: int
    description: str
    labels: dict[str, str]
    series: str
    created_at: str
    lock_at: str
    approve_by: str
    cancel_until: str
    opened_at: str
    idle_since: str
    ended_at: str
    end_message: str
    sequence: int
    version: int
    cost: str
    hosts: list[str]
    inside: list[Inside]
    topology: str = ""
    on_demand: bool = False


class Reserved(Answer):
    """The answer to a booking or a change: the reservation as it is, or would be with `dryRun`; the rules
    that hold for it; the server's time, and what to know beside (a clock of the caller's that is off)."""

    reservation: Reservation
    dry_run: bool
    rules: list[Reason]
    now: str
    warnings: list[str]


class ReservationList(Answer):
    """A page; `nextPageToken` is empty at the end."""

    items: list[Reservation]
    next_page_token: str = ""


class Occurrence(Answer):
    """One occurrence that is not over. Booked it has a `reservation` in a `state`; else `missed` says why it
    could not be, or `booksAt` when it will be. `note` says how a change of the clocks touches it."""

    day: str
    start: str
    end: str
    note: str
    reservation: str
    state: str
    missed: str = ""
    books_at: str = ""


class Missed(Answer):
    """An occurrence that could not be booked."""

    day: str
    start: str
    cause: str


class Series(Answer):
    """The same reservation again and again; `every` says when, `bookedUntil` how far it has been booked."""

    id: str
    name: str
    project: str
    principal: str
    state: str
    every: str
    time_zone: str
    accelerators: str
    machine: str
    count: int
    locations: list[str]
    within: str | None
    description: str
    booked_until: str
    upcoming: list[Occurrence]
    missed: list[Missed]
    shares: list[Share] = []
    specific_only: bool = True
    at_end: str = ""
    labels: dict[str, str] = {}
    created_at: str = ""
    ended_at: str = ""
    topology: str = ""


class SeriesList(Answer):
    """Every series the caller may see."""

    items: list[Series]


class Maintenance(Answer):
    """A maintenance window that is not over."""

    id: str
    name: str
    pool: str
    hosts: list[str]
    start: str
    end: str
    reason: str
    begun: bool


class MaintenanceAnswer(Answer):
    """Whom a window touches, and the window once it is confirmed."""

    affected: list[Affected]
    window: Maintenance | None


class MaintenanceList(Answer):
    """Every window that is not over."""

    items: list[Maintenance]


class WindowOption(Answer):
    """A window that could be booked now, unchanged. `reason` says what speaks for it beside the others;
    `cost` is decimal, for the whole window, in the fleet's currency."""

    pool: str
    zone: str
    machine: str
    count: int
    within: str | None
    start: str
    end: str
    duration_s: int
    cost: str
    currency: str
    reason: Reason
    topology: str = ""


class ZoneLoss(Answer):
    """Why a zone, or one of its pools, offers no window."""

    zone: str
    pool: str
    reason: Reason


class Advice(Answer):
    """Windows, best first, and why each other zone has none. Not a hold."""

    now: str
    options: list[WindowOption]
    lost: list[ZoneLoss]
    hold: bool = False


class Bar(Answer):
    """One booking on the calendar. `kind` is "RESERVATION", "PROMISE", "RUN", "OUTAGE" or "MAINTENANCE".

    `name` and `project` are empty where the reader may not see whose it is; `own` is true for bookings of
    the reader's projects; `parent` names the reservation it lies inside. An `end` that is not known is empty.
    """

    kind: str
    count: int
    start: str
    end: str
    name: str
    project: str
    state: str
    own: bool
    parent: str
    in_use: int
    short: int


class FreeStep(Answer):
    """From `start` until the next step so many `hosts` are free."""

    start: str
    hosts: int


class PoolCalendar(Answer):
    """A pool's bookings over the asked span, and what is free as steps; both count units, of which a host has
    `hostUnits`."""

    pool: str
    zone: str
    machine: str
    hosts: int
    bars: list[Bar]
    free: list[FreeStep]
    host_units: int = 1


class CalendarView(Answer):
    """GET /dws/v1/calendar: the calendar of the fleet over [start, end), as one reader may see it."""

    now: str
    start: str
    end: str
    pools: list[PoolCalendar]


class Event(Answer):
    """One recorded fact; `data` is its body, `requestId` the caller's name for the call that led to it."""

    seq: int
    at: str
    actor: str
    kind: str
    subject_kind: str
    subject: str
    project: str
    name: str
    reason: str
    data: dict[str, object]
    request_id: str = ""


class EventList(Answer):
    """Events; `lastSeq` is where to continue."""

    items: list[Event]
    last_seq: int


class UsageLine(Answer):
    """Use of one request by kind."""

    project: str
    principal: str
    request: str
    accelerator: str
    machine: str
    kind: str
    seconds: int
    accelerator_s: int
    cost: str
    open: bool


class Usage(Answer):
    """Use over [start, end)."""

    start: str
    end: str
    currency: str
    lines: list[UsageLine]


class Verification(Answer):
    """The ledger checked against itself; no faults is good."""

    bookings: int
    requests: int
    events: int
    faults: list[str]


class Clock(Answer):
    """Domain time."""

    now: str
    epoch: int
    virtual: bool


class LogChunk(Answer):
    """Output of one instance from an offset; `complete` when no more will come."""

    text: str
    offset: int
    complete: bool


class ErrorBody(Answer, omit_defaults=True):
    """The native error: canonical `code`, stable `reason`, the field that was wrong."""

    code: str
    reason: str
    message: str
    status: int
    field: str | None = None
    details: dict[str, object] = {}


class ErrorEnvelope(Answer):
    """What every failing call answers."""

    error: ErrorBody
