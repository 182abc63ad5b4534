"""`dws ledger verify` finds each kind of fault; the faults are put between it and a store that is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dws.engine.ports import RequestQuery, ReservationQuery
from dws.engine.verify import verify
from dws.model import events as ev
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.names import BookingId
from dws.model.request import RequestState
from dws.model.reservation import ReservationState
from dws.model.time import Span
from tests.scenarios.world import MONDAY_9, H, World, f1


class Doctored:
    """A reader whose rows are changed on the way."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.bookings: dict[str, Booking] = {}
        self.requests_by_name = {r.name: r for r in reader.requests(RequestQuery(limit=100))}
        self.reservations_by_name = {r.name: r for r in reader.reservations(ReservationQuery(limit=100))}
        held = {b.id: b for b in reader.open_bookings()}
        for row in (*self.requests_by_name.values(), *self.reservations_by_name.values()):
            if row.booking in held:
                self.bookings[row.name] = held[row.booking]
        self.story = list(reader.events(after=0, limit=1_000))
        self.over = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def open_bookings(self) -> list[Booking]:
        return list(self.bookings.values())

    def requests(self, query: RequestQuery) -> list[Any]:
        return [] if query.after else list(self.requests_by_name.values())

    def reservations(self, query: ReservationQuery) -> list[Any]:
        return [] if query.after else list(self.reservations_by_name.values())

    def events(self, *, after: int, limit: int) -> list[ev.Event]:
        return [e for e in self.story if e.seq > after][:limit]

    def peak(self, pool: str, cell: int, start: int, end: int) -> int:
        found: int = self._reader.peak(pool, cell, start, end)
        return found + self.over

    def change_booking(self, name: str, **changes: Any) -> None:
        self.bookings[name] = replace(self.bookings[name], **changes)

    def change_request(self, name: str, **changes: Any) -> None:
        self.requests_by_name[name] = replace(self.requests_by_name[name], **changes)

    def change_reservation(self, name: str, **changes: Any) -> None:
        self.reservations_by_name[name] = replace(self.reservations_by_name[name], **changes)


def a_full_world() -> World:
    """`runs` outside, `waits` with a promise, `open` with `in-open` in it, `ahead`, and `done`."""
    world = World(f1())
    world.submit("done", hosts=1, hours=1)
    world.advance(hours=1)
    world.reserve("open", hosts=2, start=world.now(), hours=5)
    world.submit("in-open", hosts=1, hours=2, reservation="open")
    world.submit("runs", hosts=2, hours=3)
    world.submit("waits", hosts=2, hours=1)
    world.reserve("ahead", hosts=3, start=MONDAY_9 + 20 * H, hours=2)
    return world


def found_by(change: Callable[[Doctored], object]) -> tuple[str, ...]:
    world = a_full_world()
    with world.store.read() as reader:
        doctored = Doctored(reader)
        assert verify(doctored).faults == ()  # type: ignore[arg-type]
        change(doctored)
        return verify(doctored).faults  # type: ignore[arg-type]


def moved(booking: Booking, by_s: int) -> Span:
    return Span(booking.span.start + by_s, booking.span.end + by_s)


def elsewhere(d: Doctored) -> tuple[Part, ...]:
    """Parts on the hosts that run something else."""
    return tuple(replace(p, units=p.units[:1], count=1) for p in d.bookings["runs"].parts[:1])


def an_orphan(kind: OwnerKind) -> Booking:
    return Booking(
        id=BookingId(1),
        pool="h100",
        span=Span(MONDAY_9 + 90 * H, MONDAY_9 + 91 * H),
        stage=Stage.FIRM,
        owner_kind=kind,
        owner=5,
        parts=(Part(cell=0, count=1),),
    )


def without_story(d: Doctored, name: str, kind: type) -> None:
    d.story = [e for e in d.story if not (e.name == name and isinstance(e.body, kind))]


FAULTS: dict[str, tuple[Callable[[Doctored], object], str]] = {
    "a host held twice": (
        lambda d: d.change_booking("open", parts=d.bookings["runs"].parts),
        "is in bookings",
    ),
    "more booked than there is": (lambda d: setattr(d, "over", 5), "hosts booked at one instant, there are"),
    "a request's booking without it": (
        lambda d: d.bookings.__setitem__("x", an_orphan(OwnerKind.REQUEST)),
        "has no owner that knows it",
    ),
    "a reservation's booking without it": (
        lambda d: d.bookings.__setitem__("x", an_orphan(OwnerKind.RESERVATION)),
        "has no reservation that knows it",
    ),
    "a promise that runs": (lambda d: d.change_booking("waits", stage=Stage.LIVE), "is LIVE but 'waits' is BOOKED"),
    "a run that is only promised": (
        lambda d: d.change_booking("runs", stage=Stage.FIRM),
        "is FIRM but 'runs' is ACTIVE",
    ),
    "a promise without a booking": (lambda d: d.bookings.pop("waits"), "says it has a booking; it has none"),
    "a run without a booking": (lambda d: d.bookings.pop("runs"), "says it has a booking; it has none"),
    "over, and still holding": (
        lambda d: d.change_request("runs", state=RequestState.COMPLETED),
        "is COMPLETED and still holds a booking",
    ),
    "inside of nothing": (lambda d: d.bookings.pop("open"), "which is not open"),
    "later than its reservation": (
        lambda d: d.change_booking("in-open", span=moved(d.bookings["in-open"], 9 * H)),
        "does not lie inside",
    ),
    "on other hosts than its reservation": (
        lambda d: d.change_booking("in-open", parts=elsewhere(d)),
        "does not lie inside",
    ),
    "a reservation without a booking": (
        lambda d: d.bookings.pop("ahead"),
        "reservation 'ahead' is APPROVED, its booking is none",
    ),
    "a reservation that is over and booked": (
        lambda d: d.change_reservation("ahead", state=ReservationState.CANCELLED),
        "reservation 'ahead' is CANCELLED, its booking is",
    ),
    "a smaller reservation than agreed": (
        lambda d: d.change_booking("ahead", parts=(Part(cell=0, count=1),)),
        "reservation 'ahead' is not booked as it says",
    ),
    "a later reservation than agreed": (
        lambda d: d.change_booking("ahead", span=moved(d.bookings["ahead"], 60)),
        "reservation 'ahead' is not booked as it says",
    ),
    "a request's row without its story": (
        lambda d: d.change_request("runs", priority=9),
        "request 'runs': its events do not add up",
    ),
    "a reservation's row without its story": (
        lambda d: d.change_reservation("ahead", short=1),
        "reservation 'ahead': its events do not add up",
    ),
    "a request without a story": (
        lambda d: setattr(d, "story", [e for e in d.story if e.name != "waits"]),
        "request 'waits' has no events",
    ),
    "a reservation without a story": (
        lambda d: setattr(d, "story", [e for e in d.story if e.name != "ahead"]),
        "reservation 'ahead' has no events",
    ),
    "a story without its beginning": (
        lambda d: without_story(d, "open", ev.ReservationAsked),
        "comes before anything was asked",
    ),
    "a story that cannot be": (
        lambda d: without_story(d, "open", ev.ReservationStarted),
        "ReservationDelivered cannot happen to it now",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_kind_of_fault_is_found(name: str) -> None:
    """A broken ledger would be called sound."""
    change, words = FAULTS[name]
    faults = found_by(change)
    assert any(words in fault for fault in faults), faults
