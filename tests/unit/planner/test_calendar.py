"""The calendar of a pool, where what happens to it overlaps."""

from __future__ import annotations

from dataclasses import replace

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.names import BookingId
from dws.model.time import Span
from dws.planner.calendar import PoolCalendar
from tests.property.planner.oracle import a_pool


def a_booking(number: int, kind: OwnerKind, start: int, end: int, *units: int) -> Booking:
    return Booking(
        id=BookingId(number),
        pool="p",
        span=Span(start, end),
        stage=Stage.LIVE,
        owner_kind=kind,
        owner=number,
        parts=(Part(cell=0, count=len(units), units=units),),
    )


def test_a_host_whose_run_ends_during_its_maintenance_is_not_idle() -> None:
    """The next run could be started on a host that is being worked on."""
    calendar = PoolCalendar(a_pool([2], with_rows=False))
    run = a_booking(1, OwnerKind.REQUEST, 0, 100, 1)
    work = a_booking(2, OwnerKind.MAINTENANCE, 50, 200, 1)
    calendar.add(run)
    calendar.add(work)
    calendar.remove(run)
    assert (calendar.idle_units(0), calendar.idle_in_groups(None)) == ([0], [1])
    calendar.remove(work)
    assert (calendar.idle_units(0), calendar.idle_in_groups(None)) == ([0, 1], [2])


def test_what_lies_inside_follows_the_hosts_of_its_reservation() -> None:
    """Work could be planned on a host that a reservation does not have any more, or not yet."""
    inside = replace(a_booking(1, OwnerKind.RESERVATION, 10, 50, 0, 1), stage=Stage.FIRM)
    by_count = replace(inside, parts=(Part(cell=0, count=2),))
    calendar = PoolCalendar(a_pool([3], with_rows=False), by_count)
    assert calendar.rows() == [(0, (0,)), (10, (2,)), (50, (0,))]
    assert calendar.idle_units(0) == [], "no host is drawn yet"
    calendar.set_inside(replace(inside, stage=Stage.LIVE))
    assert calendar.idle_units(0) == [0, 1]
    lacking = (Part(cell=0, count=1, units=(2,)), Part(cell=0, count=1))
    calendar.set_inside(replace(inside, stage=Stage.LIVE, parts=lacking))
    assert calendar.rows() == [(0, (0,)), (10, (1,)), (50, (0,))]
    assert calendar.idle_units(0) == [2]


def test_nothing_is_promised_inside_what_is_only_held() -> None:
    """Work could be promised a place in a reservation that is then declined."""
    held = replace(a_booking(1, OwnerKind.RESERVATION, 10, 50), stage=Stage.HOLD, parts=(Part(cell=0, count=2),))
    calendar = PoolCalendar(a_pool([3], with_rows=False), held)
    assert calendar.earliest(1, 5, within=None, after=0, before=100) is None


def test_what_is_lacking_for_a_while_is_not_free_afterwards() -> None:
    """While a host is down for an hour the whole of a reservation's claim on it could be promised away."""
    calendar = PoolCalendar(a_pool([2, 1], with_rows=False))
    calendar.take(10, 50, (Part(cell=0, count=3),))
    calendar.take(20, 30, (Part(cell=0, count=1), Part(cell=1, count=2)))
    calendar.level(15, 40, {0})
    assert calendar.rows() == [
        (0, (2, 1)),
        (10, (-1, 1)),
        (15, (0, 1)),
        (20, (0, -1)),
        (30, (0, 1)),
        (40, (-1, 1)),
        (50, (2, 1)),
    ]
