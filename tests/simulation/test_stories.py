"""What seeds once found, told by hand: the same trouble whatever the dice say.

Each story is a world of a few hosts, driven and audited as a seed's world is.
"""

from __future__ import annotations

from dataclasses import replace

from dws.engine.commands import Amend, Submit
from dws.model.catalog import MACHINE_TYPES
from dws.model.demand import Alternative, Demand
from dws.model.errors import NeverFits
from dws.model.request import Workload
from dws.model.resources import Overheads
from dws.model.time import FOREVER
from dws.model.topology import Domain, Fleet, Pool, Zone
from dws.planner.options import PolicyOptions
from dws.simulator.breaking.frail import Mood
from dws.simulator.breaking.model import Told
from dws.simulator.breaking.people import ANN, OLGA, Command
from dws.simulator.breaking.run import START, Run
from dws.simulator.breaking.scenario import Scenario

MACHINE = "e2-standard-4"
FOREVER_RUNNING = Workload(command=("train",), environment={"DWS_SIM_RUN_S": "100000"})


def a_run(hosts: int, *, teardown_s: int = 0) -> Run:
    pool = Pool(
        name="pool0",
        zone="z1-a",
        shape=MACHINE_TYPES[MACHINE],
        backend="simulated",
        hosts=tuple(f"pool0-h{n}" for n in range(hosts)),
        domains=(Domain(level="block", name="b0", first=0, size=hosts),),
        overheads=Overheads(setup_s=10, grace_s=0, teardown_s=teardown_s),
    )
    scenario = Scenario(
        seed=0,
        fleet=Fleet(zones=(Zone(name="z1-a"),), pools=(pool,)),
        policy=PolicyOptions(promise_slack=0.0),
        boot_s=0,
        boot_jitter_s=0,
        steps=0,
        storminess=0.0,
    )
    run = Run(scenario)
    run.begin()
    return run


def submit(run: Run, name: str, hosts: int, for_s: int, *, after_s: int = 0, until_s: int = 0) -> None:
    now = run.now
    ask = Submit(
        project="blue",
        name=name,
        demand=Demand(
            alternatives=(Alternative(shape=MACHINE, count=hosts, duration_s=for_s),),
            not_before=now + after_s,
            not_after=now + until_s if until_s else FOREVER,
        ),
        workload=FOREVER_RUNNING,
    )
    run.command(Command(words=f"ann submits {name}", act=lambda e: e.submit(ANN, ask), makes=1))


def told(run: Run, name: str) -> Told:
    return next(t for t in run.auditor.requests.values() if t.name == name)


def test_a_promise_is_kept_to_the_second_while_a_lease_runs_out() -> None:
    """Work that a busy store left half done could make everybody else late. (Seed 127.)"""
    run = a_run(3, teardown_s=60)
    submit(run, "first", 1, 60)
    submit(run, "second", 2, 60, after_s=63)
    run.tick()
    assert told(run, "second").promise == START + 63
    run.store.cue(Mood.BUSY, 1)
    run.pass_time(100)
    assert told(run, "first").phase == "ENDING", "what it gave back is not written yet"
    second = told(run, "second").held
    assert second is not None and second.started == START + 63
    run.liveness()
    assert told(run, "first").phase == told(run, "second").phase == "COMPLETED"


def test_what_a_shrunk_fleet_cannot_hold_may_not_wait_longer() -> None:
    """Somebody could be let wait for a fleet that there is no more. (Seed 195.)"""
    run = a_run(3)
    submit(run, "busy", 1, 100)
    submit(run, "whole", 3, 100, until_s=1_000)
    fleet = run._fleet()
    pool = fleet.pools[0]
    smaller = replace(pool, hosts=pool.hosts[:2], domains=(replace(pool.domains[0], size=2),))
    apply = Command(
        words="olga shrinks pool0",
        act=lambda e: e.apply_fleet(OLGA, replace(fleet, pools=(smaller,)), confirm=True),
    )
    run.command(apply)
    wait = Amend(project="blue", name="whole", wait_s=5_000)
    run.command(Command(words="amend wait", act=lambda e: e.amend(OLGA, wait), refusal=NeverFits))
    run.pass_time(1_001)
    assert told(run, "whole").phase == "EXPIRED"
    run.liveness()


def test_a_gang_on_a_host_that_came_back_unseen_is_lost() -> None:
    """A gang could be called running, and billed, on a host that was off while nobody could see it. (Seed 31.)"""
    run = a_run(2)
    submit(run, "train", 2, 3_000)
    run.tick()
    assert told(run, "train").phase == "ACTIVE"
    run.backend.faults = replace(run.backend.faults, unavailable=True)
    run.backend.host_down("pool0", 1)
    run.backend.host_up("pool0", 1)
    run.world.engine = run.world.new_engine()
    run.pass_time(100)
    run.backend.faults = replace(run.backend.faults, unavailable=False)
    run.tick()
    assert told(run, "train").phase != "ACTIVE"
    run.liveness()
    assert run.counts["InstanceLost"] == 1


def test_a_crash_after_each_write_loses_nobody() -> None:
    """A server that dies at the wrong write could forget a request or start it twice."""
    for writes in range(12):
        run = a_run(2)
        run.store.cue(Mood.DIES_AFTER if writes % 2 else Mood.DIES_WITHIN, writes)
        for name in ("a", "b", "c"):
            submit_again_if_it_died(run, name)
        run.pass_time(400)
        run.liveness()
        assert [told(run, name).phase for name in ("a", "b", "c")] == ["COMPLETED"] * 3
        assert run.counts["(crash)"] == 1, f"the process was to die at write {writes}"


def submit_again_if_it_died(run: Run, name: str) -> None:
    ask = Submit(
        project="blue",
        name=name,
        demand=Demand(alternatives=(Alternative(shape=MACHINE, count=2, duration_s=100),)),
        call_id=f"call-{name}",
    )
    run.command(
        Command(words=f"ann submits {name}", act=lambda e: e.submit(ANN, ask), call_id=ask.call_id, makes=1)
    )
