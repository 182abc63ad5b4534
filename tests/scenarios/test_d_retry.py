"""Group D: waiting limits, retries, time-outs, through the engine."""

from __future__ import annotations

import pytest

from dws.backends.simulated.backend import SimulatedBackend
from dws.backends.simulated.faults import Faults
from dws.model import events as ev
from dws.model.request import EndReason, HostLossPolicy, RequestState
from dws.model.resources import Overheads
from dws.planner.options import PolicyOptions
from tests.scenarios.world import ANN, World, f1

S = RequestState


def test_d01_the_wait_limit_passes() -> None:
    """A request could start long after its owner stopped wanting it."""
    world = World(f1())
    world.submit("busy", gpus=32, hours=5)
    world.submit("x", gpus=8, hours=1, wait_s=1800)
    world.advance(minutes=31)
    over = world.request("x")
    assert (over.state, over.end_reason) == (S.EXPIRED, EndReason.WAIT_LIMIT)
    assert over.booking is None and len(world.events(ev.WindowClosed)) == 1
    world.release("busy")
    world.advance(hours=1)
    assert world.state("x") is S.EXPIRED, "a later free slot does not revive it"
    world.check()


def test_d02_shortage_retries_are_bounded() -> None:
    """A backend without capacity could be asked for ever more often, and the store fill with it."""
    backend = SimulatedBackend(faults=Faults(refuse="no capacity"))
    policy = PolicyOptions(retry_backoff_s=10, retry_backoff_max_s=600)
    world = World(f1(), policy, backend=backend)
    world.submit("x", gpus=8, hours=1)
    world.advance(hours=6)
    request = world.request("x")
    assert request.state.is_waiting and request.last_failure == "no capacity"
    assert request.submitted_at == world.now() - 6 * 3600
    per_hour = 3600 / 600
    assert 10 < request.attempts <= 6 * per_hour + 8
    assert len(world.story("x")) <= 4 * request.attempts + 3
    assert world.booked_hosts() == 0
    world.check()


def test_d05_one_planning_pass_for_a_release_not_one_for_each_waiting_request() -> None:
    """A freed host could set off thousands of wake-ups and backend calls."""
    backend = CountingBackend()
    world = World(f1(), backend=backend)
    world.submit("busy", gpus=32, hours=5)
    for i in range(200):
        world.submit(f"w{i}", gpus=32 if i != 150 else 8, hours=1)
    passes: list[float] = []
    world.engine._meters.planned = passes.append  # type: ignore[method-assign]
    asked = backend.provisioned
    world.release("busy", ranks=(0,))
    assert world.state("w150") is S.ACTIVE or world.request("w0").promised_start
    assert len(passes) <= 4
    assert backend.provisioned - asked <= 1


class CountingBackend(SimulatedBackend):
    """Counts what it is asked for."""

    provisioned = 0

    def provision(self, order):  # type: ignore[no-untyped-def]
        self.provisioned += 1
        return super().provision(order)


def test_d06_a_lost_wake_up_is_found_by_the_watchdog() -> None:
    """A request could wait for ever beside free hosts because one wake-up was lost."""
    world = World(f1(), PolicyOptions(full_plan_interval_s=600))
    engine = world.engine
    original = engine._plan
    engine._plan = lambda now: 0  # type: ignore[method-assign]
    world.submit("x", gpus=8, hours=1)
    engine._plan = original  # type: ignore[method-assign]
    engine._planned = engine.books.stirred  # what a lost wake-up looks like
    assert world.state("x") is S.PENDING
    world.advance(minutes=11)
    assert world.state("x") is S.ACTIVE
    assert any("wake-up" in e.body.what for e in world.events(ev.Noted))  # type: ignore[union-attr]


