"""Group H: failures, restarts, node health, through the engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dws.backends.simulated.backend import SimulatedBackend
from dws.backends.simulated.faults import Faults
from dws.engine import fleet
from dws.engine.commands import ChangeHosts
from dws.engine.ports import Fact, FactKind
from dws.model import events as ev
from dws.model.errors import FailedPrecondition, Unavailable
from dws.model.request import HostLossPolicy, RequestState
from dws.model.topology import Fleet, HostState
from dws.planner.options import PolicyOptions
from dws.store.memory import MemoryStore
from tests.scenarios.world import MONDAY_9, OPERATOR, H, World, a_gpu_pool, f1

S = RequestState


def test_h01_a_restart_between_accept_and_provision() -> None:
    """A request accepted before a crash could be lost, provisioned twice, or lose its place."""
    world = World(f1())
    world.submit("busy", gpus=32, hours=1)
    for name in ("a", "b", "c"):
        world.submit(name, gpus=32, hours=1)
    before = [v.request.name for v in world.engine.queue(OPERATOR)]
    told = world.request("a").promised_start
    world.restart()
    assert [v.request.name for v in world.engine.queue(OPERATOR)] == before
    assert world.request("a").promised_start == told
    world.advance(hours=1)
    assert world.state("a") is S.ACTIVE
    assert world.story("a").count("Started") == 1
    world.check()


def test_h04_a_network_cut_kills_nothing_within_the_grace() -> None:
    """A cut of six minutes could end a healthy run."""
    world = World(f1(), PolicyOptions(unreachable_grace_s=600, warning_leads_s=()))
    world.submit("gang", hosts=4, hours=2)
    _see(world, FactKind.UNREACHABLE, "gang")
    assert world.request("gang").grant.unreachable_since == world.now()  # type: ignore[union-attr]
    world.advance(minutes=6)
    assert world.state("gang") is S.ACTIVE
    _see(world, FactKind.REACHABLE, "gang")
    world.advance(hours=1)
    grant = world.request("gang").grant
    assert grant is not None and grant.unreachable_since == 0 and grant.attempt == 1
    assert world.story("gang").count("Started") == 1


def test_h04_after_the_grace_the_policy_acts() -> None:
    """Instances unseen for ever could be shown as running for ever."""
    world = World(f1(), PolicyOptions(unreachable_grace_s=600, warning_leads_s=()))
    world.submit("gang", hosts=2, hours=2)
    _see(world, FactKind.UNREACHABLE, "gang")
    world.advance(minutes=11)
    assert world.state("gang") is S.FAILED
    assert "unreachable for" in world.request("gang").end_message


def _see(world: World, kind: FactKind, name: str) -> None:
    """The backend says something about every instance of a request."""
    from dws.engine.instances import granted, order_key
    from dws.engine.observing import take_in

    request = world.request(name)
    facts = tuple(
        Fact(kind=kind, key=order_key(request), rank=i.rank) for i in granted(request).instances
    )
    world.engine.committer.write(lambda w: take_in(w, facts, "simulated"), actor="backend:simulated")
    world.engine.tick()


def test_h05_one_host_that_never_answers_does_not_freeze_the_rest() -> None:
    """One bad host could stop everything else from starting and ending."""
    pool = a_gpu_pool("h100", 20, {"b1": 10, "b2": 10})
    backend = SimulatedBackend(faults=Faults(silent_units=(0,)))
    world = World(Fleet(zones=f1().zones, pools=(pool,)), backend=backend)
    for i in range(20):
        world.submit(f"r{i}", hosts=1, seconds=120)
    world.advance(minutes=5)
    done = [i for i in range(20) if world.state(f"r{i}") is S.COMPLETED]
    assert len(done) >= 19
    doubted = [h for h in world.engine.fleet(OPERATOR).pools[0].hosts if h.status.unreachable_since]
    assert [h.unit for h in doubted] == [0]


def test_h10_new_hardware_is_used_within_one_cycle() -> None:
    """An accelerator that appeared could stay unused, or old leases lose theirs."""
    small = a_gpu_pool("h100", 3, {"b1": 3})
    world = World(Fleet(zones=f1().zones, pools=(small,)))
    world.submit("old", hosts=3, hours=2)
    world.submit("next", hosts=1, hours=1)
    held = world.hosts_of("old")
    bigger = a_gpu_pool("h100", 4, {"b1": 4})
    world.engine.apply_fleet(OPERATOR, Fleet(zones=f1().zones, pools=(bigger,)), confirm=True)
    assert world.hosts_of("old") == held
    assert world.hosts_of("next") == ["h100-h4"]
    world.check()


def test_h10_a_host_in_use_cannot_be_taken_out_of_the_fleet() -> None:
    """Applying a fleet could pull a host from under running work."""
    world = World(f1())
    world.submit("all", hosts=4, hours=2)
    smaller = Fleet(zones=f1().zones, pools=(a_gpu_pool("h100", 2, {"b1": 2}),))
    before = world.everything()
    with pytest.raises(FailedPrecondition) as refused:
        world.engine.apply_fleet(OPERATOR, smaller, confirm=True)
    assert "h100-h4" in refused.value.message
    assert world.everything() == before


class FullDisk(MemoryStore):
    """A store that can be made read-only."""

    is_full = False

    def begin(self):  # type: ignore[no-untyped-def]
        if self.is_full:
            raise Unavailable("the store is read-only")
        return super().begin()


def test_h11_a_read_only_store_refuses_new_work_and_keeps_running_work() -> None:
    """A full disk could answer "accepted" to what is then lost."""
    store = FullDisk()
    world = World(f1(), store=store)
    world.submit("running", gpus=8, hours=1)
    before = world.everything()
    store.is_full = True
    with pytest.raises(Unavailable):
        world.submit("new", gpus=8, hours=1)
    assert world.everything() == before
    store.is_full = False
    world.advance(hours=1)
    assert world.state("running") is S.COMPLETED
    assert world.submit("new", gpus=8, hours=1).state is S.ACTIVE
    world.check()


def test_drain_lets_work_finish_and_starts_no_more() -> None:
    """A host taken out for service could get new work, or lose what runs on it."""
    world = World(f1())
    world.submit("on-it", hosts=1, hours=1)
    host = world.hosts_of("on-it")[0]
    change = world.hosts("DRAINING", host)
    assert [(a.request.name, a.effect) for a in change.affected] == [("on-it", "runs on to its end")]
    world.submit("rest", hosts=3, hours=5)
    world.advance(hours=2)
    assert world.state("on-it") is S.COMPLETED
    world.submit("more", hosts=1, hours=1)
    assert world.state("more") is not S.ACTIVE, "the drained host takes nothing new"
    world.hosts("READY", host)
    assert world.hosts_of("more") == [host]
    world.check()


def test_an_outage_moves_promises_openly() -> None:
    """A promise could be broken silently when hosts are lost."""
    world = World(f1())
    world.submit("busy", hosts=4, hours=1)
    world.submit("next", hosts=4, hours=1)
    told = world.request("next").promised_start
    idle_until = world.now() + 4 * 3600
    world.hosts("DOWN", "h100-h4", until=idle_until)
    moved = world.events(ev.Moved)
    assert [e.name for e in moved] == ["next"]
    assert moved[0].body.start >= idle_until > told  # type: ignore[union-attr]
    assert moved[0].body.cause  # type: ignore[union-attr]
    world.hosts("READY", "h100-h4")
    world.advance(hours=1)
    assert world.started_at("next") == MONDAY_9, "it starts as soon as it can all the same"
    world.check()


def test_an_outage_is_shown_before_it_is_confirmed() -> None:
    """An operator could end someone's run without having been told."""
    from dws.engine.commands import ChangeHosts

    world = World(f1())
    world.submit("run", hosts=2, hours=1, on_host_loss=HostLossPolicy.END)
    host = world.hosts_of("run")[0]
    before = world.everything()
    ask = ChangeHosts(hosts=(host,), state=HostState.DOWN.value, confirm=False)
    answer = world.engine.change_hosts(OPERATOR, ask)
    assert [a.request.name for a in answer.affected] == ["run"] and not answer.confirmed
    assert world.everything() == before


