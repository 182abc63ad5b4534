"""What lies inside a reservation: since when nothing does, what it holds meanwhile, when the last of it is
gone.
"""

from __future__ import annotations

from dws.engine import ledger
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.booking import Booking, Stage
from dws.model.evolve import evolve
from dws.model.names import BookingId, RequestId
from dws.model.request import CapacityRequest
from dws.model.reservation import Reservation, ReservationState
from dws.model.topology import Pool
from dws.model.usage import UsageKind, UsageRecord
from dws.model.work import WorkKind


def booking_of(w: Write, reservation: Reservation) -> Booking:
    """The open booking of a reservation that is not over."""
    assert reservation.booking is not None, f"reservation {reservation.id} has no booking"
    return w.books.bookings[reservation.booking]


def used(w: Write, reservation_id: int) -> None:
    """Work starts in a reservation."""
    reservation = w.books.reservations.get(reservation_id)
    if reservation is not None and reservation.state.is_open and reservation.idle_since:
        w.apply_to(reservation, ev.ReservationUsed())


def left(w: Write, request: CapacityRequest, reservation_id: int) -> None:
    """Everything a request held in a reservation is back."""
    reservation = w.books.reservations.get(reservation_id)
    over = reservation is None or reservation.state is ReservationState.ENDING
    if over and request.state.is_waiting and request.demand.reservation > 0:
        why = "the reservation it names is over"
        w.apply(request, ev.WindowClosed(cause=why), reason=why)
    if reservation is None:
        return
    if reservation.state is ReservationState.ENDING:
        close_if_empty(w, reservation)
    elif reservation.state.is_open and not reservation.idle_since and not _is_used(w, reservation):
        look_later_whether_used(w, w.apply_to(reservation, ev.ReservationIdle()))


def _is_used(w: Write, reservation: Reservation) -> bool:
    """True while something is live in it that is not merely lent its hosts."""
    users = (
        w.books.holding.get(RequestId(b.owner))
        for b in w.books.inside(reservation.booking or 0)
        if b.stage is Stage.LIVE
    )
    return any(r is not None and r.demand.reservation for r in users)


def close_if_empty(w: Write, reservation: Reservation) -> Reservation:
    """Ended when nothing inside is held any more; until then it keeps just the hosts that are."""
    if reservation.state.is_terminal:  # what was stopped first was the last of it
        return reservation
    booking = booking_of(w, reservation)
    held = {u for b in w.books.inside(booking.id) for u in b.units}
    if not held:
        meter(w, reservation, booking, set(booking.units))
        closed = w.apply_to(reservation, ev.ReservationClosed())
        ledger.end(w, booking.id)
        return closed
    if set(booking.units) != held or any(not p.units for p in booking.parts):
        meter(w, reservation, booking, set(booking.units) - held)
        kept = (
            evolve(p, units=tuple(u for u in p.units if u in held), count=len(held & set(p.units)))
            for p in booking.parts
        )
        booking = ledger.rebook(w, booking.id, parts=tuple(p for p in kept if p.count))
    if booking.span.end <= w.now:
        ledger.set_end(w, booking.id, w.now + w.policy.overrun_step_s)
    again = max(w.now + 1, w.books.bookings[booking.id].span.end)
    w.wake(reservation.id, WorkKind.RESERVATION_END, again)
    return reservation


def look_later_whether_used(w: Write, reservation: Reservation) -> None:
    waits = [s for s in (w.policy.no_show_warn_s, w.policy.no_show_release_s) if s]
    if waits:
        w.wake(reservation.id, WorkKind.RESERVATION_IDLE, w.now + min(waits))


def host_lost(w: Write, pool: Pool, host: int) -> None:
    """A host is gone: the reservations that had some of it lack that, until other units are drawn."""
    gone = set(pool.units_of(host))
    for reservation in list(w.books.reservations.values()):
        booking = w.books.bookings.get(reservation.booking or BookingId(0))
        if booking is not None and booking.pool == pool.name and gone & set(booking.units):
            lost = gone & set(booking.units)
            meter(w, reservation, booking, lost)
            ledger.lose_units(w, booking.id, lost)
            if reservation.state is ReservationState.ENDING:  # nothing takes its place any more
                close_if_empty(w, reservation)


def meter(w: Write, reservation: Reservation, booking: Booking, units: set[int]) -> None:
    """Close the hold of hosts that a reservation gives up now."""
    w.tx.put_usage(
        r for r in reserved(w.books.fleet.pool(booking.pool), reservation, booking, w.now) if r.rank in units
    )


def reserved(
    pool: Pool, reservation: Reservation, booking: Booking, until: int
) -> list[UsageRecord]:
    """A reservation's hold of each of its units, until an instant, or its end: what is given back late is not
    held by its owner. `rank` is the unit."""
    return [
        UsageRecord(
            request=RequestId(reservation.id),
            request_name=reservation.name,
            project=reservation.project,
            principal=reservation.principal,
            pool=pool.name,
            shape=reservation.shape,
            accelerator=pool.shape.accelerator,
            accelerators=pool.accelerators_of(1),
            rank=unit,
            start=since,
            end=max(since, min(until, reservation.window.end)),
            price_micros_per_hour=pool.price_micros_per_hour,
            kind=UsageKind.RESERVED,
            reservation=reservation.id,
        )
        for unit, since in booking.holdings
        if booking.stage is Stage.LIVE
    ]
