"""A planning pass over a deep queue of fractions of hosts, and of TPU slices, beside one over whole hosts."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks import planning
from benchmarks.measuring import Figure, peak_memory_mb, seconds
from dws.declared import fleetfile
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.demand import Alternative, Demand
from dws.model.names import BookingId, RequestId
from dws.model.request import CapacityRequest, RequestState
from dws.model.time import DAY, HOUR, Span
from dws.model.topology import Fleet, Pool
from dws.planner import kernels, snapshot
from dws.planner.backfill import plan
from dws.planner.options import PolicyOptions

NOW = planning.NOW
SHARED = """
[[zones]]
name = "z"
[[pools]]
name = "p"
zone = "z"
machine = "a3-highgpu-8g"
hosts = 512
shared = true
"""
PODS = """
[[zones]]
name = "z"
[[pools]]
name = "v5e"
zone = "z"
machine = "ct5lp-hightpu-8t"
topology = "16x16"
shared = true
[[pools]]
name = "v5p"
zone = "z"
machine = "ct5p-hightpu-4t"
topology = "8x8x8"
pods = 4
"""
Draw = Callable[[random.Random, int], Alternative]


def a_fraction(dice: random.Random, duration_s: int) -> Alternative:
    """One to sixteen machines of a fraction, a few of them whole hosts."""
    shape = f"a3-highgpu-{dice.choice((1, 1, 1, 2, 2, 4, 8))}g"
    return Alternative(shape=shape, count=dice.choice((1, 1, 1, 2, 4, 16)), duration_s=duration_s)


def a_slice(dice: random.Random, duration_s: int) -> Alternative:
    """One slice or two: of a plane, of a part of a cube, of several cubes."""
    name, topology = dice.choice(
        (
            *(("v5e", t) for t in ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8")),
            *(("v5p", t) for t in ("2x2x1", "2x2x2", "2x4x4", "4x4x4", "4x4x8", "4x8x8")),
        )
    )
    count = dice.choice((1, 1, 2))
    return Alternative(accelerator=name, topology=topology, count=count, duration_s=duration_s)


def busy(fleet: Fleet, draw: Draw, waiting: int) -> snapshot.FleetSnapshot:
    """Every host busy for up to a day, shared ones by two halves, and so many requests waiting."""
    dice = random.Random(1)
    taken = [one for pool in fleet.pools for one in _running(pool, dice)]
    running = [
        Booking(
            id=BookingId(i + 1),
            pool=pool,
            span=span,
            stage=Stage.LIVE,
            owner_kind=OwnerKind.REQUEST,
            owner=i + 1,
            parts=(part,),
        )
        for i, (pool, span, part) in enumerate(taken)
    ]
    queue = [
        CapacityRequest(
            id=RequestId(10_000 + number),
            name=f"r{number}",
            project="p",
            principal="ann",
            demand=Demand(alternatives=(draw(dice, dice.choice((1, 2, 4, 8, 24, 72, 168)) * HOUR),)),
            state=RequestState.PENDING,
            submitted_at=NOW - waiting + number,
        )
        for number in range(waiting)
    ]
    return snapshot.build(fleet, bookings=running, queue=queue)


def _running(pool: Pool, dice: random.Random) -> list[tuple[str, Span, Part]]:
    size = max(1, pool.host_units // 2)
    return [
        (
            pool.name,
            Span(NOW - HOUR, NOW + dice.randint(1, 288) * 300),
            Part(cell=pool.cell_of(first), count=size, units=tuple(range(first, first + size))),
        )
        for first in range(0, pool.size, size)
    ]


def run(*, short: bool) -> list[Figure]:
    """The figures; `short` leaves the deepest queue out."""
    kernels.warm()
    options = PolicyOptions(promise_horizon_s=28 * DAY)
    kinds: tuple[tuple[str, Fleet, Draw, dict[int, str]], ...] = (
        (
            "fractions, 512 hosts of 8",
            fleetfile.parse(SHARED),
            a_fraction,
            {1_000: "<= 250 ms", 10_000: "<= 2 s"},
        ),
        ("slices, a pod of 256 chips and 4 of 8 cubes", fleetfile.parse(PODS), a_slice, {}),
    )
    figures: list[Figure] = []
    before: dict[str, float] = {}
    for waiting in (1_000,) if short else (1_000, 10_000):
        whole = planning.busy(waiting)
        plan(whole, options, NOW)
        beside = seconds(lambda whole=whole: plan(whole, options, NOW))  # type: ignore[misc]
        figures.append(Figure(f"{waiting:,} waiting, whole hosts", beside * 1e3, "ms"))
        for what, fleet, draw, goals in kinds:
            seen = busy(fleet, draw, waiting)
            plan(seen, options, NOW)
            took = seconds(lambda seen=seen: plan(seen, options, NOW))  # type: ignore[misc]
            ratio = f"{took / beside:.1f} x whole hosts"
            if what in before:
                ratio += f", {took / before[what]:.1f} x 1,000 waiting"
            before.setdefault(what, took)
            goal = goals.get(waiting, "")
            figures.append(Figure(f"{waiting:,} waiting, {what}", took * 1e3, "ms", goal, ratio))
    figures.append(Figure("peak memory", peak_memory_mb(), "MB"))
    return figures
