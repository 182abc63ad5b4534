"""The public machine types, and the names people use for accelerators.

Built in so that a fleet file can say `machine = "a3-highgpu-8g"` and a request `h100:16`. Numbers are
those the public documentation states: memory in GB, accelerators per host. A fleet file may declare
shapes of its own beside these.

Not here: the `g4` types with an eighth, a quarter or half of a GPU, because a shape counts whole
accelerators.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dws.model import tpu
from dws.model.resources import MachineShape

_GPU_TYPES: Final = (
    # name, accelerator, accelerators, vCPUs, memory in GB
    ("a4x-maxgpu-4g-metal", "nvidia-gb300", 4, 144, 960),
    ("a4x-highgpu-4g", "nvidia-gb200", 4, 140, 884),
    ("a4x-highgpu-4g-nolssd", "nvidia-gb200", 4, 140, 884),
    ("a4-highgpu-8g", "nvidia-b200", 8, 224, 3968),
    ("a3-ultragpu-8g", "nvidia-h200-141gb", 8, 224, 2952),
    ("a3-megagpu-8g", "nvidia-h100-mega-80gb", 8, 208, 1872),
    ("a3-highgpu-8g", "nvidia-h100-80gb", 8, 208, 1872),
    ("a3-highgpu-4g", "nvidia-h100-80gb", 4, 104, 936),
    ("a3-highgpu-2g", "nvidia-h100-80gb", 2, 52, 468),
    ("a3-highgpu-1g", "nvidia-h100-80gb", 1, 26, 234),
    ("a3-edgegpu-8g", "nvidia-h100-80gb", 8, 208, 1872),
    ("a2-ultragpu-1g", "nvidia-a100-80gb", 1, 12, 170),
    ("a2-ultragpu-2g", "nvidia-a100-80gb", 2, 24, 340),
    ("a2-ultragpu-4g", "nvidia-a100-80gb", 4, 48, 680),
    ("a2-ultragpu-8g", "nvidia-a100-80gb", 8, 96, 1360),
    ("a2-highgpu-1g", "nvidia-tesla-a100", 1, 12, 85),
    ("a2-highgpu-2g", "nvidia-tesla-a100", 2, 24, 170),
    ("a2-highgpu-4g", "nvidia-tesla-a100", 4, 48, 340),
    ("a2-highgpu-8g", "nvidia-tesla-a100", 8, 96, 680),
    ("a2-megagpu-16g", "nvidia-tesla-a100", 16, 96, 1360),
    ("g4-standard-48", "nvidia-rtx-pro-6000", 1, 48, 180),
    ("g4-standard-96", "nvidia-rtx-pro-6000", 2, 96, 360),
    ("g4-standard-192", "nvidia-rtx-pro-6000", 4, 192, 720),
    ("g4-standard-384", "nvidia-rtx-pro-6000", 8, 384, 1440),
    ("g2-standard-4", "nvidia-l4", 1, 4, 16),
    ("g2-standard-8", "nvidia-l4", 1, 8, 32),
    ("g2-standard-12", "nvidia-l4", 1, 12, 48),
    ("g2-standard-16", "nvidia-l4", 1, 16, 64),
    ("g2-standard-32", "nvidia-l4", 1, 32, 128),
    ("g2-standard-24", "nvidia-l4", 2, 24, 96),
    ("g2-standard-48", "nvidia-l4", 4, 48, 192),
    ("g2-standard-96", "nvidia-l4", 8, 96, 384),
)

_CPU_TYPES: Final = (
    # name, vCPUs, memory in GB
    ("e2-micro", 2, 1),
    ("e2-small", 2, 2),
    ("e2-medium", 2, 4),
    *((f"e2-standard-{n}", n, 4 * n) for n in (2, 4, 8, 16, 32)),
    *((f"n2-standard-{n}", n, 4 * n) for n in (2, 4, 8, 16, 32, 48, 64, 80, 96, 128)),
    *((f"c3-standard-{n}", n, 4 * n) for n in (4, 8, 22, 44, 88, 176)),
)

MACHINE_TYPES: Final[Mapping[str, MachineShape]] = MappingProxyType(
    {
        name: MachineShape(name=name, accelerator=kind, accelerators=count, vcpus=vcpus, memory_gb=memory)
        for name, kind, count, vcpus, memory in _GPU_TYPES
    }
    | {machine.name: machine for machine in tpu.MACHINES}
    | {name: MachineShape(name=name, vcpus=vcpus, memory_gb=memory) for name, vcpus, memory in _CPU_TYPES}
)
"""Every built-in machine type by name."""

_SHORT_NAMES: Final = {
    "gb300": "nvidia-gb300",
    "gb200": "nvidia-gb200",
    "b200": "nvidia-b200",
    "h200": "nvidia-h200-141gb",
    "h100-mega": "nvidia-h100-mega-80gb",
    "h100": "nvidia-h100-80gb",
    "a100-80gb": "nvidia-a100-80gb",
    "a100": "nvidia-tesla-a100",
    "a100-40gb": "nvidia-tesla-a100",
    "rtx-pro-6000": "nvidia-rtx-pro-6000",
    "l4": "nvidia-l4",
} | {name: g.accelerator for g in tpu.GENERATIONS for name in (g.name, *g.aliases)}

_PREFIXES: Final = ("nvidia-tesla-", "nvidia-")

_CANONICAL: Final[Mapping[str, str]] = MappingProxyType(
    {full: full for full in _SHORT_NAMES.values()}
    | {full.removeprefix("nvidia-"): full for full in _SHORT_NAMES.values()}
    | _SHORT_NAMES
)


def shape(name: str) -> MachineShape | None:
    """The built-in machine type of that name, None when there is none."""
    return MACHINE_TYPES.get(name)


def fractions_of(whole: MachineShape) -> tuple[MachineShape, ...]:
    """The built-in machine types that a built-in one can be shared by, the smallest first: those of its
    family that have fewer of its accelerators, and of its CPUs and memory no more than that share."""
    if MACHINE_TYPES.get(whole.name) != whole:
        return ()
    family = whole.name.rpartition("-")[0]
    found = [
        part
        for part in MACHINE_TYPES.values()
        if part.name.rpartition("-")[0] == family
        and 0 < part.accelerators < whole.accelerators
        and part.vcpus * whole.accelerators <= whole.vcpus * part.accelerators
        and part.memory_gb * whole.accelerators <= whole.memory_gb * part.accelerators
    ]
    return tuple(sorted(found, key=lambda s: (s.accelerators, s.vcpus, s.name)))


def canonical_accelerator(name: str) -> str | None:
    """The full type a name stands for (`h100` is `nvidia-h100-80gb`), None for one not built in."""
    return _CANONICAL.get(name)


def accelerator_names(full_type: str) -> frozenset[str]:
    """Every name by which an accelerator type may be asked for, the full type included.

    A type that is not built in is also known without its `nvidia-` or `nvidia-tesla-`, unless that
    name already belongs to a built-in type: a name never means two things.
    """
    bare = {full_type.removeprefix(prefix) for prefix in _PREFIXES}
    short = {name for name, full in _CANONICAL.items() if full == full_type}
    return frozenset({full_type} | short | {n for n in bare if _CANONICAL.get(n, full_type) == full_type})
