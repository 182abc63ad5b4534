"""A pool that is TPU pods, as a fleet file writes it.

    machine = "ct5lp-hightpu-8t"
    topology = "16x16"        each pod: its sides in chips
    pods = 2                  so many of them on one line; 1 when left out
    hosts = ["rack1-a", …]    their names, pod by pod, row by row; made from their places when left out

Of a pod in three dimensions the hosts are named cube by cube, each in the order of x, y and z. The order of
the line is computed: neighbours on it form every legal slice.
"""

from __future__ import annotations

from dws.declared import line
from dws.declared.table import Table, quoted
from dws.model import tpu
from dws.model.resources import MachineShape
from dws.model.topology import CUBE_LEVEL, POD_LEVEL, Domain, Pool
from dws.model.tpu import Generation, Topology

Place = tuple[int, ...]
"""(pod, row, column) of a host's first chip, or (pod, cube, x, y, z)."""


def lay_out(
    entry: Table, *, pool: str, machine: MachineShape
) -> tuple[str, tuple[str, ...], tuple[Domain, ...]]:
    """The topology of each pod, the host names in line order, and the pods and cubes, in hosts."""
    generation = tpu.generation_of(machine.accelerator)
    if generation is None:
        entry.fail(f"'{machine.name}' has no TPU chips; a topology is what a pod of them has", "topology")
    with entry.at("topology"):
        topology = tpu.pod(generation, entry.text("topology"))
    pods = entry.count("pods", 1)
    per_host = machine.accelerators
    if topology.chips % per_host or (generation.dimensions == 3 and tpu.CUBE % per_host):
        entry.fail(f"hosts of {per_host} chips do not make up '{topology}'", "topology")
    per_pod = topology.chips // per_host
    if not 1 <= pods <= line.HOSTS_MAX // per_pod:
        entry.fail(f"{pods} must lie between 1 and {line.HOSTS_MAX // per_pod}", "pods")
    places = _places(generation, topology, pods, per_host)
    names = tuple(_name(pool, place) for place in places)
    if "hosts" in entry.values:
        given = line.names(entry)
        if len(given) != len(places):
            entry.fail(
                f"{pods} x '{topology}' of '{machine.name}' has {len(places)} hosts, {len(given)} are named",
                "hosts",
            )
        named = dict(zip(sorted(places), given, strict=True))
        names = tuple(named[place] for place in places)
    domains = [
        Domain(level=POD_LEVEL, name=f"pod{i + 1}", first=i * per_pod, size=per_pod) for i in range(pods)
    ]
    if generation.dimensions == 3:
        size = tpu.CUBE // per_host
        domains += [
            Domain(level=CUBE_LEVEL, name=f"cube{i + 1}", first=i * size, size=size)
            for i in range(len(names) // size)
        ]
    return str(topology), names, tuple(domains)


def text(pool: Pool) -> str:
    """The lines of a pool of pods that say what they are, instead of its hosts and domains."""
    generation = tpu.generation_of(pool.shape.accelerator)
    assert generation is not None, "a pool with a topology has TPU chips"
    topology = tpu.pod(generation, pool.topology)
    pods = len(pool.groups(POD_LEVEL))
    places = _places(generation, topology, pods, pool.shape.accelerators)
    lines = [f"topology = {quoted(pool.topology)}"]
    if pods > 1:
        lines.append(f"pods = {pods}")
    if pool.hosts != tuple(_name(pool.name, place) for place in places):
        by_place = sorted(zip(places, pool.hosts, strict=True))
        lines.append(f"hosts = {line.list_text([host for _, host in by_place])}")
    return "\n".join(lines)


def _places(generation: Generation, topology: Topology, pods: int, per_host: int) -> list[Place]:
    """Where each host of the line stands."""
    if generation.dimensions == 2:
        chips = range(0, topology.chips, per_host)
        return [(pod + 1, *tpu.place(2, chip)) for pod in range(pods) for chip in chips]
    return [
        (pod + 1, cube + 1, *tpu.place(3, chip))
        for pod in range(pods)
        for cube in range(topology.cubes)
        for chip in range(0, tpu.CUBE, per_host)
    ]


def _name(pool: str, place: Place) -> str:
    """pool-1-r04-c08, or pool-1-c003-x2y0z1."""
    if len(place) == 3:
        return f"{pool}-{place[0]}-r{place[1]:02d}-c{place[2]:02d}"
    pod, cube, x, y, z = place
    return f"{pool}-{pod}-c{cube:03d}-x{x}y{y}z{z}"
