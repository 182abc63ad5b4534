"""By which shapes a pool's hosts are shared, as a fleet file writes it.

    machine = "a3-highgpu-8g"
    shared = true                                   the catalogue's fractions of it: -1g, -2g and -4g
    fractions = ["a3-highgpu-2g", "half"]           or these; `half` is a [shapes.half] of the file

A host is then as many units as it has accelerators, and an instance of a fraction has so many of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from dws.declared.table import Table, nearest, quoted
from dws.model import catalog
from dws.model.resources import MachineShape
from dws.model.topology import Pool


def fractions_of(
    entry: Table, machine: MachineShape, shapes: Mapping[str, MachineShape]
) -> tuple[MachineShape, ...]:
    """The fractions that a pool of the machine serves; none when its hosts are handed out whole."""
    if "fractions" not in entry.values:
        if not entry.flag("shared"):
            return ()
        known = catalog.fractions_of(machine)
        if not known:
            entry.fail(
                f"the catalogue knows no fraction of '{machine.name}'; give 'fractions', a list of machines",
                "shared",
            )
        return known
    if "shared" in entry.values and not entry.flag("shared"):
        entry.fail("fractions are of shared hosts; leave 'shared' out, or set it to true", "shared")
    names = entry.texts("fractions")
    if not names:
        entry.fail("name at least one machine that a host is shared by", "fractions")
    found: list[MachineShape] = []
    for index, name in enumerate(names):
        if name not in shapes:
            entry.fail(
                f"no machine '{name}' in the catalogue or under [shapes]{nearest(name, shapes)}",
                "fractions",
                index,
            )
        why = _why_not(shapes[name], machine)
        if shapes[name] in found:
            why = "it is named twice"
        if why:
            entry.fail(f"'{name}' is no fraction of '{machine.name}': {why}", "fractions", index)
        found.append(shapes[name])
    return tuple(found)


def _why_not(part: MachineShape, whole: MachineShape) -> str:
    """Why one machine is no fraction of another; empty when it is one."""
    if not part.accelerator or part.accelerator != whole.accelerator:
        has = f"accelerators of type '{part.accelerator}'" if part.accelerator else "no accelerators"
        return f"it has {has}"
    if part.accelerators >= whole.accelerators:
        return f"it has {part.accelerators} accelerators, the whole machine has {whole.accelerators}"
    for what, own, all_ in (
        ("vCPUs", part.vcpus, whole.vcpus),
        ("GB of memory", part.memory_gb, whole.memory_gb),
    ):
        share = all_ * part.accelerators // whole.accelerators
        if all_ and own > share:
            return f"it has {own} {what}, its share of the machine is {share}"
    return ""


def text(pool: Pool) -> str:
    """The line of a pool that says how its hosts are shared; empty when they are not."""
    if not pool.fractions:
        return ""
    if pool.fractions == catalog.fractions_of(pool.shape):
        return "shared = true"
    return f"fractions = [{', '.join(quoted(f.name) for f in pool.fractions)}]"
