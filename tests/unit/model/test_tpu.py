"""The table of TPU generations says what the public documentation says, row by row."""

from __future__ import annotations

from itertools import product

import pytest

from dws.model import catalog, tpu
from dws.model.errors import InvalidArgument
from dws.model.tpu import GENERATIONS, Generation, Topology

BY_NAME = {g.name: g for g in GENERATIONS}
PLANES = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")


@pytest.mark.parametrize(
    ("machine", "generation", "chips", "vcpus", "memory_gb"),
    [
        ("ct4p-hightpu-4t", "v4", 4, 240, 407),
        ("ct5lp-hightpu-1t", "v5e", 1, 24, 48),
        ("ct5lp-hightpu-4t", "v5e", 4, 112, 192),
        ("ct5lp-hightpu-8t", "v5e", 8, 224, 384),
        ("ct5p-hightpu-4t", "v5p", 4, 208, 448),
        ("ct6e-standard-1t", "v6e", 1, 44, 176),
        ("ct6e-standard-4t", "v6e", 4, 180, 720),
        ("ct6e-standard-8t", "v6e", 8, 360, 1440),
        ("tpu7x-standard-4t", "7x", 4, 224, 960),
    ],
)
def test_machine_types_are_the_documented_ones(
    machine: str, generation: str, chips: int, vcpus: int, memory_gb: int
) -> None:
    """A fleet file names a machine type, and gets a host with other chips than the real one has."""
    shape = catalog.MACHINE_TYPES[machine]
    assert (shape.accelerator, shape.accelerators) == (BY_NAME[generation].accelerator, chips)
    assert (shape.vcpus, shape.memory_gb) == (vcpus, memory_gb)


