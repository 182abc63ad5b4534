"""Slices of TPU pods in the calendar: whole at their start, replaced as a whole, counted in slices."""

from __future__ import annotations

import pytest

from dws.declared import fleetfile
from dws.engine.commands import Reserve
from dws.model.demand import UNTIL_END, Alternative
from dws.model.errors import FailedPrecondition, InvalidArgument, NeverFits, NoRoom
from dws.model.request import RequestState
from dws.model.reservation import Reservation, Share, Terms
from tests.scenarios.world import ANN, MONDAY_9, H, World

S = RequestState

PLANE = """
[[zones]]
name = "z1"
[[pools]]
name = "v5e"
zone = "z1"
machine = "ct5lp-hightpu-4t"
topology = "8x8"
price = 1.2
"""
CUBES = PLANE.replace("ct5lp-hightpu-4t", "ct5p-hightpu-4t").replace('"8x8"', '"4x4x12"\npods = 2').replace(
    '"v5e"', '"v5p"'
)


def plane() -> World:
    """A pod of sixteen hosts: four 4x4 slices, hosts 0–3, 4–7, 8–11 and 12–15 of its line."""
    return World(fleetfile.parse(PLANE))


def a_slice(topology: str, count: int = 1, hours: float = 4, chip: str = "v5e") -> Alternative:
    return Alternative(accelerator=chip, topology=topology, count=count, duration_s=int(hours * H))


def reserve(
    world: World, name: str, wanted: Alternative, start: int = MONDAY_9, terms: Terms | None = None
) -> Reservation:
    command = Reserve(project="p", name=name, alternative=wanted, start=start, terms=terms or Terms())
    return world.engine.reserve(ANN, command).view.reservation


def places(world: World, name: str) -> list[int]:
    """The places on the line of a reservation's hosts."""
    hosts = world.engine.books.fleet.pools[0].hosts
    return sorted(hosts.index(host) for host in world.reserved(name).hosts)


def lose(world: World, *which: int) -> None:
    hosts = world.engine.books.fleet.pools[0].hosts
    world.hosts("DOWN", *(hosts[i] for i in which))


def mend(world: World, *which: int) -> None:
    hosts = world.engine.books.fleet.pools[0].hosts
    world.hosts("READY", *(hosts[i] for i in which))


