"""The only code that creates, moves or ends bookings.

Plans, starts, deliveries, extensions, releases and outages all come through here, so the rules live in
one place: a promise keeps its booking's id from first promise to end, a live booking names its units,
and what ends is trimmed to the instant it ended.
"""

from __future__ import annotations

from dws.engine.write import Write
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.evolve import evolve
from dws.model.names import BookingId
from dws.model.request import CapacityRequest
from dws.model.time import FOREVER, Span
from dws.model.topology import Pool
from dws.planner.plan import Placement


def promise(w: Write, request: CapacityRequest, placement: Placement) -> Booking:
    """A FIRM booking for a waiting request: its first, or its present one moved."""
    return _place(w, request, placement, Stage.FIRM)


def go_live(w: Write, request: CapacityRequest, placement: Placement) -> Booking:
    """The request's booking becomes LIVE on the drawn units."""
    assert all(p.units for p in placement.parts if p.count), "a start must name its units"
    return _place(w, request, placement, Stage.LIVE)


def _place(w: Write, request: CapacityRequest, placement: Placement, stage: Stage) -> Booking:
    before = w.books.bookings.get(request.booking) if request.booking is not None else None
    if before is not None:
        booking = evolve(
            before,
            pool=placement.pool,
            span=placement.span,
            parts=placement.parts,
            stage=stage,
            version=before.version + 1,
        )
    else:
        booking = Booking(
            id=BookingId(w.ids.next(w.now)),
            pool=placement.pool,
            span=placement.span,
            stage=stage,
            owner_kind=OwnerKind.REQUEST,
            owner=request.id,
            parts=placement.parts,
        )
    w.put_booking(booking)
    return booking


def set_end(w: Write, booking_id: BookingId, end: int) -> None:
    """A live booking now ends at `end`: trimmed on delivery, moved by an extension or an overrun. Harmless
    when it ends there already."""
    booking = w.books.bookings[booking_id]
    span = Span(booking.span.start, max(booking.span.start, end))
    if span == booking.span:
        return
    w.put_booking(evolve(booking, span=span, version=booking.version + 1))


def give_back(w: Write, booking_id: BookingId, units: set[int]) -> None:
    """Some units of a live booking are free again; with none left it ends."""
    booking = w.books.bookings.get(booking_id)
    if booking is None:
        return
    parts = tuple(p for p in (_without(p, units) for p in booking.parts) if p.count)
    if parts:
        w.put_booking(evolve(booking, parts=parts, version=booking.version + 1))
    else:
        end(w, booking_id)


def _without(part: Part, units: set[int]) -> Part:
    kept = tuple(u for u in part.units if u not in units)
    return evolve(part, count=len(kept), units=kept)


def take_over(w: Write, booking_id: BookingId, pool: Pool, units: tuple[int, ...]) -> None:
    """A live booking gets these further units, in place of lost ones."""
    booking = w.books.bookings[booking_id]
    joined = tuple(
        Part(cell=pool.cell_of(unit), count=1, units=(unit,), since=w.now) for unit in units
    )
    w.put_booking(evolve(booking, parts=(*booking.parts, *joined), version=booking.version + 1))


def end(w: Write, booking_id: BookingId | None) -> None:
    """A booking is over: trimmed to now, and out of the planner's sight. Harmless twice."""
    booking = w.books.bookings.get(booking_id) if booking_id is not None else None
    if booking is None:
        return
    start = min(booking.span.start, w.now)
    w.put_booking(
        evolve(
            booking,
            span=Span(start, w.now),
            stage=Stage.ENDED,
            version=booking.version + 1,
        )
    )


def open_outage(w: Write, pool: Pool, unit: int, until: int) -> Booking:
    """A host is down from now: a LIVE booking owned by the fault, open-ended unless `until` is known."""
    booking = Booking(
        id=BookingId(w.ids.next(w.now)),
        pool=pool.name,
        span=Span(w.now, until or FOREVER),
        stage=Stage.LIVE,
        owner_kind=OwnerKind.OUTAGE,
        owner=unit,
        parts=(Part(cell=pool.cell_of(unit), count=1, units=(unit,)),),
    )
    w.put_booking(booking)
    return booking


def outage_of(w: Write, pool: str, unit: int) -> Booking | None:
    """The open outage of a host, None when it has none."""
    for booking in w.books.bookings.values():
        if (
            booking.owner_kind is OwnerKind.OUTAGE
            and booking.pool == pool
            and booking.owner == unit
        ):
            return booking
    return None
