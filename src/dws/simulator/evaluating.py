"""Evaluate a policy: a whole workload through the real engine, and the figures it came to.

Every job becomes a capacity request for its size in units for the time its owner asked for; its program
ends by itself after the true run time, so whatever ends early gives its capacity back early, as in real
life. Nothing fails here; `breaking` is for that.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from dws.backends.simulated.backend import SimulatedBackend
from dws.engine.clock import stopwatch
from dws.engine.commands import Submit
from dws.model.access import SYSTEM
from dws.model.demand import Alternative, Demand
from dws.model.errors import InvalidArgument
from dws.model.names import check_project
from dws.model.request import Workload
from dws.model.resources import MachineShape
from dws.model.time import DAY, FOREVER
from dws.model.topology import Domain, Fleet, Pool, Zone
from dws.planner.options import DEFAULT_POLICY, PolicyOptions
from dws.simulator import collecting
from dws.simulator.figures import Figures, figures, quantile
from dws.simulator.recorder import Recorder
from dws.simulator.traces.job import Job, Trace
from dws.simulator.world import World
from dws.store.memory import MemoryStore

START: Final = 1_798_761_600
"""The first instant of a simulated run: midnight at the beginning of 2027, UTC."""

RUN_MAX_S: Final = 365 * DAY
SHAPE: Final = "simulated-unit"

Estimates = Literal["requested", "exact", "slack"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A workload, where it ran, under which policy, and what came of it.

    `left_out` counts jobs larger than the fleet; `wall_s` is real time for the whole run, `planning_p99_s`
    that of a planning pass.
    """

    trace: Trace
    hosts: int
    estimates: Estimates
    policy: PolicyOptions
    left_out: int
    offered_load: float
    figures: Figures
    wall_s: float
    passes: int
    planning_p99_s: float

    @property
    def requests_per_s(self) -> float:
        """Simulated requests for each second of real time."""
        return self.figures.requests / self.wall_s


def evaluation_policy(policy: PolicyOptions, hosts: int) -> PolicyOptions:
    """The policy as it is used here: jobs may be longer than any owner would allow and as large as the
    fleet, nobody is warned, and the story of what is over is kept for two days only."""
    return replace(
        policy,
        run_duration_max_s=RUN_MAX_S,
        instances_max=max(hosts, policy.instances_max),
        warning_leads_s=(),
        retention_s=2 * DAY,
    )


def evaluate(
    trace: Trace,
    *,
    hosts: int,
    block: int = 0,
    estimates: Estimates = "requested",
    policy: PolicyOptions = DEFAULT_POLICY,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Run the trace on `hosts` hosts of one unit each, in blocks of `block` (0: no blocks).

    `estimates` says what owners ask for: what the trace says (the true time where it says nothing), the
    exact run time, or one to three times that. `progress` is told how many jobs have been submitted.
    Raises ValueError when no job fits.
    """
    policy = evaluation_policy(policy, hosts)
    recorder = Recorder()
    world = World(
        store=MemoryStore(), backend=SimulatedBackend(), policy=policy, start=START, meters=recorder
    )
    world.open(one_pool(hosts, block))
    jobs = [job for job in trace.jobs if job.size <= hosts]
    if not jobs:
        raise ValueError(f"none of the {len(trace.jobs)} jobs fits {hosts} hosts")
    first = jobs[0].submit_s
    chance = random.Random(f"{seed}:estimates")
    for number, job in enumerate(jobs, 1):
        command = submission(job, estimates, chance)
        world.at(START + job.submit_s - first, partial(_arrive, world, command, number, progress))
    began = stopwatch()
    with collecting.seldom():
        while not world.is_idle and world.step(FOREVER):
            pass
    wall_s = stopwatch() - began
    length = max(job.submit_s for job in jobs) - first
    work = sum(job.size * job.run_s for job in jobs)
    micros = [int(s * 1_000_000) for s in recorder.planning_s]
    return Evaluation(
        trace=trace,
        hosts=hosts,
        estimates=estimates,
        policy=policy,
        left_out=len(trace.jobs) - len(jobs),
        offered_load=work / max(1, hosts * length),
        figures=figures(recorder.courses.values(), capacity=hosts),
        wall_s=wall_s,
        passes=len(micros),
        planning_p99_s=quantile(micros, 0.99) / 1_000_000,
    )


def one_pool(hosts: int, block: int) -> Fleet:
    """A fleet of `hosts` one-unit hosts, in blocks of `block` of them (the last may be smaller)."""
    sizes = [min(block, hosts - first) for first in range(0, hosts, block)] if block else []
    return Fleet(
        zones=(Zone(name="simulated"),),
        pools=(
            Pool(
                name="units",
                zone="simulated",
                shape=MachineShape(name=SHAPE, accelerator="simulated", accelerators=1),
                backend="simulated",
                hosts=tuple(f"u{n + 1}" for n in range(hosts)),
                domains=tuple(
                    Domain(level="block", name=f"b{n + 1}", first=n * block, size=size)
                    for n, size in enumerate(sizes)
                ),
            ),
        ),
    )


def submission(job: Job, estimates: Estimates, chance: random.Random) -> Submit:
    """What the job's owner asks for, and the program that ends when the job really ended."""
    asked_s = job.run_s
    if estimates == "requested":
        asked_s = job.requested_s or job.run_s
    elif estimates == "slack":
        asked_s = int(job.run_s * chance.uniform(1, 3))
    return Submit(
        project=project_of(job.user),
        demand=Demand(
            alternatives=(Alternative(shape=SHAPE, count=job.size, duration_s=min(RUN_MAX_S, asked_s)),)
        ),
        workload=Workload(command=("run",), environment={"DWS_SIM_RUN_S": str(job.run_s)}),
    )


def project_of(user: str) -> str:
    """A project for each user of a trace: `u-` and the name, or its digest where it is no legal project."""
    plain = f"u-{user.lower()}" if user else "u"
    try:
        return check_project(plain)
    except InvalidArgument:
        return f"u-{hashlib.blake2b(user.encode(), digest_size=8).hexdigest()}"


def _arrive(world: World, command: Submit, number: int, progress: Callable[[int], None] | None) -> None:
    world.engine.submit(SYSTEM, command)
    if progress is not None:
        progress(number)