def is_aligned(found: list[int], span: int) -> bool:
    """True when the places are whole aligned runs."""
    return all({u // span * span + i for i in range(span)} <= set(found) for u in found)


def test_booked_slices_are_whole_blocks_of_the_pod_at_their_start() -> None:
    """Sixteen reserved chips could be hosts here and there, of which no slice can be made."""
    world = plane()
    world.submit("one", alternatives=(a_slice("2x2", hours=9),))
    booked = reserve(world, "pair", a_slice("4x4", 2), MONDAY_9 + H)
    assert (booked.count, booked.topology, booked.shape) == (2, "4x4", "ct5lp-hightpu-4t")
    assert world.reserved("pair").cost_micros == 2 * 16 * 4 * 1_200_000
    world.advance(hours=1)
    assert len(places(world, "pair")) == 8 and is_aligned(places(world, "pair"), 4)
    with pytest.raises(NoRoom, match="needs 2 4x4 slices; v5e has 1 of 4 free"):
        reserve(world, "more", a_slice("4x4", 2), MONDAY_9 + 2 * H)
    world.check()


def test_free_hosts_that_make_no_slice_are_not_promised_as_one() -> None:
    """Admission would count free chips, and the slice could not be placed at its start."""
    world = plane()
    for number in range(4):
        world.submit(f"w{number}", alternatives=(a_slice("4x4", hours=9),))
    for number in range(4):
        world.release(f"w{number}")
        world.submit(f"corner{number}", alternatives=(a_slice("2x2", hours=9),))
    blockers = [world.hosts_of(f"corner{n}")[0] for n in range(4)]
    with pytest.raises(NoRoom) as refused:
        reserve(world, "whole", a_slice("8x8"), MONDAY_9 + H)
    assert refused.value.details["most"] == 0 and len(blockers) == 4
    nearest = refused.value.details["nearest"]
    assert isinstance(nearest, list) and nearest[0]["start"] == MONDAY_9 + 9 * H
    world.check()


def test_e09_a_slice_that_loses_a_host_before_its_start_is_put_elsewhere_as_a_whole() -> None:
    """The reservation would start with a hole in its slice."""
    world = plane()
    reserve(world, "mine", a_slice("4x8"), MONDAY_9 + H)
    lose(world, 1, 14)
    world.advance(minutes=1)
    assert world.reservation("mine").short == 1, "no whole 4x8 is left"
    mend(world, 14)
    world.advance(hours=1)
    assert world.reservation("mine").short == 0
    assert places(world, "mine") == list(range(8, 16))
    world.check()


def test_e09_a_slice_that_loses_a_host_while_it_is_open_is_replaced_as_a_whole() -> None:
    """A spare host somewhere else on the mesh would be offered in its place."""
    world = plane()
    reserve(world, "mine", a_slice("4x4"))
    world.advance(minutes=1)
    assert (before := places(world, "mine")) == [0, 1, 2, 3]
    world.submit("in", alternatives=(a_slice("4x4", hours=0),), reservation="mine")
    assert world.state("in") is S.ACTIVE
    lose(world, 2)
    world.advance(minutes=1)
    assert world.state("in") is not S.ACTIVE, "a slice ends as a whole"
    after = places(world, "mine")
    assert len(after) == 4 and is_aligned(after, 4) and not set(after) & set(before)
    assert world.reservation("mine").short == 0
    world.check()
    world.submit("again", alternatives=(a_slice("4x4", hours=0),), reservation="mine")
    assert world.state("again") is S.ACTIVE
    world.check()


def test_a_slice_is_not_taken_from_under_what_still_runs_on_it() -> None:
    """Work on the healthy part of a reserved slice would be stopped, or its hosts given to somebody else."""
    world = plane()
    reserve(world, "mine", a_slice("4x4"))
    world.advance(minutes=1)
    world.submit("corner", alternatives=(a_slice("2x2", hours=2),), reservation="mine")
    (host,) = world.hosts_of("corner")
    at = world.engine.books.fleet.pools[0].hosts.index(host)
    lose(world, 3 if at != 3 else 0)
    world.advance(minutes=1)
    assert world.reservation("mine").short == 1 and world.state("corner") is S.ACTIVE
    shown = world.engine.calendar(ANN, start=MONDAY_9, end=MONDAY_9 + H).pools[0].bars
    (bar,) = (b for b in shown if b.short)
    assert (bar.count, bar.short) == (4, 4), "the calendar counts hosts"
    assert at in places(world, "mine")
    world.check()
    world.release("corner")
    world.advance(minutes=1)
    assert world.reservation("mine").short == 0 and len(places(world, "mine")) == 4
    assert at not in places(world, "mine")
    world.check()


def test_e09_a_lost_cube_is_replaced_in_its_pod_else_the_slice_goes_to_another_pod() -> None:
    """The two cubes of a slice could end up in different pods, which nothing connects."""
    world = World(fleetfile.parse(CUBES))
    reserve(world, "mine", a_slice("4x4x8", chip="v5p"))
    world.advance(minutes=1)
    first = {i // 16 for i in places(world, "mine")}
    assert len(first) == 2 and first < {0, 1, 2}
    lose(world, 16 * min(first) + 5)
    world.advance(minutes=1)
    second = {i // 16 for i in places(world, "mine")}
    assert second == {0, 1, 2} - {min(first)} and world.reservation("mine").short == 0
    lose(world, 16 * max(second) + 3)
    world.advance(minutes=1)
    third = {i // 16 for i in places(world, "mine")}
    assert len(third) == 2 and third < {3, 4, 5} and world.reservation("mine").short == 0
    assert len(places(world, "mine")) == 32
    world.check()


def test_an_open_reservation_grows_and_shrinks_in_slices() -> None:
    """What was added could be hosts that make no slice; what was given back could break one."""
    world = plane()
    reserve(world, "mine", a_slice("4x4", 2))
    world.advance(minutes=1)
    world.submit("in", alternatives=(a_slice("4x4", hours=0),), reservation="mine")
    used = set(world.hosts_of("in"))
    assert world.amend_reservation("mine", count=3).count == 3
    world.advance(minutes=1)
    assert len(places(world, "mine")) == 12 and is_aligned(places(world, "mine"), 4)
    world.submit("beside", alternatives=(a_slice("2x2", hours=2),))
    with pytest.raises(NoRoom, match="0 more 4x4 slices of v5e are free"):
        world.amend_reservation("mine", count=4)
    assert world.amend_reservation("mine", count=1).count == 1
    world.advance(minutes=1)
    assert set(world.reserved("mine").hosts) == used
    world.check()
    world.amend_reservation("mine", count=2)
    world.submit("too", alternatives=(a_slice("2x2", hours=1),), reservation="mine")
    world.advance(minutes=1)
    with pytest.raises(FailedPrecondition, match="2 of its 2 4x4 slices are in use"):
        world.amend_reservation("mine", count=1)
    world.check()


def test_work_inside_stays_on_the_hosts_of_the_reserved_slices() -> None:
    """A slice of a reservation's machines could be placed outside it, or across two of its slices."""
    world = plane()
    reserve(world, "mine", a_slice("4x4", 2))
    world.advance(minutes=1)
    own = set(world.reserved("mine").hosts)
    for number, topology in enumerate(("4x4", "2x4", "2x2")):
        world.submit(f"in{number}", alternatives=(a_slice(topology, hours=0),), reservation="mine")
        assert world.state(f"in{number}") is S.ACTIVE
        assert set(world.hosts_of(f"in{number}")) <= own
    assert world.reserved("mine").in_use == 2
    world.submit("waits", alternatives=(a_slice("4x4", hours=1),), reservation="mine")
    assert world.state("waits") is S.PENDING
    with pytest.raises(InvalidArgument, match="holds 2 x 4x4 slices in z1, which is not what is asked for"):
        world.submit("larger", alternatives=(a_slice("4x8", hours=1),), reservation="mine")
    with pytest.raises(NeverFits, match="needs 3 4x4 slices"):
        world.submit("three", alternatives=(a_slice("4x4", 3, hours=1),), reservation="mine")
    world.check()


def test_a_share_of_a_reservation_counts_its_slices() -> None:
    """A project that may use one of two slices could take both, or not even one."""
    world = plane()
    terms = Terms(shares=(Share(project="q", hosts_max=1),))
    reserve(world, "mine", a_slice("4x4", 2), terms=terms)
    world.advance(minutes=1)
    inside = (a_slice("4x4", hours=UNTIL_END),)
    world.submit("one", alternatives=inside, project="q", reservation="p/mine")
    world.submit("two", alternatives=inside, project="q", reservation="p/mine")
    assert world.request("one", "q").state is S.ACTIVE
    assert world.request("two", "q").state is S.PENDING
    world.check()


def test_e18_windows_are_offered_for_slices() -> None:
    """The calendar could offer a time at which only scattered chips are free."""
    from dws.engine.commands import Seek

    world = plane()
    world.submit("corner", alternatives=(a_slice("2x2", hours=3),))
    seek = Seek(
        project="p",
        alternative=a_slice("8x8", hours=2),
        start_from=MONDAY_9,
        start_to=MONDAY_9 + 24 * H,
        min_s=2 * H,
        max_s=2 * H,
    )
    best = world.engine.advise(ANN, seek).options[0]
    assert (best.window.start, best.count, best.topology) == (MONDAY_9 + 3 * H, 1, "8x8")


def test_no_slice_is_made_of_two_pods() -> None:
    """A slice larger than a pod would be placed across two of them side by side."""
    world = World(fleetfile.parse(PLANE.replace('"8x8"', '"4x8"\npods = 2')))
    with pytest.raises(InvalidArgument, match="no pod of this fleet serves 'v5e' 8x8"):
        world.submit("large", alternatives=(a_slice("8x8"),))
    with pytest.raises((InvalidArgument, NoRoom)):
        reserve(world, "large", a_slice("8x8"), MONDAY_9 + H)
