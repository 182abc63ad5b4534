"""Group J with TPU slices, typed into the command, over HTTP, by the real engine on a virtual clock."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner, Result

from dws.backends.simulated.backend import SimulatedBackend
from dws.backends.simulated.faults import Faults
from dws.bootstrap import Settings, open_system
from dws.cli.main import cli
from dws.declared import fleetfile
from dws.engine.ports import Delivery, FactKind, Order
from dws.model.demand import Alternative
from tests.api.served import MONDAY_9, Served, serving
from tests.scenarios.world import H, World

FLEET = """
currency = "USD"
[prices]
v5e = 0.60
v5p = 2.10
[[zones]]
name = "us-central1-a"
[[zones]]
name = "us-east5-a"
[[pools]]
name = "v5e"
zone = "us-central1-a"
machine = "ct5lp-hightpu-4t"
topology = "8x8"
[[pools]]
name = "v5p"
zone = "us-east5-a"
machine = "ct5p-hightpu-4t"
topology = "4x8x8"
pods = 2
"""
"""A quarter of a v5e pod in hosts of 2x2, and two v5p pods of four cubes."""


class Door:
    """The command, against a server that serves the fleet above."""

    def __init__(self, served: Served, orders: list[Order]) -> None:
        self.served = served
        self.orders = orders

    def __call__(self, line: str, *, fails: int = 0) -> Result:
        return self.run(*line.split(), fails=fails)

    def run(self, *words: str, fails: int = 0) -> Result:
        done = CliRunner().invoke(cli, list(words), prog_name="dws")
        assert done.exit_code == fails, f"{words}: {done.output}{done.stderr}"
        return done

    def json(self, line: str) -> Any:
        return json.loads(self(f"{line} -o json").stdout)

    def hosts(self, name: str) -> list[str]:
        """The hosts of a request that it still has, by rank."""
        held = self.json(f"describe {name}")["grant"]["instances"]
        return [i["host"] for i in held if i["state"] not in ("RELEASED", "LOST")]

    def state(self, name: str) -> str:
        return str(self.json(f"describe {name}")["state"])


@pytest.fixture
def dws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    (tmp_path / "fleet.toml").write_text(FLEET)
    settings = Settings(
        db="memory:",
        state_dir=tmp_path / "state",
        fleet=str(tmp_path / "fleet.toml"),
        clock="virtual",
        start=MONDAY_9,
    )
    system = open_system(settings)
    system.start()
    for name, value in (("TZ", "UTC"), ("COLUMNS", "200"), ("DWS_STATE_DIR", str(tmp_path / "state"))):
        monkeypatch.setenv(name, value)
    orders: list[Order] = []
    carried_out = SimulatedBackend.provision

    def provision(self: SimulatedBackend, order: Order) -> Delivery:
        orders.append(order)
        return carried_out(self, order)

    monkeypatch.setattr(SimulatedBackend, "provision", provision)
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())  # what a command prints is its own
    with serving(tmp_path, system) as served:
        monkeypatch.setenv("DWS_ADDRESS", served.address)
        yield Door(served, orders)
    structlog.reset_defaults()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("--tpu v5e --topology 3x3", "v5e has no slice '3x3'; it has 1x1, 2x2, 2x4, 4x4"),
        ("--tpu v5e --topology 1x8", "of 8 chips it has 2x4"),
        ("--accelerators v5p:256", "256 chips of v5p may be 4x8x8, 4x4x16; say which"),
        ("--accelerators v5e:9", "no slice of v5e has 9 chips; near are"),
        ("--tpu v5litepod-17", "near are v5litepod-4, v5litepod-8"),
        ("--tpu v6e --topology 4x4", "no pod of this fleet serves 'v6e' 4x4"),
        ("--tpu v5e --topology 8x16", "serves 'v5e' 8x16 (v5e has 2x2, 2x4, 4x4, 4x8, 8x8)"),
        ("--tpu v5p --topology 4x8x12", "4x4x4 and whole cubes up to 4x8x8"),
        ("--tpu v5e --topology 1x1", "serves 'v5e' 1x1 (v5e has 2x2, 2x4, 4x4, 4x8, 8x8)"),
        (
            "--machine ct5p-hightpu-1t --topology 2x2x2",
            "(v5p has 2x2x1, 2x2x2, 2x2x4, 2x4x4, 4x4x4 and whole cubes up to 4x8x8)",
        ),
    ],
)
def test_j03_a_slice_that_cannot_be_is_refused_with_those_that_can(dws: Door, asked: str, told: str) -> None:
    """What can never be built is queued, or refused without a hint."""
    done = dws(f"submit {asked} --for 1h", fails=2)
    assert told in done.stderr
    assert dws.json("list")["items"] == []


def test_j03_a_quote_counts_slices_machines_and_chips(dws: Door) -> None:
    """A slice of 32 machines would be called two, and paid as two."""
    told = dws.json("quote --tpu v5p-256 --count 2 --for 1h")["asked"]
    assert {k: told[k] for k in ("topology", "slices", "count", "machine", "accelerators", "cost")} == {
        "topology": "4x4x8", "slices": 2, "count": 64, "machine": "ct5p-hightpu-4t", "accelerators": 256,
        "cost": "537.60",
    }  # fmt: skip
    assert "2 x 4x4x8 (64 x ct5p-hightpu-4t, 256 chips)" in dws("quote --tpu v5p-256 --count 2 --for 1h").stdout
    dws("submit --tpu v5p-256 --count 2 --for 1h --name two")
    assert len(dws.hosts("two")) == 64
    dws("clock advance 1h")
    (line,) = dws.json("usage")["lines"]
    assert (line["seconds"], line["acceleratorS"], line["cost"]) == (64 * 3600, 256 * 3600, "537.60")


def test_j03_a_quote_of_a_slice_that_no_pod_serves_says_so_and_offers_slices(dws: Door) -> None:
    """One 4x8 of v6e would be quoted as one accelerator of no machine, with single GPUs in its place."""
    told = dws.json("quote --tpu v6e --topology 8x8 --for 1h")
    assert "no pod of this fleet serves 'v6e' 8x8" in told["reason"]["text"].format(**told["reason"]["facts"])
    asked = told["asked"]
    assert (asked["start"], asked["topology"], asked["slices"], asked["accelerators"]) == ("", "8x8", 1, 64)
    assert {(o["kind"], o["machine"], o["topology"], o["accelerators"]) for o in told["options"]} == {
        ("other-type", "ct5lp-hightpu-4t", "8x8", 64),
        ("other-type", "ct5p-hightpu-4t", "4x4x4", 64),
    }
    shown = dws("quote --tpu v5p --topology 12x12x12 --for 1h").stdout
    assert "1 x 12x12x12 (1728 chips)" in shown and "whole cubes up to 4x8x8" in shown


def test_j03_a_number_of_chips_that_several_slices_have_is_asked_back_by_a_quote(dws: Door) -> None:
    """The quote would say that it never starts, where asking for it says which slices there are."""
    for verb in ("quote", "submit"):
        told = dws(f"{verb} --accelerators v5p:256 --for 1h", fails=2).stderr
        assert "256 chips of v5p may be 4x8x8, 4x4x16; say which" in told


def test_a_slice_that_waits_for_maintenance_to_be_over_says_so(dws: Door) -> None:
    """It would be told that others are promised what nobody else wants."""
    dws("fleet maintenance plan fans v5e-1-r00-c00 --start 2027-01-11T11:00:00Z --for 4h --yes")
    dws("submit --tpu v5e --topology 8x8 --for 4h --name whole")
    assert re.search("or run into maintenance from .*11:00.*; fits from .*15:00", dws("queue").stdout)


def test_the_hosts_of_a_slice_in_the_way_are_told_in_short(dws: Door) -> None:
    """A slice of dozens of hosts would make a table that no terminal is wide enough for."""
    dws("submit --tpu v5e --topology 4x8 --for 4h --name half")
    shown = dws("fleet defrag --plan --tpu v5e --topology 8x8").stdout
    assert "v5e-1-r00-c00, v5e-1-r00-c02, v5e-1-r02-c00, v5e-1-r02-c02 and 4 more" in shown


def test_j03_what_would_start_sooner_is_a_slice_too(dws: Door) -> None:
    """Who waits for a slice would be offered chips that are none."""
    dws("submit --tpu v5e --topology 4x4 --for 9h --name small")
    options = dws.json("quote --tpu v5e --topology 8x8 --for 1h")["options"]
    assert {(o["kind"], o["topology"], o["slices"], o["count"]) for o in options} == {
        ("smaller", "4x8", 1, 8),
        ("smaller", "4x4", 1, 4),
        ("other-type", "4x4x4", 1, 16),
    }


def test_whose_work_stands_in_the_way_of_a_slice_is_told(dws: Door) -> None:
    """An operator would be told to end work that is not in the way, or that a cube moves where none is free."""
    for name, topology, hours in (("part", "2x2x4", 2), ("cube", "4x4x4", 3), ("wide", "4x4x8", 9)):
        dws(f"submit --tpu v5p --topology {topology} --for {hours}h --name {name}")
    (room,) = dws.json("fleet defrag --plan --tpu v5p --topology 4x8x8")["rooms"]
    assert (room["places"], room["inTheWay"]) == (["pod2"], [])
    dws("submit --tpu v5p --topology 4x8x8 --for 20h --name all")
    (room,) = dws.json("fleet defrag --plan --tpu v5p --topology 4x8x8")["rooms"]
    named = {w["request"]: (w["accelerators"], w["fitsElsewhere"]) for w in room["inTheWay"]}
    assert room["places"] == ["pod1"]
    assert named == {"part": (16, False), "cube": (64, False), "wide": (128, False)}


def test_ranks_follow_the_mesh_and_programs_are_told(dws: Door) -> None:
    """A program would take machines for neighbours that are not, or not know its slice."""
    dws("submit --tpu v5e --topology 4x8 --count 2 --for 1h --name two")
    grant = dws.json("describe two")["grant"]
    assert (grant["topology"], grant["slices"], grant["machine"]) == ("4x8", 2, "ct5lp-hightpu-4t")
    assert [(i["rank"], i["slice"], i["worker"]) for i in grant["instances"]] == [
        (n, n // 8, n % 8) for n in range(16)
    ]
    for number in range(2):
        at = [tuple(int(n) for n in re.findall(r"\d\d", i["host"])) for i in grant["instances"]]
        mine = at[8 * number : 8 * number + 8]
        row, column = mine[0]
        assert mine == [(row + r, column + c) for r in (0, 2) for c in (0, 2, 4, 6)]
    told = dws("describe two").stdout
    assert "2 x 4x8, 16 x ct5lp-hightpu-4t in us-central1-a (pool v5e)" in told
    assert "RANK  SLICE  WORKER  HOST" in told
    orders = [o for o in dws.orders if o.request_name == "two"]
    environments = [i.environment for o in orders for i in o.instances]
    assert environments == [
        {
            "TPU_TOPOLOGY": "4x8",
            "TPU_WORKER_ID": str(n % 8),
            "MEGASCALE_SLICE_ID": str(n // 8),
            "MEGASCALE_NUM_SLICES": "2",
        }
        for n in range(16)
    ]


# --- a slice is one thing -----------------------------------------------------------------------


def test_h03_a_slice_that_loses_a_host_ends_as_a_whole(dws: Door) -> None:
    """Three of four hosts would stay held, or be given to others while the fourth is dead."""
    dws("submit --tpu v5e --topology 4x4 --for 4h --name gone --on-host-loss end")
    lost = dws.hosts("gone")[1]
    dws(f"fleet outage {lost} --yes")
    assert (dws.state("gone"), dws.hosts("gone")) == ("FAILED", [])
    (pool,) = (p for p in dws.json("fleet")["pools"] if p["name"] == "v5e")
    assert (pool["free"], pool["down"]) == (15, 1)


def test_h03_a_slice_moves_as_a_whole(dws: Door) -> None:
    """One host of a slice would be replaced by one that is no neighbour of the others."""
    dws("submit --tpu v5e --topology 4x4 --for 4h --name moves --on-host-loss replace")
    before = dws.hosts("moves")
    effect = dws.json(f"fleet outage {before[3]} --dry-run")["affected"][0]["effect"]
    assert effect == "ends and goes back in line, being a slice (on-host-loss: replace)"
    dws(f"fleet outage {before[3]} --yes")
    after = dws.hosts("moves")
    assert dws.state("moves") == "ACTIVE"
    assert len(after) == 4 and not set(after) & set(before)
    dws("submit --tpu v5e --topology 2x4 --for 1h --name beside")
    assert set(dws.hosts("beside")) < set(before), "what is left of the torn square serves smaller slices"


def test_g_a_slice_is_given_back_as_a_whole(dws: Door) -> None:
    """Half a slice would be given back, and the other half be no slice any more."""
    dws("submit --tpu v5e --topology 4x4 --count 2 --for 4h --name two")
    before = dws.hosts("two")
    told = dws("release two --rank 5", fails=2).stderr
    assert "ranks: 5 is part of a 4x4 slice of 'two', which is given back as a whole: ranks 4 … 7" in told
    assert dws.hosts("two") == before
    dws("release two --rank 4 --rank 5 --rank 6 --rank 7")
    assert (dws.state("two"), dws.hosts("two")) == ("ACTIVE", before[:4])
    dws("submit --tpu v5e --topology 4x4 --for 1h --name next")
    assert dws.state("next") == "ACTIVE"


@pytest.mark.parametrize("is_lost_last", [False, True])
def test_g_a_slice_that_is_given_back_comes_free_at_once(is_lost_last: bool) -> None:
    """Half a slice would be given to others while the rest is still being taken down, or be held for ever when
    its last host is lost meanwhile."""
    backend = SimulatedBackend(faults=Faults(release_s=600))
    world = World(fleetfile.parse(FLEET), backend=backend)
    two = Alternative(accelerator="v5e", topology="4x4", count=2, duration_s=4 * H)
    world.submit("two", alternatives=(two,))
    hosts = world.hosts_of("two")
    world.release("two", ranks=(4, 5, 6, 7))
    key = f"{world.request('two').id}-1"

    def gone(*ranks: int) -> None:
        for rank in ranks:
            backend.say(FactKind.GONE, key, rank)
        world.advance(seconds=1)

    if is_lost_last:
        gone(5, 6, 7)
        assert world.booked_hosts() == 8
        world.hosts("DOWN", hosts[4])
        assert world.booked_hosts() == 4 + 1, "four that run, and the outage"
    else:
        world.hosts("DOWN", hosts[4])
        gone(5, 6)
        assert world.booked_hosts() == 8
        gone(7)
        assert world.booked_hosts() == 4 + 1
    world.check()


# --- the order of placement ---------------------------------------------------------------------


def test_j04_any_slice_of_a_size_comes_from_what_is_cut_already(dws: Door) -> None:
    """A whole square would be cut for a small slice while another has room beside what runs."""
    dws("submit --tpu v5e --topology 2x4 --for 4h --name first")
    dws("submit --accelerators v5e:8 --for 4h --name any")
    dws("submit --accelerators v5e:4 --for 4h --name small")
    grants = [dws.json(f"describe {name}")["grant"] for name in ("first", "any", "small")]
    assert [g["topology"] for g in grants] == ["2x4", "2x4", "2x2"]
    at = [{tuple(int(n) // 4 for n in re.findall(r"\d\d", h)) for h in dws.hosts(n)} for n in ("first", "any")]
    assert at[0] == at[1] and len(at[0]) == 1, "the same square of 4x4"
    dws("submit --tpu v5e --topology 4x4 --count 2 --for 4h --name squares")
    assert dws.state("squares") == "ACTIVE"


def test_j05_slices_of_one_request_are_of_one_kind(dws: Door) -> None:
    """A multislice would be given slices of two kinds of TPU."""
    dws("submit --tpu v5e --topology 4x4 --for 9h --name one")
    dws('submit --tpu v5e --topology 4x4 --count 4 --for 1h --name four')
    assert dws.state("four") in ("PENDING", "BOOKED")
    dws.run(
        *("submit", "--tpu", "v5e", "--topology", "4x4", "--count", "4", "--for", "1h", "--name", "either"),
        *("--or", "v5p:4 2x2x4"),
    )
    grant = dws.json("describe either")["grant"]
    assert (grant["topology"], grant["slices"], grant["pool"]) == ("2x2x4", 4, "v5p")


def test_j06_small_slices_share_a_square_so_that_a_large_one_fits(dws: Door) -> None:
    """Two small slices in two halves of the pod would keep the large one out."""
    for name, topology in (("a", "2x4"), ("b", "2x4"), ("c", "4x4"), ("d", "4x8")):
        dws(f"submit --tpu v5e --topology {topology} --for 4h --name {name}")
        assert dws.state(name) == "ACTIVE"
    (pool,) = (p for p in dws.json("fleet")["pools"] if p["name"] == "v5e")
    assert pool["free"] == 0


# --- what is said -------------------------------------------------------------------------------


def test_l03_the_reason_speaks_of_slices_and_chips(dws: Door) -> None:
    """Who waits for a slice would be told of free hosts, enough of them, and not understand."""
    dws("submit --tpu v5e --topology 4x4 --for 4h --name one")
    dws("submit --tpu v5e --topology 8x8 --for 1h --name all")
    assert (
        "needs 1 x 8x8; v5e has free chips: 48, largest free rectangle 4x8; fits from Mon 11 Jan 13:00 UTC"
        in dws("queue").stdout
    )
    dws("submit --tpu v5p --topology 4x4x4 --count 5 --for 2h --name cubes")
    dws("submit --tpu v5p --topology 4x4x8 --count 2 --for 1h --name pairs")
    assert "needs 2 x 4x4x8; v5p has free chips: 192, largest free slice 4x4x12, room for 1;" in dws("queue").stdout
    dws("submit --tpu v5e --topology 4x8 --for 9h --name long")
    assert "has room for 1 x 4x8 now, but 1 for 9h would delay what is promised" in dws("queue").stdout


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("--tpu v5p --topology 4x4x8 --within cube", "the largest cube of v5p has no room for one"),
        ("--tpu v5e --topology 4x8 --count 3", "asked for 3 x 4x8, the largest pool of v5e has room for 2"),
        ("--tpu v5p --topology 4x8x8 --count 3", "asked for 3 x 4x8x8, the largest pool of v5p has room for 2"),
    ],
)
def test_c01_more_slices_than_there_can_ever_be_are_refused_with_what_fits(
    dws: Door, asked: str, told: str
) -> None:
    """A slice larger than any pod would wait for ever."""
    assert told in dws(f"submit {asked} --for 1h", fails=3).stderr


def test_j_the_fleet_tells_the_largest_slice_of_each_pod(dws: Door) -> None:
    """An operator would see half of a pod free, and not that no large slice fits in it."""
    for number in range(3):
        dws(f"submit --tpu v5e --topology 4x4 --for 1h --name q{number}")
    dws("submit --tpu v5p --topology 2x2x1 --for 1h --name tiny")
    shown = dws("fleet show").stdout
    assert "v5e: whole hosts 4; largest slice 4x4" in shown
    assert "v5p: whole hosts 127; by pod: 63 in pod1, 64 in pod2; by cube: " in shown
    assert "15 in cube1, 16 in cube2" in shown
    assert "largest slice 4x4x12 in pod1, 4x8x8 in pod2" in shown
    dws("release q0")
    pools = {p["name"]: p for p in dws.json("fleet show")["pools"]}
    assert pools["v5e"]["largestSlices"] == {"pod1": "4x4"}, "two squares corner to corner are no rectangle"
    measured = dws.served.owner.get("/metrics").text
    assert 'dws_slice_fragmentation{pool="v5e",topology="4x4"} 0.0' in measured
    assert 'dws_slice_fragmentation{pool="v5e",topology="4x8"} 1.0' in measured
    assert 'dws_largest_free_slice_chips{pool="v5p"} 256.0' in measured
