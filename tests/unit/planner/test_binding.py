"""Reservations that lost hosts, beside promises to others."""

from __future__ import annotations

from dws.model.booking import OwnerKind
from dws.model.names import BookingId, ReservationId
from dws.model.reservation import Reservation, ReservationState
from dws.model.time import Span
from dws.planner import invariants
from dws.planner.backfill import plan
from dws.planner.options import PolicyOptions
from dws.planner.plan import Bind, Book
from dws.planner.recheck import still_holds
from dws.planner.snapshot import build
from tests.build import NOW, H, a_booking, a_fleet, a_pool, a_request, a_status


def a_reservation(booking: int, window: Span, count: int, short: int = 0) -> Reservation:
    return Reservation(
        id=ReservationId(booking),
        name=f"v{booking}",
        project="p",
        principal="ann",
        state=ReservationState.APPROVED,
        window=window,
        pool="h100",
        zone="z1",
        shape="a3-highgpu-8g",
        count=count,
        created_at=NOW,
        booking=BookingId(booking),
        short=short,
    )


def test_a_reservation_short_for_a_while_keeps_its_claim_on_the_host_that_comes_back() -> None:
    """A request would be promised the very host that the reservation gets as soon as it is repaired."""
    window = Span(NOW + H, NOW + 4 * H)
    booked = a_booking(7, {0: 2}, start=window.start, end=window.end, owner_kind=OwnerKind.RESERVATION)
    seen = build(
        a_fleet(a_pool(hosts=2)),
        bookings=[booked],
        hosts=[a_status(1, until=NOW + 2 * H)],
        queue=[a_request(1, hosts=1, hours=2)],
        reservations=[a_reservation(7, window, 2)],
    )
    made = plan(seen, PolicyOptions(), NOW)
    invariants.check(made, seen)
    told = [d for d in made.decisions if isinstance(d, Bind)]
    assert [(d.short, d.parts) for d in told] == [(1, booked.parts)]
    (promise,) = [d for d in made.decisions if isinstance(d, Book)]
    assert promise.placement.start >= window.end
    assert still_holds(promise, seen, NOW) is None


def test_each_of_two_reservations_is_told_what_it_lacks_itself() -> None:
    """The second would be said to lack the first one's hosts too."""
    window = Span(NOW + H, NOW + 4 * H)
    held = [
        a_booking(n, {0: count}, start=window.start, end=window.end, owner_kind=OwnerKind.RESERVATION)
        for n, count in ((7, 3), (8, 1))
    ]
    seen = build(
        a_fleet(a_pool(hosts=4)),
        bookings=held,
        hosts=[a_status(0), a_status(1)],
        reservations=[a_reservation(7, window, 3), a_reservation(8, window, 1)],
    )
    made = plan(seen, PolicyOptions(), NOW)
    invariants.check(made, seen)
    assert {d.reservation: d.short for d in made.decisions if isinstance(d, Bind)} == {7: 1, 8: 1}
