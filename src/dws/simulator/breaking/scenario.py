"""What a seed chooses before anything happens: the fleet, the policy, how bad the weather is.

One generator for each purpose, so that drawing more of one thing does not disturb the others.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Final

from dws.declared import fleetfile
from dws.model.catalog import MACHINE_TYPES, fractions_of
from dws.model.request import HostLossPolicy
from dws.model.resources import Overheads
from dws.model.time import DAY
from dws.model.topology import Domain, Fleet, Pool, Zone
from dws.planner.options import PolicyOptions

MACHINES: Final = ("a3-highgpu-8g", "a2-highgpu-8g", "e2-standard-4")
PODS: Final = (
    ("ct5lp-hightpu-8t", "4x4", True),
    ("ct5lp-hightpu-8t", "4x8", True),
    ("ct5lp-hightpu-8t", "8x8", False),
    ("ct6e-standard-4t", "4x8", False),
    ("ct5p-hightpu-4t", "4x4x4", True),
    ("ct5p-hightpu-4t", "4x4x8", False),
)
"""Machine, sides of each pod, and whether their hosts are shared."""
ZONES: Final = ("z1-a", "z1-b")


def chance(seed: int, purpose: str) -> random.Random:
    """The generator of one purpose."""
    return random.Random(f"{seed}:{purpose}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything fixed for one run. `steps` is how many times the driver acts in the safety phase;
    `storminess` (0 … 1) is how likely a fault is at each of them; latencies in seconds."""

    seed: int
    fleet: Fleet
    policy: PolicyOptions
    boot_s: int
    boot_jitter_s: int
    steps: int
    storminess: float


def draw(seed: int, *, steps: int) -> Scenario:
    """The scenario of a seed."""
    dice = chance(seed, "scenario")
    boot_s = dice.choice((0, 0, 5, 40))
    boot_jitter_s = dice.choice((0, 20)) if boot_s else 0
    overheads = Overheads(
        setup_s=boot_s + boot_jitter_s + dice.choice((10, 60, 300)),
        grace_s=dice.choice((0, 10, 60)),
        teardown_s=dice.choice((0, 10, 60)),
    )
    pools = tuple(
        _pool(dice, index, machine, overheads)
        for index, machine in enumerate(dice.sample(MACHINES, dice.randint(1, 3)))
    )
    kinds = chance(seed, "kinds")
    pools = tuple(shared(kinds, pool) for pool in pools)
    if kinds.random() < 0.5:
        pools = (*pools[:-1], a_pod(kinds, f"pool{len(pools) - 1}", overheads))
    zones = tuple(Zone(name=name) for name in ZONES)
    return Scenario(
        seed=seed,
        fleet=Fleet(zones=zones, pools=pools),
        policy=_policy(dice),
        boot_s=boot_s,
        boot_jitter_s=boot_jitter_s,
        steps=steps,
        storminess=dice.choice((0.0, 0.05, 0.15, 0.3)),
    )


def _pool(dice: random.Random, index: int, machine: str, overheads: Overheads) -> Pool:
    blocks = dice.randint(1, 4)
    size = dice.randint(1, 4)
    name = f"pool{index}"
    hosts = blocks * size
    return Pool(
        name=name,
        zone=dice.choice(ZONES),
        shape=MACHINE_TYPES[machine],
        backend="simulated",
        hosts=tuple(f"{name}-h{n}" for n in range(hosts)),
        domains=tuple(
            Domain(level="block", name=f"{name}-b{n}", first=n * size, size=size) for n in range(blocks)
        ),
        overheads=overheads,
        price_micros_per_hour=dice.choice((0, 4_200_000)),
    )


def shared(dice: random.Random, pool: Pool) -> Pool:
    """The same pool, or one whose hosts are shared: by fractions, or by whole machines of those that have no
    accelerators."""
    if dice.random() < 0.5:
        return pool
    fractions = fractions_of(pool.shape)
    fractions = tuple(sorted(dice.sample(fractions, dice.randint(0, len(fractions))), key=lambda f: f.name))
    each = pool.shape.accelerators or dice.choice((2, 3, 4))
    domains = tuple(replace(d, first=d.first * each, size=d.size * each) for d in pool.domains)
    return replace(pool, host_units=each, fractions=fractions, domains=domains)


def a_pod(dice: random.Random, name: str, overheads: Overheads) -> Pool:
    """A pool of one TPU pod or two."""
    machine, topology, is_shared = dice.choice(PODS)
    return pods(name, machine, topology, dice.choice((1, 1, 2)), dice.choice(ZONES), overheads, is_shared)


def pods(
    name: str, machine: str, topology: str, count: int, zone: str, overheads: Overheads, is_shared: bool
) -> Pool:
    """A pool of TPU pods, whose hosts are named after their places as a fleet file does."""
    text = f"""
        [[zones]]
        name = "{zone}"
        [[pools]]
        name = "{name}"
        zone = "{zone}"
        machine = "{machine}"
        topology = "{topology}"
        pods = {count}
        shared = {str(is_shared).lower()}
    """
    (pool,) = fleetfile.parse(text).pools
    return replace(pool, overheads=overheads)


def _policy(dice: random.Random) -> PolicyOptions:
    return PolicyOptions(
        run_duration_max_s=dice.choice((7_200, 86_400)),
        protected_depth=dice.choice((0, 1, 1, 2, 5)),
        promise_slack=dice.choice((0.0, 0.5, 1.0, 2.0)),
        promise_horizon_s=dice.choice((3_600, 86_400, 604_800)),
        promise_cap_accelerator_hours=dice.choice((10, 1_000, 10_000)),
        max_wait_age_s=dice.choice((600, 86_400)),
        full_plan_interval_s=dice.choice((300, 1_200)),
        warning_leads_s=dice.choice(((), (60,), (600, 60))),
        attempts_max=dice.choice((0, 1, 3)),
        retry_backoff_s=dice.choice((1, 10, 30)),
        retry_backoff_max_s=dice.choice((60, 600)),
        on_host_loss=dice.choice(tuple(HostLossPolicy)),
        unreachable_grace_s=dice.choice((60, 600)),
        overrun_step_s=dice.choice((20, 60)),
        calendar_horizon_s=dice.choice((21_600, 86_400, 56 * DAY)),
        reservation_lengths_s=dice.choice(((), (), (), (3_600, 7_200))),
        reservation_notice_s=dice.choice((0, 0, 0, 300)),
        reservation_lock_s=dice.choice((0, 60, 900)),
        reservation_amend=dice.choice(("until_lock", "until_lock", "until_lock", "never")),
        reservation_cancel=dice.choice(("until_lock", "until_lock", "never")),
        reservation_cancel_s=dice.choice((0, 0, 3_600)),
        reservation_approval=dice.choice(("auto", "auto", "approver")),
        approval_expiry_s=dice.choice((600, DAY)),
        calendar_share=dice.choice((1.0, 1.0, 0.5, 0.75)),
        reservation_warning_leads_s=dice.choice(((), (600, 60))),
        no_show_warn_s=dice.choice((0, 300)),
        no_show_release_s=dice.choice((0, 0, 900)),
        lend_idle_s=dice.choice((0, 0, 1_800)),
    )
