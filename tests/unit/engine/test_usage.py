"""What a reservation held and nothing used: its own line, whatever became of its hosts and its work."""

from __future__ import annotations

import pytest

from dws.backends.simulated.backend import SimulatedBackend
from dws.backends.simulated.faults import NO_FAULTS, Faults
from dws.model.reservation import ReservationState, Share, Terms
from dws.planner.options import PolicyOptions
from tests.scenarios.world import ANN, MONDAY_9, OPERATOR, H, World, f1

SHARED = Terms(shares=(Share(project="p2"),))


def used(world: World, start: int = MONDAY_9, end: int = 0, project: str = "") -> dict[tuple[str, str], int]:
    """Host-seconds by (project, kind), each a line of its own."""
    lines = world.engine.usage(OPERATOR, start=start, end=end or world.now(), project=project)
    sums: dict[tuple[str, str], int] = {}
    for line in lines:
        assert line.seconds > 0 and line.accelerator_s == line.seconds * 8
        assert line.kind == "FAILED_ATTEMPT" or line.cost_micros == line.seconds * 8 * 4_200_000 // H
        sums[line.project, line.kind] = sums.get((line.project, line.kind), 0) + line.seconds
    return sums


def test_hosts_given_back_early_are_held_until_then() -> None:
    """Its owner would pay on for what was given back, or not at all for what was."""
    world = World(f1())
    world.reserve("r", hosts=4, start=MONDAY_9, hours=5)
    world.advance(hours=1)
    world.amend_reservation("r", count=2)
    world.advance(hours=2)
    assert used(world) == {("p", "RESERVED_IDLE"): 8 * H}
    world.advance(hours=10)
    assert used(world) == {("p", "RESERVED_IDLE"): 12 * H}


def test_a_reservation_released_early_is_held_until_then() -> None:
    """Its owner would pay for the whole window, though others have used the hosts since."""
    world = World(f1())
    world.reserve("r", hosts=4, start=MONDAY_9, hours=5)
    world.advance(hours=1)
    world.engine.release_reservation(ANN, "p", "r")
    world.advance(hours=1)
    assert used(world) == {("p", "RESERVED_IDLE"): 4 * H}


def test_a_lost_host_is_not_held_while_it_lacks() -> None:
    """Its owner would pay for a host that was not there."""
    world = World(f1())
    world.reserve("r", hosts=4, start=MONDAY_9, hours=5)
    world.advance(hours=1)
    world.hosts("DOWN", "h100-h1")
    world.advance(hours=1)
    assert used(world) == {("p", "RESERVED_IDLE"): 7 * H}
    world.hosts("READY", "h100-h1")
    world.advance(hours=1)
    assert used(world) == {("p", "RESERVED_IDLE"): 11 * H}


def test_an_attempt_that_fails_is_no_use() -> None:
    """A failed attempt would hide that the host stood idle."""
    backend = SimulatedBackend(faults=Faults(refuse="no capacity"))
    world = World(f1(), PolicyOptions(retry_backoff_s=600), backend=backend)
    world.reserve("r", hosts=2, start=MONDAY_9, hours=5)
    world.submit("a", hosts=2, hours=1, reservation="r")
    backend.faults = NO_FAULTS
    world.advance(hours=2)
    found = used(world)
    assert found["p", "RUN"] + found["p", "RESERVED_IDLE"] == 4 * H
    assert found["p", "RUN"] == 2 * H


def test_use_by_another_project_is_that_projects_and_not_idle() -> None:
    """The owner would pay for what another project used, or that project see the owner's bill."""
    world = World(f1())
    world.reserve("r", hosts=4, start=MONDAY_9, hours=5, terms=SHARED)
    world.submit("a", hosts=1, hours=2, reservation="r")
    world.submit("b", hosts=2, hours=1, reservation="p/r", project="p2")
    world.advance(hours=2)
    assert used(world) == {("p", "RUN"): 2 * H, ("p2", "RUN"): 2 * H, ("p", "RESERVED_IDLE"): 4 * H}
    assert used(world, project="p") == {("p", "RUN"): 2 * H, ("p", "RESERVED_IDLE"): 4 * H}
    assert used(world, project="p2") == {("p2", "RUN"): 2 * H}


@pytest.mark.parametrize(("start", "end", "idle"), [(0, 1, 1), (1, 2, 2), (0, 2, 3), (2, 5, 2 * 3), (6, 9, 0)])
def test_only_what_lies_in_the_range_asked_for_counts(start: int, end: int, idle: int) -> None:
    """A month's bill would hold hours of another month."""
    world = World(f1())
    world.reserve("r", hosts=2, start=MONDAY_9, hours=5)
    world.submit("a", hosts=1, hours=1, reservation="r")
    world.advance(hours=10)
    found = used(world, MONDAY_9 + start * H, MONDAY_9 + end * H)
    assert found.get(("p", "RESERVED_IDLE"), 0) == idle * H


def test_what_is_given_back_late_is_not_its_owners() -> None:
    """The owner would pay for minutes after the end because an instance stopped slowly."""
    world = World(f1(), backend=SimulatedBackend(faults=Faults(release_s=600)))
    world.reserve("r", hosts=2, start=MONDAY_9, hours=1)
    world.submit("a", hosts=1, hours=0, reservation="r")
    world.advance(hours=1, minutes=5)
    assert world.reservation("r").state is ReservationState.ENDING
    assert used(world) == {("p", "RUN"): H, ("p", "RESERVED_IDLE"): H}
    world.advance(hours=1)
    assert world.reservation("r").state is ReservationState.ENDED
    assert used(world) == {("p", "RUN"): H, ("p", "RESERVED_IDLE"): H}
