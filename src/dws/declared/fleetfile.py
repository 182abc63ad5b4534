"""The fleet file: what a fleet is, as people write it down.

    [[pools]]                       one line of identical hosts in one zone
    name = "a3"
    zone = "us-central1-a"
    machine = "a3-highgpu-8g"       from the catalogue, or a [shapes.NAME] of this file
    hosts = 16                      a3-0001 … a3-0016, or a list of names
    [[pools.blocks]]                consecutive hosts that are close to each other
    name = "b1"
    hosts = 8

`docs/reference/fleet-file.md` has every key. `parse(dump(fleet)) == fleet` for any fleet of version 1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Final

from dws.declared import beside, line, pods, sharing, table
from dws.declared.table import Table, kind_of, nearest, quoted
from dws.model import catalog
from dws.model.names import check_name
from dws.model.resources import NO_OVERHEADS, MachineShape, Overheads
from dws.model.topology import Fleet, Pool, Zone
from dws.wire.timefmt import format_duration, parse_duration

DEFAULT_BACKEND: Final = "simulated"
LOCAL_ZONE: Final = "local"
"""This machine. The server declares it by itself, with what it finds."""

DEFAULT_OVERHEADS: Final[Mapping[str, Overheads]] = {
    "local": Overheads(setup_s=60, grace_s=30, teardown_s=10),
}
"""What a pool of a backend costs around a run when the file does not say; nothing where not listed."""

_PRICE_MAX: Final = 1_000_000
_SHAPE_MAX: Final = {"accelerators": 1024, "vcpus": 65_536, "memory_gb": 1_048_576}
_OVERHEAD_MAX_S: Final = 86_400


def parse(text: str, source: str = "fleet.toml", *, backends: Collection[str] = ()) -> Fleet:
    """The fleet a TOML text describes; with `backends`, its pools may name only those.

    Raises InvalidArgument whose message begins with `source:LINE: ` of the first mistake.
    """
    root = table.read(text, source=source)
    root.only("currency", "zones", "pools", "shapes", "prices")
    zones = _zones(root)
    shapes = _shapes(root.table("shapes"))
    prices = _prices(root.table("prices"), shapes)
    pools = _pools(root, zones=zones, shapes=shapes, prices=prices)
    _refuse_shared_hosts(root, pools)
    if backends:
        _refuse_unknown_backends(root, pools, backends)
    currency = root.text("currency", "USD")
    if not (len(currency) == 3 and currency.isascii() and currency.isupper()):
        root.fail(f"'{currency}' is not a currency code such as 'USD'", "currency")
    return Fleet(zones=tuple(zones.values()), pools=pools, currency=currency)


def _pools(
    root: Table,
    *,
    zones: Mapping[str, Zone],
    shapes: Mapping[str, MachineShape],
    prices: Mapping[str, int],
) -> tuple[Pool, ...]:
    pools: list[Pool] = []
    for entry in root.tables("pools"):
        known = {p.name: p for p in pools}
        pools.append(_pool(entry, zones=zones, shapes=shapes, prices=prices, known=known))
    return tuple(pools)


def _zones(root: Table) -> dict[str, Zone]:
    zones: dict[str, Zone] = {}
    for entry in root.tables("zones"):
        entry.only("name", "region", "unavailable")
        name, region = _name(entry, "name"), _name(entry, "region", "")
        if name in zones:
            entry.fail(f"zone '{name}' is declared twice", "name")
        zones[name] = Zone(name=name, region=region, unavailable=entry.text("unavailable", ""))
    return zones


def _shapes(declared: Table) -> dict[str, MachineShape]:
    """The catalogue and the file's own shapes; where both know a name, the file says what it means."""
    shapes = dict(catalog.MACHINE_TYPES)
    for name in declared.values:
        entry = declared.table(name)
        entry.only("accelerator", "accelerators", "vcpus", "memory_gb")
        with declared.at(name):
            check_name(name)
        written = entry.text("accelerator", "")
        count, vcpus, memory_gb = (_bounded(entry, key) for key in _SHAPE_MAX)
        with entry.at("accelerator" if written else "accelerators"):
            shapes[name] = MachineShape(
                name=name,
                accelerator=catalog.canonical_accelerator(written) or written,
                accelerators=count,
                vcpus=vcpus,
                memory_gb=memory_gb,
            )
    return shapes


