"""Group J: closeness, shapes, mixed hardware, through the engine."""

from __future__ import annotations

import pytest

from dws.model.demand import Alternative
from dws.model.errors import InvalidArgument
from dws.model.request import RequestState
from tests.scenarios.world import World, f1, f2

S = RequestState


def test_j01_one_block_needed_and_the_free_hosts_are_split() -> None:
    """A gang that must share a block could be torn over two."""
    world = World(f1())
    world.submit("a", hosts=1, hours=5)
    world.submit("b", hosts=2, hours=5, within="block")
    assert len(set(world.hosts_of("b"))) == 2
    world.release("b", ranks=(0,))
    world.submit("x", gpus=16, hours=1, within="block")
    assert world.state("x") is not S.ACTIVE
    reason = world.reason("x")
    assert "block" in reason and "2" in reason and "1" in reason
    assert world.submit("anywhere", gpus=16, hours=1).state is S.ACTIVE


@pytest.mark.parametrize(
    ("alternative", "field", "told"),
    [
        ({"shape": "a3-highgpu-9g", "count": 1}, "machine", "a3-highgpu-8g"),
        ({"accelerator": "h101", "count": 8}, "accelerator", "h100"),
        ({"accelerator": "h100", "count": 8, "locations": ("z9",)}, "location", "z1"),
        ({"accelerator": "h100", "count": 8, "within": "rack"}, "within", "block"),
    ],
)
def test_j03_what_is_not_offered_is_refused_with_what_is(alternative: dict, field: str, told: str) -> None:
    """A misspelt shape, type, place or level could wait for ever."""
    world = World(f1())
    before = world.everything()
    with pytest.raises(InvalidArgument) as refused:
        world.submit("x", alternatives=(Alternative(duration_s=60, **alternative),))
    assert field in refused.value.message.lower() or field in (refused.value.field or "")
    assert told in refused.value.message
    assert world.everything() == before


def test_j05_a_gang_never_mixes_types() -> None:
    """A gang could be given H100 and A100 hosts together."""
    world = World(f2())
    world.submit("part", hosts=3, hours=5)
    either = (
        Alternative(accelerator="h100", count=16, duration_s=3600),
        Alternative(accelerator="a100", count=16, duration_s=3600),
    )
    world.submit("x", alternatives=either)
    assert world.state("x") is S.ACTIVE
    grant = world.request("x").grant
    assert grant is not None and grant.shape == "a2-highgpu-8g" and grant.alternative == 1


def test_j06_small_requests_share_a_block_so_that_a_large_one_fits() -> None:
    """Two small requests could break both blocks, and the next gang wait for nothing."""
    world = World(f1())
    world.submit("a", gpus=8, hours=1)
    world.submit("b", gpus=8, hours=1)
    assert world.submit("gang", gpus=16, hours=1, within="block").state is S.ACTIVE


def test_two_alternatives_are_never_held_at_once() -> None:
    """"16 for 2 h or 8 for 4 h" could book both."""
    world = World(f1())
    world.submit("busy", gpus=32, hours=1)
    both = (
        Alternative(accelerator="h100", count=16, duration_s=7200),
        Alternative(accelerator="h100", count=8, duration_s=14400),
    )
    world.submit("x", alternatives=both)
    with world.store.read() as reader:
        own = [b for b in reader.open_bookings() if b.owner == world.request("x").id]
    assert len(own) == 1
    world.advance(hours=1)
    assert len(world.hosts_of("x")) == 2, "the one that finishes first wins"
    world.check()
