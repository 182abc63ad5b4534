"""Fractions of a host, from the fleet file to the last accelerator given back."""

from __future__ import annotations

import pytest

from dws.declared import fleetfile
from dws.engine.commands import PlanMaintenance
from dws.model.errors import FailedPrecondition, InvalidArgument, NoRoom
from dws.model.request import HostLossPolicy, RequestState
from dws.model.reservation import Share, Terms
from dws.model.topology import Fleet, HostState
from tests.scenarios.world import MONDAY_9, OPERATOR, H, World

S = RequestState

FLEET = """
[[zones]]
name = "z1"
[[pools]]
name = "h100"
zone = "z1"
machine = "a3-highgpu-8g"
shared = true
hosts = 4
price = 4.2
[[pools.blocks]]
name = "b1"
hosts = 2
[[pools.blocks]]
name = "b2"
hosts = 2
[[pools]]
name = "cpu"
zone = "z1"
machine = "e2-medium"
hosts = 2
"""


def a_shared_fleet(text: str = FLEET) -> Fleet:
    return fleetfile.parse(text)


def with_five_free_everywhere() -> World:
    """Four hosts of which three accelerators each are taken."""
    text = FLEET.replace("shared = true", 'fractions = ["a3-highgpu-1g", "three", "five"]') + "".join(
        f'[shapes.{name}]\naccelerator = "h100"\naccelerators = {n}\n' for name, n in (("three", 3), ("five", 5))
    )
    world = World(a_shared_fleet(text))
    world.submit("fives", hosts=4, machine="five", hours=9)
    world.submit("threes", hosts=4, machine="three", hours=9)
    assert len(set(world.hosts_of("threes"))) == 4
    world.release("fives")
    return world


def slots_of(world: World, name: str) -> list[tuple[str, tuple[int, ...]]]:
    grant = world.request(name).grant
    assert grant is not None
    return [(i.host, i.slots) for i in grant.instances if i.is_held]


def test_j02_free_accelerators_of_different_hosts_do_not_add_up() -> None:
    """Sixteen accelerators could be promised as two hosts where no host is free."""
    world = with_five_free_everywhere()
    world.submit("two-whole", hosts=2, hours=1)
    assert world.state("two-whole") is not S.ACTIVE
    reason = world.reason("two-whole")
    assert "'free': 20" in reason and "none has {size}" in reason and "'size': 8" in reason
    assert world.engine.quote(OPERATOR, "p", world.request("two-whole").demand).asked.start == MONDAY_9 + 9 * H
    assert world.submit("four-fives", hosts=4, machine="five", hours=1).state is S.ACTIVE
    assert len({host for host, _ in slots_of(world, "four-fives")}) == 4
    world.check()


def test_j01_one_block_is_needed_and_the_room_is_split() -> None:
    """Machines that must be close could be spread over blocks, because accelerators were counted."""
    world = World(a_shared_fleet())
    for number in range(6):
        world.submit(f"four-{number}", hosts=1, machine="a3-highgpu-4g", hours=2)
    world.submit("x", hosts=3, machine="a3-highgpu-4g", hours=1, within="block")
    world.submit("y", hosts=2, machine="a3-highgpu-4g", hours=1, within="host")
    assert world.state("y") is S.ACTIVE and len(set(world.hosts_of("y"))) == 1
    reason = world.reason("x")
    assert "NO_GROUP_WITH_ENOUGH_FREE" in reason and "'level': 'block'" in reason


def test_c09_one_accelerator_works_and_cpu_only_work_takes_none() -> None:
    """One GPU would take a whole host, and a helper without GPU would take one away."""
    world = World(a_shared_fleet())
    world.submit("one", gpus=1, hours=1)
    assert [len(slots) for _, slots in slots_of(world, "one")] == [1]
    assert world.view("one").request.grant.shape == "a3-highgpu-1g"  # type: ignore[union-attr]
    world.submit("helper", hosts=1, machine="e2-medium", hours=1)
    assert slots_of(world, "helper") == [("cpu-0001", ())]
    with pytest.raises(InvalidArgument):
        world.submit("none", hosts=0, gpus=0, hours=1)
    for number in range(31):
        assert world.submit(f"more-{number}", gpus=1, hours=1).state is S.ACTIVE
    assert world.submit("late", gpus=1, hours=1).state is not S.ACTIVE


def test_j06_each_accelerator_is_given_to_one_and_comes_back() -> None:
    """Two programs could be told to use the same accelerator of a host."""
    world = World(a_shared_fleet())
    for number, gpus in enumerate((1, 2, 4, 1, 8, 2, 4, 1, 1)):
        world.submit(f"r{number}", hosts=1, machine=f"a3-highgpu-{gpus}g", hours=1 + number)
    held = [(host, slot) for n in range(9) for host, slots in slots_of(world, f"r{n}") for slot in slots]
    assert len(held) == len(set(held)) == 24
    assert len({host for host, _ in held}) == 3, "one host stays whole"
    view = next(p for p in world.engine.fleet(OPERATOR).pools if p.pool.name == "h100")
    assert view.fits == {"a3-highgpu-1g": 8, "a3-highgpu-2g": 4, "a3-highgpu-4g": 2, "a3-highgpu-8g": 1}
    assert (view.busy, view.free) == (3, 1)
    world.check()
    world.advance(hours=20)
    assert world.booked_hosts() == 0
    world.check()


