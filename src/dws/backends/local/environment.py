"""What a program finds in its environment: who it is, who its peers are, which accelerators, until when.

    inherited from the server ◁ what the backend and the engine say ◁ the workload's own

The last one wins, except over the DWS_* of the backend and the visible accelerators: what a program was
given is not its to choose. One process an instance is assumed, which is right for a plain program; torchrun
reads PET_* as its own options and replaces the per-process variables for the workers it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from dws.engine.ports import InstanceOrder, Order
from dws.wire.timefmt import format_instant

INSTANCE: Final = "DWS_INSTANCE"
MASTER_ADDRESS: Final = "127.0.0.1"
VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
INHERITED: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR"),
    *("VIRTUAL_ENV", "CONDA_*", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "XDG_RUNTIME_DIR"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "HF_HOME", "TORCH_HOME"),
)


def inherited(environment: Mapping[str, str], patterns: Sequence[str] = INHERITED) -> dict[str, str]:
    """The server's variables that programs get too. Not all: a server may have been given secrets."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("DWS_") and any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def build(
    order: Order,
    instance: InstanceOrder,
    devices: Sequence[str],
    deadline_file: Path,
    master_port: int,
    *,
    mark: str = "",
    base: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The whole environment of one instance's program.

    `devices` are the accelerators of its unit (none: it sees none), `mark` is what its processes are known
    by, `base` what it inherits.
    """
    own = order.workload.environment if order.workload is not None else {}
    ours = {
        **order.environment,
        **instance.environment,
        "DWS_REQUEST": order.request_name,
        "DWS_PROJECT": order.project,
        "DWS_RANK": str(instance.rank),
        "DWS_SIZE": str(order.size),
        "DWS_HOST": instance.host,
        "DWS_ZONE": order.zone,
        "DWS_DEADLINE": format_instant(order.runs_until),
        "DWS_DEADLINE_EPOCH": str(order.runs_until),
        "DWS_DEADLINE_FILE": str(deadline_file),
        INSTANCE: mark,
    }
    fixed = {name: value for name, value in ours.items() if name.startswith("DWS_")}
    fixed |= dict.fromkeys(VISIBLE, ",".join(devices))
    return {
        "PYTHONUNBUFFERED": "1",
        **(base or {}),
        **ours,
        **_peers(order, instance, master_port),
        **own,
        **fixed,
    }


def _peers(order: Order, instance: InstanceOrder, master_port: int) -> dict[str, str]:
    rank, size, port = str(instance.rank), str(order.size), str(master_port)
    return {
        "MASTER_ADDR": MASTER_ADDRESS,
        "MASTER_PORT": port,
        "WORLD_SIZE": size,
        "RANK": rank,
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "NNODES": size,
        "NODE_RANK": rank,
        "PET_NNODES": size,
        "PET_NODE_RANK": rank,
        "PET_NPROC_PER_NODE": "1",
        "PET_MASTER_ADDR": MASTER_ADDRESS,
        "PET_MASTER_PORT": port,
    }
