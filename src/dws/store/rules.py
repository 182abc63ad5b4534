"""What both stores do alike: how versions follow each other, what of a booking counts, what a
recorded event is."""

from __future__ import annotations

from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.document import Document
from dws.model.errors import AlreadyExists, Conflict
from dws.model.events import Event, NewEvent


def check_version(noun: str, number: int, version: int, stored: int | None) -> None:
    """Raise AlreadyExists or Conflict unless `version` follows the stored one (None: nothing stored)."""
    if version == 1 and stored is not None:
        raise AlreadyExists(f"{noun} {number} exists already, at version {stored}")
    if version != (stored or 0) + 1:
        was = f"version {stored}" if stored else "not there"
        raise Conflict(f"{noun} {number}: version {version} was to be written, but it is {was}")


def place_of(document: Document) -> tuple[str, str, str, str, str]:
    """What a document is found by: kind, project, scope, name, parent."""
    return document.kind, document.project, document.scope, document.name, document.parent


def check_free(document: Document, there: Document | None) -> None:
    """Raise AlreadyExists when another document has the name."""
    if there is not None and there.id != document.id:
        raise AlreadyExists(f"{document.kind} '{document.name}' exists already in {document.scope}")


def units_of(booking: Booking) -> tuple[tuple[int, int], ...]:
    """(unit, from when) of the units that have a row: the drawn ones, none held for no time. A maintenance
    window has none: it may lie over what somebody has, openly."""
    end = booking.span.end
    if booking.owner_kind is OwnerKind.MAINTENANCE:
        return ()
    return tuple([held for held in booking.holdings if held[1] < end])


def counts_of(booking: Booking) -> tuple[tuple[int, int], ...]:
    """(cell, count) of a booking that counts against the fleet; none when ended, inside a parent,
    of no length, or for maintenance."""
    if booking.stage is Stage.ENDED or booking.parent or not booking.span.length_s:
        return ()
    if booking.owner_kind is OwnerKind.MAINTENANCE:
        return ()
    if len(booking.parts) == 1 and booking.parts[0].count:
        return ((booking.parts[0].cell, booking.parts[0].count),)
    sums: dict[int, int] = {}
    for part in booking.parts:
        sums[part.cell] = sums.get(part.cell, 0) + part.count
    return tuple((cell, count) for cell, count in sums.items() if count)


def numbered(new: NewEvent, seq: int, subject_seq: int) -> Event:
    """The event as recorded under these numbers."""
    return Event(
        seq=seq,
        subject_seq=subject_seq,
        at=new.at,
        actor=new.actor,
        subject_kind=new.subject_kind,
        subject=new.subject,
        body=new.body,
        project=new.project,
        name=new.name,
        reason=new.reason,
        call_id=new.call_id,
    )