def _bounded(entry: Table, key: str) -> int:
    """A whole number of a shape, not larger than any machine has."""
    number = entry.count(key)
    if number > _SHAPE_MAX[key]:
        entry.fail(f"{number} must lie between 0 and {_SHAPE_MAX[key]}", key)
    return number


def _prices(declared: Table, shapes: Mapping[str, MachineShape]) -> dict[str, int]:
    """Micros per hour by what is paid for: an accelerator type, or a machine without accelerators."""
    paid_for = {price_key(s): s for s in shapes.values()}
    spoken = {n: full for full in paid_for for n in catalog.accelerator_names(full)}
    spoken |= {full: full for full in paid_for}
    prices: dict[str, int] = {}
    for name in declared.values:
        if name not in spoken:
            machine = shapes.get(name)
            if machine is not None:
                declared.fail(
                    f"'{name}' is paid by the accelerator; give the price of '{machine.accelerator}'", name
                )
            declared.fail(f"no accelerator or machine has this name{nearest(name, spoken)}", name)
        key = spoken[name]
        if key in prices:
            declared.fail(f"the price of '{key}' is given twice", name)
        prices[key] = _price(declared, name)
    return prices


def price_key(shape: MachineShape) -> str:
    """What a host of the shape is paid by: its accelerator type, else the machine itself."""
    return shape.accelerator or shape.name


def _price(entry: Table, key: str) -> int:
    """A decimal price per hour in millionths."""
    written = entry.values[key]
    if isinstance(written, bool) or not isinstance(written, int | Decimal | str):
        entry.fail(f"expected a price such as 4.2008, found {kind_of(written)}", key)
    try:
        micros = Decimal(written) * 1_000_000
    except InvalidOperation:
        entry.fail(f"expected a price such as 4.2008, found {kind_of(written)}", key)
    if not micros.is_finite() or not 0 <= micros <= _PRICE_MAX * 1_000_000:
        entry.fail(f"price {written} must lie between 0 and {_PRICE_MAX} per hour", key)
    if micros != int(micros):
        entry.fail(f"price {written} may have at most six decimals", key)
    return int(micros)


def _pool(
    entry: Table,
    *,
    zones: Mapping[str, Zone],
    shapes: Mapping[str, MachineShape],
    prices: Mapping[str, int],
    known: Mapping[str, Pool],
) -> Pool:
    name = _name(entry, "name")
    levels = line.levels(entry)
    has_pods, is_beside = "topology" in entry.values, "beside" in entry.values
    own = ("hosts", "shared", "fractions", "topology")
    laid_out = ("pods",) if has_pods else ("levels", *(line.plural(level) for level in levels[:1]))
    entry.only(
        *("name", "zone", "machine", "backend", "price", "overheads", "unavailable", "beside"),
        *(("per_host",) if is_beside else (*own, *laid_out)),
    )
    zone, machine = entry.text("zone"), entry.text("machine")
    if zone not in zones:
        entry.fail(f"zone '{zone}' is not declared{nearest(zone, zones)}", "zone")
    if machine not in shapes:
        entry.fail(
            f"no machine '{machine}' in the catalogue or under [shapes]{nearest(machine, shapes)}", "machine"
        )
    backend = _name(entry, "backend", DEFAULT_BACKEND)
    fractions = sharing.fractions_of(entry, shapes[machine], shapes)
    host_units = shapes[machine].accelerators if fractions else 1
    topology = ""
    if is_beside:
        host_units, hosts, domains = beside.lay_out(
            entry, zone=zone, machine=shapes[machine], known=known
        )
    elif has_pods:
        topology, hosts, domains = pods.lay_out(entry, pool=name, machine=shapes[machine])
    else:
        hosts, domains = line.lay_out(entry, pool=name, levels=levels)
    if len(hosts) * host_units > line.HOSTS_MAX:
        entry.fail(
            f"{len(hosts)} shared hosts have {len(hosts) * host_units} accelerators; a pool may have "
            f"{line.HOSTS_MAX}",
            "hosts",
        )
    if fractions:
        domains = tuple(
            replace(d, first=d.first * host_units, size=d.size * host_units) for d in domains
        )
    own_price = _price(entry, "price") if "price" in entry.values else None
    return Pool(
        name=name,
        zone=zone,
        shape=shapes[machine],
        backend=backend,
        hosts=hosts,
        domains=domains,
        overheads=_overheads(entry.table("overheads"), DEFAULT_OVERHEADS.get(backend, NO_OVERHEADS)),
        price_micros_per_hour=prices.get(price_key(shapes[machine]), 0) if own_price is None else own_price,
        unavailable=entry.text("unavailable", ""),
        host_units=host_units,
        fractions=fractions,
        topology=topology,
        beside=entry.text("beside", ""),
    )


