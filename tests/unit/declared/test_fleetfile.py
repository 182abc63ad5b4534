"""The fleet file: what it means, and where it says a mistake is."""

from __future__ import annotations

import pytest

from dws.declared import demo, fleetfile
from dws.model.errors import InvalidArgument
from dws.model.resources import NO_OVERHEADS, MachineShape, Overheads
from dws.model.topology import Domain

FILE = """\
currency = "EUR"
[prices]
h100 = "4.2008"
e2-medium = 0.03
[shapes.crate]
accelerator = "mi300x"
accelerators = 8
vcpus = 96
memory_gb = 1024
[[zones]]
name = "hall-1"
region = "north"
[[pools]]
name = "a3"
zone = "hall-1"
machine = "a3-highgpu-8g"
hosts = 8
[[pools.blocks]]
name = "b1"
hosts = 4
[[pools.blocks.subblocks]]
name = "s1"
hosts = 2
[[pools.blocks]]
name = "b2"
hosts = 4
[[pools]]
name = "crates"
zone = "hall-1"
machine = "crate"
backend = "local"
hosts = ["left", "mid", "right"]
levels = ["rack"]
overheads = { setup = "2m", grace = 15 }
price = 1.5
[[pools.racks]]
name = "r1"
hosts = ["mid", "right"]
[[pools]]
name = "small"
zone = "hall-1"
machine = "e2-medium"
hosts = 2
"""


def test_a_fleet_file_means_what_it_says() -> None:
    """A person's fleet would be other than the one they wrote down."""
    fleet = fleetfile.parse(FILE)
    a3, crates, small = fleet.pools
    assert (fleet.currency, fleet.version, fleet.zones[0].region) == ("EUR", 1, "north")
    assert a3.hosts == tuple(f"a3-000{i}" for i in range(1, 9))
    assert a3.domains == (
        Domain(level="block", name="b1", first=0, size=4),
        Domain(level="block", name="b2", first=4, size=4),
        Domain(level="subblock", name="s1", first=0, size=2),
    )
    assert (a3.backend, a3.overheads, a3.price_micros_per_hour) == ("simulated", NO_OVERHEADS, 4_200_800)
    assert crates.shape == MachineShape(
        name="crate", accelerator="mi300x", accelerators=8, vcpus=96, memory_gb=1024
    )
    assert crates.hosts == ("left", "mid", "right")
    assert crates.domains == (Domain(level="rack", name="r1", first=1, size=2),)
    assert crates.overheads == Overheads(setup_s=120, grace_s=15, teardown_s=10)
    assert crates.price_micros_per_hour == 1_500_000
    assert small.price_micros_per_hour == 30_000


def test_an_accelerator_may_be_called_by_any_of_its_names() -> None:
    """A site's own machine with `h100` in it would not answer to a request for an H100."""
    fleet = fleetfile.parse(FILE.replace("mi300x", "h100"))
    assert fleet.pools[1].shape.accelerator == "nvidia-h100-80gb"


def test_a_fleet_survives_being_written_and_read() -> None:
    """Saving the fleet that runs and applying it again would change it."""
    for fleet in (fleetfile.parse(FILE), demo.demo_fleet()):
        assert fleetfile.parse(fleetfile.dump(fleet)) == fleet


def test_the_demo_fleet_is_the_announced_one() -> None:
    """A first session would not find what the documentation promises."""
    fleet = demo.demo_fleet()
    assert [
        (p.zone, len(p.hosts), p.shape.name, {d.name: d.size for d in p.domains if d.level != "cube"})
        for p in fleet.pools
    ] == [
        ("us-central1-a", 16, "a3-highgpu-8g", {"b1": 8, "b2": 8}),
        ("us-central1-a", 16, "e2-medium", {}),
        ("us-central1-b", 8, "a3-highgpu-8g", {"b1": 8}),
        ("us-central1-b", 4, "a2-highgpu-8g", {}),
        ("us-central1-a", 32, "ct5lp-hightpu-8t", {"pod1": 256}),
        ("us-east5-a", 128, "ct5p-hightpu-4t", {"pod1": 128}),
        ("us-east5-b", 32, "ct6e-standard-8t", {"pod1": 256}),
    ]
    assert sum(d.level == "cube" for d in fleet.pool("v5p-a").domains) == 8
    assert [z.name for z in fleet.zones] == ["us-central1-a", "us-central1-b", "us-east5-a", "us-east5-b"]
    assert {p.backend for p in fleet.pools} == {"simulated"}
    assert all(p.overheads == NO_OVERHEADS for p in fleet.pools)


