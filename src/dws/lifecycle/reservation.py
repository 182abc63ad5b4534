"""The lifecycle of a reservation.

    PENDING_APPROVAL ─▶ APPROVED ─▶ PROCURING ─▶ PROVISIONING ─▶ FULFILLED ─▶ ENDING ─▶ ENDED
           └─▶ DECLINED     └─▶ CANCELLED                 └──────────────────────────────▲

APPROVED and PROCURING wait for their time; PROVISIONING and ENDING are transitional and always have a timer.
"""

from __future__ import annotations

from typing import Any

from dws.lifecycle.effects import Do, Drop, Effect
from dws.lifecycle.machine import Handler, Step, Table, advance
from dws.model import events as ev
from dws.model.evolve import evolve
from dws.model.reservation import Reservation, ReservationState
from dws.model.work import WorkKind

ReservationStep = Step[Reservation]
ReservationHandler = Handler[Reservation]
_S = ReservationState


def asked(event: ev.ReservationAsked, now: int) -> ReservationStep:
    """The first step of every reservation: as it was admitted, approved or still to be."""
    del now
    reservation = event.reservation
    if reservation.state is _S.PENDING_APPROVAL:
        return Step(reservation, (Do(kind=WorkKind.APPROVAL_EXPIRY, at=reservation.approve_by),))
    return Step(reservation, _timers(reservation))


def step(reservation: Reservation, event: ev.ReservationEvent, now: int) -> ReservationStep:
    """The step `event` makes; raises InvalidTransition when there is none from the reservation's state."""
    return advance(TABLE, reservation, event, now)


def _timers(reservation: Reservation) -> tuple[Effect, ...]:
    """What is due because of the window of a reservation that has not started."""
    window = reservation.window
    return (
        Do(kind=WorkKind.RESERVATION_LOCK, at=reservation.lock_at),
        Do(kind=WorkKind.RESERVATION_START, at=window.start),
        Do(kind=WorkKind.RESERVATION_END, at=window.end),
    )


# --- before the start -------------------------------------------------------------------------


def _approved(reservation: Reservation, event: ev.ReservationApproved, now: int) -> ReservationStep:
    del event, now
    approved = evolve(
        reservation, state=_S.APPROVED, approve_by=0, sequence=reservation.sequence + 1
    )
    return Step(approved, (Drop(), *_timers(approved)))


def _declined(reservation: Reservation, event: ev.ReservationDeclined, now: int) -> ReservationStep:
    return _over(reservation, _S.DECLINED, event.cause, now)


def _cancelled(reservation: Reservation, event: ev.ReservationCancelled, now: int) -> ReservationStep:
    return _over(reservation, _S.CANCELLED, event.cause, now)


def _over(reservation: Reservation, state: ReservationState, why: str, now: int) -> ReservationStep:
    """It is over, and holds nothing any more."""
    ended = evolve(
        reservation,
        state=state,
        booking=None,
        short=0,
        sequence=reservation.sequence + 1,
        ended_at=now,
        end_message=why,
    )
    return Step(ended, (Drop(),))


def _changed(reservation: Reservation, event: ev.ReservationAmended) -> Reservation:
    return evolve(
        reservation,
        name=event.name,
        window=event.window,
        count=event.count,
        pool=event.pool,
        zone=event.zone,
        terms=event.terms,
        description=event.description,
        labels=event.labels,
        time_zone=event.time_zone,
        lock_at=event.lock_at,
        cancel_until=event.cancel_until,
        sequence=reservation.sequence + 1,
    )


def _amended_pending(
    reservation: Reservation, event: ev.ReservationAmended, now: int
) -> ReservationStep:
    del now
    before = min(reservation.approve_by, event.window.start)
    changed = evolve(_changed(reservation, event), approve_by=before)
    return Step(changed, (Do(kind=WorkKind.APPROVAL_EXPIRY, at=before),))


def _amended_ahead(
    reservation: Reservation, event: ev.ReservationAmended, now: int
) -> ReservationStep:
    unlocked = event.lock_at > now  # an operator moved it beyond its lock time
    state = _S.APPROVED if unlocked else reservation.state
    changed = evolve(_changed(reservation, event), state=state)
    return Step(changed, _timers(changed))


def _amended_open(reservation: Reservation, event: ev.ReservationAmended, now: int) -> ReservationStep:
    del now
    changed = evolve(_changed(reservation, event), warned_s=())
    return Step(changed, (Do(kind=WorkKind.RESERVATION_END, at=changed.window.end),))


def _locked(reservation: Reservation, event: ev.ReservationLocked, now: int) -> ReservationStep:
    del event, now
    return Step(evolve(reservation, state=_S.PROCURING))