def test_h03_a_host_that_dies_takes_all_its_parts_and_each_is_replaced_whole() -> None:
    """A gang on parts of a dead host could keep them, or get accelerators of two hosts for one machine."""
    world = World(a_shared_fleet())
    world.submit("a", hosts=3, machine="a3-highgpu-2g", hours=4, on_host_loss=HostLossPolicy.REPLACE)
    world.submit("b", hosts=1, machine="a3-highgpu-1g", hours=4, on_host_loss=HostLossPolicy.END)
    (dead,) = set(world.hosts_of("a"))
    assert world.hosts_of("b") == [dead]
    world.hosts("DOWN", dead)
    world.check()
    assert world.state("b") is S.COMPLETED or world.request("b").end_reason == "HOST_LOST"
    assert world.state("a") is S.ACTIVE
    assert dead not in world.hosts_of("a") and len(slots_of(world, "a")) == 3
    assert all(len(slots) == 2 for _, slots in slots_of(world, "a"))
    view = next(p for p in world.engine.fleet(OPERATOR).pools if p.pool.name == "h100")
    assert view.fits["a3-highgpu-8g"] == 2, "the spares share a host"
    world.hosts("READY", dead)
    world.advance(hours=5)
    assert world.booked_hosts() == 0
    world.check()


def test_h03_a_spare_comes_from_the_fullest_host_that_has_room() -> None:
    """A part of a host would be replaced on a whole one, and no whole one be left."""
    world = World(a_shared_fleet(FLEET.replace("hosts = 2\n[[pools.blocks]]\nname = \"b2\"\nhosts = 2", "hosts = 4")))
    for name, gpus in (("w1", 8), ("w2", 8), ("d", 4), ("x", 4)):
        world.submit(name, hosts=1, machine=f"a3-highgpu-{gpus}g", hours=4)
    world.submit("a", hosts=1, machine="a3-highgpu-2g", hours=4, on_host_loss=HostLossPolicy.REPLACE)
    world.release("w1")
    world.release("x")
    assert (world.hosts_of("d"), world.hosts_of("a")) == (["h100-0003"], ["h100-0004"])
    world.hosts("DOWN", "h100-0004")
    assert world.hosts_of("a") == ["h100-0003"], "h100-0001 stays whole"
    world.check()


def test_h_draining_a_host_lets_its_parts_finish_and_starts_none() -> None:
    """New work could start beside the work that a drain waits for."""
    world = World(a_shared_fleet())
    world.submit("a", gpus=2, hours=1)
    (host,) = world.hosts_of("a")
    world.hosts("DRAINING", host)
    for number in range(3):
        world.submit(f"w{number}", hosts=1, hours=2)
        assert world.state(f"w{number}") is S.ACTIVE
    assert world.submit("c", gpus=1, hours=1).state is not S.ACTIVE
    assert world.state("a") is S.ACTIVE
    world.advance(hours=1)
    assert world.state("c") is not S.ACTIVE
    statuses = world.engine.fleet(OPERATOR).pools[0].hosts
    assert [h.status.state for h in statuses if h.name == host] == [HostState.DRAINING]
    world.check()


def test_k_use_is_counted_in_accelerators() -> None:
    """Two accelerators of a host would cost as much as the whole host."""
    world = World(a_shared_fleet())
    world.submit("two", hosts=1, machine="a3-highgpu-2g", hours=1)
    world.advance(hours=2)
    (line,) = world.engine.usage(OPERATOR, start=MONDAY_9, end=MONDAY_9 + 9 * H)
    assert (line.shape, line.seconds, line.accelerator_s) == ("a3-highgpu-2g", H, 2 * H)
    assert line.cost_micros == 8_400_000


