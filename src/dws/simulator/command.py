"""What `dws simulate` does, without the command line: choose the workload, run it, tell the figures.

`evaluate` gives an `Evaluation`, `as_data` and `as_lines` tell it to programs and people; `break_seeds`
gives an `Outcome` for each seed as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from dws.model.errors import InvalidArgument
from dws.planner.options import DEFAULT_POLICY, PolicyOptions
from dws.simulator import breaking
from dws.simulator.breaking.run import STEPS
from dws.simulator.evaluating import Estimates, Evaluation
from dws.simulator.evaluating import evaluate as run_trace
from dws.simulator.traces import Trace, read
from dws.simulator.traces.generated import PROFILES, generate

GENERATED: Final = "generated"
JOBS: Final = 5_000
HOSTS: Final = 512


def workload(
    trace: str, *, hosts: int, jobs: int = 0, load: float = 0.8, profile: str = "philly", seed: int = 0
) -> Trace:
    """The first `jobs` jobs (0: all) of a trace file, or generated ones when `trace` is `generated`.

    Raises InvalidArgument when the file cannot be read or the profile is unknown.
    """
    if trace == GENERATED:
        return generate(profile, jobs=jobs or JOBS, capacity=hosts or HOSTS, load=load, seed=seed)
    found = read(Path(trace))
    return replace(found, jobs=found.jobs[:jobs]) if jobs else found


def evaluate(
    trace: Trace,
    *,
    hosts: int = 0,
    block: int = 0,
    estimates: Estimates = "requested",
    policy: PolicyOptions = DEFAULT_POLICY,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Run a workload through the real engine; without `hosts` on a machine of the trace's own size.

    Raises InvalidArgument when that is unknown or nothing fits.
    """
    hosts = hosts or trace.capacity
    if hosts < 1:
        raise InvalidArgument(
            f"hosts: {trace.source} does not say how large its machine was; give --hosts", field="hosts"
        )
    try:
        return run_trace(
            trace,
            hosts=hosts,
            block=block,
            estimates=estimates,
            policy=policy,
            seed=seed,
            progress=progress,
        )
    except ValueError as error:
        raise InvalidArgument(f"hosts: {error}", field="hosts") from None


def as_data(done: Evaluation) -> dict[str, object]:
    """Everything about an evaluation, for programs."""
    return {
        "source": done.trace.source,
        "unit": done.trace.unit,
        "notes": list(done.trace.notes),
        "hosts": done.hosts,
        "estimates": done.estimates,
        "skipped": done.trace.skipped,
        "leftOut": done.left_out,
        "offeredLoad": round(done.offered_load, 4),
        "figures": asdict(done.figures),
        "requestsPerS": round(done.requests_per_s, 1),
        "wallS": round(done.wall_s, 3),
        "planningPasses": done.passes,
        "planningP99S": done.planning_p99_s,
    }


def as_lines(done: Evaluation) -> list[tuple[str, str]]:
    """The same for people: names and values."""
    f = done.figures
    notes = [("Note", note) for note in done.trace.notes]
    error = "none was promised"
    if f.promise_error_mean is not None:
        error = f"mean {f.promise_error_mean:,.0f} s, 95 % within {f.promise_error_p95:,} s"
    return [
        ("Workload", f"{done.trace.source}: {f.requests:,} requests, sizes in {done.trace.unit}s"),
        *notes,
        ("Left out", f"{done.left_out:,} larger than the fleet, {done.trace.skipped:,} that never ran"),
        ("Fleet", f"{done.hosts:,} hosts of one unit, offered load {done.offered_load:.2f}"),
        ("Declared length", done.estimates),
        ("Wait", f"mean {f.wait_mean:,.0f} s, p95 {f.wait_p95:,} s, longest {f.wait_max:,} s"),
        ("Bounded slowdown", f"{f.slowdown_10:.2f} (tau 10 s), {f.slowdown_600:.2f} (tau 600 s)"),
        ("Utilisation", f"{f.utilisation:.3f}, {f.utilisation_mid:.3f} in the middle"),
        ("Started before older", f"{f.backfilled:.1%}"),
        ("Promised", f"{f.promised:,}, moved later by a recorded cause {f.moved_later:,}"),
        ("Promise error", error),
        ("Later than promised", f"{f.late:,}" + (f", worst {f.late_worst:,} s" if f.late else "")),
        ("Simulated", f"{f.makespan:,} s in {done.wall_s:.1f} s: {done.requests_per_s:,.0f} requests/s"),
        ("Planning", f"{done.passes:,} passes, 99 % within {done.planning_p99_s * 1000:.1f} ms"),
    ]


def profiles() -> tuple[str, ...]:
    """Names of the published statistics that `generated` knows."""
    return tuple(PROFILES)


def break_seeds(seeds: Iterable[int], *, steps: int = 0) -> Iterator[breaking.Outcome]:
    """Break the scheduler once for each seed; `steps` 0 is the usual length."""
    for seed in seeds:
        yield breaking.run(seed, steps=steps or STEPS)
