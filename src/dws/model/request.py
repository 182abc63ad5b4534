"""The capacity request: "so many of these, together, for this long, as soon as possible".

A request owns a demand and, once started, a grant: the hosts and instances delivered. Its state
changes only through `dws.lifecycle.request`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from dws.model.demand import Demand
from dws.model.evolve import swift
from dws.model.names import BookingId, RequestId


class RequestState(StrEnum):
    """Where a request is in its life; `dws.lifecycle.request` has the table of steps."""

    PENDING = "PENDING"
    BOOKED = "BOOKED"
    PROVISIONING = "PROVISIONING"
    ACTIVE = "ACTIVE"
    ENDING = "ENDING"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"

    @property
    def is_waiting(self) -> bool:
        """True while nothing has been started."""
        return self in (RequestState.PENDING, RequestState.BOOKED)

    @property
    def is_terminal(self) -> bool:
        """True when nothing will ever change again."""
        return self in _TERMINAL


_TERMINAL = frozenset(
    {
        RequestState.COMPLETED,
        RequestState.CANCELLED,
        RequestState.FAILED,
        RequestState.EXPIRED,
    }
)


class EndReason(StrEnum):
    """Why a request ended, or is ending."""

    DURATION_REACHED = "DURATION_REACHED"
    RELEASED = "RELEASED"
    PROGRAM_SUCCEEDED = "PROGRAM_SUCCEEDED"
    PROGRAM_FAILED = "PROGRAM_FAILED"
    CANCELLED = "CANCELLED"
    WAIT_LIMIT = "WAIT_LIMIT"
    PROVISIONING_FAILED = "PROVISIONING_FAILED"
    HOST_LOST = "HOST_LOST"
    RESERVATION_ENDED = "RESERVATION_ENDED"


class HostLossPolicy(StrEnum):
    """What becomes of a gang that loses a host: end it, put it back in line, or replace the host."""

    END = "end"
    REQUEUE = "requeue"
    REPLACE = "replace"


class InstanceState(StrEnum):
    """What is known of one instance of a grant."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    EXITED = "EXITED"
    RELEASING = "RELEASING"
    RELEASED = "RELEASED"
    LOST = "LOST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What to run on every instance. An empty command means: hold the instances until released.

    `environment` is added to what the backend provides. `signal_before_s` is how long before the end
    the soft signal is sent.
    """

    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    directory: str = ""
    signal_before_s: int = 0


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One machine of a grant: rank 0 … n-1, on one host of the pool.

    `unit` is the host's place in the pool's `hosts`; where hosts are shared, `slots` are those of its
    accelerators that the instance has.

    `incarnation` counts the replacements of this rank within the attempt.

    `metered_from` is when its usage began (delivery of the gang, or its own as a replacement), 0 before.
    """

    rank: int
    unit: int
    host: str
    slots: tuple[int, ...] = ()
    incarnation: int = 0
    state: InstanceState = InstanceState.STARTING
    address: str = ""
    exit_code: int | None = None
    metered_from: int = 0
    note: str = ""

    @property
    def is_held(self) -> bool:
        """True while the instance occupies its host."""
        return self.state not in (InstanceState.RELEASED, InstanceState.LOST)


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What was granted in one attempt: which alternative, where, and the instances.

    `delivered_at` is when the whole gang was up, 0 until then; `ends_at` is the deadline of the run
    (delivery + duration, moved by extensions), 0 until delivered. `reservation` is the id of the one it lies
    inside, 0 for none. Of TPU slices, `slices` of a `topology`, the instances stand slice by slice and row by
    row in each.
    """

    booking: BookingId
    attempt: int
    alternative: int
    pool: str
    zone: str
    shape: str
    duration_s: int
    started_at: int
    instances: tuple[Instance, ...]
    delivered_at: int = 0
    ends_at: int = 0
    unreachable_since: int = 0
    warned_s: tuple[int, ...] = ()
    reservation: int = 0
    topology: str = ""
    slices: int = 0

    def slice_of(self, rank: int) -> int:
        """Which of its slices an instance belongs to, from 0; 0 for what is no slice."""
        return rank * self.slices // len(self.instances) if self.slices else 0

    def worker_of(self, rank: int) -> int:
        """The rank of an instance within its slice; 0 for what is no slice."""
        return rank % (len(self.instances) // self.slices) if self.slices else 0

    @property
    def is_torn_by_loss(self) -> bool:
        """True when no other host can stand in for one of its hosts: a slice is of neighbours."""
        return 0 < self.slices < len(self.instances)

    def slice_mates(self, rank: int) -> tuple[Instance, ...]:
        """All instances of the slice of one of them; that one alone where it is no slice."""
        if not self.slices:
            return self.instances[rank : rank + 1]
        number, size = self.slice_of(rank), len(self.instances) // self.slices
        return self.instances[number * size : (number + 1) * size]


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRequest:
    """One request, everything known about it.

    `submitted_at` is its age in the queue and survives every retry. `promised_start` is the latest
    start once promised (0: no promise yet) and never moves later except by a recorded cause.
    `attempts` counts attempts begun, `deliveries` those whose whole gang came up, `failures` those that
    failed since the last delivery;
    `not_again_before` is the back-off after a failure. `array` is
    the name of the array this request is an element of, `array_index` its index.
    """

    id: RequestId
    name: str
    project: str
    principal: str
    demand: Demand
    state: RequestState
    submitted_at: int
    version: int = 1
    priority: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    workload: Workload | None = None
    on_host_loss: HostLossPolicy = HostLossPolicy.END
    array: str = ""
    array_index: int = 0
    promised_start: int = 0
    booking: BookingId | None = None
    attempts: int = 0
    deliveries: int = 0
    failures: int = 0
    not_again_before: int = 0
    last_failure: str = ""
    grant: Grant | None = None
    end_reason: EndReason | None = None
    end_message: str = ""
    requeue: bool = False
    ended_at: int = 0
    deleted: bool = False

    @property
    def was_delivered(self) -> bool:
        """True once the whole gang of the present attempt has been there."""
        return self.grant is not None and self.grant.delivered_at > 0

    @property
    def exit_code(self) -> int | None:
        """The program's status: the first non-zero one by rank, 0 when all were, None while unknown."""
        if self.grant is None:
            return None
        codes = [i.exit_code for i in self.grant.instances if i.exit_code is not None]
        return next((c for c in codes if c != 0), 0) if codes else None
