"""Makes a workload with the published statistics of two GPU clusters, for when no trace is at hand.

Published (means and medians over whole logs): Philly 2017, 1.9 GPUs a job, run 18,006 s mean and 874 s
median; Helios 2020, 3.7 GPUs, 6,652 s and 206 s. Lengths are log-normal with that median and mean, cut at
seven days; sizes are powers of two with that mean; arrivals are random with a daily swing, at the rate that
offers the load asked for. Owners ask for one to three times the true length.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dws.model.errors import InvalidArgument
from dws.model.time import DAY, MINUTE
from dws.simulator.traces.job import Job, Trace

RUN_MAX_S: Final = 7 * DAY
USERS: Final = 40
DAILY_SWING: Final = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The published statistics of a cluster: lengths in seconds, the share of jobs of each size."""

    median_run_s: int
    mean_run_s: int
    sizes: Mapping[int, float]
    outcomes: Mapping[str, float]


PROFILES: Final[Mapping[str, Profile]] = {
    "philly": Profile(
        median_run_s=874,
        mean_run_s=18_006,
        sizes={1: 0.86, 2: 0.03, 4: 0.04, 8: 0.05, 16: 0.015, 32: 0.005},
        outcomes={"completed": 0.60, "cancelled": 0.09, "failed": 0.31},
    ),
    "helios": Profile(
        median_run_s=206,
        mean_run_s=6_652,
        sizes={1: 0.68, 2: 0.08, 4: 0.08, 8: 0.10, 16: 0.035, 32: 0.015, 64: 0.01},
        outcomes={"completed": 0.62, "cancelled": 0.22, "failed": 0.16},
    ),
}


def generate(profile: str, *, jobs: int, capacity: int, load: float = 0.8, seed: int = 0) -> Trace:
    """`jobs` jobs that offer `load` times the capacity (units), the same ones for the same seed.

    Raises InvalidArgument for an unknown profile or a load that is not positive.
    """
    known = PROFILES.get(profile)
    if known is None:
        names = ", ".join(PROFILES)
        raise InvalidArgument(f"profile: no '{profile}' (there are: {names})", field="profile")
    if not 0 < load < math.inf or jobs < 1 or capacity < 1:
        raise InvalidArgument(
            f"load, jobs and hosts must be positive, not {load:g}, {jobs} and {capacity}", field="load"
        )
    chance = {p: random.Random(f"{seed}:{p}") for p in ("runs", "sizes", "times", "owners")}
    runs = [_run_s(known, chance["runs"]) for _ in range(jobs)]
    fitting = {size: share for size, share in known.sizes.items() if size <= capacity}
    sizes = chance["sizes"].choices(list(fitting), list(fitting.values()), k=jobs)
    work = sum(run * size for run, size in zip(runs, sizes, strict=True))
    times = _arrivals(jobs, work / (load * capacity), chance["times"])
    return Trace(
        source=f"generated like {profile}, seed {seed}, offered load {load:g}",
        unit="GPU",
        jobs=tuple(
            _job(known, at, run, size, chance["owners"])
            for at, run, size in zip(times, runs, sizes, strict=True)
        ),
        capacity=capacity,
        notes=("a generated workload with published statistics, not a recorded trace",),
    )


def _run_s(profile: Profile, chance: random.Random) -> int:
    spread = math.sqrt(2 * math.log(profile.mean_run_s / profile.median_run_s))
    drawn = chance.lognormvariate(math.log(profile.median_run_s), spread)
    return min(RUN_MAX_S, max(1, round(drawn)))


def _arrivals(jobs: int, length_s: float, chance: random.Random) -> list[int]:
    """Instants in [0, length), denser by day than by night."""
    times: list[float] = []
    while len(times) < jobs:
        at = chance.uniform(0, length_s)
        density = (1 + DAILY_SWING * math.sin(2 * math.pi * at / DAY)) / (1 + DAILY_SWING)
        if chance.random() < density:
            times.append(at)
    first = min(times)
    return sorted(int(at - first) for at in times)


def _job(profile: Profile, at: int, run_s: int, size: int, chance: random.Random) -> Job:
    asked = MINUTE * math.ceil(run_s * chance.uniform(1, 3) / MINUTE)
    (status,) = chance.choices(list(profile.outcomes), list(profile.outcomes.values()))
    return Job(
        submit_s=at,
        run_s=run_s,
        requested_s=min(RUN_MAX_S, asked),
        size=size,
        user=str(chance.randrange(USERS)),
        status=status,
    )
