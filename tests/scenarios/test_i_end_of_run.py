"""Group I: end of run, extension, warnings, through the engine."""

from __future__ import annotations

import pytest

from dws.backends.simulated.backend import SimulatedBackend
from dws.backends.simulated.faults import Faults
from dws.model import events as ev
from dws.model.errors import FailedPrecondition
from dws.model.request import EndReason, RequestState
from dws.model.resources import Overheads
from dws.planner.options import PolicyOptions
from tests.scenarios.world import ANN, MONDAY_9, H, World, f1

S = RequestState


def test_i01_each_warning_comes_once_and_in_time() -> None:
    """The owner could lose work because nobody said that the end was near."""
    world = World(f1(), PolicyOptions(warning_leads_s=(1800, 600, 60)))
    world.submit("x", gpus=8, hours=2)
    world.advance(hours=3)
    warned = [(e.body.lead_s, e.at) for e in world.events(ev.Warned)]  # type: ignore[union-attr]
    end = MONDAY_9 + 2 * H
    assert warned == [(1800, end - 1800), (600, end - 600), (60, end - 60)]


def test_i01_an_extension_moves_the_warnings() -> None:
    """Warnings could come for an end that has moved, and none for the new one."""
    world = World(f1(), PolicyOptions(warning_leads_s=(600,)))
    world.submit("x", gpus=8, hours=1)
    world.advance(minutes=10)
    world.extend("x", 1)
    world.advance(hours=3)
    assert [e.at for e in world.events(ev.Warned)] == [MONDAY_9 + 2 * H - 600]


def test_i02_a_slow_stop_does_not_eat_into_the_next_promise() -> None:
    """The next in line could find its hosts still busy with a run that ignores its signal."""
    world = World(f1(Overheads(grace_s=120, teardown_s=60)))
    world.submit("stubborn", gpus=32, hours=1)
    world.submit("next", gpus=32, hours=1)
    promised = world.request("next").promised_start
    assert promised == MONDAY_9 + H + 180
    world.advance(hours=1, minutes=5)
    assert world.started_at("next") <= promised
    world.check()


def test_i03_the_longest_possible_extension() -> None:
    """An extension could push back someone's promise, or be refused without saying what is possible."""
    world = World(f1())
    world.submit("run", gpus=32, hours=3)
    world.submit("next", gpus=32, hours=1, not_before=MONDAY_9 + 4 * H)
    assert world.request("next").promised_start == MONDAY_9 + 4 * H
    before = world.request("run").grant
    answer = world.extend("run", 3)
    assert (answer.applied_s, answer.extension.longest_s) == (0, H)
    assert answer.extension.reason is not None
    assert world.request("run").grant == before
    assert world.extend("run", 3, at_most=True).applied_s == H
    world.advance(hours=4)
    assert world.request("run").ended_at == MONDAY_9 + 4 * H
    assert world.started_at("next") == MONDAY_9 + 4 * H
    world.check()


def test_i04_the_run_clock_starts_when_the_whole_gang_is_up() -> None:
    """Boot time could be taken from the run, and billed."""
    backend = SimulatedBackend(boot_s=720)
    world = World(f1(Overheads(setup_s=1800)), backend=backend)
    world.submit("gang", hosts=4, hours=1)
    world.advance(minutes=11)
    assert world.state("gang") is S.PROVISIONING
    world.advance(minutes=2)
    grant = world.request("gang").grant
    assert grant is not None
    assert grant.delivered_at == grant.started_at + 720
    assert grant.ends_at == grant.delivered_at + H
    world.advance(hours=2)
    seconds = {line.seconds for line in world.engine.usage(ANN, start=0, end=2**40)}
    assert seconds == {4 * H}


def test_i05_a_host_is_not_shown_free_until_confirmed() -> None:
    """Hosts of a run whose agent is dead could be given to the next one while still in use."""
    backend = SimulatedBackend(faults=Faults(release_s=600))
    world = World(f1(), backend=backend)
    world.submit("x", gpus=32, hours=1)
    world.submit("next", gpus=32, hours=1)
    world.advance(hours=1, minutes=5)
    assert world.state("x") is S.ENDING and world.booked_hosts() == 4
    assert world.state("next") is not S.ACTIVE
    assert world.events(ev.Overran) and world.events(ev.Overran)[0].reason
    world.advance(minutes=6)
    assert world.state("x") is S.COMPLETED
    assert world.state("next") is S.ACTIVE
    world.check()


def test_i08_at_the_end_everything_is_gone_and_the_request_stays_readable() -> None:
    """Instances could outlive the run they were granted for."""
    world = World(f1())
    world.submit("x", hosts=2, hours=1)
    world.advance(hours=1)
    over = world.request("x")
    assert (over.state, over.end_reason) == (S.COMPLETED, EndReason.DURATION_REACHED)
    assert world.booked_hosts() == 0 and world.hosts_of("x") == []
    with pytest.raises(FailedPrecondition):
        world.release("x")
    world.check()


def test_an_early_release_starts_the_next_in_line_at_once_and_stops_the_bill() -> None:
    """Hosts given back early could stand idle, or be billed to the end."""
    world = World(f1())
    world.submit("x", gpus=32, hours=5)
    world.submit("next", gpus=32, hours=1)
    world.advance(hours=1)
    world.release("x")
    assert world.state("next") is S.ACTIVE
    assert world.started_at("next") == MONDAY_9 + H
    assert world.view("x").cost_micros == 32 * 4_200_000
    world.check()


def test_a_release_by_instance_frees_just_those_hosts() -> None:
    """Giving back two of four hosts could end the run of the others."""
    world = World(f1())
    world.submit("x", hosts=4, hours=2)
    world.submit("next", hosts=2, hours=1)
    world.advance(hours=1)
    world.release("x", ranks=(1, 3))
    assert world.state("x") is S.ACTIVE and len(world.hosts_of("x")) == 2
    assert world.state("next") is S.ACTIVE
    world.advance(hours=1)
    assert world.state("x") is S.COMPLETED
    assert world.view("x").cost_micros == (2 * 2 + 2 * 1) * 8 * 4_200_000
    world.check()
