"""`dws simulate` without the command line: workloads, evaluations, and what is told of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dws.model.errors import InvalidArgument
from dws.planner.options import PolicyOptions
from dws.simulator import command, evaluating
from dws.simulator.traces import Job, Trace


def a_trace(*jobs: Job, capacity: int = 0) -> Trace:
    return Trace(source="by hand", unit="GPU", jobs=jobs, capacity=capacity)


def a_job(submit_s: int = 0, run_s: int = 100, size: int = 1, requested_s: int = 0, user: str = "") -> Job:
    return Job(submit_s=submit_s, run_s=run_s, requested_s=requested_s, size=size, user=user)


LINE = (a_job(0, 100, 4), a_job(10, 50, 2), a_job(10, 50, 2))
"""The first holds all four hosts for 100 s; the others then run side by side."""


def test_a_line_at_a_full_fleet_waits_exactly_as_long_as_it_must() -> None:
    """Figures of a simulation could be of something that never happened."""
    done = command.evaluate(a_trace(*LINE), hosts=4)
    assert (done.figures.requests, done.figures.wait_max, done.figures.makespan) == (3, 90, 150)
    assert done.figures.wait_mean == 60
    assert done.figures.utilisation == pytest.approx((400 + 200) / (4 * 150))
    assert done.offered_load == pytest.approx(600 / (4 * 10))


def test_the_fleet_is_the_traces_own_when_it_says_so() -> None:
    """A log that names its machine could be run on another one."""
    assert command.evaluate(a_trace(a_job(), capacity=7)).hosts == 7
    assert command.evaluate(a_trace(a_job(), capacity=7), hosts=3).hosts == 3


def test_a_fleet_of_unknown_size_is_asked_for() -> None:
    """A trace that does not name its machine could be run on a fleet of nothing."""
    with pytest.raises(InvalidArgument, match=r"by hand does not say how large .* give --hosts") as caught:
        command.evaluate(a_trace(a_job()))
    assert caught.value.field == "hosts"


@pytest.mark.parametrize("jobs", [(), (a_job(size=9),)])
def test_a_workload_of_which_nothing_fits_is_refused(jobs: tuple[Job, ...]) -> None:
    """Somebody who mistook the unit of sizes would get a division by zero."""
    with pytest.raises(InvalidArgument, match=rf"none of the {len(jobs)} jobs fits 8 hosts"):
        command.evaluate(a_trace(*jobs), hosts=8)


def test_what_is_larger_than_the_fleet_is_left_out_and_counted() -> None:
    """Half a workload could be missing and nobody told."""
    done = command.evaluate(replace(a_trace(a_job(), a_job(size=9)), skipped=3), hosts=8)
    assert (done.left_out, done.figures.requests) == (1, 1)
    assert ("Left out", "1 larger than the fleet, 3 that never ran") in command.as_lines(done)


def test_jobs_larger_than_owners_may_ask_are_run_all_the_same() -> None:
    """A simulation of a large machine would stop at its first large job."""
    done = command.evaluate(a_trace(a_job(size=3)), hosts=3, policy=PolicyOptions(instances_max=2))
    assert done.figures.requests == 1


@pytest.mark.parametrize("user", ["", "7", "Ann", "é", "a b", "x" * 200, "-", "eve@example.org"])
def test_any_users_name_makes_a_project(user: str) -> None:
    """A trace could stop in the middle because of somebody's name."""
    assert command.evaluate(a_trace(a_job(user=user)), hosts=1).figures.requests == 1
    assert evaluating.project_of(user) == evaluating.project_of(user) != evaluating.project_of(f"{user}1")


def test_estimates_are_the_traces_the_truth_or_up_to_three_times_it() -> None:
    """An evaluation could plan by lengths that owners cannot know."""
    jobs = [a_job(n, 100, 1, requested_s=1_000) for n in range(30)]

    def asked(estimates: evaluating.Estimates) -> set[int]:
        import random

        chance = random.Random(1)
        made = [evaluating.submission(job, estimates, chance) for job in jobs]
        assert {c.workload.environment["DWS_SIM_RUN_S"] for c in made if c.workload} == {"100"}
        return {c.demand.alternatives[0].duration_s for c in made}

    assert asked("requested") == {1_000} and asked("exact") == {100}
    slack = asked("slack")
    assert 100 <= min(slack) < max(slack) <= 300 and len(slack) > 10


def test_ending_early_gives_the_hosts_back_early() -> None:
    """Everyone would wait for what owners asked for, not for what they used."""
    line = (a_job(0, 100, 4, requested_s=5_000), a_job(1, 10, 4, requested_s=20))
    assert command.evaluate(a_trace(*line), hosts=4).figures.wait_max == 99


def test_the_policy_makes_a_difference() -> None:
    """Two policies would be compared and neither used."""
    jobs = (a_job(0, 1_000, 3), a_job(10, 1_000, 4), *(a_job(20 + n, 900, 1) for n in range(4)))
    waits = {
        depth: command.evaluate(a_trace(*jobs), hosts=4, policy=PolicyOptions(protected_depth=depth)).figures.wait_max
        for depth in (0, 1)
    }
    assert waits[0] != waits[1]


def test_the_same_seed_gives_the_same_figures() -> None:
    """Nobody could check another's figures."""
    trace = command.workload(command.GENERATED, hosts=16, jobs=150, seed=3)
    first, second = (command.evaluate(trace, estimates="slack", seed=3) for _ in range(2))
    assert first.figures == second.figures and first.figures.requests == 150


def test_blocks_hold_every_host_once() -> None:
    """The last block of a fleet that does not divide evenly could be missing."""
    pool = evaluating.one_pool(10, 4).pools[0]
    assert [(d.first, d.size) for d in pool.domains] == [(0, 4), (4, 4), (8, 2)]
    assert evaluating.one_pool(3, 0).pools[0].domains == ()


def test_workloads_come_from_files_or_are_made(tmp_path: Path) -> None:
    """`--jobs` could cut the wrong end, or `generated` be looked for as a file."""
    file = tmp_path / "t.csv"
    file.write_text("submit_s,run_s,gpus\n5,60,1\n0,60,2\n9,60,3\n")
    assert [j.size for j in command.workload(str(file), hosts=0, jobs=2).jobs] == [2, 1]
    assert len(command.workload(str(file), hosts=0).jobs) == 3
    made = command.workload(command.GENERATED, hosts=0, jobs=5, profile="helios", load=0.5, seed=9)
    assert (len(made.jobs), made.capacity) == (5, command.HOSTS)
    assert made.source == "generated like helios, seed 9, offered load 0.5"


def test_what_programs_are_told_is_what_people_are_told() -> None:
    """A script would compare other figures than those on the screen."""
    done = command.evaluate(a_trace(*LINE), hosts=4)
    data = json.loads(json.dumps(command.as_data(done)))
    assert set(data["figures"]) >= {"wait_mean", "slowdown_10", "utilisation", "promised", "late"}
    assert (data["hosts"], data["figures"]["wait_max"], data["leftOut"], data["skipped"]) == (4, 90, 0, 0)
    said = dict(command.as_lines(done))
    assert said["Wait"] == "mean 60 s, p95 90 s, longest 90 s"
    assert said["Workload"] == "by hand: 3 requests, sizes in GPUs"


def test_progress_is_told_job_by_job() -> None:
    """A long run would look stuck."""
    seen: list[int] = []
    command.evaluate(a_trace(*LINE), hosts=4, progress=seen.append)
    assert seen == [1, 2, 3]
