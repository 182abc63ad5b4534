"""The auditor notices when fractions and slices go wrong: what is broken is the product alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dws.engine import planning, requests
from dws.engine.commands import Release, Reserve, Submit
from dws.model.booking import Part
from dws.model.catalog import MACHINE_TYPES, fractions_of
from dws.model.demand import Alternative, Demand
from dws.model.piece import Piece
from dws.model.request import Grant, HostLossPolicy
from dws.model.resources import Overheads
from dws.model.topology import Fleet, Pool, Zone
from dws.planner import resolve, slices
from dws.planner.hold import Hold
from dws.planner.options import PolicyOptions
from dws.simulator.breaking.outcome import Broken
from dws.simulator.breaking.people import ANN, Command
from dws.simulator.breaking.run import Run
from dws.simulator.breaking.scenario import Scenario, pods
from tests.simulation.test_sabotage import Patch, caught

SEEDS = range(40)


def a_run(pool: Pool) -> Run:
    """A world of one pool, without bad weather."""
    fleet = Fleet(zones=(Zone(name=pool.zone),), pools=(pool,))
    run = Run(
        Scenario(
            seed=0,
            fleet=fleet,
            policy=PolicyOptions(promise_slack=0.0),
            boot_s=0,
            boot_jitter_s=0,
            steps=0,
            storminess=0.0,
        )
    )
    run.begin()
    return run


def a_shared_pool() -> Pool:
    whole = MACHINE_TYPES["a3-highgpu-8g"]
    return Pool(
        name="pool0",
        zone="z1-a",
        shape=whole,
        backend="simulated",
        hosts=("h0", "h1"),
        host_units=8,
        fractions=fractions_of(whole),
    )


def ask(run: Run, name: str, wanted: Alternative, on_host_loss: HostLossPolicy | None = None) -> None:
    demand = Demand(alternatives=(wanted,))
    command = Submit(project="blue", name=name, demand=demand, on_host_loss=on_host_loss)
    run.command(Command(words=f"ann submits {name}", act=lambda e: e.submit(ANN, command), makes=1))
    run.tick()


def test_a_slot_given_to_two_is_noticed(monkeypatch: Patch) -> None:
    """Two programs could be told to use one GPU, and each find its memory taken."""
    monkeypatch.setattr(
        Pool, "slots_of", lambda pool, units: tuple(range(len(units))) if pool.is_shared else ()
    )
    caught(r"slot \d+ of .* was given to '.*' while '.*' holds it", seeds=SEEDS)


def test_a_machine_torn_over_two_hosts_is_noticed(monkeypatch: Patch) -> None:
    """A program could be given two GPUs that stand in different hosts."""
    run = a_run(a_shared_pool())
    held = planning._instances

    def moved(pool: Pool, booking: Any, piece: Piece, *more: Any) -> Any:
        parts = (Part(cell=0, count=1, units=(7,)), Part(cell=1, count=3, units=(8, 9, 10)))
        return held(pool, replace(booking, parts=parts), piece, *more)

    monkeypatch.setattr(planning, "_instances", moved)
    with pytest.raises(Broken, match=r"'a' is booked on \[.*\] and runs on \[.*\]"):
        ask(run, "a", Alternative(shape="a3-highgpu-2g", count=2, duration_s=300))


def test_too_small_a_machine_is_noticed(monkeypatch: Patch) -> None:
    """Who asked for four GPUs could get two, and be billed for four."""
    held = planning._instances

    def halves(pool: Pool, booking: Any, piece: Piece, *more: Any) -> Any:
        given = held(pool, booking, piece, *more)
        return tuple(replace(i, slots=i.slots[: len(i.slots) // 2]) if len(i.slots) > 1 else i for i in given)

    monkeypatch.setattr(planning, "_instances", halves)
    caught(r"a machine of '.*' has .*, not \d+ slots of one host", seeds=SEEDS)


def test_another_shape_than_asked_for_is_noticed(monkeypatch: Patch) -> None:
    """A whole host could be handed to who wanted a single GPU."""
    monkeypatch.setattr(resolve, "pieces_needed", lambda wanted, pool, held="": (wanted.count, pool.whole))
    monkeypatch.setattr(planning, "shape_for", lambda wanted, pool, held="": pool.shape)
    caught(r"wanted .* and got", seeds=SEEDS)


def test_a_slice_of_scattered_hosts_is_noticed(monkeypatch: Patch) -> None:
    """The chips of a slice could have no links to each other."""
    pieces = slices.pieces

    def anywhere(*args: Any) -> tuple[int, Piece]:
        count, piece = pieces(*args)
        return count * piece.span, Piece(size=piece.size)

    monkeypatch.setattr(slices, "pieces", anywhere)
    caught(r"is no whole block", seeds=SEEDS)


def test_cubes_of_two_pods_in_one_slice_are_noticed(monkeypatch: Patch) -> None:
    """Cubes that no optical switch joins could be called one slice."""
    pieces = slices.pieces

    def anywhere(*args: Any) -> tuple[int, Piece]:
        count, piece = pieces(*args)
        return count, Piece(span=piece.span, size=piece.size)

    run = a_run(pods("pool0", "ct5p-hightpu-4t", "4x4x8", 2, "z1-a", Overheads(), False))
    ask(run, "a", Alternative(accelerator="v5p-128", count=1, duration_s=300))
    monkeypatch.setattr(slices, "pieces", anywhere)
    with pytest.raises(Broken, match=r"a slice of '.*' of 2 cubes lies in pods"):
        ask(run, "b", Alternative(accelerator="v5p", topology="4x4x8", count=1, duration_s=300))


@pytest.mark.parametrize("mends", [True, False])
def test_a_slice_with_a_spare_host_is_noticed(monkeypatch: Patch, mends: bool) -> None:
    """A slice that lost a host could go on with one that stands elsewhere."""
    run = a_run(pods("pool0", "ct6e-standard-4t", "4x8", 1, "z1-a", Overheads(), False))
    wanted = Alternative(accelerator="v6e-16", count=1, duration_s=3_000)
    ask(run, "a", wanted, on_host_loss=HostLossPolicy.REPLACE)
    if not mends:
        monkeypatch.setattr(Grant, "is_torn_by_loss", False)
    run.backend.host_down("pool0", 1)
    if mends:
        run.tick()
        run.liveness()
        return
    with pytest.raises(Broken, match="was replaced, which tears its slice"):
        run.tick()


def test_a_slice_that_is_given_back_in_part_is_noticed(monkeypatch: Patch) -> None:
    """A slice could run on without some of its chips."""
    run = a_run(pods("pool0", "ct6e-standard-4t", "4x8", 1, "z1-a", Overheads(), False))
    ask(run, "a", Alternative(accelerator="v6e-8", count=2, duration_s=3_000))
    name = next(iter(run.auditor.requests.values())).name
    monkeypatch.setattr(requests, "_refuse_to_tear", lambda *args: None)
    part = Release(project="blue", name=name, ranks=(0, 1, 2))
    with pytest.raises(Broken, match=r"gave back ranks \[2\], which tears their slices"):
        run.command(Command(words="ann releases", act=lambda e: e.release(ANN, part)))


def test_a_reservation_with_part_of_a_machine_is_noticed(monkeypatch: Patch) -> None:
    """A reserved machine could stand with one half in each of two hosts."""
    run = a_run(a_shared_pool())
    ask(run, "a", Alternative(shape="a3-highgpu-1g", count=1, duration_s=7_200))
    book = Reserve(
        project="blue",
        name="block",
        alternative=Alternative(shape="a3-highgpu-4g", count=2, duration_s=3_600),
        start=run.now + 600,
    )
    run.command(Command(words="ann books", act=lambda e: e.reserve(ANN, book), makes=1))
    parts = Hold.parts

    def scattered(hold: Hold) -> tuple[Part, ...]:
        assert parts(hold)
        return (Part(cell=0, count=1, units=(7,)), Part(cell=1, count=7, units=tuple(range(8, 15))))

    monkeypatch.setattr(Hold, "parts", scattered)
    with pytest.raises(Broken, match="has part of a machine on"):
        run.pass_time(600)