def test_an_outage_says_beforehand_whose_promise_moves() -> None:
    """An operator could push back someone's promised start without having been told."""
    from dws.engine.commands import ChangeHosts

    world = World(f1())
    world.submit("busy", hosts=4, hours=1)
    world.submit("next", hosts=4, hours=1)
    before = world.everything()
    until = world.now() + 4 * 3600
    ask = ChangeHosts(hosts=("h100-h4",), state="DOWN", until=until, confirm=False)
    answer = world.engine.change_hosts(OPERATOR, ask)
    told = {a.request.name: a.effect for a in answer.affected}
    assert told["next"] == f"its promised start moves {3 * 3600} s later"
    assert world.everything() == before


def test_k09_a_restart_does_not_readmit_finished_work() -> None:
    """Finished work could run again after a restart."""
    world = World(f1())
    for i in range(100):
        world.submit(f"done{i}", gpus=8, seconds=10)
    world.advance(hours=1)
    world.submit("busy", gpus=32, hours=5)
    for i in range(5):
        world.submit(f"wait{i}", gpus=32, hours=1)
    order = [v.request.name for v in world.engine.queue(OPERATOR)]
    world.restart()
    world.advance(minutes=1)
    assert all(world.state(f"done{i}") is S.COMPLETED for i in range(100))
    assert [v.request.name for v in world.engine.queue(OPERATOR)] == order
    world.check()


