"""OpenDWS: a self-hosted dynamic workload scheduler for accelerator fleets.

    import dws
    dws.Client().submit(dws.Alternative(accelerators="h100:16", duration="4h"))

What is named here is loaded on first use, so that `import dws` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dws.client import Client, NoServer
    from dws.model.errors import (
        AlreadyExists,
        Conflict,
        DwsError,
        FailedPrecondition,
        InvalidArgument,
        NeverFits,
        NoRoom,
        NotFound,
        PermissionDenied,
        QuotaExceeded,
        Unauthenticated,
        Unavailable,
    )
    from dws.wire.native_v1 import (
        AdviseBody,
        Alternative,
        AmendRequest,
        AmendReservationBody,
        Grouping,
        ReserveBody,
        Share,
        SubmitRequest,
        Workload,
    )

__all__ = [
    "AdviseBody",
    "AlreadyExists",
    "Alternative",
    "AmendRequest",
    "AmendReservationBody",
    "Client",
    "Conflict",
    "DwsError",
    "FailedPrecondition",
    "Grouping",
    "InvalidArgument",
    "NeverFits",
    "NoRoom",
    "NoServer",
    "NotFound",
    "PermissionDenied",
    "QuotaExceeded",
    "ReserveBody",
    "Share",
    "SubmitRequest",
    "Unauthenticated",
    "Unavailable",
    "Workload",
]

_HOME_OF = {"Client": "dws.client", "NoServer": "dws.client"} | dict.fromkeys(
    (
        "AdviseBody",
        "Alternative",
        "AmendRequest",
        "AmendReservationBody",
        "Grouping",
        "ReserveBody",
        "Share",
        "SubmitRequest",
        "Workload",
    ),
    "dws.wire.native_v1",
)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'dws' has no attribute '{name}'")
    return getattr(import_module(_HOME_OF.get(name, "dws.model.errors")), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
