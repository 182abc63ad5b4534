"""Reservations and their hosts: drawn at the start, replaced when lost, found elsewhere before it.

A reservation is booked by count. At its start its hosts are drawn; what cannot be drawn yet stays in the
booking by count, so nobody else is promised it, and is drawn as soon as a host is free. A reservation that
lost capacity before its start is put elsewhere in its pool, never at another time; where there is no room
it is short, openly, until there is. Promises to requests make room for it, as recorded moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dws.model.booking import Booking, Part, Stage
from dws.model.evolve import evolve
from dws.planner.calendar import PoolCalendar
from dws.planner.plan import Bind
from dws.planner.snapshot import FleetSnapshot

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
        if not _undrawn(booking.parts) and not reservation.short:
            continue
        calendar = state.calendar(booking.pool)
        calendar.remove(booking)
        piece = calendar.pool.piece_held(reservation.shape)
        parts = _drawn(state, calendar, booking, reservation.within, piece.units)
        calendar.add(evolve(booking, parts=parts, stage=Stage.LIVE))
        state.forget_idle()
        short = -(-_undrawn(parts) // piece.units)
        if parts != booking.parts or short != reservation.short or booking.stage is not Stage.LIVE:
            what = calendar.pool.noun(reservation.shape)
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


def _undrawn(parts: tuple[Part, ...]) -> int:
    return sum(p.count for p in parts if not p.units)


def _drawn(
    state: Pass, calendar: PoolCalendar, booking: Booking, within: str | None, each: int
) -> tuple[Part, ...]:
    """The booking's parts with as many pieces of `each` units drawn as are idle: in their own cells first,
    then in others that are free to its end. `calendar` is without the booking."""
    since = state.now if booking.stage is Stage.LIVE or state.now > booking.span.start else 0
    parts = [p for p in booking.parts if p.units]
    taken = {u for p in parts for u in p.units}
    left: list[tuple[int, int]] = []
    for part in (p for p in booking.parts if not p.units):
        free = calendar.free_to(part.cell, state.now, booking.span.end)
        idle = [u for u in free if u not in taken]
        units = _first(idle, _whole(min(part.count, len(idle)), each), state.doubted(booking.pool))
        taken.update(units)
        parts += _parts(part.cell, units, since)
        left.append((part.cell, part.count - len(units)))
    for cell, missing in left:
        for other in _others(calendar, cell, within):
            if not missing:
                break
            room = calendar.least_free_in(other, state.now, booking.span.end)
            room -= sum(p.count for p in parts if p.cell == other)
            free = calendar.free_to(other, state.now, booking.span.end)
            idle = [u for u in free if u not in taken]
            count = _whole(min(missing, max(0, room), len(idle)), each)
            units = _first(idle, count, state.doubted(booking.pool))
            taken.update(units)
            parts += _parts(other, units, state.now)
            missing -= len(units)
        if missing:
            parts.append(Part(cell=cell, count=missing))
    return tuple(parts)


def _whole(units: int, each: int) -> int:
    """So many units, rounded down to whole pieces."""
    return units // each * each


def _first(idle: list[int], count: int, doubted: frozenset[int]) -> tuple[int, ...]:
    return tuple(sorted(sorted(idle, key=lambda u: (u in doubted, u))[:count]))


def _parts(cell: int, units: tuple[int, ...], since: int) -> list[Part]:
    return [Part(cell=cell, count=len(units), units=units, since=since)] if units else []


def _others(calendar: PoolCalendar, cell: int, within: str | None) -> list[int]:
    """Other cells of the same domain of level `within`."""
    return [c for g in calendar.pool.groups(within) if cell in g for c in g if c != cell]


def rebook(state: Pass, calendar: PoolCalendar, bookings: list[Booking], cause: str) -> None:
    """Reservations ahead are taken in the order they were made; each must fit beside those before it, stays
    where it is if it does, and is put elsewhere, or found short, if not. Promises have been lifted."""
    for booking in bookings:
        calendar.lift(booking)
    for booking in bookings:
        reservation = state.snapshot.reservations[booking.owner]
        calendar.drop(booking)
        piece = calendar.pool.piece_held(reservation.shape)
        lacking = _lacking(calendar, booking)
        parts = booking.parts
        if lacking:
            calendar.lift(booking)
            span = booking.span
            found = calendar.earliest(
                reservation.count,
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
        short = sum(-(-p.count // piece.units) for p in lacking)
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