def test_d07_a_program_that_fails_is_not_run_again() -> None:
    """A crash in the user's code could be retried for ever at the user's expense."""
    world = World(f1())
    env = {"DWS_SIM_RUN_S": "60", "DWS_SIM_EXIT": "1"}
    world.submit("bad", gpus=8, hours=1, command=("train",), environment=env, on_host_loss=HostLossPolicy.REQUEUE)
    world.advance(minutes=5)
    over = world.request("bad")
    assert (over.state, over.end_reason, over.exit_code, over.attempts) == (
        S.FAILED,
        EndReason.PROGRAM_FAILED,
        1,
        1,
    )
    assert "status 1" in over.end_message


def test_d07_out_of_memory_is_a_program_that_fails() -> None:
    """The documented rule for 137: never looped."""
    world = World(f1())
    env = {"DWS_SIM_RUN_S": "60", "DWS_SIM_EXIT": "137"}
    world.submit("oom", gpus=8, hours=1, command=("train",), environment=env)
    world.advance(minutes=5)
    assert (world.state("oom"), world.request("oom").exit_code) == (S.FAILED, 137)


def test_d07_a_lost_node_is_retried() -> None:
    """A host that dies is not the user's fault: the request goes back in line with its age."""
    world = World(f1())
    world.submit("good", gpus=16, hours=2, on_host_loss=HostLossPolicy.REQUEUE)
    first = world.request("good")
    world.hosts("DOWN", world.hosts_of("good")[0])
    again = world.request("good")
    assert again.state is S.ACTIVE and again.attempts == 2
    assert again.submitted_at == first.submitted_at
    world.check()


def test_d08_each_phase_has_its_own_limit() -> None:
    """Time in the queue could be counted against provisioning or the run."""
    backend = SimulatedBackend(faults=Faults(silent_attempts=1))
    world = World(f1(Overheads(setup_s=300)), backend=backend)
    world.submit("busy", gpus=32, hours=2)
    world.advance(hours=1)
    # the blocker itself was silent once: its failure names phase and limit
    failed = world.events(ev.DeliveryFailed)[0]
    assert failed.reason == "provisioning" and "300 s" in failed.body.cause  # type: ignore[union-attr]
    assert world.state("busy") is S.ACTIVE
    used = {line.kind: line for line in world.engine.usage(ANN, start=0, end=world.now())}
    assert used["FAILED_ATTEMPT"].seconds == 4 * 300 and used["FAILED_ATTEMPT"].cost_micros == 0
    world.submit("next", gpus=32, hours=1)
    world.advance(hours=3)
    grant = world.request("next").grant
    assert grant is not None
    assert grant.ends_at - grant.delivered_at == 3600, "the run limit starts at delivery"


@pytest.mark.parametrize("policy", [HostLossPolicy.END, HostLossPolicy.REQUEUE, HostLossPolicy.REPLACE])
def test_h03_a_node_fails_mid_run(policy: HostLossPolicy) -> None:
    """Three of four hosts could be shown as a healthy gang."""
    fleet = f1()
    world = World(fleet)
    world.submit("gang", hosts=3, hours=2, on_host_loss=policy)
    world.advance(minutes=40)
    ends_at = world.request("gang").grant.ends_at  # type: ignore[union-attr]
    lost = world.hosts_of("gang")[2]
    world.hosts("DOWN", lost)
    after = world.request("gang")
    if policy is HostLossPolicy.END:
        assert (after.state, after.end_reason) == (S.FAILED, EndReason.HOST_LOST)
        assert lost in after.end_message and world.booked_hosts() == 1, "only the outage is left"
    elif policy is HostLossPolicy.REQUEUE:
        assert after.state is S.ACTIVE and after.attempts == 2
        assert lost not in world.hosts_of("gang")
    else:
        assert after.state is S.ACTIVE and after.attempts == 1
        assert after.grant is not None and after.grant.ends_at == ends_at, "the time that remains"
        assert len(world.hosts_of("gang")) == 3 and lost not in world.hosts_of("gang")
    world.advance(hours=3)
    assert world.request("gang").state.is_terminal
    world.check()
