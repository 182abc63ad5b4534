"""This machine as zone `local`: a pool of its accelerators, one to a host, and a pool of CPU slots.

    local-accelerators   local-0 local-1 …          one accelerator each; only if there are any
    local-cpu            local-cpu-0 local-cpu-1 …  as many as CPU cores, no accelerator

Work that asks for no accelerator runs in `local-cpu` and never takes one. A slot is a share by count: a
program is not kept from using more than one core.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from dws.backends.local import nvml
from dws.backends.local.nvml import Device
from dws.model.catalog import canonical_accelerator
from dws.model.errors import InvalidArgument
from dws.model.resources import MachineShape, Overheads
from dws.model.topology import Pool, Zone

ZONE: Final = "local"
BACKEND: Final = "local"
ACCELERATOR_POOL: Final = "local-accelerators"
CPU_POOL: Final = "local-cpu"
UNNAMED: Final = "accelerator"
ACCELERATORS_MAX: Final = 1024
_DECLARED = re.compile(r"(?:(?P<kind>[a-z][-a-z0-9]*):)?(?P<count>\d+)")


@dataclass(frozen=True, slots=True)
class Inventory:
    """What this machine has: its pools, and which accelerator each unit of a pool stands for."""

    zone: Zone
    pools: tuple[Pool, ...]
    devices: dict[str, tuple[Device, ...]] = field(default_factory=dict)

    def of(self, pool: str, host: int, slots: tuple[int, ...] = ()) -> tuple[Device, ...]:
        """The accelerators of a host, or of some of its slots; none where there are none, or no such host."""
        if not self.has(pool, host, slots):
            return ()
        (declared,) = (p for p in self.pools if p.name == pool)
        devices = self.devices.get(pool, ())
        return tuple(devices[u] for u in declared.units_at(host, slots) if u < len(devices))

    def has(self, pool: str, host: int, slots: tuple[int, ...] = ()) -> bool:
        """Whether there is such a host, with such slots."""
        declared = next((p for p in self.pools if p.name == pool), None)
        if declared is None or not 0 <= host < len(declared.hosts):
            return False
        return all(0 <= slot < declared.host_units for slot in slots)


def take(declared: str, cpu_slots: int, overheads: Overheads) -> Inventory:
    """Look at this machine. `declared` (`4`, `h100:4`, or empty for what the driver finds) wins over the
    driver; with `cpu_slots` 0 there are as many slots as cores this process may use.

    Raises InvalidArgument when `declared` is neither.
    """
    devices = declare(declared, nvml.probe()) if declared else nvml.probe()
    slots = cpu_slots or len(os.sched_getaffinity(0))
    cpu = Pool(
        name=CPU_POOL,
        zone=ZONE,
        shape=MachineShape(name=CPU_POOL, vcpus=1, memory_gb=_memory_gb() // slots),
        backend=BACKEND,
        hosts=tuple(f"{CPU_POOL}-{i}" for i in range(slots)),
        overheads=overheads,
    )
    pools = _accelerator_pools(devices, slots, overheads)
    return Inventory(
        zone=Zone(name=ZONE, region=ZONE),
        pools=(*(pool for pool, _ in pools), cpu),
        devices={pool.name: own for pool, own in pools},
    )


def _accelerator_pools(
    devices: tuple[Device, ...], cores: int, overheads: Overheads
) -> list[tuple[Pool, tuple[Device, ...]]]:
    """A pool is of one type; a machine with several has one for each, the most numerous first."""
    pools = []
    for number, (kind, count) in enumerate(Counter(d.kind for d in devices).most_common(), start=1):
        suffix = "" if number == 1 else f"-{number}"
        shape = MachineShape(
            name=f"local-1g{suffix}",
            accelerator=kind,
            accelerators=1,
            vcpus=max(1, cores // len(devices)),
            memory_gb=_memory_gb() // len(devices),
        )
        hosts = tuple(f"local-{i}" for i, device in enumerate(devices) if device.kind == kind)
        pool = Pool(
            name=f"{ACCELERATOR_POOL}{suffix}",
            zone=ZONE,
            shape=shape,
            backend=BACKEND,
            hosts=hosts,
            overheads=overheads,
        )
        assert len(hosts) == count, f"{count} accelerators of {kind}, {len(hosts)} hosts"
        pools.append((pool, tuple(d for d in devices if d.kind == kind)))
    return pools


def declare(declared: str, found: tuple[Device, ...] = ()) -> tuple[Device, ...]:
    """The accelerators of a declaration; the first ones found lend their ids.

    Raises InvalidArgument when it is neither a count nor TYPE:COUNT.
    """
    match = _DECLARED.fullmatch(declared.strip().lower())
    count = int(match["count"]) if match else -1
    if match is None or not 0 <= count <= ACCELERATORS_MAX:
        raise InvalidArgument(
            f"accelerators: '{declared}' is neither a number nor TYPE:NUMBER such as 'h100:4' "
            f"(at most {ACCELERATORS_MAX})",
            field="accelerators",
        )
    named = match["kind"]
    kind = (canonical_accelerator(named) or named) if named else (found[0].kind if found else UNNAMED)
    ids = [device.id for device in found]
    return tuple(Device(id=ids[i] if i < len(ids) else str(i), kind=kind) for i in range(count))


def _memory_gb() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10**9