@pytest.mark.parametrize(
    ("generation", "dimensions", "pod", "largest", "smallest_topologies"),
    [
        ("v5e", 2, 256, 256, PLANES),
        ("v6e", 2, 256, 256, PLANES),
        ("v4", 3, 4096, 4096, ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8")),
        ("v5p", 3, 8960, 6144, ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8")),
        ("7x", 3, 9216, 9216, ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8")),
    ],
)
def test_topologies_are_the_documented_ones(
    generation: str, dimensions: int, pod: int, largest: int, smallest_topologies: tuple[str, ...]
) -> None:
    """A slice that exists is refused, or one that cannot be built is accepted."""
    g = BY_NAME[generation]
    legal = tpu.topologies(g)
    assert (g.dimensions, g.pod_chips, g.slice_chips_max) == (dimensions, pod, largest)
    assert tuple(map(str, legal[: len(smallest_topologies)])) == smallest_topologies
    assert max(t.chips for t in legal) == largest
    for t in legal if dimensions == 3 else ():
        assert t.chips < 64 or (list(t.sides) == sorted(t.sides) and all(s % 4 == 0 for s in t.sides))


@pytest.mark.parametrize(
    ("name", "generation", "topology"),
    [
        ("v5litepod-1", "v5e", "1x1"),
        ("v5litepod-16", "v5e", "4x4"),
        ("v5litepod-256", "v5e", "16x16"),
        ("v6e-8", "v6e", "2x4"),
        ("v6e-32", "v6e", "4x8"),
        ("v4-8", "v4", "2x2x1"),
        ("v4-4096", "v4", "8x16x16"),
        ("v5p-8", "v5p", "2x2x1"),
        ("v5p-128", "v5p", "4x4x4"),
        ("v5p-512", "v5p", "4x8x8"),
        ("v5p-12288", "v5p", "16x16x24"),
        ("tpu7x-8", "7x", "2x2x1"),
    ],
)
def test_a_name_stands_for_its_topology(name: str, generation: str, topology: str) -> None:
    """`v5p-128` means another slice here than it does everywhere else."""
    found = tpu.named(name)
    assert found is not None
    assert (found[0].name, str(found[1])) == (generation, topology)
    assert tpu.name_of(*found) == name


def test_what_is_no_slice_is_no_name() -> None:
    """A GPU type, or a TPU type without a size, is taken for a slice."""
    assert [tpu.named(n) for n in ("h100", "v5e", "nvidia-l4", "v5p-x", "a3-highgpu-8g")] == [None] * 5


def test_a_name_of_no_slice_is_refused_with_near_ones() -> None:
    """Somebody who mistypes a size is left to guess which there are."""
    with pytest.raises(InvalidArgument, match=r"'v5litepod-12'; near are v5litepod-4, v5litepod-8, v5litepod-16"):
        tpu.named("v5litepod-12")
    with pytest.raises(InvalidArgument, match="near are v5p-32, v5p-64, v5p-128"):
        tpu.named("v5p-127")


@pytest.mark.parametrize(
    ("generation", "text", "told"),
    [
        ("v5e", "3x3", "it has 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16"),
        ("v5e", "1x8", "of 8 chips it has 2x4"),
        ("v5p", "8x4x4", "of 128 chips it has 4x4x8"),
        ("v5p", "4x4", "it has"),
        ("v5p", "4", "is not sides in chips"),
        ("v6e", "0x4", "it has"),
        ("v6e", "²x4", "is not sides in chips"),
    ],
)
def test_j03_an_illegal_topology_is_refused_with_the_legal_ones(generation: str, text: str, told: str) -> None:
    """A slice nobody can build waits in the queue for ever, or is refused without a hint."""
    with pytest.raises(InvalidArgument, match=told) as refused:
        tpu.topology(BY_NAME[generation], text)
    assert refused.value.field == "topology"


def test_sides_of_a_v4_slice_may_be_in_any_order() -> None:
    """v4, whose document does not order the sides, refuses `8x4x4`."""
    assert str(tpu.topology(BY_NAME["v4"], "8x4x4")) == "8x4x4"


def test_j03_so_many_chips_must_mean_one_topology() -> None:
    """256 chips of v5p are a 4x8x8 or a 4x4x16; one of them is chosen in silence."""
    assert str(tpu.of_size(BY_NAME["v5p"], 128)) == "4x4x8"
    with pytest.raises(InvalidArgument, match="may be 4x8x8, 4x4x16; say which"):
        tpu.of_size(BY_NAME["v5p"], 256)
    with pytest.raises(InvalidArgument, match="no slice of v5e has 9 chips"):
        tpu.of_size(BY_NAME["v5e"], 9)


def test_a_pod_is_a_plane_or_whole_cubes() -> None:
    """A pod is declared that cannot be built."""
    assert tpu.pod(BY_NAME["v5p"], "16x20x28").chips == 8960
    for generation, text in (("v5p", "4x4x2"), ("v5p", "20x20x28"), ("v5e", "12x12"), ("v5p", "4x4")):
        with pytest.raises(InvalidArgument):
            tpu.pod(BY_NAME[generation], text)


@pytest.mark.parametrize("generation", [g for g in GENERATIONS if g.name in ("v5e", "v5p")])
def test_every_topology_is_an_aligned_run_of_the_line(generation: Generation) -> None:
    """A slice is handed out whose chips are not one block of the mesh."""
    for t in tpu.topologies(generation):
        if t.chips > (64 if generation.dimensions == 3 else 256):
            continue
        pod = 64 if generation.dimensions == 3 else 256
        for first in range(0, pod, t.chips):
            chips = [tpu.place(generation.dimensions, c) for c in range(first, first + t.chips)]
            low = [min(axis) for axis in zip(*chips, strict=True)]
            block = set(product(*(range(a, a + s) for a, s in zip(low, t.sides, strict=True))))
            assert set(chips) == block, (t, first)


def test_a_topology_is_written_as_it_is_read() -> None:
    """What is shown cannot be asked for again."""
    assert str(Topology((4, 4, 8))) == "4x4x8" and Topology((4, 4, 8)).cubes == 2