MISTAKES = [
    # id, what is replaced, by what, the line, a part of the message
    ("syntax", 'zone = "hall-1"\nmachine = "crate"', 'zone = "hall-1\nmachine = "crate"', 29, "not TOML"),
    ("cut-off", 'machine = "e2-medium"\nhosts = 2', 'machine = "e2-medium"\nhosts = [1', 43, "not TOML"),
    ("unknown-key", "memory_gb = 1024", "memroy_gb = 1024", 9, "did you mean 'memory_gb'?"),
    ("unknown-section", "[prices]", "[price]", 2, "did you mean 'prices'?"),
    ("wrong-type", "hosts = 8\n", 'hosts = "eight"\n', 17, "a whole number or a list of names, found the text"),
    ("bool-is-no-number", "vcpus = 96", "vcpus = true", 8, "a whole number, found true or false"),
    ("unknown-zone", 'zone = "hall-1"\nmachine = "crate"', 'zone = "hall-2"\nmachine = "crate"', 29, "'hall-1'?"),
    ("unknown-machine", '"a3-highgpu-8g"', '"a3-higpu-8g"', 16, "did you mean 'a3-highgpu-8g'?"),
    ("missing-key", 'zone = "hall-1"\nmachine = "crate"', 'machine = "crate"', 27, "missing key 'zone'"),
    ("too-many-in-blocks", 'name = "b2"\nhosts = 4', 'name = "b2"\nhosts = 5', 26, "needs 5 hosts, but 4 of 8"),
    ("too-many-in-subblocks", 'name = "s1"\nhosts = 2', 'name = "s1"\nhosts = 9', 23, "needs 9 hosts"),
    ("overlap", 'name = "b2"\nhosts = 4', 'name = "b2"\nhosts = ["a3-0004"]', 26, "overlaps block 'b1' in 1"),
    ("apart", 'hosts = ["mid", "right"]', 'hosts = ["left", "right"]', 38, "must stand together"),
    ("no-such-host", 'hosts = ["mid", "right"]', 'hosts = ["mid",\n"rihgt"]', 39, "did you mean 'right'?"),
    ("twice-one-block", 'name = "b2"', 'name = "b1"', 25, "declared twice"),
    ("bad-name", 'name = "crates"', 'name = "Crates"', 28, "must begin with a lower-case letter"),
    ("bad-host-name", '"left"', '"le ft"', 32, "is not a host name"),
    ("negative-price", "e2-medium = 0.03", "e2-medium = -0.03", 4, "must lie between 0 and"),
    ("price-text", '"4.2008"', '"cheap"', 3, "expected a price such as 4.2008"),
    ("price-digits", '"4.2008"', '"4.00000001"', 3, "at most six decimals"),
    ("price-of-nothing", "h100 =", "h101 =", 3, "did you mean 'h100'?"),
    ("price-of-a-gpu-host", "e2-medium = 0.03", "a3-highgpu-8g = 30", 4, "paid by the accelerator"),
    ("price-twice", "e2-medium = 0.03", "nvidia-h100-80gb = 4", 4, "given twice"),
    ("zone-twice", '[[pools]]\nname = "small"', '[[zones]]\nname = "hall-1"\n[[pools]]\nname = "small"', 40, "twice"),
    ("pool-twice", 'name = "small"', 'name = "a3"', 40, "declared twice"),
    ("host-in-two-pools", 'name = "small"\nzone = "hall-1"\nmachine = "e2-medium"\nhosts = 2',
     'name = "small"\nzone = "hall-1"\nmachine = "e2-medium"\nhosts = ["left"]', 43, "in pool 'crates' already"),
    ("duration", 'setup = "2m"', 'setup = "soon"', 34, "is not a duration"),
    ("half-a-shape", 'accelerator = "mi300x"\n', "", 6, "must be given together"),
    ("currency", '"EUR"', '"euro"', 1, "not a currency code"),
    ("reserved-level", '["rack"]', '["host"]', 33, "is taken"),
    ("overhead", 'setup = "2m"', 'setup = "99999999d"', 34, "is longer than a day"),
    ("too-many-cores", "vcpus = 96", "vcpus = 99999999999999999999", 8, "must lie between 0 and 65536"),
    ("no-hosts", "hosts = 8\n", "hosts = 0\n", 17, "between 1 and 65536"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line", "message"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES]
)
def test_a_mistake_is_reported_at_its_line(old: str, new: str, line: int, message: str) -> None:
    """A person with a typo in a long fleet file would have to search for it."""
    assert old in FILE
    with pytest.raises(InvalidArgument) as caught:
        fleetfile.parse(FILE.replace(old, new, 1), source="fleet.toml")
    assert caught.value.message.startswith(f"fleet.toml:{line}: ")
    assert message in caught.value.message


def test_a_pool_of_a_backend_that_does_not_run_is_a_mistake_at_its_line() -> None:
    """Hosts would be promised that nobody can deliver."""
    with pytest.raises(InvalidArgument) as caught:
        fleetfile.parse(
            FILE.replace('"local"', '"locla"'), source="fleet.toml", backends=["local", "simulated"]
        )
    assert caught.value.message == (
        "fleet.toml:31: pools.backend: 'locla' does not run here (this server has: local, simulated)"
        "; did you mean 'local'?"
    )
    with pytest.raises(InvalidArgument, match=r"^fleet.toml:13: pools: 'simulated' does not run here"):
        fleetfile.parse(FILE, source="fleet.toml", backends=["local"])


def test_lines_are_right_in_every_way_toml_is_written() -> None:
    """The line named would be another one than that of the mistake."""
    text = (
        'note = """\n[[zones]]\n\\"""" # a comment\n'  # lines 1-3
        "zones = [\n  { name = 'a' }, # first\n  { name = 'b', 'regoin' = 'x' },\n]\n"
    )
    with pytest.raises(InvalidArgument, match=r"^f:1: note: unknown key"):
        fleetfile.parse(text, source="f")
    with pytest.raises(InvalidArgument, match=r"^f:6: zones.regoin: unknown key; did you mean 'region'"):
        fleetfile.parse(text.replace("note = ", "currency = ").replace("regoin", "regoin"), source="f")


def test_dump_refuses_what_the_file_cannot_say() -> None:
    """A domain would silently vanish from the saved fleet."""
    from dataclasses import replace

    fleet = demo.demo_fleet()
    astray = (
        Domain(level="block", name="b1", first=0, size=8),
        Domain(level="subblock", name="s", first=6, size=4),
    )
    pool = replace(fleet.pools[0], domains=astray)
    with pytest.raises(InvalidArgument, match="outside every domain"):
        fleetfile.dump(replace(fleet, pools=(pool,)))


SHARED = """\
[shapes.half]
accelerator = "h100"
accelerators = 4
vcpus = 900
[[zones]]
name = "z"
[[pools]]
name = "p"
zone = "z"
machine = "a3-highgpu-8g"
hosts = 4
WAY
[[pools.blocks]]
name = "b1"
hosts = 2
"""


def test_a_pool_is_shared_by_the_fractions_of_its_machine() -> None:
    """A person who says that hosts are shared would have to know how many accelerators they have."""
    (pool,) = fleetfile.parse(SHARED.replace("WAY", "shared = true")).pools
    assert [f.name for f in pool.fractions] == ["a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g"]
    assert (pool.host_units, pool.size) == (8, 32)
    assert pool.domains == (Domain(level="block", name="b1", first=0, size=16),)
    (listed,) = fleetfile.parse(SHARED.replace("WAY", 'fractions = ["a3-highgpu-2g"]')).pools
    assert [s.name for s in listed.shapes] == ["a3-highgpu-2g", "a3-highgpu-8g"]
    (whole,) = fleetfile.parse(SHARED.replace("WAY", "shared = false")).pools
    assert not whole.is_shared


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("shared = 1", "true or false"),
        ("fractions = []", "at least one"),
        ('fractions = ["a3-highgpu-3g"]', "did you mean"),
        ('fractions = ["a2-highgpu-1g"]', "no fraction of 'a3-highgpu-8g'"),
        ('fractions = ["a3-highgpu-8g"]', "the whole machine has 8"),
        ('fractions = ["half"]', "900 vCPUs, its share of the machine is 104"),
        ('fractions = ["a3-highgpu-1g", "a3-highgpu-1g"]', "twice"),
        ('shared = false\nfractions = ["a3-highgpu-1g"]', "'shared'"),
    ],
)
def test_what_is_no_fraction_is_refused_with_its_line(way: str, told: str) -> None:
    """Accelerators, CPUs or memory of a host could be promised twice."""
    with pytest.raises(InvalidArgument) as refused:
        fleetfile.parse(SHARED.replace("WAY", way))
    assert told in refused.value.message and refused.value.message.startswith("fleet.toml:1")


def test_a_shared_pool_keeps_within_what_a_pool_may_have() -> None:
    """A slip of the pen could make the planner hold millions of accelerators."""
    with pytest.raises(InvalidArgument, match="65536"):
        fleetfile.parse(SHARED.replace("WAY", "shared = true").replace("hosts = 4", "hosts = 9000"))
    with pytest.raises(InvalidArgument, match="knows no fraction"):
        fleetfile.parse(SHARED.replace("WAY", "shared = true").replace("a3-highgpu-8g", "e2-medium"))
