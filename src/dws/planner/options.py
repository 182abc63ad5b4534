"""Every knob of the scheduler, in one frozen value with units in the names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from dws.model.request import HostLossPolicy
from dws.model.time import DAY, HOUR, MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """The owner's policy.

    Admission: `run_duration_min_s` … `run_duration_max_s` bound the run; `open_ended` says whether a run, or
    a reservation made on demand, without an end of its own (`OPEN_ENDED_S`) may be asked for all the same;
    `never_fits` says what to do with what the empty fleet could not hold (`refuse`, or `wait` for the fleet
    to grow).

    Planning: the first `protected_depth` requests in line are promised their earliest fit, the others
    (at most `promise_depth` a pass) their earliest fit plus `promise_slack` times their own duration,
    when it lies within `promise_horizon_s` and the project's `promise_cap_accelerator_hours` allow;
    after `max_wait_age_s` a promise is given regardless, which bounds starvation. `queue_depth` is how
    many waiting requests one pass looks at. `full_plan_interval_s` is the watchdog's period.

    Running: warnings go out `warning_leads_s` before the end; an attempt that fails is retried after
    `retry_backoff_s` doubling to `retry_backoff_max_s`, at most `attempts_max` times (0: no limit);
    instances unseen for `unreachable_grace_s` are given up for lost. Records of finished requests and
    their events are kept `retention_s`.

    Instances and groups of the Compute door: an instance by itself waits for capacity `instance_wait_min_s` …
    `instance_wait_max_s`, or not at all; a group has at most `group_size_max` instances, `resize_by_max` of
    them from one resize request; of these a project has `open_resize_requests_max` waiting in one region
    (0: no limit).

    Calendar: a reservation starts at most `calendar_horizon_s` and at least `reservation_notice_s` ahead,
    and lasts `reservation_min_s` … `reservation_max_s`, or exactly one of `reservation_lengths_s` where
    there are any. It can be changed and cancelled until `reservation_lock_s` before its start (at the latest
    `reservation_cancel_s` before it for cancelling), where `reservation_amend` and `reservation_cancel`
    allow that at all. All
    reservations of a pool together take at most `calendar_share` of it at any instant. With
    `reservation_approval = "approver"` an operator approves each one within `approval_expiry_s`. A start
    at most `past_tolerance_s` ago means now. Nothing running in it for `no_show_warn_s` is told to its
    owner, and for `no_show_release_s` ends it (0: never).
    A client of the Compute door that says neither mode nor planning status of a future reservation, but its
    window and that it ends by itself, books a block of the calendar with `calendar_unless_said`; otherwise it
    makes a draft, as in the public service.
    Its idle hosts are lent to requests of others that are done within `lend_idle_s`, which is how long its
    owner may have to wait for them (0: not at all).
    """

    run_duration_min_s: int = 1
    run_duration_max_s: int = 7 * DAY
    open_ended: bool = True
    never_fits: Literal["refuse", "wait"] = "refuse"
    instances_max: int = 4096

    queue_depth: int = 10_000
    protected_depth: int = 1
    promise_depth: int = 32
    promise_slack: float = 1.0
    promise_horizon_s: int = 7 * DAY
    promise_cap_accelerator_hours: int = 10_000
    max_wait_age_s: int = 7 * DAY
    full_plan_interval_s: int = 10 * MINUTE

    warning_leads_s: tuple[int, ...] = (30 * MINUTE, 10 * MINUTE, MINUTE)
    attempts_max: int = 0
    retry_backoff_s: int = 10
    retry_backoff_max_s: int = 10 * MINUTE
    on_host_loss: HostLossPolicy = HostLossPolicy.END
    unreachable_grace_s: int = 10 * MINUTE
    overrun_step_s: int = MINUTE
    retention_s: int = 30 * DAY

    instance_wait_min_s: int = 1
    instance_wait_max_s: int = 365 * DAY
    group_size_max: int = 4096
    resize_by_max: int = 4096
    open_resize_requests_max: int = 0

    calendar_horizon_s: int = 56 * DAY
    reservation_min_s: int = MINUTE
    reservation_max_s: int = 90 * DAY
    reservation_lengths_s: tuple[int, ...] = ()
    reservation_notice_s: int = 0
    reservation_lock_s: int = 15 * MINUTE
    reservation_amend: Literal["until_lock", "never"] = "until_lock"
    reservation_cancel: Literal["until_lock", "never"] = "until_lock"
    reservation_cancel_s: int = 0
    reservation_approval: Literal["auto", "approver"] = "auto"
    approval_expiry_s: int = DAY
    calendar_share: float = 1.0
    past_tolerance_s: int = MINUTE
    reservation_warning_leads_s: tuple[int, ...] = (DAY, HOUR, 10 * MINUTE)
    no_show_warn_s: int = 0
    no_show_release_s: int = 0
    lend_idle_s: int = 0
    calendar_unless_said: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.run_duration_min_s <= self.run_duration_max_s:
            raise ValueError("run_duration_min_s must lie between 1 and run_duration_max_s")
        if not 1 <= self.instance_wait_min_s <= self.instance_wait_max_s:
            raise ValueError("instance_wait_min_s must lie between 1 and instance_wait_max_s")
        if self.group_size_max < 1 or self.resize_by_max < 1:
            raise ValueError("group_size_max and resize_by_max must be at least 1")
        if self.promise_slack < 0:
            raise ValueError("promise_slack must not be negative")
        if self.retry_backoff_s < 1:
            raise ValueError("retry_backoff_s must be at least 1")
        if not 1 <= self.reservation_min_s <= self.reservation_max_s:
            raise ValueError("reservation_min_s must lie between 1 and reservation_max_s")
        if not 0 <= self.calendar_share <= 1:
            raise ValueError("calendar_share must lie between 0 and 1")


DEFAULT_POLICY = PolicyOptions()

PRESETS: Final[Mapping[str, PolicyOptions]] = MappingProxyType(
    {
        "default": DEFAULT_POLICY,
        "seed": PolicyOptions(reservation_lengths_s=(7 * DAY, 14 * DAY), reservation_amend="never"),
        "google": PolicyOptions(
            run_duration_min_s=10 * MINUTE,
            never_fits="wait",
            retention_s=14 * DAY,
            instance_wait_min_s=90,
            instance_wait_max_s=2 * HOUR,
            group_size_max=2_000,
            resize_by_max=1_000,
            open_resize_requests_max=100,
            calendar_horizon_s=60 * DAY,
            reservation_min_s=DAY,
            reservation_notice_s=87 * HOUR,
            reservation_lock_s=56 * DAY,
            reservation_amend="never",
            calendar_unless_said=False,
        ),
    }
)
"""Policies by name: an own fleet's, the one the public service announced, and its numbers of today."""
