"""Zones, pools and domains: where capacity is.

A pool is a line of identical units (whole hosts of one shape in one zone, or the accelerators of hosts
that are shared); a domain is an aligned range of that line. The smallest declared domains are the pool's
*cells*, or the hosts where these are shared: within a cell units are interchangeable, so a promise needs
only counts per cell and the units are drawn at the start.

    pool  h001 h002 h003 h004 h005 h006 h007 h008
    block └────── b1 ──────┘ └────── b2 ──────┘        two cells, 0 and 1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dws.model.errors import InvalidArgument
from dws.model.piece import UNIT, Piece
from dws.model.resources import NO_OVERHEADS, MachineShape, Overheads

HOST_LEVEL = "host"
POOL_LEVEL = "pool"
POD_LEVEL = "pod"
CUBE_LEVEL = "cube"


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A place. `region` is what its name says before the last dash, unless declared.

    `unavailable` is why nothing can start here now; empty when something can.
    """

    name: str
    region: str = ""
    unavailable: str = ""

    def __post_init__(self) -> None:
        if not self.region:
            head, _, _ = self.name.rpartition("-")
            object.__setattr__(self, "region", head or self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """An aligned range of a pool's line: units `first` … `first + size - 1`."""

    level: str
    name: str
    first: int
    size: int

    @property
    def units(self) -> range:
        """The unit indexes of the domain."""
        return range(self.first, self.first + self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Identical hosts of one shape in one zone, run by one backend.

    `hosts` are their names, in the order of the line; each is `host_units` units of it: one, or, where hosts
    are shared, one for each accelerator, and then `fractions` are the shapes finer than a host that the pool
    serves. Hosts without accelerators are shared by whole machines: each is `host_units` of the shape.
    `topology` is set where the line is one TPU pod or several, each of so many chips a side, its hosts in the
    order of `dws.model.tpu.place`; then `domains` has a `pod` for each, and a `cube` for each of its cubes.
    `domains` lists every declared domain of every level, outermost level first; domains of one level do not
    overlap. `levels` are the declared levels, outermost first, without `pool` and `host`. With `beside`, its
    hosts are those of the pool of that name, in the same order: a second line over them, of machines for
    which the first one's leave room. `price_micros_per_hour` is for one accelerator (one host where the
    shape has none) in millionths of the fleet's currency.
    Raises InvalidArgument when a domain leaves the line or overlaps a sibling.
    """

    name: str
    zone: str
    shape: MachineShape
    backend: str
    hosts: tuple[str, ...]
    domains: tuple[Domain, ...] = ()
    overheads: Overheads = NO_OVERHEADS
    price_micros_per_hour: int = 0
    unavailable: str = ""
    host_units: int = 1
    fractions: tuple[MachineShape, ...] = ()
    topology: str = ""
    beside: str = ""
    levels: tuple[str, ...] = field(init=False, default=(), compare=False, repr=False)
    cells: tuple[Domain, ...] = field(init=False, default=())
    _cell_of: tuple[int, ...] = field(init=False, default=(), compare=False, repr=False)
    _groups: dict[str, tuple[tuple[int, ...], ...]] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )
    _largest: dict[str, int] = field(init=False, default_factory=dict, compare=False, repr=False)
    _domains: dict[str, tuple[int, ...]] = field(init=False, default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(set(self.hosts)) != len(self.hosts):
            raise InvalidArgument(f"pool {self.name}: two hosts share a name", field="hosts")
        self._check_sharing()
        object.__setattr__(self, "levels", tuple(dict.fromkeys(d.level for d in self.domains)))
        object.__setattr__(self, "cells", self._cells())
        of = tuple(i for i, cell in enumerate(self.cells) for _ in cell.units)
        object.__setattr__(self, "_cell_of", of)
        self._groups[POOL_LEVEL] = (tuple(range(len(self.cells))),)
        if self.has_host_cells:
            self._groups[HOST_LEVEL] = tuple((i,) for i in range(len(self.cells)))
        for level in self.levels:
            self._groups[level] = tuple(
                tuple(i for i, c in enumerate(self.cells) if d.first <= c.first < d.first + d.size)
                for d in self.domains
                if d.level == level
            )
        for level, groups in self._groups.items():
            self._know(level, groups)

    def _know(self, level: str, groups: tuple[tuple[int, ...], ...]) -> None:
        domain = {c: i for i, group in enumerate(groups) for c in group}
        self._domains[level] = tuple(domain.get(c, -1) for c in range(len(self.cells)))
        sizes = (sum(self.cells[c].size for c in group) for group in groups)
        self._largest[level] = max(sizes, default=0)
        self._groups[level] = groups

    def _check_sharing(self) -> None:
        if self.host_units < 1 or self.host_units not in (1, self.shape.accelerators or self.host_units):
            raise InvalidArgument(
                f"pool {self.name}: a host of {self.shape.accelerators} accelerators is shared by one at a "
                f"time or not at all, not in {self.host_units} units",
                field="host_units",
            )
        for fraction in self.fractions:
            fits = fraction.accelerator == self.shape.accelerator
            if not fits or not 0 < fraction.accelerators < self.whole.size:
                raise InvalidArgument(
                    f"pool {self.name}: {fraction.name} is no fraction of a shared {self.shape.name}",
                    field="fractions",
                )

    @property
    def is_shared(self) -> bool:
        """True when a host may hold several things at once."""
        return self.host_units > 1

    @property
    def has_host_cells(self) -> bool:
        """True when each host is a cell: where hosts are shared, or it matters which ones are neighbours."""
        return self.is_shared or bool(self.topology)

    @property
    def size(self) -> int:
        """Units of the line."""
        return len(self.hosts) * self.host_units

    @property
    def unit_weight(self) -> int:
        """What a unit counts for in accelerators, a host without any counting as one."""
        return max(1, self.shape.accelerators // self.host_units)

    @property
    def whole(self) -> Piece:
        """What an instance of the pool's own shape takes: a host, or one of the machines it is shared by."""
        return Piece(size=self.host_units if self.shape.accelerators else 1)

    @property
    def shapes(self) -> tuple[MachineShape, ...]:
        """What the pool serves: its fractions, the smallest first, then its own shape."""
        return (*sorted(self.fractions, key=lambda f: (f.accelerators, f.vcpus, f.name)), self.shape)

    def shape_named(self, name: str) -> MachineShape:
        """The shape of that name, its own when it serves none of that name."""
        return next((s for s in self.shapes if s.name == name), self.shape)

    def piece_of(self, shape: str) -> Piece | None:
        """What an instance of a shape takes here, None when the pool does not serve it."""
        if shape == self.shape.name:
            return self.whole
        sizes = (f.accelerators for f in self.fractions if f.name == shape)
        return next((Piece(size=size) for size in sizes), None)

    def piece_held(self, shape: str) -> Piece:
        """The same for what is held here already; asserts that the pool serves it."""
        piece = self.piece_of(shape)
        assert piece is not None, f"pool {self.name} does not serve '{shape}'"
        return piece

    def noun(self, shape: str) -> str:
        """What several machines of a shape are called here: hosts, or its name where these are shared."""
        return shape if self.is_shared else "hosts"

    def accelerators_of(self, slots: int) -> int:
        """Accelerators of so many slots of a host, 0 slots being all of it."""
        return self.shape.accelerators * slots // self.host_units if slots else self.shape.accelerators

    def units_of(self, host: int) -> range:
        """The units of a host, by its place in `hosts`."""
        return range(host * self.host_units, (host + 1) * self.host_units)

    def units_at(self, host: int, slots: tuple[int, ...]) -> tuple[int, ...]:
        """The units of a host that these slots of it are; all of them where none is named."""
        every = self.units_of(host)
        return tuple(every[s] for s in slots) if slots else tuple(every)

    def host_of(self, unit: int) -> int:
        """The place in `hosts` of the host that a unit belongs to."""
        return unit // self.host_units

    def slots_of(self, units: tuple[int, ...]) -> tuple[int, ...]:
        """Which slots of their host units are; empty where hosts are not shared."""
        return tuple(u % self.host_units for u in units) if self.is_shared else ()

    def hosts_of(self, units: Iterable[int]) -> tuple[str, ...]:
        """The names of the hosts of units, each once, in their order."""
        return tuple(dict.fromkeys(self.hosts[u // self.host_units] for u in units))

    def largest(self, level: str | None, piece: Piece) -> int:
        """How many pieces the largest domain of a level has room for when empty; raises like `groups`."""
        if piece == UNIT:
            return self.largest_group(level)
        sizes = [cell.size for cell in self.cells]
        return max((self.pieces_in(group, sizes, piece) for group in self.groups(level)), default=0)

    def pieces_in(self, group: Sequence[int], units: Sequence[int], piece: Piece) -> int:
        """How many pieces a group of cells has room for when cell c has `units[c]`; raises like `groups`."""
        domains = self.domains_by_cell(piece.level) if piece.level else ()
        return piece.in_cells([units[c] for c in group], [domains[c] for c in group] if domains else ())

    def runs(self, cells: Sequence[int], span: int) -> list[tuple[int, ...]]:
        """The aligned runs of `span` cells of a group, in order; cells left over at its end make none."""
        return [tuple(cells[i : i + span]) for i in range(0, len(cells) - span + 1, span)]

    def domains_by_cell(self, level: str) -> tuple[int, ...]:
        """For each cell the number of its domain of a level, -1 for none; raises like `groups`."""
        self.groups(level)
        return self._domains[level]

    def _cells(self) -> tuple[Domain, ...]:
        if self.has_host_cells:
            return tuple(
                Domain(level=HOST_LEVEL, name=name, first=i * self.host_units, size=self.host_units)
                for i, name in enumerate(self.hosts)
            )
        whole = Domain(level=POOL_LEVEL, name=self.name, first=0, size=len(self.hosts))
        if not self.domains:
            return (whole,)
        finest = sorted((d for d in self.domains if d.level == self.levels[-1]), key=lambda d: d.first)
        cells: list[Domain] = []
        at = 0
        for domain in finest:
            if domain.first < at or domain.first + domain.size > len(self.hosts) or domain.size <= 0:
                raise InvalidArgument(
                    f"pool {self.name}: {domain.level} {domain.name} leaves the pool or overlaps "
                    "another",
                    field="domains",
                )
            if domain.first > at:
                cells.append(Domain(level=domain.level, name="", first=at, size=domain.first - at))
            cells.append(domain)
            at = domain.first + domain.size
        if at < len(self.hosts):
            cells.append(Domain(level=self.levels[-1], name="", first=at, size=len(self.hosts) - at))
        return tuple(cells)

    def groups(self, level: str | None) -> tuple[tuple[int, ...], ...]:
        """For each domain of `level`, the indexes of its cells; `None` is the whole pool as one group, and
        `LEVEL/NAME` one domain of a level.

        Raises InvalidArgument when the pool has no such level. Units outside every named domain of
        the level belong to no group.
        """
        found = self._groups.get(level or POOL_LEVEL)
        domain = self.domain_named(level or "") if found is None else None
        if domain is not None:
            cells = tuple(i for i, c in enumerate(self.cells) if c.first in domain.units)
            found = (cells,)
            self._know(level or "", found)
        if found is None:
            known = ", ".join(self.levels) or "none"
            raise InvalidArgument(
                f"within: pool {self.name} has no level '{level}' (it has: {known})", field="within"
            )
        return found

    def domain_named(self, path: str) -> Domain | None:
        """The domain that `LEVEL/NAME` means, None when there is none."""
        level, _, name = path.partition("/")
        return next((d for d in self.domains if name and (d.level, d.name) == (level, name)), None)

    def largest_group(self, level: str | None) -> int:
        """Units in the largest domain of a level; raises like `groups`."""
        self.groups(level)
        return self._largest[level or POOL_LEVEL]

    def cell_of(self, unit: int) -> int:
        """The index of the cell that unit belongs to."""
        if not 0 <= unit < len(self._cell_of):
            raise InvalidArgument(f"pool {self.name} has no unit {unit}", field="unit")
        return self._cell_of[unit]

    def domain_of(self, host: int, level: str) -> str:
        """The name of the domain of `level` that holds a host, by its place; empty when none does."""
        unit = host * self.host_units
        return next((d.name for d in self.domains if d.level == level and unit in d.units), "")

    def host_named(self, host: str) -> int | None:
        """The place in `hosts` of a host by name, None when it is not in this pool."""
        try:
            return self.hosts.index(host)
        except ValueError:
            return None


class HostState(StrEnum):
    """What a host may be used for."""

    READY = "READY"
    DRAINING = "DRAINING"
    DOWN = "DOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus:
    """Why a host is not simply READY: who said so, when, why, and until when if known. `unit` is its place in
    the pool's `hosts`."""

    pool: str
    unit: int
    state: HostState
    reason: str = ""
    actor: str = ""
    since: int = 0
    until: int = 0
    unreachable_since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Every zone and pool, as declared; `version` grows with each applied change."""

    zones: tuple[Zone, ...]
    pools: tuple[Pool, ...]
    version: int = 1
    currency: str = "USD"

    def __post_init__(self) -> None:
        names = [p.name for p in self.pools]
        if len(set(names)) != len(names):
            raise InvalidArgument("pools: two pools share a name", field="pools")
        zones = {z.name for z in self.zones}
        first = {p.name: p for p in self.pools if not p.beside}
        for pool in (p for p in self.pools if p.beside):
            same = first.get(pool.beside)
            if same is None or (same.zone, same.hosts) != (pool.zone, pool.hosts):
                raise InvalidArgument(
                    f"pool {pool.name}: its hosts are not those of a pool '{pool.beside}' in {pool.zone}",
                    field="pools.beside",
                )
        for pool in self.pools:
            if pool.zone not in zones:
                raise InvalidArgument(
                    f"pool {pool.name}: zone '{pool.zone}' is not declared", field="pools.zone"
                )

    def pool(self, name: str) -> Pool:
        """The pool of that name; KeyError when there is none."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise KeyError(name)

    def lines_of(self, name: str) -> tuple[Pool, ...]:
        """Every pool over the hosts of one: first the one whose they are, then those beside it."""
        first = self.pool(name).beside or name
        return (self.pool(first), *(p for p in self.pools if p.beside == first))

    def zones_of(self, region: str) -> tuple[str, ...]:
        """The names of a region's zones, in fleet order."""
        return tuple(zone.name for zone in self.zones if zone.region == region)

    def zone(self, name: str) -> Zone | None:
        """The zone of that name, None when there is none."""
        return next((z for z in self.zones if z.name == name), None)

    def pools_in(self, locations: tuple[str, ...]) -> tuple[Pool, ...]:
        """Pools in any of the zones or regions named, in fleet order; all pools when none is named."""
        if not locations:
            return self.pools
        region = {z.name: z.region for z in self.zones}
        return tuple(p for p in self.pools if p.zone in locations or region[p.zone] in locations)