def _overheads(entry: Table, default: Overheads) -> Overheads:
    entry.only("setup", "grace", "teardown")
    seconds: dict[str, int] = {}
    for key in ("setup", "grace", "teardown"):
        written = entry.values.get(key)
        if written is None:
            seconds[key] = getattr(default, f"{key}_s")
            continue
        if isinstance(written, bool) or not isinstance(written, int | str):
            entry.fail(f"expected a duration such as '90s', found {kind_of(written)}", key)
        with entry.at(key):
            seconds[key] = parse_duration(written, field=key)
        if seconds[key] > _OVERHEAD_MAX_S:
            entry.fail(f"{format_duration(seconds[key])} is longer than a day", key)
    return Overheads(setup_s=seconds["setup"], grace_s=seconds["grace"], teardown_s=seconds["teardown"])


def _refuse_shared_hosts(root: Table, pools: tuple[Pool, ...]) -> None:
    """Two pools with one name, or one host in two pools, would be promised twice."""
    owner: dict[str, str] = {}
    seen: set[str] = set()
    for entry, pool in zip(root.tables("pools"), pools, strict=True):
        if pool.name in seen:
            entry.fail(f"pool '{pool.name}' is declared twice", "name")
        seen.add(pool.name)
        for host in () if pool.beside else pool.hosts:
            if host in owner:
                entry.fail(f"host '{host}' is in pool '{owner[host]}' already", "hosts")
            owner[host] = pool.name


def _refuse_unknown_backends(root: Table, pools: tuple[Pool, ...], backends: Collection[str]) -> None:
    """A pool nobody runs would promise what nobody delivers. Zone `local` is the server's own to declare."""
    for entry, pool in zip(root.tables("pools"), pools, strict=True):
        if pool.backend not in backends and pool.zone != LOCAL_ZONE:
            entry.fail(
                f"'{pool.backend}' does not run here (this server has: {', '.join(sorted(backends))})"
                f"{nearest(pool.backend, backends)}",
                *(["backend"] if "backend" in entry.values else []),
            )


def with_local(fleet: Fleet, zone: Zone, pools: Sequence[Pool]) -> Fleet:
    """The fleet with zone `local` as the server found it, whatever a file says of it."""
    others = tuple(z for z in fleet.zones if z.name != LOCAL_ZONE)
    elsewhere = tuple(p for p in fleet.pools if p.zone != LOCAL_ZONE)
    return replace(fleet, zones=(*others, zone), pools=(*elsewhere, *pools))


def _name(entry: Table, key: str, default: str | None = None) -> str:
    """A legal name, or the default."""
    name = entry.text(key, default)
    if name != default:
        with entry.at(key):
            check_name(name, field=key)
    return name


