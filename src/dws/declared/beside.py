"""A second pool over the hosts of another: work without accelerators beside the accelerators.

    [[pools]]
    name = "h100-cpu"
    zone = "z1"
    machine = "e2-standard-8"
    beside = "h100"           a pool above, whose hosts these are
    per_host = 4              so many of the machine on each of them; 1 when left out

How many of them a host has room for beside the machines of its first pool is for whoever writes the file to
know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dws.declared import line
from dws.declared.table import Table, nearest
from dws.model.resources import MachineShape
from dws.model.topology import Domain, Pool


def lay_out(
    entry: Table, *, zone: str, machine: MachineShape, known: Mapping[str, Pool]
) -> tuple[int, tuple[str, ...], tuple[Domain, ...]]:
    """How many machines a host has, the hosts and their domains, in machines."""
    name = entry.text("beside")
    first = known.get(name)
    if first is None or first.beside:
        entry.fail(
            f"no pool '{name}' with hosts of its own is declared above{nearest(name, known)}", "beside"
        )
    if zone != first.zone:
        entry.fail(f"the hosts of '{name}' are in zone '{first.zone}'", "zone")
    if machine.accelerators:
        entry.fail(
            f"'{machine.name}' has accelerators; what runs beside those of '{name}' has none", "machine"
        )
    per_host = entry.count("per_host", 1)
    most = line.HOSTS_MAX // len(first.hosts)
    if not 1 <= per_host <= most:
        entry.fail(f"{per_host} must lie between 1 and {most}", "per_host")
    each = first.host_units
    domains = (
        replace(d, first=d.first // each * per_host, size=d.size // each * per_host) for d in first.domains
    )
    return per_host, first.hosts, tuple(domains)
