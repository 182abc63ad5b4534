"""A pool's line of hosts, and the domains on it, as a fleet file writes them.

    hosts = 8                 pool-0001 … pool-0008
    [[pools.blocks]]          b1: the first 4           0001 0002 0003 0004 | 0005 0006 0007 0008
    hosts = 4                                           └────── b1 ───────┘   └────── b2 ───────┘
    [[pools.blocks]]          b2: the next 4
    hosts = 4

A domain is given by a number of hosts (those after its elder sibling's) or by their names, which must
stand together on the line. Inner domains are laid out the same way inside their outer one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from dws.declared.table import Table, kind_of, nearest, quoted
from dws.model.errors import InvalidArgument
from dws.model.names import check_name
from dws.model.topology import HOST_LEVEL, POOL_LEVEL, Domain, Pool

DEFAULT_LEVELS: Final = ("block", "subblock")
HOSTS_MAX: Final = 65_536
"""Hosts one pool may have."""

_HOST = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?")


def plural(level: str) -> str:
    """The key under which the domains of a level are listed: `blocks` for `block`."""
    return f"{level}s"


def generated(pool: str, count: int) -> tuple[str, ...]:
    """The names of hosts given by number: pool-0001, pool-0002, …"""
    return tuple(f"{pool}-{i:04d}" for i in range(1, count + 1))


def levels(entry: Table) -> tuple[str, ...]:
    """The pool's levels of closeness, outermost first."""
    if "levels" not in entry.values:
        return DEFAULT_LEVELS
    named = entry.texts("levels")
    for index, level in enumerate(named):
        with entry.at("levels", index):
            check_name(level, field="levels")
        if level in (HOST_LEVEL, POOL_LEVEL) or level in named[:index]:
            entry.fail(f"'{level}' is taken; choose another name for this level", "levels", index)
    return named


def lay_out(
    entry: Table, *, pool: str, levels: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[Domain, ...]]:
    """The pool's host names in line order and its domains, outermost level first."""
    hosts = names(entry) if is_named(entry) else generated(pool, _counted(entry))
    place = {host: unit for unit, host in enumerate(hosts)}
    found: list[Domain] = []
    _lay_inside(entry, place, range(len(hosts)), levels, found)
    return hosts, tuple(sorted(found, key=lambda d: levels.index(d.level)))


def is_named(entry: Table) -> bool:
    """True when the hosts are listed by name, not by number."""
    return isinstance(entry.values.get("hosts"), list)


def _counted(entry: Table) -> int:
    written = entry.values.get("hosts")
    if written is None:
        entry.fail("missing key 'hosts': how many, or a list of names")
    if isinstance(written, bool) or not isinstance(written, int):
        entry.fail(f"expected a whole number or a list of names, found {kind_of(written)}", "hosts")
    if not 1 <= written <= HOSTS_MAX:
        entry.fail(f"{written} must lie between 1 and {HOSTS_MAX}", "hosts")
    return written


def names(entry: Table) -> tuple[str, ...]:
    """The host names listed under `hosts`."""
    found = entry.texts("hosts")
    if not 1 <= len(found) <= HOSTS_MAX:
        entry.fail(f"a list of {len(found)} names must have between 1 and {HOSTS_MAX}", "hosts")
    seen: set[str] = set()
    for index, name in enumerate(found):
        if not _HOST.fullmatch(name):
            entry.fail(f"'{name}' is not a host name (letters, digits, '-', '_' and '.')", "hosts", index)
        if name in seen:
            entry.fail(f"host '{name}' is listed twice", "hosts", index)
        seen.add(name)
    return found


