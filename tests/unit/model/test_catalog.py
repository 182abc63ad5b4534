"""The built-in machine types and accelerator names."""

from __future__ import annotations

import pytest

from dws.model.catalog import MACHINE_TYPES, accelerator_names, canonical_accelerator, shape


def test_a_name_never_means_two_accelerators() -> None:
    """A request for `a100` could be served with another GPU than the one paid for."""
    full_types = {s.accelerator for s in MACHINE_TYPES.values() if s.accelerator}
    owners = [(name, full) for full in full_types for name in accelerator_names(full)]
    assert len({name for name, _ in owners}) == len(owners)
    assert all(canonical_accelerator(name) == full for name, full in owners)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("h100", "nvidia-h100-80gb"),
        ("h100-80gb", "nvidia-h100-80gb"),
        ("nvidia-h100-80gb", "nvidia-h100-80gb"),
        ("h100-mega", "nvidia-h100-mega-80gb"),
        ("h200", "nvidia-h200-141gb"),
        ("b200", "nvidia-b200"),
        ("gb200", "nvidia-gb200"),
        ("gb300", "nvidia-gb300"),
        ("a100", "nvidia-tesla-a100"),
        ("tesla-a100", "nvidia-tesla-a100"),
        ("a100-80gb", "nvidia-a100-80gb"),
        ("l4", "nvidia-l4"),
        ("rtx-pro-6000", "nvidia-rtx-pro-6000"),
        ("h1000", None),
    ],
)
def test_people_may_say_accelerators_their_own_way(name: str, full: str | None) -> None:
    """`dws run --accelerators h100:16` would not be understood."""
    assert canonical_accelerator(name) == full
    if full is not None:
        assert name in accelerator_names(full)


def test_a_custom_type_never_takes_a_built_in_name() -> None:
    """A site's own `nvidia-a100` would answer to `a100`, which is the built-in 40 GB type."""
    assert accelerator_names("nvidia-a100") == {"nvidia-a100"}
    assert accelerator_names("nvidia-x9") == {"nvidia-x9", "x9"}
    assert accelerator_names("mi300x") == {"mi300x"}


def test_the_demo_machines_are_what_the_public_pages_say() -> None:
    """A whole host would be handed out as the wrong number of accelerators."""
    h100, cpu = shape("a3-highgpu-8g"), shape("e2-medium")
    assert h100 is not None
    assert cpu is not None
    assert (h100.accelerator, h100.accelerators, h100.vcpus, h100.memory_gb) == (
        "nvidia-h100-80gb",
        8,
        208,
        1872,
    )
    assert (cpu.accelerator, cpu.accelerators, cpu.vcpus, cpu.memory_gb) == ("", 0, 2, 4)
    assert shape("a9-nothing") is None
