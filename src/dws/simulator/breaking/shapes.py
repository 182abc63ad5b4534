"""What an alternative must come to in a pool, reckoned once more by other means than the planner's.

How many machines of which shape, how many slots of a host each has, and for slices where their chips stand:
the hosts of pods are named after their places, and a slice must be a whole block of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from dws.model.catalog import accelerator_names
from dws.model.demand import Alternative, Demand
from dws.model.resources import MachineShape
from dws.model.topology import Fleet, Pool
from dws.simulator.breaking.outcome import Broken

CUBE: Final = 64
VM_CHIPS: Final = 4
"""Chips of each machine of a slice of several machines, where hosts are shared."""
CORES: Final = {"v5litepod": ("tpu-v5e", 1), "v6e": ("tpu-v6e", 1), "v5p": ("tpu-v5p", 2)}
"""What the names of slices begin with: their chips, and what the number counts for each."""
PLANES: Final = {4: (2, 2), 8: (2, 4), 16: (4, 4), 32: (4, 8), 64: (8, 8), 128: (8, 16)}
PARTS: Final = {4: (2, 2, 1), 8: (2, 2, 2), 16: (2, 2, 4), 32: (2, 4, 4), 64: (4, 4, 4)}
"""Sides of the slices of a plane, and of those up to a cube, by their chips."""

Spot = tuple[int, int]
"""(host, slot) of one accelerator, or of one machine where hosts have none; slot 0 is all of a host that is
handed out whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """`count` machines of a shape, each of so many slots of a host; of `slices` slices with `chips` each,
    both 0 for what is no slice."""

    shape: str
    count: int
    each: int
    slices: int = 0
    chips: int = 0


def each_of(pool: Pool, shape: str) -> int:
    """Slots of a host that a machine of a shape has."""
    if pool.host_units == 1 or not pool.shape.accelerators:
        return 1
    return next(s.accelerators for s in pool.shapes if s.name == shape)


def slots_each(pool: Pool, shape: str, topology: str) -> int:
    """Slots of hosts that each of what a reservation counts has: a machine, or a slice."""
    if not topology:
        return each_of(pool, shape)
    return chips_of(topology) * pool.host_units // pool.shape.accelerators


def chips_of(topology: str) -> int:
    """Chips of a slice with these sides."""
    chips = 1
    for side in topology.split("x"):
        chips *= int(side)
    return chips