def test_e_fractions_are_booked_delivered_and_used_in_pieces() -> None:
    """A booking of fractions could be of half accelerators on two hosts, or block whole hosts."""
    world = World(a_shared_fleet())
    start = MONDAY_9 + 2 * H
    booked = world.reserve("r", hosts=3, start=start, hours=2, machine="a3-highgpu-4g")
    assert (booked.shape, booked.count) == ("a3-highgpu-4g", 3)
    for number in range(2):
        assert world.submit(f"w{number}", hosts=1, hours=8).state is S.ACTIVE
    with pytest.raises(NoRoom, match="needs 2 a3-highgpu-4g"):
        world.reserve("too-many", hosts=2, start=start, hours=2, machine="a3-highgpu-4g")
    world.reserve("last", hosts=1, start=start, hours=2, machine="a3-highgpu-4g")
    world.advance(hours=2)
    view = world.reserved("r")
    assert view.reservation.state == "FULFILLED" and len(view.hosts) == 2
    world.submit("in", hosts=2, machine="a3-highgpu-4g", hours=1, reservation="r")
    world.submit("small", gpus=3, hours=1, reservation="r")
    assert world.state("in") is S.ACTIVE and world.state("small") is S.ACTIVE
    assert world.reserved("r").in_use == 3
    world.submit("more", gpus=1, seconds=600, reservation="r")
    assert "RESERVATION_FULL" in world.reason("more") and "accelerators free" in world.reason("more")
    world.check()
    world.advance(hours=3)
    assert world.reservation("r").state == "ENDED"
    lines = world.engine.usage(OPERATOR, start=MONDAY_9, end=MONDAY_9 + 9 * H)
    idle = next(x for x in lines if x.kind == "RESERVED_IDLE" and x.request == "r")
    run = sum(x.accelerator_s for x in lines if x.request in ("in", "small", "more"))
    assert idle.accelerator_s == 12 * 2 * H - run and idle.seconds == idle.accelerator_s // 4
    world.check()


def test_e_a_lost_host_leaves_a_booking_short_by_whole_pieces() -> None:
    """A reservation could be called whole with accelerators of two hosts in the place of one machine."""
    world = World(a_shared_fleet())
    world.reserve("r", hosts=4, start=MONDAY_9, hours=4, machine="a3-highgpu-4g")
    for number in range(3):
        world.submit(f"c{number}", hosts=1, machine="a3-highgpu-4g", hours=2)
    world.submit("ones", hosts=1, machine="a3-highgpu-1g", hours=1)
    world.hosts("DOWN", world.reserved("r").hosts[0])
    world.advance(seconds=1)
    assert world.reservation("r").short == 2
    world.check()
    world.advance(hours=1)
    assert world.reservation("r").short == 1, "where the single accelerator was, there is room for one of them"
    world.advance(hours=1)
    assert world.reservation("r").short == 0
    world.check()


def test_f_a_share_of_a_reservation_counts_its_machines() -> None:
    """A project's share of two machines could be used up by two accelerators, or hold any number of them."""
    world = World(a_shared_fleet())
    terms = Terms(shares=(Share(project="q", hosts_max=1),))
    world.reserve("r", hosts=2, start=MONDAY_9, hours=4, machine="a3-highgpu-4g", terms=terms)
    world.submit("a", gpus=2, hours=1, reservation="p/r", project="q")
    world.submit("b", gpus=2, hours=1, reservation="p/r", project="q")
    world.submit("c", gpus=1, hours=1, reservation="p/r", project="q")
    states = [world.request(name, "q").state for name in "abc"]
    assert states == [S.ACTIVE, S.ACTIVE, S.PENDING]
    world.check()


def test_e_a_reservation_of_fractions_grows_and_shrinks_by_pieces() -> None:
    """A change of size could leave half a machine."""
    world = World(a_shared_fleet())
    world.reserve("r", hosts=2, start=MONDAY_9, hours=4, machine="a3-highgpu-4g")
    world.amend_reservation("r", count=4)
    world.submit("in", hosts=1, machine="a3-highgpu-4g", hours=1, reservation="r")
    world.check()
    world.amend_reservation("r", count=1)
    world.advance(seconds=1)
    with pytest.raises(NoRoom, match="7 more a3-highgpu-4g of h100 are free"):
        world.amend_reservation("r", count=9)
    world.check()


def test_e_maintenance_of_a_host_takes_all_its_accelerators_out() -> None:
    """Fractions could be promised on accelerators of a host that is opened for repair."""
    world = World(a_shared_fleet())
    command = PlanMaintenance(
        hosts=("h100-0001",), name="m", start=MONDAY_9 + H, end=MONDAY_9 + 3 * H, reason="", confirm=True
    )
    world.engine.plan_maintenance(OPERATOR, command)
    for number in range(4):
        world.submit(f"f{number}", hosts=7, machine="a3-highgpu-1g", seconds=2 * H)
    for number in range(4):
        held = world.hosts_of(f"f{number}")
        assert "h100-0001" not in held
    assert world.state("f3") is not S.ACTIVE
    world.advance(hours=1)
    view = world.engine.fleet(OPERATOR).pools[0]
    assert view.down == 1 and view.hosts[0].free == 0
    world.check()


def test_a_fraction_that_is_held_stays_served() -> None:
    """A fleet applied anew could leave running work with a shape that nobody knows."""
    world = World(a_shared_fleet())
    world.submit("one", gpus=1, hours=1)
    for other in ('fractions = ["a3-highgpu-2g"]', "shared = false"):
        changed = a_shared_fleet(FLEET.replace("shared = true", other))
        with pytest.raises(FailedPrecondition, match="h100"):
            world.engine.apply_fleet(OPERATOR, changed, confirm=True)
