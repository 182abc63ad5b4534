"""What keeps a long-running server healthy: retention, verification, who may do what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dws.engine import timers
from dws.engine.commands import ChangeHosts, Release
from dws.model import events as ev
from dws.model.access import Principal, Role
from dws.model.booking import Part, Stage
from dws.model.errors import NotFound, PermissionDenied, Unauthenticated
from dws.model.request import RequestState
from dws.planner.options import PolicyOptions
from tests.scenarios.world import ANN, OPERATOR, H, World, f1

VIEWER = Principal(name="vic", role=Role.VIEWER)
STRANGER = Principal(name="sam", role=Role.USER, projects=("q",))
PASSER_BY = Principal(name="anonymous-local", role=Role.OPERATOR, may_run_programs=False)


def test_finished_requests_are_forgotten_and_their_usage_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store of a busy server could grow for ever, or a bill lose its lines."""
    monkeypatch.setattr(timers, "FORGET_BATCH", 3)
    world = World(f1(), PolicyOptions(retention_s=10 * 86_400, warning_leads_s=()))
    for i in range(8):
        world.submit(f"r{i}", gpus=8, seconds=600)
    world.advance(hours=12 * 24)
    for i in range(8):
        with pytest.raises(NotFound):
            world.request(f"r{i}")
    lines = world.engine.usage(ANN, start=0, end=world.now())
    assert sum(line.accelerator_s for line in lines) == 8 * 8 * 600
    world.check()


def test_what_still_runs_or_waits_is_never_forgotten() -> None:
    """A run longer than the retention could lose its record while it holds its hosts."""
    world = World(f1(), PolicyOptions(retention_s=3600, warning_leads_s=()))
    world.submit("long", gpus=32, hours=100)
    world.submit("waits", gpus=32, hours=1)
    world.advance(hours=90)
    assert world.state("long") is RequestState.ACTIVE
    assert world.request("waits").state.is_waiting
    world.check()


@pytest.mark.parametrize("broken", ["booking", "story", "double"])
def test_verify_finds_what_is_wrong(broken: str) -> None:
    """'dws ledger verify' could say that a broken ledger is whole."""
    world = World(f1())
    world.submit("a", hosts=2, hours=2)
    world.submit("b", hosts=1, hours=2)
    assert world.engine.verify(OPERATOR).faults == ()
    with world.store.begin() as tx:
        request = world.request("a")
        booking = tx.booking(request.booking or 0)
        assert booking is not None
        if broken == "booking":
            tx.put_booking(replace(booking, stage=Stage.ENDED, version=booking.version + 1))
        elif broken == "story":
            tx.put_request(replace(request, priority=7, version=request.version + 1))
        else:
            more = (*booking.parts, Part(cell=1, count=9))
            tx.put_booking(replace(booking, parts=more, version=booking.version + 1))
    faults = world.engine.verify(OPERATOR).faults
    assert faults and all(isinstance(f, str) for f in faults)


def test_a_viewer_looks_and_changes_nothing() -> None:
    """A read-only token could cancel someone's run."""
    world = World(f1())
    world.submit("x", gpus=8, hours=1)
    before = world.everything()
    assert world.engine.get(VIEWER, "p", "x").request.name == "x"
    with pytest.raises(PermissionDenied):
        world.engine.release(VIEWER, Release(project="p", name="x"))
    with pytest.raises(PermissionDenied):
        world.engine.change_hosts(ANN, ChangeHosts(hosts=("h100-h1",), state="DOWN", confirm=True))
    assert world.everything() == before


def test_a_user_of_one_project_neither_sees_nor_touches_another() -> None:
    """One team could read or release what another team holds."""
    world = World(f1())
    world.submit("x", gpus=8, hours=1)
    with pytest.raises(PermissionDenied):
        world.engine.get(STRANGER, "p", "x")
    with pytest.raises(PermissionDenied):
        world.engine.release(STRANGER, Release(project="p", name="x"))
    told = world.engine.events(STRANGER, limit=1000)
    assert not [e for e in told if e.project == "p"]
    assert world.engine.usage(STRANGER, start=0, end=world.now() + 1) == ()


def test_without_a_token_no_program_runs() -> None:
    """A web page, or anyone on this machine, could run a command as the server's user."""
    world = World(f1())
    before = world.everything()
    with pytest.raises(Unauthenticated) as refused:
        world.submit("x", gpus=8, hours=1, command=("sh", "-c", "true"), who=PASSER_BY)
    assert "token" in refused.value.message
    assert world.everything() == before
    assert world.submit("held", gpus=8, hours=1, who=PASSER_BY).state is RequestState.ACTIVE


def test_every_change_says_who_and_why() -> None:
    """Nobody could find out who took a host down or released a run (invariant 4)."""
    world = World(f1())
    world.submit("x", gpus=8, hours=1)
    world.submit("y", gpus=8, hours=1)
    world.release("x")
    world.engine.change_hosts(
        OPERATOR, ChangeHosts(hosts=(world.hosts_of("y")[0],), state="DOWN", reason="fan", confirm=True)
    )
    by_kind = {e.kind: e for e in world.engine.events(OPERATOR, limit=1000)}
    assert (by_kind["HostChanged"].actor, by_kind["HostChanged"].reason) == ("olga", "fan")
    ended = list(world.events(ev.Ended))
    assert [(e.name, e.actor) for e in ended] == [("x", "ann"), ("y", "olga")]
    assert all(e.reason for e in ended) and "fan" in ended[1].reason
    assert all(e.at and e.actor for e in world.engine.events(OPERATOR, limit=1000))


def test_time_does_not_move_for_a_user() -> None:
    """Anyone could move a shared virtual clock."""
    world = World(f1())
    with pytest.raises(PermissionDenied):
        world.engine.advance(ANN, H)
