"""TPU slices on a command line: `--tpu v5e --topology 4x8`, or by a name, `--tpu v5litepod-32`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dws.model.tpu import Generation


def asked(name: str, topology: str, count: int) -> tuple[str, str]:
    """What the API is told of so many slices: accelerators and topology.

    Raises UsageError when the name is none, or lacks a topology; InvalidArgument, with the legal ones, for a
    topology or a size that no slice has.
    """
    from dws.model import tpu

    accelerators = f"{name}:{count}"
    if tpu.named(name) is not None:
        return accelerators, topology
    generation = generation_of(name)
    if generation is None:
        known = ", ".join(g.name for g in tpu.GENERATIONS)
        raise click.UsageError(
            f"--tpu '{name}' is no TPU; say one of {known}, or a slice such as v5litepod-16"
        )
    if not topology:
        some = ", ".join(str(t) for t in tpu.topologies(generation)[:8])
        raise click.UsageError(f"--tpu {name} needs a topology as well, for example one of {some}")
    tpu.topology(generation, topology)
    return accelerators, topology


def generation_of(name: str) -> Generation | None:
    """The generation that a name of an accelerator, or of a slice, or of a machine means; None for no TPU."""
    from dws.model import catalog, tpu
    from dws.model.errors import InvalidArgument

    try:
        named = tpu.named(name)
    except InvalidArgument:
        return None
    if named is not None:
        return named[0]
    machine = catalog.shape(name)
    full = machine.accelerator if machine is not None else catalog.canonical_accelerator(name)
    return tpu.generation_of(full or name)


def is_slice_name(name: str) -> bool:
    """True for `v5litepod-16`. Raises InvalidArgument, with near ones, for a size that no slice has."""
    from dws.model import tpu

    return tpu.named(name) is not None


def is_generation(name: str) -> bool:
    """True for `v5e`, or another name of its chips."""
    from dws.model import catalog, tpu

    return tpu.generation_of(catalog.canonical_accelerator(name) or name) is not None


def words(accelerators: str, topology: str) -> str:
    """`v5e:2` as people say it of slices: `2 x v5e`; what is no slice as it is."""
    from dws.model.errors import InvalidArgument

    name, _, count = accelerators.partition(":")
    try:
        named = is_slice_name(name)
    except InvalidArgument:
        return accelerators
    if named and count in ("", "1"):
        return name
    return f"{count or 1} x {name}" if named or topology else accelerators


def complete_topology(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The legal topologies of what is asked for so far, or of any TPU."""
    from dws.model import tpu

    said = [str(ctx.params.get(name) or "").partition(":")[0] for name in ("tpu", "accelerators", "machine")]
    meant = [g for name in said if name and (g := generation_of(name)) is not None]
    legal = dict.fromkeys(str(t) for g in meant or tpu.GENERATIONS for t in tpu.topologies(g))
    return [text for text in legal if text.startswith(incomplete)]


def complete_tpu(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Generations, and the names of slices once one is begun."""
    from dws.model import tpu

    begun = [g for g in tpu.GENERATIONS if incomplete.startswith(f"{g.prefix}-")]
    names = dict.fromkeys(tpu.name_of(g, t) for g in begun for t in tpu.topologies(g))
    plain = dict.fromkeys(name for g in tpu.GENERATIONS for name in (g.name, f"{g.prefix}-"))
    return [name for name in (names if begun else plain) if name.startswith(incomplete)]
