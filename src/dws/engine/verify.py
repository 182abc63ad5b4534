"""The ledger checked against itself: `dws ledger verify`.

Everything the planner and the lifecycles guarantee is computed again from the stored rows alone, by
other means: peaks by the store's own query, states by folding each request's events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from dws.engine.answers import Verification
from dws.engine.ports import Reader, RequestQuery, ReservationQuery
from dws.lifecycle import request as lifecycle
from dws.lifecycle import reservation as reservation_lifecycle
from dws.model import events as ev
from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.errors import DwsError
from dws.model.names import BookingId
from dws.model.request import CapacityRequest
from dws.model.reservation import Reservation, ReservationState
from dws.model.topology import Fleet
from dws.planner import slices

PAGE: Final = 500
Row = CapacityRequest | Reservation


def verify(reader: Reader) -> Verification:
    """Check everything; reads the whole store."""
    fleet = reader.fleet() or Fleet(zones=(), pools=())
    bookings = reader.open_bookings()
    faults: list[str] = []
    faults += _units_are_held_once(fleet, bookings)
    reservations: dict[int, Reservation] = {r.id: r for r in all_reservations(reader)}
    faults += _peaks_within_capacity(reader, fleet, bookings, reservations)
    requests: dict[int, CapacityRequest] = {r.id: r for r in all_requests(reader)}
    faults += _owners_agree(requests, bookings)
    faults += _inside_their_parents(bookings)
    faults += _reservations_agree(fleet, reservations, bookings)
    count, story = _fold(reader)
    faults += _story_equals_rows(requests, story)
    faults += _story_equals_rows(reservations, story)
    return Verification(
        bookings=len(bookings), requests=len(requests), events=count, faults=tuple(faults)
    )


def all_requests(reader: Reader) -> Iterator[CapacityRequest]:
    """Every request kept, oldest first, deleted ones included."""
    after: int | None = None
    while True:
        page = reader.requests(RequestQuery(include_deleted=True, after=after, limit=PAGE))
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].id


def all_reservations(reader: Reader) -> Iterator[Reservation]:
    """Every reservation kept, oldest first, deleted ones included."""
    after: int | None = None
    while True:
        page = reader.reservations(ReservationQuery(include_deleted=True, after=after, limit=PAGE))
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].id


def _units_are_held_once(fleet: Fleet, bookings: list[Booking]) -> Iterator[str]:
    by_unit: dict[tuple[int, str, int], list[Booking]] = defaultdict(list)
    for booking in bookings:
        if booking.owner_kind is OwnerKind.MAINTENANCE:  # may lie over what somebody has, openly
            continue
        for unit in booking.units:
            by_unit[booking.parent, booking.pool, unit].append(booking)
    for (_, pool, unit), holders in sorted(by_unit.items()):
        holders.sort(key=lambda b: b.span)
        for first, second in pairwise(holders):
            if first.span.overlaps(second.span):
                (host,) = fleet.pool(pool).hosts_of((unit,))
                yield f"{pool}/{host} is in bookings {first.id} and {second.id} at one instant"


def _peaks_within_capacity(
    reader: Reader, fleet: Fleet, bookings: list[Booking], reservations: Mapping[int, Reservation]
) -> Iterator[str]:
    used = {(b.pool, p.cell) for b in bookings if not b.parent for p in b.parts}
    ends = max((b.span.end for b in bookings), default=0)
    start = min((b.span.start for b in bookings), default=0)
    for pool_name, cell in sorted(used):
        size = fleet.pool(pool_name).cells[cell].size
        peak = reader.peak(pool_name, cell, start, ends)
        lacking = sum(
            reservations[b.owner].short * slices.units_each(reservations[b.owner], fleet.pool(pool_name))
            for b in bookings
            if b.owner_kind is OwnerKind.RESERVATION and b.pool == pool_name and b.owner in reservations
        )
        if peak > size + lacking:
            name = fleet.pool(pool_name).cells[cell].name or str(cell)
            what = "accelerators" if fleet.pool(pool_name).is_shared else "hosts"
            yield f"{pool_name} {name}: {peak} {what} booked at one instant, there are {size}"


def _owners_agree(requests: dict[int, CapacityRequest], bookings: list[Booking]) -> Iterator[str]:
    held = {b.owner: b for b in bookings if b.owner_kind is OwnerKind.REQUEST}
    for booking in held.values():
        owner = requests.get(booking.owner)
        if owner is None or owner.booking != booking.id:
            yield f"booking {booking.id} ({booking.stage}) has no owner that knows it"
        elif (booking.stage is Stage.FIRM) != owner.state.is_waiting:
            yield f"booking {booking.id} is {booking.stage} but '{owner.name}' is {owner.state}"
    for request in requests.values():
        if request.booking is not None and request.id not in held:
            has_units = request.grant and any(i.is_held for i in request.grant.instances)
            if request.state.is_waiting or has_units:
                yield f"request '{request.name}' ({request.state}) says it has a booking; it has none"
        if request.state.is_terminal and request.id in held:
            yield f"request '{request.name}' is {request.state} and still holds a booking"


def _inside_their_parents(bookings: list[Booking]) -> Iterator[str]:
    by_id = {b.id: b for b in bookings}
    for child in bookings:
        if not child.parent:
            continue
        parent = by_id.get(BookingId(child.parent))
        if parent is None:
            yield f"booking {child.id} lies inside booking {child.parent}, which is not open"
        elif not parent.span.contains(child.span) or not set(child.units) <= set(parent.units):
            yield f"booking {child.id} does not lie inside booking {parent.id}"


def _reservations_agree(
    fleet: Fleet, reservations: dict[int, Reservation], bookings: list[Booking]
) -> Iterator[str]:
    held = {b.owner: b for b in bookings if b.owner_kind is OwnerKind.RESERVATION}
    for reservation in reservations.values():
        booking = held.get(reservation.id)
        if reservation.state.is_terminal != (booking is None):
            has = "none" if booking is None else str(booking.id)
            yield f"reservation '{reservation.name}' is {reservation.state}, its booking is {has}"
        elif booking is None or reservation.state is ReservationState.ENDING:
            continue
        elif (booking.count, booking.span) != (_units_of(fleet, reservation), reservation.window):
            yield f"reservation '{reservation.name}' is not booked as it says"
    for owner in held.keys() - reservations.keys():
        yield f"booking {held[owner].id} has no reservation that knows it"


def _units_of(fleet: Fleet, reservation: Reservation) -> int:
    return reservation.count * slices.units_each(reservation, fleet.pool(reservation.pool))


def _fold(reader: Reader) -> tuple[int, dict[int, Row | str]]:
    story: dict[int, Row | str] = {}
    count = after = 0
    while page := reader.events(after=after, limit=PAGE):
        for event in page:
            if event.subject_kind in (ev.SubjectKind.REQUEST, ev.SubjectKind.RESERVATION):
                story[event.subject] = _tell(story.get(event.subject), event)
        count += len(page)
        after = page[-1].seq
    return count, story


def _tell(before: Row | str | None, event: ev.Event) -> Row | str:
    body = event.body
    if isinstance(body, ev.Submitted):
        return lifecycle.submitted(body, event.at).subject
    if isinstance(body, ev.ReservationAsked):
        return reservation_lifecycle.asked(body, event.at).subject
    if before is None or isinstance(before, str):
        return before or f"event {event.seq} {event.kind} comes before anything was asked"
    try:
        if isinstance(before, Reservation):
            return reservation_lifecycle.step(before, body, event.at).subject  # type: ignore[arg-type]
        return lifecycle.step(before, body, event.at).subject  # type: ignore[arg-type]
    except DwsError as error:
        return f"event {event.seq}: {error.message}"


def _story_equals_rows(rows: Mapping[int, Row], story: dict[int, Row | str]) -> Iterator[str]:
    for row in rows.values():
        kind = "reservation" if isinstance(row, Reservation) else "request"
        told = story.get(row.id)
        if isinstance(told, str):
            yield f"{kind} '{row.name}': {told}"
        elif told is None:
            yield f"{kind} '{row.name}' has no events"
        elif told != row:
            yield f"{kind} '{row.name}': its events do not add up to its row"