def _lay_inside(
    entry: Table, place: Mapping[str, int], room: range, levels: tuple[str, ...], found: list[Domain]
) -> None:
    """Lay the domains listed in `entry` onto `room`, and theirs onto them."""
    if not levels:
        return
    level, deeper = levels[0], levels[1:]
    next_free = room.start
    for inner in entry.tables(plural(level)):
        inner.only("name", "hosts", *(plural(d) for d in deeper[:1]))
        name = inner.text("name")
        with inner.at("name"):
            check_name(name)
        if any(d.level == level and d.name == name for d in found):
            inner.fail(f"{level} '{name}' is declared twice in this pool", "name")
        what = f"{level} '{name}'"
        units = (
            _named_units(inner, place, room, what)
            if is_named(inner)
            else (_next_units(inner, next_free, room, what))
        )
        _refuse_overlap(inner, found, level, units, what)
        found.append(Domain(level=level, name=name, first=units.start, size=len(units)))
        next_free = units.stop
        _lay_inside(inner, place, units, deeper, found)


def _next_units(entry: Table, next_free: int, room: range, what: str) -> range:
    """The units of a domain given by number: those after its elder sibling's."""
    count = _counted(entry)
    if next_free + count > room.stop:
        entry.fail(
            f"{what} needs {count} hosts, but {room.stop - next_free} of {len(room)} are left for it",
            "hosts",
        )
    return range(next_free, next_free + count)


def _named_units(entry: Table, place: Mapping[str, int], room: range, what: str) -> range:
    """The units of a domain given by names."""
    at = []
    for index, name in enumerate(names(entry)):
        if name not in place:
            entry.fail(f"the pool has no host '{name}'{nearest(name, place)}", "hosts", index)
        if place[name] not in room:
            entry.fail(f"host '{name}' of {what} is outside the domain around it", "hosts", index)
        at.append(place[name])
    units = range(min(at), max(at) + 1)
    if len(units) != len(at):
        entry.fail(f"the hosts of {what} must stand together in the pool's list of hosts", "hosts")
    return units


def _refuse_overlap(entry: Table, found: list[Domain], level: str, units: range, what: str) -> None:
    for other in found:
        first, last = max(units.start, other.first), min(units.stop, other.first + other.size)
        if other.level == level and first < last:
            entry.fail(f"{what} overlaps {level} '{other.name}' in {last - first} hosts", "hosts")


def hosts_text(pool: Pool) -> str:
    """The value of a pool's `hosts`: a number where the names are the generated ones."""
    if pool.hosts == generated(pool.name, len(pool.hosts)):
        return str(len(pool.hosts))
    return list_text(pool.hosts)


def domains_text(pool: Pool) -> str:
    """The pool's domains as nested arrays of tables.

    Raises InvalidArgument for a domain that lies in no domain of the level around it.
    """
    lines: list[str] = []
    written = _write_inside(pool, range(len(pool.hosts)), pool.levels, "pools", lines)
    if written != len(pool.domains):
        raise InvalidArgument(
            f"pool {pool.name}: a domain lies outside every domain of the level around it", field="domains"
        )
    return "".join(lines)


def _write_inside(pool: Pool, room: range, levels: tuple[str, ...], path: str, lines: list[str]) -> int:
    """Write the domains that lie in `room`; returns how many, theirs included."""
    if not levels:
        return 0
    written, next_free, path = 0, room.start, f"{path}.{plural(levels[0])}"
    for domain in (d for d in pool.domains if d.level == levels[0]):
        each = pool.host_units
        units = range(domain.first // each, (domain.first + domain.size) // each)
        if units.start not in room or units.stop > room.stop:
            continue
        names = list_text(pool.hosts[units.start : units.stop])
        hosts = str(len(units)) if units.start == next_free else names
        lines.append(f"[[{path}]]\nname = {quoted(domain.name)}\nhosts = {hosts}\n")
        next_free = units.stop
        written += 1 + _write_inside(pool, units, levels[1:], path, lines)
    return written


def list_text(names: Sequence[str]) -> str:
    """A TOML list of texts."""
    return "[" + ", ".join(quoted(name) for name in names) + "]"
