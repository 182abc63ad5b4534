"""Group A: names and idempotency, through the engine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from dws.model import events as ev
from dws.model.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument, NotFound
from dws.model.names import derive_name
from dws.model.request import RequestState
from tests.scenarios.world import ANN, World, f1

S = RequestState


def test_a01_the_same_create_sent_five_times_makes_one_request() -> None:
    """A retried call could book, and bill, twice."""
    world = World(f1())
    first = world.submit("train-a", gpus=8, hours=1, call_id="R")
    with ThreadPoolExecutor(5) as pool:
        again = list(pool.map(lambda _: world.submit("train-a", gpus=8, hours=1, call_id="R"), range(5)))
    assert {r.id for r in again} == {first.id}
    assert len(world.events(ev.Submitted)) == 1 and world.booked_hosts() == 1


def test_a01_the_same_request_id_with_another_body_is_an_error() -> None:
    """A reused id could answer with somebody else's request."""
    world = World(f1())
    world.submit("train-a", gpus=8, hours=1, call_id="R")
    before = world.everything()
    with pytest.raises(Conflict) as refused:
        world.submit("train-b", gpus=8, hours=1, call_id="R")
    assert refused.value.field == "requestId"
    assert world.everything() == before


def test_a02_a_second_create_of_a_name_is_refused_and_changes_nothing() -> None:
    """A duplicate could replace the first request or lose its place in line."""
    world = World(f1())
    world.submit("busy", gpus=32, hours=2)
    world.submit("train-a", gpus=8, hours=1)
    before = world.everything()
    for call_id in ("", "another"):
        with pytest.raises(AlreadyExists) as refused:
            world.submit("train-a", gpus=16, hours=1, call_id=call_id)
        assert "projects/p/requests/train-a" in refused.value.message
    assert world.everything() == before


def test_a04_a_name_is_free_at_once_after_deletion() -> None:
    """The history or the cost of an old request could be shown as the new one's."""
    world = World(f1())
    old = world.submit("train-a", gpus=8, hours=1)
    world.release("train-a")
    world.engine.delete(ANN, "p", "train-a")
    with pytest.raises(NotFound):
        world.request("train-a")
    new = world.submit("train-a", gpus=8, hours=1)
    assert new.id != old.id
    assert world.story("train-a")[0] == "Submitted" and "Deleted" not in world.story("train-a")
    assert world.view("train-a").cost_micros == 0


def test_a_request_that_runs_cannot_be_deleted() -> None:
    """Deleting a record could leave its hosts running without an owner."""
    world = World(f1())
    world.submit("x", gpus=8, hours=1)
    with pytest.raises(FailedPrecondition):
        world.engine.delete(ANN, "p", "x")


def test_a10_long_names_give_distinct_legal_children() -> None:
    """Two requests sharing their first 60 characters could get children of one name."""
    a, b = "a" * 60 + "one", "a" * 60 + "two"
    children = {derive_name(parent, str(i)) for parent in (a, b) for i in range(10)}
    assert len(children) == 20 and max(map(len, children)) <= 63
    world = World(f1())
    world.submit(a, gpus=8, seconds=60, array=3)
    world.submit(b, gpus=8, seconds=60, array=3)
    world.submit("a" * 63, gpus=8, seconds=60)
    with pytest.raises(InvalidArgument) as refused:
        world.submit("a" * 64, gpus=8, seconds=60)
    assert "63" in refused.value.message and refused.value.field == "name"


@pytest.mark.parametrize("name", ["Train", "1a", "a_b", "a-", "-a", "a b", "ä"])
def test_an_illegal_name_is_refused(name: str) -> None:
    """A name that no backend accepts could enter the queue."""
    world = World(f1())
    before = world.everything()
    with pytest.raises(InvalidArgument) as refused:
        world.submit(name, gpus=8, hours=1)
    assert refused.value.field == "name" and world.everything() == before


def test_an_array_is_many_requests_with_their_index() -> None:
    """A hundred small tasks could not be asked for in one call."""
    world = World(f1())
    world.submit("sweep", gpus=8, seconds=600, array=6)
    states = [world.state(f"sweep-{i}") for i in range(6)]
    assert states.count(S.ACTIVE) == 4
    assert {world.request(f"sweep-{i}").array for i in range(6)} == {"sweep"}
    assert [world.request(f"sweep-{i}").array_index for i in range(6)] == list(range(6))
    world.advance(minutes=21)
    assert {world.state(f"sweep-{i}") for i in range(6)} == {S.COMPLETED}
    world.check()
