"""Where the processes of a gang meet: one port of this machine for each attempt, the same for all of it.

The port is kept beside the instances, so that a replacement, or a server started later, finds it. Two
gangs never share one; whether a stranger takes it before rank 0 listens is beyond anyone's control.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final
from zlib import crc32

from dws.backends.local.record import MASTER_PORT, private_directory, read, write
from dws.engine.ports import BackendUnavailable

PORTS: Final[range] = range(
    20_000, 30_000
)  # below the range from which Linux gives ports to outgoing connections


def gang(key: str) -> str:
    """The part of an order's key that a replacement's key shares."""
    return "-".join(key.split("-")[:2])


def master_port(instances: Path, key: str) -> int:
    """The port of an order's gang, chosen on first use. Call under the backend's lock.

    Raises BackendUnavailable when no port is free.
    """
    kept = instances / gang(key) / MASTER_PORT
    if port := _read(kept):
        return port
    taken = {_read(path) for path in instances.glob(f"*/{MASTER_PORT}")}
    start = crc32(key.encode()) % len(PORTS)
    for port in (PORTS[(start + i) % len(PORTS)] for i in range(len(PORTS))):
        if port not in taken and _is_free(port):
            private_directory(kept.parent)
            write(kept, {"port": port})
            return port
    raise BackendUnavailable("no port is free for the processes of a gang to meet")


def _read(path: Path) -> int:
    return int((read(path) or {}).get("port", 0))


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", port))
        except OSError:
            return False
    return True
