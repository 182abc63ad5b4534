"""TPU generations: their machine types, the topologies a slice of each may have, and the names of slices.

A slice is a block of chips of one pod: `4x8` of a generation whose pods are planes (v5e, v6e), `4x4x8` of one
whose pods are made of cubes of 4x4x4 chips (v4, v5p, 7x). Below one cube a slice is a part of it, above it so
many whole cubes, wherever in the pod these stand. People also name a slice by its size: `v5litepod-16` is a
4x4, `v5p-128` a 4x4x4, because v4, v5p and 7x count two cores a chip.

The numbers are those of the public documentation; that `tpu7x-N` counts cores is not documented.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations_with_replacement
from math import prod
from typing import Final

from dws.model.errors import InvalidArgument
from dws.model.resources import MachineShape

CUBE: Final = 64
"""Chips of a cube, 4x4x4."""
NEAR_MAX: Final = 6
"""How many topologies or names a refusal lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One generation of TPUs.

    `accelerator` is the type of its chips, `prefix` what the names of its slices begin with, and
    `cores` what these count for each chip. A pod is `pod_chips` large, a slice at most `slice_chips_max`.
    `planes` are the topologies of a generation in two dimensions; empty for one in three. `is_sorted` says
    that the sides of a slice are given from the shortest to the longest. `machines` are its machine types:
    name, chips, vCPUs, memory in GB.
    """

    name: str
    accelerator: str
    prefix: str
    cores: int
    pod_chips: int
    slice_chips_max: int
    machines: tuple[tuple[str, int, int, int], ...]
    planes: tuple[str, ...] = ()
    is_sorted: bool = True
    aliases: tuple[str, ...] = ()

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return 2 if self.planes else 3


@dataclass(frozen=True, slots=True)
class Topology:
    """The sides of a slice or a pod, in chips."""

    sides: tuple[int, ...]
    chips: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chips", prod(self.sides))

    def __str__(self) -> str:
        return "x".join(map(str, self.sides))

    @property
    def cubes(self) -> int:
        """Whole cubes it takes, 0 for one in two dimensions or below one cube."""
        return self.chips // CUBE if len(self.sides) == 3 else 0


_PLANES: Final = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_PARTS_OF_A_CUBE: Final = ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))

GENERATIONS: Final = (
    Generation(
        name="v4",
        accelerator="tpu-v4",
        prefix="v4",
        cores=2,
        pod_chips=4096,
        slice_chips_max=4096,
        is_sorted=False,
        machines=(("ct4p-hightpu-4t", 4, 240, 407),),
        aliases=("tpu-v4-podslice",),
    ),
    Generation(
        name="v5e",
        accelerator="tpu-v5e",
        prefix="v5litepod",
        cores=1,
        pod_chips=256,
        slice_chips_max=256,
        planes=_PLANES,
        machines=(
            ("ct5lp-hightpu-1t", 1, 24, 48),
            ("ct5lp-hightpu-4t", 4, 112, 192),
            ("ct5lp-hightpu-8t", 8, 224, 384),
        ),
        aliases=("tpu-v5-lite-podslice", "v5litepod"),
    ),
    Generation(
        name="v5p",
        accelerator="tpu-v5p",
        prefix="v5p",
        cores=2,
        pod_chips=8960,
        slice_chips_max=6144,
        machines=(
            ("ct5p-hightpu-1t", 1, 52, 112),
            ("ct5p-hightpu-2t", 2, 104, 224),
            ("ct5p-hightpu-4t", 4, 208, 448),
        ),
        aliases=("tpu-v5p-slice",),
    ),
    Generation(
        name="v6e",
        accelerator="tpu-v6e",
        prefix="v6e",
        cores=1,
        pod_chips=256,
        slice_chips_max=256,
        planes=_PLANES,
        machines=(
            ("ct6e-standard-1t", 1, 44, 176),
            ("ct6e-standard-4t", 4, 180, 720),
            ("ct6e-standard-8t", 8, 360, 1440),
        ),
        aliases=("tpu-v6e-slice",),
    ),
    Generation(
        name="7x",
        accelerator="tpu7x",
        prefix="tpu7x",
        cores=2,
        pod_chips=9216,
        slice_chips_max=9216,
        machines=(("tpu7x-standard-4t", 4, 224, 960),),
        aliases=("v7x", "ironwood"),
    ),
)
"""Every generation, in the order in which they appeared."""

MACHINES: Final = tuple(
    MachineShape(name=name, accelerator=g.accelerator, accelerators=chips, vcpus=vcpus, memory_gb=memory)
    for g in GENERATIONS
    for name, chips, vcpus, memory in g.machines
)
"""Their machine types."""


def generation_of(accelerator: str) -> Generation | None:
    """The generation of a full accelerator type, None for what is no TPU."""
    return next((g for g in GENERATIONS if g.accelerator == accelerator), None)


@lru_cache
def topologies(generation: Generation) -> tuple[Topology, ...]:
    """Every topology a slice may have, the smallest first and the most compact first among equals."""
    if generation.planes:
        return tuple(_read(text) for text in generation.planes)
    sides = range(4, generation.slice_chips_max // 16 + 1, 4)
    whole = (s for s in _sorted_sides(sides, generation.slice_chips_max))
    return tuple(Topology(s) for s in (*_PARTS_OF_A_CUBE, *whole))


def _sorted_sides(sides: range, chips_max: int) -> list[tuple[int, int, int]]:
    found = [
        (a, b, c)
        for a, b in combinations_with_replacement(sides, 2)
        if a * b * b <= chips_max
        for c in range(b, chips_max // (a * b) + 1, 4)
    ]
    return sorted(found, key=lambda s: (prod(s), s[2], s))


def _read(text: str) -> Topology:
    """Sides of at least one chip. Raises InvalidArgument when it is not written as a topology is."""
    parts = text.split("x")
    if not 2 <= len(parts) <= 3 or not all(p.isascii() and p.isdecimal() and 0 < len(p) < 5 for p in parts):
        raise InvalidArgument(
            f"topology: '{text}' is not sides in chips such as '4x8' or '4x4x8'", field="topology"
        )
    return Topology(tuple(int(p) for p in parts))


@lru_cache
def topology(generation: Generation, text: str) -> Topology:
    """The topology of a slice. Raises InvalidArgument with the legal ones of that size, or of the nearest."""
    asked = _read(text)
    legal = topologies(generation)
    sides = asked.sides if generation.is_sorted else tuple(sorted(asked.sides))
    if asked in legal or Topology(sides) in legal:
        return asked
    same = [t for t in legal if t.chips == asked.chips]
    told = f"of {asked.chips} chips it has {_list(same)}" if same else f"it has {_near(legal, asked.chips)}"
    raise InvalidArgument(
        f"topology: {generation.name} has no slice '{text}'; {told}", field="topology"
    )


def of_size(generation: Generation, chips: int) -> Topology:
    """The one topology of so many chips. Raises InvalidArgument when there is none, or a choice of them."""
    legal = topologies(generation)
    same = [t for t in legal if t.chips == chips]
    if len(same) == 1:
        return same[0]
    if same:
        raise InvalidArgument(
            f"topology: {chips} chips of {generation.name} may be {_list(same)}; say which", field="topology"
        )
    raise InvalidArgument(
        f"accelerators: no slice of {generation.name} has {chips} chips; near are {_near(legal, chips)}",
        field="accelerators",
    )


def named(name: str) -> tuple[Generation, Topology] | None:
    """What the name of a slice stands for, of several topologies the most compact: `v5p-128` is a 4x4x4. None
    when it is not such a name. Raises InvalidArgument with near names for a size no slice has."""
    prefix, _, number = name.rpartition("-")
    generation = next((g for g in GENERATIONS if g.prefix == prefix), None)
    if generation is None or not (number.isascii() and number.isdecimal()):
        return None
    chips, rest = divmod(int(number[:9]), generation.cores)
    legal = topologies(generation)
    found = next((t for t in legal if t.chips == chips and not rest), None)
    if found is None:
        near = dict.fromkeys(name_of(generation, t) for t in _nearest(legal, chips))
        raise InvalidArgument(
            f"accelerators: there is no '{name}'; near are {', '.join(near)}", field="accelerators"
        )
    return generation, found


def name_of(generation: Generation, topology: Topology) -> str:
    """The name of a slice by its size."""
    return f"{generation.prefix}-{generation.cores * topology.chips}"


def pod(generation: Generation, text: str) -> Topology:
    """The topology of a pod, whole or in part: a plane that is a legal slice, or any number of whole cubes.
    Raises InvalidArgument."""
    asked = _read(text)
    if generation.planes:
        return topology(generation, text)
    if len(asked.sides) != 3 or any(side % 4 for side in asked.sides):
        raise InvalidArgument(
            f"topology: a pod of {generation.name} is made of whole cubes, each side a multiple of 4, "
            f"such as '8x8x8', not '{text}'",
            field="topology",
        )
    if asked.chips > generation.pod_chips:
        raise InvalidArgument(
            f"topology: '{text}' has {asked.chips} chips; a pod of {generation.name} has at most "
            f"{generation.pod_chips}",
            field="topology",
        )
    return asked


def place(dimensions: int, chip: int) -> tuple[int, ...]:
    """Where the chip of that number on a pod's line stands: (row, column) of a plane, along a Z-order curve,
    or (x, y, z) within its cube. Every legal topology up to the cube is then an aligned run of the line."""
    bits = [chip >> b & 1 for b in range(chip.bit_length() or 1)]
    if dimensions == 2:
        row = sum(bit << i for i, bit in enumerate(bits[1::2]))
        return row, sum(bit << i for i, bit in enumerate(bits[0::2]))
    bits += [0] * (6 - len(bits))
    return bits[1] | bits[5] << 1, bits[0] | bits[4] << 1, bits[2] | bits[3] << 1


def _nearest(legal: tuple[Topology, ...], chips: int) -> list[Topology]:
    """The legal topologies of the sizes around a number of chips."""
    sizes = sorted({t.chips for t in legal}, key=lambda size: (abs(size - chips), size))[:NEAR_MAX // 2]
    return [t for t in legal if t.chips in sizes][:NEAR_MAX]


def _near(legal: tuple[Topology, ...], chips: int) -> str:
    return _list(_nearest(legal, chips) if len(legal) > 2 * NEAR_MAX else list(legal))


def _list(legal: list[Topology]) -> str:
    more = len(legal) - NEAR_MAX if len(legal) > 2 * NEAR_MAX else 0
    shown = ", ".join(map(str, legal[: NEAR_MAX if more else None]))
    return f"{shown} and {more} more" if more else shown
