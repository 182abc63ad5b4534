"""Every knob of the scheduler, in one frozen value with units in the names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dws.model.request import HostLossPolicy
from dws.model.time import DAY, MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """The owner's policy.

    Admission: `run_duration_min_s` … `run_duration_max_s` bound the run; `never_fits` says what to do
    with what the empty fleet could not hold (`refuse`, or `wait` for the fleet to grow).

    Planning: the first `protected_depth` requests in line are promised their earliest fit, the others
    (at most `promise_depth` a pass) their earliest fit plus `promise_slack` times their own duration,
    when it lies within `promise_horizon_s` and the project's `promise_cap_accelerator_hours` allow;
    after `max_wait_age_s` a promise is given regardless, which bounds starvation. `queue_depth` is how
    many waiting requests one pass looks at. `full_plan_interval_s` is the watchdog's period.

    Running: warnings go out `warning_leads_s` before the end; an attempt that fails is retried after
    `retry_backoff_s` doubling to `retry_backoff_max_s`, at most `attempts_max` times (0: no limit);
    instances unseen for `unreachable_grace_s` are given up for lost. Records of finished requests and
    their events are kept `retention_s`.
    """

    run_duration_min_s: int = 1
    run_duration_max_s: int = 7 * DAY
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

    def __post_init__(self) -> None:
        if not 1 <= self.run_duration_min_s <= self.run_duration_max_s:
            raise ValueError("run_duration_min_s must lie between 1 and run_duration_max_s")
        if self.promise_slack < 0:
            raise ValueError("promise_slack must not be negative")
        if self.retry_backoff_s < 1:
            raise ValueError("retry_backoff_s must be at least 1")


DEFAULT_POLICY = PolicyOptions()