def test_h03_a_spare_may_have_been_somebody_elses_before() -> None:
    """A lost host could not be replaced by one that had worked for someone else since the run began."""
    world = World(f1())
    world.submit("long", hosts=3, hours=5, on_host_loss=HostLossPolicy.REPLACE)
    world.submit("short", hosts=1, hours=1)
    spare = world.hosts_of("short")[0]
    world.advance(hours=2)
    world.hosts("DOWN", world.hosts_of("long")[0])
    assert spare in world.hosts_of("long")
    world.advance(hours=4)
    assert world.state("long") is S.COMPLETED
    world.check()


def test_what_runs_on_a_host_called_down_is_ended_there() -> None:
    """A program could run on, on a host that is given to somebody else after its repair."""
    world = World(f1())
    world.submit("run", hosts=2, hours=5)
    lost = world.hosts_of("run")[0]
    world.hosts("DOWN", lost)
    world.hosts("READY", lost)
    assert dict(world.backend.holds()) == {}  # type: ignore[attr-defined]


def test_h03_a_refused_spare_ends_the_gang() -> None:
    """A backend that refuses a spare could be asked for the next one for ever."""
    world = World(f1())
    world.submit("run", hosts=2, hours=5, on_host_loss=HostLossPolicy.REPLACE)
    world.backend.faults = Faults(reject="not today")  # type: ignore[attr-defined]
    world.hosts("DOWN", world.hosts_of("run")[0])
    over = world.request("run")
    assert over.state is S.FAILED and "not today" in over.end_message
    world.check()


@pytest.mark.parametrize("policy", [HostLossPolicy.END, HostLossPolicy.REPLACE])
def test_h07_an_accelerator_that_goes_bad_in_a_run_is_told_and_its_host_kept_back(
    policy: HostLossPolicy,
) -> None:
    """Nobody would be told which device failed, and the next run would get it."""
    backend = SimulatedBackend()
    world = World(f1(), backend=backend)
    world.reserve("block", hosts=3, start=MONDAY_9, hours=9)
    world.submit("train", hosts=2, hours=5, reservation="block", on_host_loss=policy)
    world.advance(hours=1)
    bad = world.hosts_of("train")[1]
    key = f"{world.request('train').id}-1"
    backend.say(FactKind.FAILED_CHECK, key, 1, detail="GPU 3: XID 79")
    world.engine.tick()
    lost = next(e for e in world.events(ev.InstanceLost) if e.name == "train")
    assert isinstance(lost.body, ev.InstanceLost) and lost.body.host == bad
    assert "GPU 3: XID 79" in lost.body.cause
    host = next(e for e in world.events(ev.HostChanged) if e.name == bad)
    assert "GPU 3: XID 79" in host.reason, "who is on call sees host and device"
    expected = S.ACTIVE if policy is HostLossPolicy.REPLACE else S.FAILED
    assert world.state("train") is expected
    assert len(world.reserved("block").hosts) == 3 and bad not in world.reserved("block").hosts
    world.submit("next", hosts=1, hours=1)
    assert bad not in world.hosts_of("next")
    world.hosts("READY", bad)
    world.check()


def test_word_of_a_host_that_the_fleet_has_no_more_changes_nothing() -> None:
    """The server would choke on it, time after time, and never do anything again."""
    backend = SimulatedBackend()
    world = World(f1(), backend=backend)
    (pool,) = f1().pools
    smaller = replace(pool, hosts=pool.hosts[:3], domains=(pool.domains[0], replace(pool.domains[1], size=1)))
    backend.host_down("h100", 3)
    world.engine.committer.write(
        lambda w: fleet.apply(w, replace(f1(), pools=(smaller,)), ("smaller",)), actor="olga"
    )
    world.engine.tick()
    world.submit("all", hosts=3, hours=1)
    assert world.state("all") is RequestState.ACTIVE


def test_who_takes_hosts_down_is_told_which_reservations_lose_them() -> None:
    """An operator could take hosts from under a booked block, and hear of it from its owner."""
    world = World(f1())
    world.reserve("ahead", hosts=3, start=world.now() + 2 * H, hours=1)
    world.reserve("open", hosts=1, start=world.now() + 60, hours=1)
    world.advance(minutes=2)
    with world.store.read() as reader:
        booking = next(b for b in reader.open_bookings() if b.owner == world.reservation("open").id)
    hosts = world.engine.books.fleet.pools[0].hosts
    host, in_the_other_block = hosts[booking.units[0]], hosts[(booking.units[0] + 2) % 4]
    ask = ChangeHosts(hosts=(host, in_the_other_block), state="DOWN")
    told = {a.name: a.effect for a in world.engine.change_hosts(OPERATOR, ask).affected}
    assert told == {"open": f"loses {host}, unless others are free", "ahead": "would lack 1 of its 3"}
    drain = replace(ask, hosts=(host,), state="DRAINING")
    assert world.engine.change_hosts(OPERATOR, drain).affected == ()
