"""How much of a request mix gets a place: this planner beside first fit and best fit, in one run.

The mix `openb` is that of Alibaba's trace of this name, its pods of 1, 2, 4 and 8 GPUs: read from the
trace where `DWS_OPENB_TRACE` names the file (`…pod-list….csv` or `.csv.gz`), else drawn in its
proportions. Nearly all of its pods ask for one GPU, which any rule can place; in the mix `even` each
size asks for as many GPUs as any other. Pods arrive in random order and ask for 130 % of the fleet; each
gets its place when it comes, or none.

- *filling*: nobody leaves. What is lost is lost to fragments.
- *turning over*: each stays for a while, and 130 % of the fleet is asked for at any time.
"""

from __future__ import annotations

import csv
import gzip
import heapq
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Final

from benchmarks.measuring import Figure
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.catalog import MACHINE_TYPES
from dws.model.demand import Alternative, Demand
from dws.model.names import BookingId, RequestId
from dws.model.request import CapacityRequest, RequestState
from dws.model.time import DAY, Span
from dws.model.topology import Fleet, Pool, Zone
from dws.planner import kernels, snapshot
from dws.planner.backfill import plan
from dws.planner.options import PolicyOptions
from dws.planner.plan import Start

HOSTS, GPUS = 64, 8
DEMAND = 1.3
NOW = 1_800_000_000
Mix = Mapping[int, int]
"""For each size, how many pods ask for so many GPUs."""
OPENB: Final[Mix] = {1: 6_989, 2: 16, 4: 15, 8: 44}
EVEN: Final[Mix] = {1: 8, 2: 4, 4: 2, 8: 1}
SIZES: Final = tuple(OPENB)


@dataclass(slots=True)
class ByRule:
    """Hosts with free GPUs, and a rule that picks among those with room."""

    pick: Callable[[list[int], int], int | None]
    free: list[int] = field(default_factory=lambda: [GPUS] * HOSTS)

    def place(self, pod: int, gpus: int, now: int) -> int | None:
        """The host it gets, None for none."""
        del pod, now
        host = self.pick(self.free, gpus)
        if host is not None:
            self.free[host] -= gpus
        return host

    def leave(self, pod: int, gpus: int, host: int) -> None:
        """It goes."""
        del pod
        self.free[host] += gpus


def first_fit(free: list[int], gpus: int) -> int | None:
    """The first host with room."""
    return next((host for host, left in enumerate(free) if left >= gpus), None)


def best_fit(free: list[int], gpus: int) -> int | None:
    """The fullest host with room."""
    room = [(left, host) for host, left in enumerate(free) if left >= gpus]
    return min(room)[1] if room else None


class Planner:
    """The same hosts, placed by the product's planner, one request in line at a time."""

    def __init__(self) -> None:
        whole = MACHINE_TYPES["a3-highgpu-8g"]
        self.pool = Pool(
            name="p",
            zone="z",
            shape=whole,
            backend="simulated",
            hosts=tuple(f"h{i}" for i in range(HOSTS)),
            host_units=GPUS,
            fractions=tuple(MACHINE_TYPES[f"a3-highgpu-{k}g"] for k in SIZES if k < GPUS),
        )
        self.fleet = Fleet(zones=(Zone(name="z"),), pools=(self.pool,))
        self.running: dict[int, Booking] = {}

    def place(self, pod: int, gpus: int, now: int) -> int | None:
        """The host it gets, None when the planner would have it wait."""
        asked = Alternative(shape=f"a3-highgpu-{gpus}g", count=1, duration_s=DAY)
        request = CapacityRequest(
            id=RequestId(pod),
            name=f"r{pod}",
            project="p",
            principal="ann",
            demand=Demand(alternatives=(asked,)),
            state=RequestState.PENDING,
            submitted_at=now,
        )
        seen = snapshot.build(self.fleet, bookings=self.running.values(), queue=[request])
        for decision in plan(seen, PolicyOptions(), now).decisions:
            if isinstance(decision, Start):
                (part,) = decision.placement.parts
                self.running[pod] = self._booking(pod, part, now)
                return part.cell
        return None

    def _booking(self, pod: int, part: Part, now: int) -> Booking:
        return Booking(
            id=BookingId(pod),
            pool="p",
            span=Span(now, now + DAY),
            stage=Stage.LIVE,
            owner_kind=OwnerKind.REQUEST,
            owner=pod,
            parts=(part,),
        )

    def leave(self, pod: int, gpus: int, host: int) -> None:
        """It goes."""
        del gpus, host
        del self.running[pod]


