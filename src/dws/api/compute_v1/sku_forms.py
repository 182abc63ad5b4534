"""What a reservation is of: so many machines of a type, or so many chips of a TPU family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dws.api.compute_v1.forms import Form, int32, many, text, words
from dws.api.compute_v1.instance_forms import ACCELERATOR, carried

INSTANCE_PROPERTIES: Final = Form(
    {
        "machineType": text,
        "guestAccelerators": many(ACCELERATOR),
    }
    | carried(
        "localSsds",
        "locationHint",
        "maintenanceFreezeDurationHours",
        "maintenanceInterval",
        "minCpuPlatform",
    )
)
"""The machines that are reserved."""
VM_FAMILIES: Final = (
    "VM_FAMILY_CLOUD_TPU_DEVICE_CT3",
    "VM_FAMILY_CLOUD_TPU_LITE_DEVICE_CT5L",
    "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT5LP",
    "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT6E",
    "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT3P",
    "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT4P",
    "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT5P",
    "VM_FAMILY_CLOUD_TPU_POD_SLICE_TPU7",
    "VM_FAMILY_CLOUD_TPU_POD_SLICE_TPU7X",
    "VM_FAMILY_CLOUD_TPU_POD_SLICE_TPU8I_METAL",
)
GENERATIONS: Final = {
    "CLOUD_TPU_POD_SLICE_CT4P": "tpu-v4",
    "CLOUD_TPU_LITE_DEVICE_CT5L": "tpu-v5e",
    "CLOUD_TPU_LITE_POD_SLICE_CT5LP": "tpu-v5e",
    "CLOUD_TPU_POD_SLICE_CT5P": "tpu-v5p",
    "CLOUD_TPU_LITE_POD_SLICE_CT6E": "tpu-v6e",
    "CLOUD_TPU_POD_SLICE_TPU7": "tpu7x",
    "CLOUD_TPU_POD_SLICE_TPU7X": "tpu7x",
}
"""The chips of the families, without their common prefix, that a fleet can have."""


def chips_of(aggregate: Mapping[str, Any]) -> tuple[str, int]:
    """Which chips, by the type of the fleet file (empty: of a family no fleet has), and how many of them."""
    chips = GENERATIONS.get(aggregate.get("vmFamily", "").removeprefix("VM_FAMILY_"), "")
    told = (each.get("accelerator", {}) for each in aggregate.get("reservedResources", ()))
    return chips, sum(each.get("acceleratorCount", 0) for each in told)


AGGREGATE: Final = Form(
    {
        "vmFamily": words(*VM_FAMILIES),
        "workloadType": words("BATCH", "SERVING", "UNSPECIFIED"),
        "hostCount": int32,
        "reservedResources": many(Form({"accelerator": ACCELERATOR})),
    },
    ignored=frozenset({"inUseResources", "inUseHostCount", "inUseInstanceCount"}),
)
"""The chips that are reserved."""
