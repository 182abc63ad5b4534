"""Draws what people ask for: machines of any size a pool serves, accelerators by number, and slices of pods.

Everything drawn is something that the empty fleet could hold.
"""

from __future__ import annotations

import random
from dataclasses import replace
from math import prod
from typing import Final

from dws.model.demand import Alternative
from dws.model.topology import Fleet, Pool
from dws.simulator.breaking.shapes import CORES, machines, room

DURATIONS: Final = (30, 60, 300, 1_800, 7_200)
_SLICES: Final = {
    2: ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8)),
    3: ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4), (4, 4, 4), (4, 4, 8)),
}


def alternative(dice: random.Random, fleet: Fleet) -> Alternative:
    """One form of a demand."""
    pool = dice.choice(fleet.pools)
    wanted = Alternative(
        shape=dice.choice(pool.shapes).name,
        count=1,
        duration_s=dice.choice(DURATIONS),
        locations=dice.choice(((), (), (pool.zone,), (pool.zone.rpartition("-")[0],))),
    )
    if pool.topology:
        wanted = a_slice(dice, pool, wanted) if dice.random() < 0.7 else wanted
    elif pool.shape.accelerators and dice.random() < 0.5:
        return _accelerators(dice, pool, wanted)
    return counted(dice, pool, wanted)


def counted(dice: random.Random, pool: Pool, wanted: Alternative) -> Alternative:
    """As many of it, and as near together, as the empty pool could hold."""
    ask = machines(wanted, pool)
    assert ask is not None, f"{pool.name} serves {wanted}"
    levels = [level for level in levels_of(pool) if room(pool, level, ask)]
    within = dice.choice((None, None, dice.choice(levels) if levels else None))
    most = room(pool, within, ask)
    is_one = bool(ask.slices) and is_number_of_chips(wanted)
    count = wanted.count if is_one else dice.choice((1, dice.randint(1, most), dice.randint(1, most)))
    return replace(wanted, count=count, within=within)


def is_number_of_chips(wanted: Alternative) -> bool:
    """True of a slice that is asked for by the number of its chips: its count is these."""
    return not wanted.topology and wanted.accelerator.rpartition("-")[0] not in CORES


def levels_of(pool: Pool) -> tuple[str, ...]:
    """Levels of closeness that may be asked for."""
    return (*pool.levels, *(("host",) if pool.is_shared else ()))


def _accelerators(dice: random.Random, pool: Pool, wanted: Alternative) -> Alternative:
    """A number of accelerators, rounded up by the planner to what the pool serves."""
    whole = counted(dice, pool, replace(wanted, shape=pool.shape.name))
    per_host = pool.shape.accelerators
    count = whole.count * per_host - dice.randrange(per_host)
    if pool.is_shared and dice.random() < 0.5:
        count = dice.randint(1, per_host)
    return replace(whole, shape="", accelerator=pool.shape.accelerator, count=count)


def a_slice(dice: random.Random, pool: Pool, wanted: Alternative) -> Alternative:
    """Slices by topology and chips, by topology and machine, by name, or one by its number of chips."""
    sides = dice.choice(_SLICES[len(pool.topology.split("x"))])
    chips, text = prod(sides), "x".join(map(str, sides))
    accelerator = pool.shape.accelerator
    prefix, cores = next((name, cores) for name, (kind, cores) in CORES.items() if kind == accelerator)
    form = dice.choice(
        (
            replace(wanted, shape="", accelerator=accelerator, topology=text),
            replace(wanted, topology=text),
            replace(wanted, shape="", accelerator=f"{prefix}-{cores * chips}"),
            replace(wanted, shape="", accelerator=accelerator, count=chips),
        )
    )
    ask = machines(form, pool)
    return form if ask is not None and room(pool, None, ask) else wanted
