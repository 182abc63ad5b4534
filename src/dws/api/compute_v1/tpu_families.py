"""TPU generations as Compute's reservations name them: families of machines, and the chips they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from dws.model import tpu
from dws.model.demand import Alternative
from dws.model.topology import Fleet
from dws.planner import slices

_GENERATIONS: Final = MappingProxyType(
    {
        "VM_FAMILY_CLOUD_TPU_DEVICE_CT3": "",
        "VM_FAMILY_CLOUD_TPU_LITE_DEVICE_CT5L": "",
        "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT5LP": "tpu-v5e",
        "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT6E": "tpu-v6e",
        "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT3P": "",
        "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT4P": "tpu-v4",
        "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT5P": "tpu-v5p",
        "VM_FAMILY_CLOUD_TPU_POD_SLICE_TPU7": "tpu7x",
        "VM_FAMILY_CLOUD_TPU_POD_SLICE_TPU7X": "tpu7x",
        "VM_FAMILY_CLOUD_TPU_POD_SLICE_TPU8I_METAL": "",
    }
)
FAMILIES: Final = tuple(_GENERATIONS)
"""Every family that clients may name."""


def accelerator_of(family: str) -> str:
    """The accelerator type of a family's chips, empty for one that no fleet can have."""
    return _GENERATIONS[family]


def chips_of(aggregate: Mapping[str, Any]) -> tuple[str, int]:
    """Which chips a reservation is of, by the type of the fleet file (empty: of no family that a fleet can
    have), and how many of them."""
    family = aggregate.get("vmFamily")
    told = (each.get("accelerator", {}) for each in aggregate.get("reservedResources", ()))
    return accelerator_of(family) if family else "", sum(each.get("acceleratorCount", 0) for each in told)


def as_slices(fleet: Fleet, chips: Alternative) -> Alternative:
    """So many chips as what can be reserved of pods: the fewest slices of one kind that come to as many and
    that a pool serves, of several kinds the most compact. The same where there are none."""
    generation = tpu.generation_of(chips.accelerator)
    if generation is None or chips.topology:
        return chips
    pools = fleet.pools_in(chips.locations)
    for topology in sorted(tpu.topologies(generation), key=lambda t: -t.chips):
        number, rest = divmod(chips.count, topology.chips)
        if number and not rest:
            found = replace(chips, count=number, topology=str(topology))
            if any(slices.in_pool(found, pool) is not None for pool in pools):
                return found
    return chips