def arrivals(mix: Mix, dice: random.Random) -> Iterator[int]:
    """How many GPUs one pod after the other asks for, without end."""
    trace = os.environ.get("DWS_OPENB_TRACE", "") if mix is OPENB else ""
    pods = list(of_trace(Path(trace))) if trace else []
    while True:
        yield from dice.sample(pods, len(pods)) or dice.choices(SIZES, list(mix.values()), k=1_000)


def of_trace(path: Path) -> Iterator[int]:
    """The pods of a trace's file that ask for 1, 2, 4 or 8 GPUs."""
    packed = path.read_bytes()
    text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode()
    for row in csv.DictReader(text.splitlines()):
        if int(row["num_gpu"]) in OPENB:
            yield int(row["num_gpu"])


def filling(fleet: ByRule | Planner, mix: Mix, seed: int) -> float:
    """The share of requested GPUs that got a place when nobody leaves."""
    asked = placed = 0
    for pod, gpus in enumerate(arrivals(mix, random.Random(seed)), start=1):
        if asked >= DEMAND * HOSTS * GPUS:
            break
        asked += gpus
        placed += gpus if fleet.place(pod, gpus, NOW) is not None else 0
    return placed / asked


def turning_over(fleet: ByRule | Planner, mix: Mix, seed: int, count: int) -> float:
    """The share of requested GPU time that got a place when pods leave again."""
    dice = random.Random(seed)
    mean_gpus = sum(k * n for k, n in mix.items()) / sum(mix.values())
    stay_s = DEMAND * HOSTS * GPUS / mean_gpus  # seconds, at one arrival a second
    leaving: list[tuple[float, int, int, int]] = []
    asked = placed = 0.0
    for pod, gpus in enumerate(arrivals(mix, dice), start=1):
        if pod > count:
            break
        stays = dice.expovariate(1 / stay_s)
        while leaving and leaving[0][0] <= pod:
            _, gone, size, host = heapq.heappop(leaving)
            fleet.leave(gone, size, host)
        host_now = fleet.place(pod, gpus, NOW + pod)
        if pod > stay_s:  # the fleet is full by then
            asked += gpus * stays
            placed += gpus * stays if host_now is not None else 0
        if host_now is not None:
            heapq.heappush(leaving, (pod + stays, pod, gpus, host_now))
    return placed / asked


def run(*, short: bool) -> list[Figure]:
    """The figures: shares in percent, ours beside the others'."""
    kernels.warm()
    seeds = range(1 if short else 5)
    ways: dict[str, Callable[[], ByRule | Planner]] = {
        "first fit": lambda: ByRule(first_fit),
        "best fit": lambda: ByRule(best_fit),
        "this planner": Planner,
    }
    count = 1_000 if short else 3_000
    figures = []
    for title, mix in (("openb", OPENB), ("even", EVEN)):
        full = {name: mean(filling(make(), mix, seed) for seed in seeds) for name, make in ways.items()}
        churn = {
            name: mean(turning_over(make(), mix, seed, count) for seed in seeds)
            for name, make in ways.items()
        }
        for story, shares in (("filling", full), ("turning over", churn)):
            for name, share in shares.items():
                goal = ">= best fit" if name == "this planner" else ""
                ratio = f"{share / shares['best fit']:.4f} of best fit"
                figures.append(Figure(f"{title}, {story}: {name}", share * 100, "% placed", goal, ratio))
    return figures
