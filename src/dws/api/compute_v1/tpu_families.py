"""TPU generations as Compute's reservations name them: families of machines, and the chips they have."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

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
