"""Group C: the flex queue, gangs and backfill, through the engine."""

from __future__ import annotations

import random

import pytest

from dws.model.demand import Alternative
from dws.model.errors import DwsError, FailedPrecondition, InvalidArgument, NeverFits
from dws.model.request import RequestState
from dws.planner.options import PolicyOptions
from tests.scenarios.world import MONDAY_9, H, World, f1, f2

ACTIVE, PENDING, BOOKED = RequestState.ACTIVE, RequestState.PENDING, RequestState.BOOKED


def test_c01_a_gang_larger_than_the_fleet_is_refused_and_delays_nobody() -> None:
    """A request that can never start would wait for ever, or block those behind it."""
    world = World(f1())
    with pytest.raises(NeverFits) as refused:
        world.submit("huge", gpus=40)
    assert "40" in refused.value.message and "32" in refused.value.message
    assert world.submit("small", gpus=8).state is ACTIVE
    world.check()


def test_c01_under_the_policy_wait_it_waits_says_so_and_delays_nobody() -> None:
    """The public service keeps such a request: it must say that it cannot fit, and hold nothing."""
    world = World(f1(), PolicyOptions(never_fits="wait"))
    world.submit("huge", gpus=40)
    assert world.submit("small", gpus=8).state is ACTIVE
    assert world.state("huge") is PENDING
    assert world.expected_start("huge") is None
    assert "NEVER_FITS" in world.reason("huge") and "40" in world.reason("huge")
    assert world.booked_hosts() == 1


def test_c02_all_or_nothing() -> None:
    """A gang could hold half of what it needs for hours, helping nobody."""
    world = World(f1())
    world.submit("first", hosts=2, hours=5)
    world.submit("gang", gpus=24, hours=1)
    world.advance(minutes=30)
    assert world.state("gang") in (PENDING, BOOKED)
    assert world.request("gang").grant is None
    assert world.booked_hosts() == 2
    assert world.submit("filler", gpus=16, hours=2).state is ACTIVE, "others may use what is free"
    world.check()


def test_c03_a_partly_provisioned_gang_is_given_back_and_keeps_its_age() -> None:
    """Three of four hosts could stay taken, or the request lose its place in line."""
    from dws.backends.simulated.backend import SimulatedBackend
    from dws.backends.simulated.faults import Faults

    world = World(f1(), backend=SimulatedBackend(faults=Faults(fail_ranks=((1, 3),))))
    submitted = world.submit("gang", hosts=4, hours=1)
    back = world.request("gang")
    assert back.state in (PENDING, BOOKED)
    assert back.submitted_at == submitted.submitted_at
    assert back.failures == 1 and back.last_failure
    assert world.booked_hosts() == 0
    assert world.view("gang").cost_micros == 0
    world.advance(minutes=5)
    assert world.state("gang") is ACTIVE
    assert world.request("gang").failures == 0 and world.request("gang").attempts == 2
    world.check()


def test_c04_backfill_may_not_delay_the_head() -> None:
    """The 32-GPU job at the head could be pushed back by a later, smaller one."""
    world = World(f1())
    world.submit("running", gpus=16, hours=2)
    world.submit("head", gpus=32, hours=4)
    assert world.submit("short", gpus=8, hours=1).state is ACTIVE
    assert world.submit("long", gpus=8, hours=3).state is not ACTIVE
    world.advance(hours=2)
    assert world.started_at("head") == MONDAY_9 + 2 * H
    world.check()


def test_c05_a_stream_of_small_jobs_does_not_starve_a_big_one() -> None:
    """A big gang could wait for ever behind a stream of small ones."""
    world = World(f1())
    for i in range(12):
        world.submit(f"s{i}", gpus=8, seconds=1800)
        world.advance(minutes=1)
    world.submit("big", gpus=32, hours=1)
    told = []
    behind_others = world.now()
    for i in range(12, 400):
        world.submit(f"s{i}", gpus=8, seconds=1800)
        world.advance(minutes=1)
        view = world.view("big")
        if view.request.grant is not None:
            break
        assert view.forecast is not None
        told.append(view.request.promised_start)
        if view.forecast.place > 1:
            behind_others = world.now()
    promises = [p for p in told if p]
    assert promises == sorted(promises, reverse=True), "a promise never moves later"
    assert world.started_at("big") <= behind_others + 60 + 1800, "the longest run before it, and a cycle"
    assert world.started_at("big") <= promises[0]


@pytest.mark.parametrize(("seconds", "legal"), [(599, False), (600, True), (7 * 86400, True), (7 * 86400 + 1, False), (0, False), (-5, False)])
def test_c06_bounds_on_the_run_time(seconds: int, legal: bool) -> None:
    """A run outside the policy's bounds could enter the queue."""
    world = World(f1(), PolicyOptions(run_duration_min_s=600))
    before = world.everything()
    if legal:
        world.submit("x", alternatives=(Alternative(accelerator="h100", count=8, duration_s=seconds),))
        return
    with pytest.raises(InvalidArgument) as refused:
        world.submit("x", alternatives=(Alternative(accelerator="h100", count=8, duration_s=seconds),))
    assert "duration" in refused.value.message.lower()
    assert world.everything() == before


def test_c07_cancel_in_the_instant_provisioning_starts() -> None:
    """A cancelled request could leave a host without an owner, or a busy one without a request."""
    for seed in range(500):
        rng = random.Random(seed)
        world = World(f1())
        world.submit("blocker", gpus=32, seconds=60)
        world.submit("x", gpus=rng.choice((8, 16, 32)), seconds=600)
        moves = [lambda: world.advance(seconds=60), lambda: world.release("blocker")]
        rng.shuffle(moves)
        actions = [moves[0], lambda: world.cancel("x")]
        rng.shuffle(actions)
        for action in actions:
            try:
                action()
            except FailedPrecondition as error:
                assert "already provisioned" in error.message
        world.advance(seconds=1)
        state = world.state("x")
        assert state in (RequestState.CANCELLED, ACTIVE)
        assert world.hosts_of("x") == [] or state is ACTIVE
        if seed % 50 == 0:
            world.check()


def test_c08_a_head_blocked_on_one_type_does_not_block_another() -> None:
    """An A100 request could wait behind an H100 one although its hosts are free."""
    world = World(f2())
    world.submit("busy", gpus=32, hours=10)
    world.submit("head", gpus=32, hours=1)
    assert world.submit("other", gpus=8, accelerator="a100").state is ACTIVE
    promised = world.request("head").promised_start
    assert promised == MONDAY_9 + 10 * H


@pytest.mark.parametrize("count", [0, -1])
def test_c09_a_request_for_nothing_is_refused(count: int) -> None:
    """Zero accelerators could be accepted and hold nothing for ever."""
    with pytest.raises(DwsError) as refused:
        World(f1()).submit("none", alternatives=(Alternative(accelerator="h100", count=count, duration_s=60),))
    assert "count" in refused.value.message
