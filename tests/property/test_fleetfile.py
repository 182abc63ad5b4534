"""Property *fleet_round_trips*: reading what was written gives the same fleet."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from dws.declared import fleetfile
from dws.declared.line import generated
from dws.model.catalog import MACHINE_TYPES, fractions_of
from dws.model.resources import MachineShape, Overheads
from dws.model.topology import Domain, Fleet, Pool, Zone

NAMES = st.from_regex(r"[a-z](-?[a-z0-9]){0,5}", fullmatch=True)
HOSTS = st.from_regex(r"[A-Za-z0-9]([-_.]?[A-Za-z0-9]){0,6}", fullmatch=True)
SENTENCES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SECONDS = st.integers(0, 86_400)
CUSTOM = [
    MachineShape(name="own-gpu", accelerator="mi300x", accelerators=4, vcpus=8, memory_gb=64),
    MachineShape(name="own-cpu", vcpus=4, memory_gb=16),
    MachineShape(name="e2-medium", vcpus=3, memory_gb=5),
]
SHAPES = st.sampled_from([*CUSTOM, *(s for s in MACHINE_TYPES.values() if s.name != "e2-medium")])


def _fractions(shape: MachineShape) -> list[tuple[MachineShape, ...]]:
    """Ways to share a host of the shape."""
    known = fractions_of(shape)
    half = MachineShape(name="half", accelerator="mi300x", accelerators=2, vcpus=4, memory_gb=1)
    own = [(half,)] if shape.accelerator == "mi300x" else []
    return [*([known, known[:1], known[::-1]] if known else []), *own]


@st.composite
def _domains(draw: st.DrawFn, room: range, levels: tuple[str, ...], names: set[str]) -> list[Domain]:
    if not levels:
        return []
    found: list[Domain] = []
    at = room.start
    while at < room.stop and draw(st.booleans()):
        first = draw(st.integers(at, room.stop - 1))
        size = draw(st.integers(1, room.stop - first))
        names.add(name := f"{levels[0][0]}{len(names)}")
        outer = Domain(level=levels[0], name=name, first=first, size=size)
        found += [outer, *draw(_domains(outer.units, levels[1:], names))]
        at = first + size
    return found


@st.composite
def _pools(draw: st.DrawFn, name: str, zones: list[str]) -> Pool:
    count = draw(st.integers(1, 12))
    own = st.lists(HOSTS.map(lambda h: f"{name}.{h}"), min_size=1, max_size=12, unique=True)
    hosts = draw(st.just(generated(name, count)) | own.map(tuple))
    levels = draw(st.sampled_from([("block", "subblock"), ("row", "rack", "shelf"), ("block",)]))
    domains = draw(_domains(range(len(hosts)), levels, set()))
    shape = draw(SHAPES)
    fractions = draw(st.sampled_from([(), *_fractions(shape)]))
    each = shape.accelerators if fractions else 1
    domains = [replace(d, first=d.first * each, size=d.size * each) for d in domains]
    return Pool(
        name=name,
        zone=draw(st.sampled_from(zones)),
        shape=shape,
        host_units=each,
        fractions=fractions,
        backend=draw(st.sampled_from(["simulated", "local", "slurm"])),
        hosts=hosts,
        domains=tuple(sorted(domains, key=lambda d: levels.index(d.level))),
        overheads=draw(st.builds(Overheads, setup_s=SECONDS, grace_s=SECONDS, teardown_s=SECONDS)),
        price_micros_per_hour=draw(st.sampled_from([0, 1, 4_200_800]) | st.integers(0, 10**12)),
        unavailable=draw(SENTENCES),
    )


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Any fleet a file can describe."""
    zones = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    pools = draw(st.lists(NAMES, max_size=4, unique=True))
    return Fleet(
        zones=tuple(
            Zone(name=z, region=draw(st.just("") | NAMES), unavailable=draw(SENTENCES)) for z in zones
        ),
        pools=tuple(draw(_pools(p, zones)) for p in pools),
        currency=draw(st.sampled_from(["USD", "EUR"])),
    )


@settings(max_examples=50)
@given(fleets())
def test_fleet_round_trips(fleet: Fleet) -> None:
    """Saving the fleet that runs and applying it again would change it."""
    assert fleetfile.parse(fleetfile.dump(fleet)) == fleet
