"""Group L: quotes, expected starts, reasons, through the engine."""

from __future__ import annotations

import pytest

from dws.model import events as ev
from dws.model.errors import FailedPrecondition
from dws.model.request import RequestState
from dws.planner.options import PolicyOptions
from tests.scenarios.world import MONDAY_9, OPERATOR, H, World, f1, f2

S = RequestState


def test_l01_a_quote_changes_nothing_and_comes_true() -> None:
    """A question could hold capacity, or its answer be wrong when nothing changed."""
    world = World(f1())
    world.submit("half", gpus=16, hours=3)
    world.submit("rest", gpus=16, hours=2)
    before = world.everything()
    quotes = [world.quote(gpus=16, hours=4) for _ in range(50)]
    assert world.everything() == before
    assert all(q == quotes[0] for q in quotes)
    quote = quotes[0]
    assert quote.asked.start == MONDAY_9 + 2 * H
    assert quote.asked.end == MONDAY_9 + 6 * H
    assert quote.asked.cost_micros == 16 * 4 * 4_200_000
    assert any(o.start == MONDAY_9 and o.kind == "smaller" for o in quote.options) is False
    world.submit("asked", gpus=16, hours=4)
    assert world.expected_start("asked") == quote.asked.start
    world.advance(hours=2)
    assert world.started_at("asked") == quote.asked.start


def test_l02_everyone_who_waits_is_told_when_or_why_not() -> None:
    """Only the head of the line could know when it starts."""
    world = World(f2(), PolicyOptions(never_fits="wait", warning_leads_s=()))
    world.submit("busy", gpus=32, hours=2)
    for i in range(10):
        world.submit(f"w{i}", gpus=8 * (1 + i % 4), hours=1 + i % 3)
    world.submit("huge", gpus=64, hours=1)
    told = world.engine.queue(OPERATOR)
    assert len(told) == 11
    assert [v.forecast.place for v in told] == list(range(1, 12))  # type: ignore[union-attr]
    for view in told:
        assert view.forecast is not None
        assert view.forecast.reason.text
        if view.request.name == "huge":
            assert view.forecast.expected_start is None
        else:
            assert view.forecast.expected_start is not None
            assert view.forecast.expected_start >= world.now()


def test_l03_one_reason_in_plain_words() -> None:
    """A person could be left with "pending" and no idea what to do."""
    world = World(f1())
    world.submit("busy", gpus=24, hours=2)
    world.submit("capacity", gpus=16, hours=1)
    world.submit("later", gpus=8, hours=1, not_before=MONDAY_9 + 10 * H)
    assert world.reason("capacity").split(":")[0] in ("NOT_ENOUGH_FREE", "NO_GROUP_WITH_ENOUGH_FREE")
    assert "2" in world.reason("capacity")
    assert world.reason("later").startswith("NOT_BEFORE")


def test_l04_waiting_is_not_running() -> None:
    """A request that waits could be shown with a start time."""
    world = World(f1())
    world.submit("busy", gpus=32, hours=2)
    waiting = world.submit("x", gpus=8, hours=1)
    assert waiting.state in (S.PENDING, S.BOOKED) and waiting.grant is None
    with pytest.raises(FailedPrecondition) as refused:
        world.release("x")
    assert "cancel" in refused.value.message


def test_shorter_requests_start_sooner() -> None:
    """A short request could wait behind a long one although it would be gone in time."""
    world = World(f1())
    world.submit("busy", gpus=24, hours=2)
    world.submit("head", gpus=32, hours=1)
    world.submit("long", gpus=8, hours=5)
    world.submit("short", gpus=8, hours=1)
    assert world.state("short") is S.ACTIVE
    assert world.state("long") is not S.ACTIVE


def test_a_promise_never_slips_whatever_arrives() -> None:
    """What was told once could be taken back when someone else arrives."""
    world = World(f1())
    world.submit("busy", gpus=32, hours=2)
    told = {}
    for i in range(12):
        name = f"r{i}"
        world.submit(name, gpus=8 * (1 + (i * 7) % 4), hours=1 + (i * 5) % 4)
        for known in list(told):
            now = world.request(known)
            if now.promised_start:
                assert now.promised_start <= told[known]
                told[known] = now.promised_start
        if world.request(name).promised_start:
            told[name] = world.request(name).promised_start
    world.advance(hours=48)
    for name, promised in told.items():
        assert world.request(name).state is S.COMPLETED
        assert world.started_at(name) <= promised
    assert not world.events(ev.Moved)
    world.check()


def test_amending_keeps_the_age() -> None:
    """Changing the size of a waiting request could send it to the back of the line."""
    from dws.model.demand import Alternative, Demand

    world = World(f1())
    world.submit("busy", gpus=32, hours=2)
    first = world.submit("x", gpus=32, hours=4)
    world.advance(minutes=10)
    world.submit("y", gpus=32, hours=4)
    smaller = Demand(alternatives=(Alternative(accelerator="h100", count=24, duration_s=4 * H),))
    world.amend("x", demand=smaller)
    after = world.request("x")
    assert after.submitted_at == first.submitted_at
    assert world.view("x").forecast.place == 1  # type: ignore[union-attr]
    world.advance(hours=2)
    assert world.state("x") is S.ACTIVE
    with pytest.raises(FailedPrecondition):
        world.amend("x", demand=smaller)
    world.check()
