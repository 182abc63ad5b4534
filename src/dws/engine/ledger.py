"""The only code that creates, moves or ends bookings.

Plans, starts, deliveries, extensions, releases and outages all come through here, so the rules live in
one place: a promise keeps its booking's id from first promise to end, a live booking names its units,
and what ends is trimmed to the instant it ended.
"""

from __future__ import annotations

from collections import Counter

from dws.engine.books import Books
from dws.engine.write import Write
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.evolve import evolve
from dws.model.names import BookingId, ReservationId
from dws.model.request import CapacityRequest
from dws.model.time import FOREVER, Span
from dws.model.topology import Pool
from dws.planner import slices
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
            parent=placement.parent,
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
            parent=placement.parent,
        )
    w.put_booking(booking)
    return booking


# --- reservations -----------------------------------------------------------------------------


def reserve(
    w: Write, reservation: ReservationId, pool: str, span: Span, parts: tuple[Part, ...], stage: Stage
) -> Booking:
    """A booking for a reservation: FIRM, or a HOLD until it is approved."""
    booking = Booking(
        id=BookingId(w.ids.next(w.now)),
        pool=pool,
        span=span,
        stage=stage,
        owner_kind=OwnerKind.RESERVATION,
        owner=reservation,
        parts=parts,
    )
    w.put_booking(booking)
    return booking


def rebook(
    w: Write,
    booking_id: BookingId,
    *,
    pool: str | None = None,
    span: Span | None = None,
    parts: tuple[Part, ...] | None = None,
    stage: Stage | None = None,
) -> Booking:
    """A reservation's booking is elsewhere, longer, larger or further on; None keeps what is."""
    before = w.books.bookings[booking_id]
    booking = evolve(
        before,
        pool=before.pool if pool is None else pool,
        span=before.span if span is None else span,
        parts=before.parts if parts is None else parts,
        stage=before.stage if stage is None else stage,
        version=before.version + 1,
    )
    w.put_booking(booking)
    return booking


def lose_units(w: Write, booking_id: BookingId, units: set[int]) -> Booking:
    """A host of a reservation is lost: its place stays booked by number until another is drawn for it."""
    booking = w.books.bookings[booking_id]
    cell_of = w.books.fleet.pool(booking.pool).cell_of
    kept = [p for p in (_without(p, units) for p in booking.parts) if p.count and p.units]
    open_ = Counter({p.cell: p.count for p in booking.parts if not p.units})
    open_.update(cell_of(unit) for unit in units)
    parts = (*kept, *(Part(cell=c, count=n) for c, n in sorted(open_.items())))
    return rebook(w, booking_id, parts=parts)


def set_end(w: Write, booking_id: BookingId, end: int) -> None:
    """A live booking now ends at `end`: trimmed on delivery, moved by an extension or an overrun. Harmless
    when it ends there already."""
    booking = w.books.bookings[booking_id]
    holder = w.books.bookings.get(BookingId(booking.parent)) if booking.parent else None
    if holder is not None and holder.span.end < end:
        if holder.span.end > w.now:  # what is not back by the end of its reservation is dealt with there
            end = holder.span.end
        else:  # a reservation lasts as long as what it holds
            set_end(w, holder.id, end)
    span = Span(booking.span.start, max(booking.span.start, end))
    if span == booking.span:
        return
    w.put_booking(evolve(booking, span=span, version=booking.version + 1))


def give_back(w: Write, booking_id: BookingId, units: set[int]) -> None:
    """Some units of a live booking are free again; with none left it ends."""
    booking = w.books.bookings.get(booking_id)
    if booking is None:
        return
    parts = tuple(_without(p, units) for p in booking.parts if not units.issuperset(p.units))
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
    joined = tuple(evolve(p, since=w.now) for p in parts_of(pool, units))
    w.put_booking(evolve(booking, parts=(*booking.parts, *joined), version=booking.version + 1))


def end(w: Write, booking_id: BookingId | None) -> None:
    """A booking is over: trimmed to now, or to the end of the one it lies inside, and out of the planner's
    sight. Harmless twice."""
    booking = w.books.bookings.get(booking_id) if booking_id is not None else None
    if booking is None:
        return
    start = min(booking.span.start, w.now)
    holder = w.books.bookings.get(BookingId(booking.parent))
    until = w.now if holder is None else max(start, min(w.now, holder.span.end))
    w.put_booking(
        evolve(
            booking,
            span=Span(start, until),
            stage=Stage.ENDED,
            version=booking.version + 1,
        )
    )


def open_outage(w: Write, pool: Pool, host: int, until: int) -> Booking:
    """A host is down from now, all of it: a LIVE booking owned by the fault, open-ended unless `until` is
    known."""
    booking = Booking(
        id=BookingId(w.ids.next(w.now)),
        pool=pool.name,
        span=Span(w.now, until or FOREVER),
        stage=Stage.LIVE,
        owner_kind=OwnerKind.OUTAGE,
        owner=host,
        parts=parts_of(pool, tuple(pool.units_of(host))),
    )
    w.put_booking(booking)
    return booking


def outage_of(w: Write, pool: str, host: int) -> Booking | None:
    """The open outage of a host, None when it has none."""
    for booking in w.books.bookings.values():
        if (
            booking.owner_kind is OwnerKind.OUTAGE
            and booking.pool == pool
            and booking.owner == host
        ):
            return booking
    return None


def openly_lacking(books: Books, pool: str, cell: int) -> int:
    """How many units of a cell are booked, openly, that are not there: what degraded reservations lack."""
    where = books.fleet.pool(pool)
    return sum(
        max(
            r.short * slices.units_each(r, where),
            sum(p.count for p in b.parts if p.cell == cell and _is_due(b, p)),
        )
        for r in books.reservations.values()
        if r.pool == pool and (b := books.bookings.get(r.booking or BookingId(0))) is not None
        if any(p.cell == cell for p in b.parts)
    )


def _is_due(booking: Booking, part: Part) -> bool:
    return booking.stage is Stage.LIVE and not part.units


# --- maintenance ------------------------------------------------------------------------------


def plan_maintenance(
    w: Write, pool: Pool, units: tuple[int, ...], window: Span, *, name: str, note: str
) -> Booking:
    """A FIRM booking of the operator's, for these very hosts."""
    number = w.ids.next(w.now)
    booking = Booking(
        id=BookingId(number),
        pool=pool.name,
        span=window,
        stage=Stage.FIRM,
        owner_kind=OwnerKind.MAINTENANCE,
        owner=number,
        parts=parts_of(pool, units),
        name=name,
        note=note,
    )
    w.put_booking(booking)
    return booking


def begin_maintenance(w: Write, booking: Booking) -> None:
    """The window has begun: from here on its hosts are down, which the planner sees by itself."""
    w.put_booking(evolve(booking, stage=Stage.LIVE, version=booking.version + 1))


def parts_of(pool: Pool, units: tuple[int, ...]) -> tuple[Part, ...]:
    """Named units, by cell."""
    by_cell: dict[int, list[int]] = {}
    for unit in sorted(units):
        by_cell.setdefault(pool.cell_of(unit), []).append(unit)
    return tuple(
        Part(cell=cell, count=len(own), units=tuple(own)) for cell, own in sorted(by_cell.items())
    )
