"""Whole passes over fleets of shared hosts and pods together, with running work, outages and maintenance: what
is decided holds, in the order it was decided in, and starts on nothing that is about to be taken away."""

from __future__ import annotations

import random

import pytest

from dws.declared import fleetfile
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.names import BookingId
from dws.model.time import Span
from dws.model.topology import HostState, HostStatus, Pool
from dws.planner import invariants
from dws.planner.backfill import plan
from dws.planner.options import PolicyOptions
from dws.planner.plan import Start
from dws.planner.recheck import Recheck
from dws.planner.snapshot import build
from dws.simulator.breaking.demands import alternative
from tests.build import NOW, a_request

FLEET = fleetfile.parse(
    """
[[zones]]
name = "z-a"
[[pools]]
name = "gpu"
zone = "z-a"
machine = "a3-highgpu-8g"
hosts = 4
shared = true
[[pools]]
name = "v5e"
zone = "z-a"
machine = "ct5lp-hightpu-8t"
topology = "4x8"
shared = true
[[pools]]
name = "v5p"
zone = "z-a"
machine = "ct5p-hightpu-4t"
topology = "4x4x8"
"""
)
CASES = 120


def _on_hosts(pool: Pool, number: int, hosts: list[int], span: Span, kind: OwnerKind, size: int) -> Booking:
    units = [tuple(pool.units_of(h))[:size] for h in sorted(hosts)]
    return Booking(
        id=BookingId(number),
        pool=pool.name,
        span=span,
        stage=Stage.LIVE if kind is OwnerKind.REQUEST else Stage.FIRM,
        owner_kind=kind,
        owner=number,
        parts=tuple(Part(cell=pool.cell_of(own[0]), count=len(own), units=own) for own in units),
    )


@pytest.mark.parametrize("seed", range(3))
def test_what_is_decided_holds_for_every_kind_together(seed: int) -> None:
    """Fractions, slices and maintenance could each be right alone, and a pass over all of them be wrong."""
    rng = random.Random(seed)
    started = 0
    for _ in range(CASES):
        bookings, down = [], []
        for pool in FLEET.pools:
            places = rng.sample(range(len(pool.hosts)), len(pool.hosts))
            busy = [places.pop() for _ in range(rng.randint(0, len(places) // 2))]
            for host in busy:
                span = Span(NOW - 60, NOW + rng.choice((30, 600, 5_000)))
                size = rng.randint(1, pool.host_units)
                number = len(bookings) + 1
                bookings.append(_on_hosts(pool, number, [host], span, OwnerKind.REQUEST, size))
            if rng.random() < 0.4:
                host = places.pop()
                until = rng.choice((0, NOW + 500))
                down.append(HostStatus(pool=pool.name, unit=host, state=HostState.DOWN, until=until))
            for _ in range(rng.randint(0, 2)):
                start = NOW + rng.choice((40, 400, 4_000))
                span = Span(start, start + rng.choice((100, 2_000)))
                hosts = [rng.choice([*places, *busy])]
                window = _on_hosts(pool, len(bookings) + 1, hosts, span, OwnerKind.MAINTENANCE, pool.host_units)
                bookings.append(window)
        queue = [
            a_request(1_000 + i, alternative(rng, FLEET)) for i in range(rng.randint(1, 8))
        ]
        seen = build(FLEET, bookings=bookings, hosts=down, queue=queue)
        made = plan(seen, PolicyOptions(), NOW)
        invariants.check(made, seen)
        again = Recheck(seen, NOW, PolicyOptions())
        assert [again.why_not(d) for d in made.decisions] == [None] * len(made.decisions)
        for start_now in (d for d in made.decisions if isinstance(d, Start)):
            started += 1
            placed = start_now.placement
            units = {u for p in placed.parts for u in p.units}
            for other in bookings:
                if other.pool == placed.pool and other.span.overlaps(placed.span):
                    assert not units & set(other.units), f"{placed} lies over {other}"
    assert started > CASES