def dump(fleet: Fleet) -> str:
    """The TOML text of a fleet; its version is the store's and is left out.

    Raises InvalidArgument for a domain that lies in no domain of the level around it: the file nests.
    """
    prices, single = _shared_prices(fleet)
    parts = [f"currency = {quoted(fleet.currency)}\n", *(_zone_text(z) for z in fleet.zones)]
    shapes = {s.name: s for p in fleet.pools for s in p.shapes}
    parts += [_shape_text(s) for s in shapes.values() if s != catalog.shape(s.name)]
    if prices:
        lines = (f"{quoted(key)} = {_decimal(micros)}\n" for key, micros in prices.items())
        parts.append("[prices]\n" + "".join(lines))
    parts += [_pool_text(p, own_price=p.name in single) for p in fleet.pools]
    return "\n".join(parts)


def _shared_prices(fleet: Fleet) -> tuple[dict[str, int], set[str]]:
    """Prices on which all pools of a kind agree, and the pools that must state their own."""
    by_key: dict[str, list[Pool]] = {}
    for pool in fleet.pools:
        by_key.setdefault(price_key(pool.shape), []).append(pool)
    shared: dict[str, int] = {}
    single: set[str] = set()
    for key, pools in by_key.items():
        found = {p.price_micros_per_hour for p in pools}
        if len(found) > 1:
            single |= {p.name for p in pools}
        elif found != {0}:
            shared[key] = found.pop()
    return shared, single


def _zone_text(zone: Zone) -> str:
    lines = [f"[[zones]]\nname = {quoted(zone.name)}"]
    if zone.region != Zone(name=zone.name).region:
        lines.append(f"region = {quoted(zone.region)}")
    if zone.unavailable:
        lines.append(f"unavailable = {quoted(zone.unavailable)}")
    return "\n".join(lines) + "\n"


def _shape_text(shape: MachineShape) -> str:
    lines = [f"[shapes.{shape.name}]"]
    if shape.accelerator:
        lines += [f"accelerator = {quoted(shape.accelerator)}", f"accelerators = {shape.accelerators}"]
    lines += [f"vcpus = {shape.vcpus}", f"memory_gb = {shape.memory_gb}"]
    return "\n".join(lines) + "\n"


def _pool_text(pool: Pool, *, own_price: bool) -> str:
    lines = [f"[[pools]]\nname = {quoted(pool.name)}\nzone = {quoted(pool.zone)}"]
    lines.append(f"machine = {quoted(pool.shape.name)}")
    if pool.backend != DEFAULT_BACKEND:
        lines.append(f"backend = {quoted(pool.backend)}")
    if pool.beside:
        lines.append(f"beside = {quoted(pool.beside)}\nper_host = {pool.host_units}")
    else:
        lines.append(pods.text(pool) if pool.topology else f"hosts = {line.hosts_text(pool)}")
    if pool.is_shared and not pool.beside:
        lines.append(sharing.text(pool))
    is_laid_out = bool(pool.topology or pool.beside)
    if not is_laid_out and pool.levels != line.DEFAULT_LEVELS[: len(pool.levels)]:
        lines.append(f"levels = [{', '.join(quoted(level) for level in pool.levels)}]")
    if own_price:
        lines.append(f"price = {_decimal(pool.price_micros_per_hour)}")
    if pool.overheads != DEFAULT_OVERHEADS.get(pool.backend, NO_OVERHEADS):
        o = pool.overheads
        lines.append(
            f'overheads = {{ setup = "{format_duration(o.setup_s)}", '
            f'grace = "{format_duration(o.grace_s)}", teardown = "{format_duration(o.teardown_s)}" }}'
        )
    if pool.unavailable:
        lines.append(f"unavailable = {quoted(pool.unavailable)}")
    return "\n".join(lines) + "\n" + ("" if is_laid_out else line.domains_text(pool))


def _decimal(micros: int) -> str:
    """Millionths as a decimal without loss: 4200800 is 4.2008."""
    return f"{Decimal(micros) / 1_000_000:f}"
