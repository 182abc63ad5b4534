"""What the planner proposes, and what it answers. Plans are proposals: only the committer writes.

`Plan` carries decisions in the order they must be applied; `Forecast`, `Quote` and `Extension` are
answers that change nothing. Every one of them carries its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dws.model.booking import Part, calendar_name
from dws.model.time import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One plain reason with numbers.

    `code` is stable (`NO_GROUP_WITH_ENOUGH_FREE`); `text` is a sentence in which `{name}` stands for
    `facts[name]`, and `{name:time}` for an instant that a face shows in the reader's zone, or
    `{name:duration}` for seconds.
    """

    code: str
    text: str
    facts: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where and when something fits: one alternative of a demand in one pool.

    `span` is the whole booking (set-up bound, duration, grace, tear-down); `start` is its start. In a
    decision to start, the parts list the drawn units; elsewhere counts only. `parent` is the booking of
    the reservation it lies inside, 0 for none.
    """

    alternative: int
    pool: str
    span: Span
    parts: tuple[Part, ...]
    duration_s: int
    parent: int = 0

    @property
    def calendar(self) -> str:
        """The name of the calendar it is in."""
        return calendar_name(self.pool, self.parent)

    @property
    def start(self) -> int:
        """When the hosts are taken."""
        return self.span.start

    @property
    def count(self) -> int:
        """Units taken: hosts, or accelerators of shared ones."""
        return sum(p.count for p in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start this request now, on these units."""

    request: int
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """Promise this request a latest start, or an earlier one than it has."""

    request: int
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A promise cannot be kept where it is; this is the earliest place for it. `cause` says why."""

    request: int
    placement: Placement
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """A promise cannot be kept at all for now; the request waits without one. `cause` says why."""

    request: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A reservation's booking has these parts from now on: hosts drawn at its start or taken in place of
    lost ones, or room found elsewhere before it. `short` of its machines are lacking. It was decided on
    `version` of the booking; `cause` says why it is short or moved."""

    reservation: int
    version: int
    parts: tuple[Part, ...]
    short: int
    cause: str


Decision = Start | Book | Move | Withdraw | Bind


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Decisions from one snapshot at one instant.

    `ledger_version` is the snapshot's; `look_again_at` is the earliest instant at which time alone
    (a promise, a back-off, a not-before) makes another pass worthwhile, None when nothing will; `now` when
    there is more to promise than one pass may.
    """

    ledger_version: int
    now: int
    decisions: tuple[Decision, ...]
    look_again_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a waiting request can expect.

    `expected_start` is None when nothing within the horizon fits (the reason says why).
    `promise_by` is the instant at which a promise will be given regardless, 0 when there is one.
    `place` counts from 1 over everyone waiting.
    """

    request: int
    place: int
    expected_start: int | None
    promised_start: int
    promise_by: int
    placement: Placement | None
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteOption:
    """One way to have it: `kind` is `asked`, `shorter`, `smaller`, `elsewhere` or `other-type`.

    `count` are its machines; of TPU slices `topology` and `slices` tell which and how many.
    `cost_micros` is for the full duration, in millionths of the fleet's currency. `start` is None when
    it does not fit within the horizon, and then `reason` says why.
    """

    kind: str
    shape: str
    count: int
    accelerators: int
    duration_s: int
    zone: str
    pool: str
    within: str | None
    start: int | None
    end: int | None
    cost_micros: int
    reason: Reason | None = None
    topology: str = ""
    slices: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """The answer to "when, until when, for how much", without asking. Not a hold.

    `asked` is the demand's best alternative; `options` start sooner or cost less, best first.
    `promised_latest` is the latest start that would be promised, None when none would be yet.
    """

    now: int
    asked: QuoteOption
    options: tuple[QuoteOption, ...]
    promised_latest: int | None
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """How much longer a run may go on without breaking a promise.

    `longest_s` is the longest possible extension up to what was asked; `reason` names what stops it.
    """

    asked_s: int
    longest_s: int
    reason: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOption:
    """One window of a reservation that could be booked now, unchanged: `count` machines of a shape, or slices
    where there is a `topology`.

    `reason` says what speaks for it beside the others.
    """

    pool: str
    zone: str
    shape: str
    count: int
    within: str | None
    window: Span
    parts: tuple[Part, ...]
    cost_micros: int
    reason: Reason
    topology: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneLoss:
    """Why a zone, or one of its pools, offers no window."""

    zone: str
    pool: str
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Windows that would be confirmed now, best first, and why each other zone has none. Not a hold."""

    now: int
    options: tuple[WindowOption, ...]
    lost: tuple[ZoneLoss, ...]
