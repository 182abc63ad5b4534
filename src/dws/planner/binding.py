"""Reservations and their hosts: drawn at the start, replaced when lost, found elsewhere before it.

A reservation is booked by count. At its start its hosts are drawn; what cannot be drawn yet stays in the
booking by count, so nobody else is promised it, and is drawn as soon as a host is free. A reservation that
lost capacity before its start is put elsewhere in its pool, never at another time; where there is no room
it is short, openly, until there is. Promises to requests make room for it, as recorded moves. A slice that
lost a host is replaced as a whole, as soon as nothing runs on what is left of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dws.model.booking import Booking, Part, Stage
from dws.model.evolve import evolve
from dws.planner import drawing, slices
from dws.planner.calendar import PoolCalendar
from dws.planner.drawing import Idle
from dws.planner.hold import Hold
from dws.planner.plan import Bind
from dws.planner.snapshot import FleetSnapshot, inside_of, units_in_use

if TYPE_CHECKING:
    from dws.planner.backfill import Pass


def ahead(snapshot: FleetSnapshot) -> list[Booking]:
    """Bookings of reservations that have not started, in the order in which they were made."""
    found = [
        snapshot.bookings[r.booking]
        for r in snapshot.reservations.values()
        if r.booking is not None and not r.state.is_open and r.booking in snapshot.bookings
    ]
    return sorted((b for b in found if b.stage is not Stage.LIVE), key=lambda b: b.id)


def collect(state: Pass) -> None:
    """Reservations that are open and lack hosts get what is idle."""
    for reservation in sorted(state.snapshot.reservations.values(), key=lambda r: (r.window, r.id)):
        booking = state.snapshot.bookings.get(reservation.booking or 0)
        if booking is None or not reservation.state.is_open:
            continue
        if all(p.units for p in booking.parts) and not reservation.short:
            continue
        calendar = state.calendar(booking.pool)
        calendar.remove(booking)
        hold = Hold.of(calendar.pool, reservation, booking)
        since = state.now if booking.stage is Stage.LIVE or state.now > booking.span.start else 0
        idle = Idle(calendar, state.now, booking.span.end, state.doubted(booking.pool))
        drawing.in_place(hold, idle, since)
        drawing.elsewhere(hold, idle, state.now, units_in_use(state.snapshot, booking))
        parts, short = hold.parts(), hold.short()
        bound = evolve(booking, parts=parts, stage=Stage.LIVE)
        calendar.add(bound)
        state.forget_idle()
        if set(booking.units) - set(bound.units):  # what lies inside may not start on what was given up
            state.calendar(inside_of(booking)).set_inside(bound)
        if parts != booking.parts or short != reservation.short or booking.stage is not Stage.LIVE:
            what = slices.noun(reservation.shape, reservation.topology, calendar.pool)
            lacking = f"{short} of {reservation.count} {what} of pool {booking.pool} are not there"
            cause = lacking if short else ""
            state.decisions.append(
                Bind(
                    reservation=reservation.id,
                    version=booking.version,
                    parts=parts,
                    short=short,
                    cause=cause,
                )
            )


def rebook(state: Pass, calendar: PoolCalendar, bookings: list[Booking], cause: str) -> None:
    """Reservations ahead are taken in the order they were made; each must fit beside those before it, stays
    where it is if it does, and is put elsewhere, or found short, if not. Promises have been lifted."""
    for booking in bookings:
        calendar.lift(booking)
    for booking in bookings:
        reservation = state.snapshot.reservations[booking.owner]
        calendar.drop(booking)
        count, piece = slices.reserved(reservation, calendar.pool)
        lacking = _lacking(calendar, booking)
        parts = booking.parts
        if lacking:
            calendar.lift(booking)
            span = booking.span
            found = calendar.earliest(
                count,
                span.length_s,
                within=reservation.within,
                after=span.start,
                before=span.start,
                piece=piece,
            )
            if found is not None:
                parts, lacking = found[1], ()
            calendar.take(span.start, span.end, parts)
            calendar.level(span.start, span.end, {p.cell for p in lacking})
        short = Hold.of(calendar.pool, reservation, evolve(booking, parts=parts)).without(lacking)
        if parts != booking.parts or short != reservation.short:
            state.decisions.append(
                Bind(
                    reservation=reservation.id,
                    version=booking.version,
                    parts=parts,
                    short=short,
                    cause=cause,
                )
            )


def _lacking(calendar: PoolCalendar, booking: Booking) -> tuple[Part, ...]:
    """How many units too few the booking's cells have at the worst instant of its span."""
    span = booking.span
    free = [(p, calendar.least_free_in(p.cell, span.start, span.end)) for p in booking.parts]
    return tuple(Part(cell=p.cell, count=min(p.count, -least)) for p, least in free if least < 0)