def machines(wanted: Alternative, pool: Pool, held: str = "") -> Machines | None:
    """What it comes to there, None when the pool has nothing of the kind. Inside a reservation of the shape
    `held` no machine is larger than that."""
    if pool.topology:
        chips = _chips(wanted, pool)
        if chips:
            return _of_slices(wanted, pool, chips)
    if wanted.topology or wanted.accelerator.partition("-")[0] in CORES:
        return None
    most = each_of(pool, held) if held else pool.host_units
    served = [s for s in pool.shapes if each_of(pool, s.name) <= most]
    if wanted.shape:
        if wanted.shape not in (s.name for s in served):
            return None
        return Machines(shape=wanted.shape, count=wanted.count, each=each_of(pool, wanted.shape))
    if pool.topology or not _is_type(wanted.accelerator, pool):
        return None
    one = next((s for s in served if s.accelerators >= wanted.count), served[-1])
    return Machines(
        shape=one.name, count=-(-wanted.count // one.accelerators), each=each_of(pool, one.name)
    )


def _is_type(accelerator: str, pool: Pool) -> bool:
    return bool(pool.shape.accelerator) and accelerator in accelerator_names(pool.shape.accelerator)


def _chips(wanted: Alternative, pool: Pool) -> int:
    """Chips of each of the slices asked for, 0 for what is no slice of this pool's chips."""
    prefix, _, number = wanted.accelerator.rpartition("-")
    if prefix in CORES:
        accelerator, cores = CORES[prefix]
        return int(number) // cores if accelerator == pool.shape.accelerator else 0
    if wanted.shape and (not wanted.topology or wanted.shape not in (s.name for s in pool.shapes)):
        return 0
    if wanted.accelerator and not _is_type(wanted.accelerator, pool):
        return 0
    if not wanted.topology:
        return wanted.count
    return chips_of(wanted.topology)


def _of_slices(wanted: Alternative, pool: Pool, chips: int) -> Machines | None:
    is_one = not (wanted.topology or wanted.accelerator.rpartition("-")[0] in CORES)
    slices, per_host = 1 if is_one else wanted.count, pool.shape.accelerators
    one = _machine(wanted, pool, chips)
    pod = sum(_place(host)[0] == 1 for host in pool.hosts) * per_host
    if one is None or chips > pod or (chips > per_host and chips % per_host):
        return None
    return Machines(
        shape=one.name,
        count=slices * chips // one.accelerators,
        each=each_of(pool, one.name),
        slices=slices,
        chips=chips,
    )


def _machine(wanted: Alternative, pool: Pool, chips: int) -> MachineShape | None:
    """The machine asked for; else one for what a host holds, or the usual one where hosts are shared."""
    per_host = pool.shape.accelerators
    served = {s.accelerators: s for s in pool.shapes}
    if wanted.shape:
        named = next(s for s in pool.shapes if s.name == wanted.shape)
        own = named.accelerators
        is_one_of_several = chips >= per_host and chips % own == 0 and own >= min(VM_CHIPS, per_host)
        return named if own == chips or is_one_of_several else None
    if chips <= per_host:
        return served.get(chips)
    return served.get(VM_CHIPS, pool.shape)


def could_hold(fleet: Fleet, demand: Demand) -> bool:
    """True when the empty fleet, as it is now, has room for some alternative."""
    for wanted in demand.alternatives:
        for pool in fleet.pools_in(wanted.locations):
            ask = machines(wanted, pool)
            if ask is not None and (ask.slices or ask.count) <= room(pool, wanted.within, ask):
                return True
    return False


def room(pool: Pool, within: str | None, ask: Machines) -> int:
    """How many machines, or slices, of a kind the largest empty domain of a level holds; 0 without any."""
    return max((_room_in(pool, hosts, ask) for hosts in domains(pool, within)), default=0)


def domains(pool: Pool, within: str | None) -> list[range]:
    """The hosts of each domain of a level."""
    each = pool.host_units
    if within in (None, "pool"):
        return [range(len(pool.hosts))]
    if within == "host":
        return [range(h, h + 1) for h in range(len(pool.hosts))] if pool.is_shared else []
    own = [d for d in pool.domains if d.level == within]
    return [range(d.first // each, (d.first + d.size) // each) for d in own]


def _room_in(pool: Pool, hosts: range, ask: Machines) -> int:
    per_host = pool.shape.accelerators
    if not ask.slices:
        return len(hosts) * (pool.host_units // ask.each)
    if ask.chips <= per_host:
        return len(hosts) * (per_host // ask.chips)
    if ask.chips <= CUBE or len(_place(pool.hosts[0])) == 3:
        return len(hosts) * per_host // ask.chips
    cubes = ask.chips // CUBE
    pods = Counter(_place(pool.hosts[h])[0] for h in hosts)
    return sum(n * per_host // CUBE // cubes for n in pods.values())


def _place(host: str) -> tuple[int, ...]:
    """(pod, row, column), or (pod, cube, x, y, z), as the host's name says."""
    _, pod, *rest = host.split("-")
    if len(rest) == 2 and rest[0].startswith("r"):
        return int(pod), int(rest[0][1:]), int(rest[1][1:])
    x, _, more = rest[1][1:].partition("y")
    y, _, z = more.partition("z")
    return int(pod), int(rest[0][1:]), int(x), int(y), int(z)


def are_as_asked(name: str, ask: Machines, pool: Pool, given: Sequence[tuple[Spot, ...]]) -> None:
    """The machines given, each by its spots, are as many, as large and where they must be."""
    if len(given) != ask.count:
        raise Broken(f"'{name}' started with {len(given)} of {ask.count} hosts")
    spots = [spot for own in given for spot in own]
    if len(set(spots)) != len(spots):
        raise Broken(f"'{name}' has two machines on one accelerator")
    for own in given:
        if len({host for host, _ in own}) != 1 or len(own) != ask.each:
            raise Broken(f"a machine of '{name}' has {own}, not {ask.each} slots of one host")
        if not all(0 <= slot < pool.host_units for _, slot in own):
            raise Broken(f"a machine of '{name}' has {own}, a host has {pool.host_units} slots")
    size = ask.count // ask.slices if ask.slices else ask.count
    for first in range(0, ask.count if ask.slices else 0, size):
        _is_whole_slice(name, ask, pool, given[first : first + size])


def whole_slices(pool: Pool, topology: str, spots: Collection[Spot]) -> int:
    """How many slices of a topology stand wholly on such slots of hosts."""
    chips, per_host = chips_of(topology), pool.shape.accelerators
    taken = Counter(host for host, _ in spots)
    if chips <= per_host:
        return sum(slots * per_host // pool.host_units // chips for slots in taken.values())
    hosts = (host for host, slots in taken.items() if slots == pool.host_units)
    blocks = Counter(_block(_place(pool.hosts[h]), chips) for h in hosts)
    size = min(chips, CUBE) if len(_place(pool.hosts[0])) == 5 else chips
    pods = Counter(block[0] for block, found in blocks.items() if found * per_host == size)
    return sum(found // (chips // size) for found in pods.values())


def _is_whole_slice(name: str, ask: Machines, pool: Pool, own: Sequence[tuple[Spot, ...]]) -> None:
    """Its machines are all of an aligned block of their pod, or of so many cubes of it, or on one host."""
    per_host = pool.shape.accelerators
    taken = Counter(host for spots in own for host, _ in spots)
    if ask.chips <= per_host:
        if len(taken) != 1:
            raise Broken(f"a slice of '{name}' is torn over {[pool.hosts[h] for h in taken]}")
        return
    broken = [pool.hosts[h] for h, slots in taken.items() if slots != pool.host_units]
    if broken:
        raise Broken(f"a slice of '{name}' has only part of {broken}")
    blocks = Counter(_block(_place(pool.hosts[h]), ask.chips) for h in taken)
    size = min(ask.chips, CUBE) if len(_place(pool.hosts[0])) == 5 else ask.chips
    if len(blocks) != ask.chips // size or any(hosts * per_host != size for hosts in blocks.values()):
        raise Broken(f"a slice of '{name}' of {ask.chips} chips is no whole block: {sorted(blocks)}")
    pods = {block[0] for block in blocks}
    if len(pods) != 1:
        raise Broken(f"a slice of '{name}' of {len(blocks)} cubes lies in pods {sorted(pods)}")


def _block(place: tuple[int, ...], chips: int) -> tuple[int, ...]:
    """The aligned block of so many chips, or the cube, that a place is in."""
    if len(place) == 3:
        rows, columns = PLANES[chips]
        return place[0], place[1] // rows, place[2] // columns
    sides = PARTS[min(chips, CUBE)]
    return (*place[:2], *(at // side for at, side in zip(place[2:], sides, strict=True)))
