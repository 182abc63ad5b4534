"""The figures of a run, computed once from what was recorded.

Seconds unless the name says otherwise. Waits count from submission to start; bounded slowdown is
(wait + run) / max(run, tau), at least 1; promise error is the actual start minus the latest start first
told (negative: earlier than told).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dws.simulator.recorder import Course


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a run came to; `None` where nothing was there to count.

    `utilisation` is used unit-seconds over capacity from the first submission to the last end,
    `utilisation_mid` the same between the instants by which a tenth and nine tenths had arrived.
    `late` counts starts later than promised, `moved_later` promises moved by a recorded cause.
    """

    requests: int
    wait_mean: float
    wait_p95: int
    wait_max: int
    slowdown_10: float
    slowdown_600: float
    utilisation: float
    utilisation_mid: float
    makespan: int
    backfilled: float
    promised: int
    promise_error_mean: float | None
    promise_error_p95: int | None
    late: int
    late_worst: int
    moved_later: int


def figures(courses: Iterable[Course], *, capacity: int) -> Figures:
    """The figures of everything that ran to its end. Raises ValueError when nothing did."""
    done = sorted((c for c in courses if c.ended), key=lambda c: c.submitted)
    if not done:
        raise ValueError("nothing ran")
    waits = [c.started - c.submitted for c in done]
    promised = [c for c in done if c.first_promise]
    errors = [c.started - c.first_promise for c in promised]
    late = [c.started - c.promise for c in promised if c.started > c.promise]
    first, last = done[0].submitted, max(c.ended for c in done)
    mid = (done[len(done) // 10].submitted, done[len(done) * 9 // 10].submitted)
    return Figures(
        requests=len(done),
        wait_mean=_mean(waits),
        wait_p95=quantile(waits, 0.95),
        wait_max=max(waits),
        slowdown_10=_mean([_slowdown(c, 10) for c in done]),
        slowdown_600=_mean([_slowdown(c, 600) for c in done]),
        utilisation=_used(done, first, last) / max(1, capacity * (last - first)),
        utilisation_mid=_used(done, *mid) / max(1, capacity * (mid[1] - mid[0])),
        makespan=last - first,
        backfilled=sum(c.passed_others for c in done) / len(done),
        promised=len(promised),
        promise_error_mean=_mean(errors) if errors else None,
        promise_error_p95=quantile([abs(e) for e in errors], 0.95) if errors else None,
        late=len(late),
        late_worst=max(late, default=0),
        moved_later=sum(c.moved_later for c in done),
    )


def quantile(values: Sequence[int], share: float) -> int:
    """The smallest value that `share` (0 … 1) of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _slowdown(course: Course, tau_s: int) -> float:
    run_s = course.ended - course.started
    wait_s = course.started - course.submitted
    return max(1.0, (wait_s + run_s) / max(run_s, tau_s))


def _used(courses: Iterable[Course], start: int, end: int) -> int:
    """Unit-seconds used within [start, end)."""
    return sum(
        c.size * (min(c.ended, end) - max(c.started, start))
        for c in courses
        if c.started < end and c.ended > start
    )
