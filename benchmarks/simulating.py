"""Whole requests, from submit to returned, through the real engine on a simulated fleet of 512 hosts."""

from __future__ import annotations

import random
import time

from benchmarks.measuring import Figure, peak_memory_mb
from benchmarks.planning import fleet
from dws.backends.simulated.backend import SimulatedBackend
from dws.engine.app import Engine
from dws.engine.clock import VirtualClock
from dws.engine.commands import Submit
from dws.model.access import SYSTEM
from dws.model.demand import Alternative, Demand
from dws.model.request import RequestState
from dws.planner import kernels
from dws.planner.options import PolicyOptions
from dws.simulator import collecting
from dws.store.memory import MemoryStore

START = 1_800_000_000


def requests_per_second(number: int) -> float:
    """Requests a wall second: 1 to 8 hosts, 10 minutes to 2 hours, the fleet about 80 % used."""
    clock = VirtualClock(START)
    policy = PolicyOptions(warning_leads_s=())
    engine = Engine(
        store=MemoryStore(), backends={"simulated": SimulatedBackend()}, clock=clock, policy=policy
    )
    engine.open()
    engine.apply_fleet(SYSTEM, fleet(), confirm=True)
    dice = random.Random(2)
    arrivals, at = [], START
    for _ in range(number):
        at += dice.randint(0, 46)
        within = dice.choice((None, "block"))
        count, duration = dice.choice((1, 1, 1, 2, 4, 8)), dice.randint(600, 7_200)
        demand = Demand(
            alternatives=(Alternative(shape="m", count=count, duration_s=duration, within=within),)
        )
        arrivals.append((at, Submit(project="p", demand=demand)))
    began = time.perf_counter()
    with collecting.seldom():
        for at, command in arrivals:
            while (due := engine.next_due()) is not None and due <= at:
                clock.jump_to(max(due, clock.now()))
                engine.tick()
            clock.jump_to(at)
            engine.submit(SYSTEM, command)
        engine.advance(SYSTEM, 6 * 3_600)
    spent = time.perf_counter() - began
    states = engine.health().states
    assert states[RequestState.COMPLETED] == number, states
    return number / spent


def run(*, short: bool) -> list[Figure]:
    """The figures at three sizes: the rate must not fall as the history grows."""
    kernels.warm()
    sizes = (500, 1_000) if short else (1_000, 2_000, 4_000)
    requests_per_second(200)
    first = requests_per_second(sizes[0])
    figures = [Figure(f"{sizes[0]:,} requests", first, "req/s", ">= 1,000 req/s")]
    for size in sizes[1:]:
        rate = requests_per_second(size)
        figures.append(Figure(f"{size:,} requests", rate, "req/s", "", f"{rate / first:.2f} of the first"))
    figures.append(Figure("peak memory", peak_memory_mb(), "MB"))
    return figures
