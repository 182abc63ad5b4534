"""A planning pass over a deep queue, a forecast of it, and one search, on 512 hosts in 32 blocks."""

from __future__ import annotations

import random

from benchmarks.measuring import Figure, peak_memory_mb, seconds
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.demand import Alternative, Demand
from dws.model.names import BookingId, RequestId
from dws.model.request import CapacityRequest, RequestState
from dws.model.resources import MachineShape
from dws.model.time import DAY, HOUR, Span
from dws.model.topology import Domain, Fleet, Pool, Zone
from dws.planner import kernels, snapshot
from dws.planner.backfill import plan
from dws.planner.explain import forecast
from dws.planner.options import PolicyOptions

HOSTS, BLOCK = 512, 16
NOW = 1_800_000_000


def fleet() -> Fleet:
    """One pool of 512 hosts of 8 accelerators in 32 blocks."""
    blocks = tuple(
        Domain(level="block", name=f"b{i}", first=i * BLOCK, size=BLOCK) for i in range(HOSTS // BLOCK)
    )
    shape = MachineShape(name="m", accelerator="nvidia-h100-80gb", accelerators=8)
    hosts = tuple(f"h{i}" for i in range(HOSTS))
    pool = Pool(name="p", zone="z", shape=shape, backend="simulated", hosts=hosts, domains=blocks)
    return Fleet(zones=(Zone(name="z"),), pools=(pool,))


def busy(waiting: int) -> snapshot.FleetSnapshot:
    """Every host busy for up to a day, and so many requests of 1 to 64 hosts, one hour to a week, waiting."""
    dice = random.Random(1)
    running = [
        Booking(
            id=BookingId(unit + 1),
            pool="p",
            span=Span(NOW - HOUR, NOW + dice.randint(1, 288) * 300),
            stage=Stage.LIVE,
            owner_kind=OwnerKind.REQUEST,
            owner=unit + 1,
            parts=(Part(cell=unit // BLOCK, count=1, units=(unit,)),),
        )
        for unit in range(HOSTS)
    ]
    queue = []
    for number in range(waiting):
        count = dice.choice((1, 1, 1, 2, 2, 4, 8, 16, 32, 64))
        alternative = Alternative(
            shape="m",
            count=count,
            duration_s=dice.choice((1, 2, 4, 8, 24, 72, 168)) * HOUR,
            within="block" if count <= BLOCK and dice.random() < 0.5 else None,
        )
        queue.append(
            CapacityRequest(
                id=RequestId(10_000 + number),
                name=f"r{number}",
                project="p",
                principal="ann",
                demand=Demand(alternatives=(alternative,)),
                state=RequestState.PENDING,
                submitted_at=NOW - waiting + number,
            )
        )
    return snapshot.build(fleet(), bookings=running, queue=queue)


def run(*, short: bool) -> list[Figure]:
    """The figures; `short` leaves the deepest queue out."""
    kernels.warm()
    options = PolicyOptions(promise_horizon_s=28 * DAY)
    figures = []
    calendar = busy(1).calendars["p"]
    one = seconds(
        lambda: calendar.earliest(16, 4 * HOUR, within="block", after=NOW, before=NOW + 2 * DAY),
        least_s=0.2,
    )
    figures.append(Figure("one search", one * 1e6, "us"))
    for waiting in (1_000,) if short else (1_000, 10_000):
        seen = busy(waiting)
        plan(seen, options, NOW)
        goal = "<= 100 ms" if waiting == 1_000 else "<= 1 s"
        took = seconds(lambda seen=seen: plan(seen, options, NOW))  # type: ignore[misc]
        figures.append(
            Figure(f"a pass over {waiting:,} waiting", took * 1e3, "ms", goal, f"{took / one:,.0f} searches")
        )
        told = seconds(lambda seen=seen: forecast(seen, options, NOW))  # type: ignore[misc]
        figures.append(
            Figure(f"a forecast of {waiting:,} waiting", told * 1e3, "ms", "", f"{told / took:.1f} passes")
        )
    figures.append(Figure("peak memory", peak_memory_mb(), "MB"))
    return figures
