"""What runs in an instance: the scripts of its metadata, on pools that run programs.

The startup script is the program. As on any machine, the instance is there until it is stopped, deleted or at
its end, whatever becomes of the script; before it goes its shutdown script runs, as long as the grace time
lets it. On a simulated pool nothing runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dws.api.compute_v1.names import last
from dws.declared.fleetfile import DEFAULT_BACKEND as SIMULATED
from dws.model.request import Workload
from dws.model.topology import Fleet

STARTUP: Final = "startup-script"
SHUTDOWN: Final = "shutdown-script"
_MACHINE: Final = """\
run() {
    script=$(mktemp) || return 1
    printf '%s\\n' "$2" >"$script" && chmod 700 "$script"
    "$script" & wait $!
    echo "$1: exit status $?"
    rm -f "$script"
}
over=
trap 'over=1' TERM
[ -z "$1" ] || run startup-script "$1"
while [ -z "$over" ]; do sleep 3600 & wait $!; done
trap '' TERM
[ -z "$2" ] || run shutdown-script "$2"
"""


def workload_of(properties: Mapping[str, Any], fleet: Fleet, locations: tuple[str, ...]) -> Workload | None:
    """The program of an instance of these properties in one of those places; None when it names none, or
    nothing there runs programs."""
    scripts = {item["key"]: item.get("value", "") for item in _items(properties)}
    startup, shutdown = scripts.get(STARTUP, ""), scripts.get(SHUTDOWN, "")
    shape = last(properties.get("machineType", ""))
    pools = [pool for pool in fleet.pools_in(locations) if pool.piece_of(shape) is not None]
    if not startup + shutdown or all(pool.backend == SIMULATED for pool in pools):
        return None
    return Workload(command=("/bin/sh", "-c", _MACHINE, "instance", startup, shutdown))


def _items(properties: Mapping[str, Any]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = properties.get("metadata", {}).get("items", [])
    return [item for item in found if "key" in item]