# --- from the start to the end ----------------------------------------------------------------


def _started(reservation: Reservation, event: ev.ReservationStarted, now: int) -> ReservationStep:
    del event
    return Step(
        evolve(reservation, state=_S.PROVISIONING, idle_since=now),
        (Drop(kinds=(WorkKind.RESERVATION_LOCK, WorkKind.RESERVATION_START)),),
    )


def _delivered(
    reservation: Reservation, event: ev.ReservationDelivered, now: int
) -> ReservationStep:
    del event
    return Step(evolve(reservation, state=_S.FULFILLED, opened_at=now))


def _degraded(reservation: Reservation, event: ev.ReservationDegraded, now: int) -> ReservationStep:
    del now
    return Step(evolve(reservation, short=event.short))


def _restored(reservation: Reservation, event: ev.ReservationRestored, now: int) -> ReservationStep:
    del event, now
    return Step(evolve(reservation, short=0))


def _used(reservation: Reservation, event: ev.ReservationUsed, now: int) -> ReservationStep:
    del event, now
    return Step(evolve(reservation, idle_since=0), (Drop(kinds=(WorkKind.RESERVATION_IDLE,)),))


def _idle(reservation: Reservation, event: ev.ReservationIdle, now: int) -> ReservationStep:
    del event
    return Step(evolve(reservation, idle_since=now))


def _told(
    reservation: Reservation, event: ev.ReservationUnused | ev.ReservationReplaced, now: int
) -> ReservationStep:
    """Its owner was told; nothing else changes."""
    del event, now
    return Step(reservation)


def _warned(reservation: Reservation, event: ev.ReservationWarned, now: int) -> ReservationStep:
    del now
    return Step(evolve(reservation, warned_s=(*reservation.warned_s, event.lead_s)))


def _closing(reservation: Reservation, event: ev.ReservationClosing, now: int) -> ReservationStep:
    del now
    return Step(
        evolve(reservation, state=_S.ENDING, short=0, end_message=event.cause),
        (Drop(kinds=(WorkKind.RESERVATION_WARN, WorkKind.RESERVATION_IDLE)),),
    )


def _closed(reservation: Reservation, event: ev.ReservationClosed, now: int) -> ReservationStep:
    return _over(reservation, _S.ENDED, event.cause or reservation.end_message, now)


def _deleted(reservation: Reservation, event: ev.ReservationDeleted, now: int) -> ReservationStep:
    del event, now
    return Step(evolve(reservation, deleted=True))


_AHEAD = (_S.APPROVED, _S.PROCURING)
_OPEN = (_S.PROVISIONING, _S.FULFILLED)
_OVER = tuple(s for s in ReservationState if s.is_terminal)


def _rows(
    states: tuple[ReservationState, ...], event: type, handler: ReservationHandler
) -> dict[Any, ReservationHandler]:
    return {(state, event): handler for state in states}


TABLE: Table[Reservation] = {
    (_S.PENDING_APPROVAL, ev.ReservationApproved): _approved,
    (_S.PENDING_APPROVAL, ev.ReservationDeclined): _declined,
    (_S.PENDING_APPROVAL, ev.ReservationAmended): _amended_pending,
    **_rows((_S.PENDING_APPROVAL, *_AHEAD), ev.ReservationCancelled, _cancelled),
    **_rows(_AHEAD, ev.ReservationAmended, _amended_ahead),
    **_rows(_OPEN, ev.ReservationAmended, _amended_open),
    (_S.APPROVED, ev.ReservationLocked): _locked,
    **_rows(_AHEAD, ev.ReservationStarted, _started),
    (_S.PROVISIONING, ev.ReservationDelivered): _delivered,
    **_rows((_S.PENDING_APPROVAL, *_AHEAD, *_OPEN), ev.ReservationDegraded, _degraded),
    **_rows((_S.PENDING_APPROVAL, *_AHEAD, *_OPEN), ev.ReservationRestored, _restored),
    **_rows((_S.PENDING_APPROVAL, *_AHEAD, *_OPEN), ev.ReservationReplaced, _told),
    **_rows(_OPEN, ev.ReservationUsed, _used),
    **_rows(_OPEN, ev.ReservationIdle, _idle),
    **_rows(_OPEN, ev.ReservationUnused, _told),
    **_rows(_OPEN, ev.ReservationWarned, _warned),
    **_rows(_OPEN, ev.ReservationClosing, _closing),
    (_S.ENDING, ev.ReservationClosed): _closed,
    **_rows(_OVER, ev.ReservationDeleted, _deleted),
}
"""Every legal step. What is not here cannot happen."""
