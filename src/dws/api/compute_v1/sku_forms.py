"""What a reservation is of: so many machines of a type, or so many chips of a TPU family."""

from __future__ import annotations

from typing import Final

from dws.api.compute_v1 import tpu_families
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
AGGREGATE: Final = Form(
    {
        "vmFamily": words(*tpu_families.FAMILIES),
        "workloadType": words("BATCH", "SERVING", "UNSPECIFIED"),
        "hostCount": int32,
        "reservedResources": many(Form({"accelerator": ACCELERATOR})),
    },
    ignored=frozenset({"inUseResources", "inUseHostCount", "inUseInstanceCount"}),
)
"""The chips that are reserved."""
