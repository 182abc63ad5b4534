"""The lifecycle of a reservation, pair by pair: every state with every event."""

from __future__ import annotations

import dataclasses
import re
import typing
from pathlib import Path

import pytest

from dws.lifecycle import reservation as lifecycle
from dws.lifecycle.effects import Do, Drop
from dws.model import events as ev
from dws.model.errors import InvalidTransition
from dws.model.names import BookingId, ReservationId
from dws.model.reservation import DEFAULT_TERMS, Reservation, ReservationState
from dws.model.time import Span
from dws.model.work import WorkKind

S = ReservationState
NOW = 1_000
WINDOW = Span(5_000, 9_000)
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "reservations.md"

AMENDED = ev.ReservationAmended(
    name="b",
    window=Span(6_000, 8_000),
    count=3,
    pool="q",
    zone="y",
    terms=DEFAULT_TERMS,
    description="more",
    labels={"team": "vision"},
    time_zone="Europe/Berlin",
    lock_at=5_900,
    cancel_until=5_800,
)
EVENTS: dict[type, ev.ReservationEvent] = {
    type(e): e
    for e in (
        ev.ReservationApproved(),
        ev.ReservationDeclined(cause="no"),
        AMENDED,
        ev.ReservationLocked(),
        ev.ReservationStarted(),
        ev.ReservationDelivered(late_s=0),
        ev.ReservationDegraded(short=1, cause="power"),
        ev.ReservationRestored(),
        ev.ReservationReplaced(hosts=("h9",), cause="power"),
        ev.ReservationUsed(),
        ev.ReservationIdle(),
        ev.ReservationUnused(idle_s=60, release_at=0),
        ev.ReservationWarned(lead_s=60),
        ev.ReservationCancelled(cause="changed my mind"),
        ev.ReservationClosing(cause="its window is over"),
        ev.ReservationClosed(),
        ev.ReservationDeleted(),
    )
}

PENDING, AHEAD, OPEN = (S.PENDING_APPROVAL,), (S.APPROVED, S.PROCURING), (S.PROVISIONING, S.FULFILLED)
OVER = (S.ENDED, S.DECLINED, S.CANCELLED)


def stays(*states: ReservationState) -> dict[ReservationState, ReservationState]:
    return {s: s for s in states}


EXPECTED: dict[type, dict[ReservationState, ReservationState]] = {
    ev.ReservationApproved: {S.PENDING_APPROVAL: S.APPROVED},
    ev.ReservationDeclined: {S.PENDING_APPROVAL: S.DECLINED},
    ev.ReservationAmended: {**stays(*PENDING, *OPEN), **dict.fromkeys(AHEAD, S.APPROVED)},
    ev.ReservationLocked: {S.APPROVED: S.PROCURING},
    ev.ReservationStarted: dict.fromkeys(AHEAD, S.PROVISIONING),
    ev.ReservationDelivered: {S.PROVISIONING: S.FULFILLED},
    ev.ReservationDegraded: stays(*PENDING, *AHEAD, *OPEN),
    ev.ReservationRestored: stays(*PENDING, *AHEAD, *OPEN),
    ev.ReservationReplaced: stays(*PENDING, *AHEAD, *OPEN),
    ev.ReservationUsed: stays(*OPEN),
    ev.ReservationIdle: stays(*OPEN),
    ev.ReservationUnused: stays(*OPEN),
    ev.ReservationWarned: stays(*OPEN),
    ev.ReservationCancelled: dict.fromkeys((*PENDING, *AHEAD), S.CANCELLED),
    ev.ReservationClosing: dict.fromkeys(OPEN, S.ENDING),
    ev.ReservationClosed: {S.ENDING: S.ENDED},
    ev.ReservationDeleted: stays(*OVER),
}


def a_reservation(state: ReservationState, **more: object) -> Reservation:
    told: dict[str, object] = {
        "booking": None if state.is_terminal else BookingId(7),
        "approve_by": 4_000 if state is S.PENDING_APPROVAL else 0,
        "lock_at": 4_100,
        **more,
    }
    return Reservation(
        id=ReservationId(1),
        name="a",
        project="p",
        principal="ann",
        state=state,
        window=WINDOW,
        pool="p",
        zone="z",
        shape="m",
        count=2,
        created_at=500,
        **told,  # type: ignore[arg-type]
    )


def test_the_examples_cover_every_event_of_a_reservation() -> None:
    """A new event without an example here would be untested in every state."""
    assert set(EVENTS) == set(typing.get_args(ev.ReservationEvent)) - {ev.ReservationAsked}
    assert set(EXPECTED) == set(EVENTS)


@pytest.mark.parametrize("event", EVENTS.values(), ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("state", list(S), ids=str)
def test_every_state_with_every_event(state: ReservationState, event: ev.ReservationEvent) -> None:
    """A reservation could take a step nobody decided, or refuse one it must take."""
    reservation = a_reservation(state)
    expected = EXPECTED[type(event)].get(state)
    if expected is None:
        with pytest.raises(InvalidTransition) as refused:
            lifecycle.step(reservation, event, NOW)
        assert "reservation 'a'" in refused.value.message and str(state) in refused.value.message
        return
    step = lifecycle.step(reservation, event, NOW)
    assert step.subject.state is expected
    assert step.subject.version == reservation.version + 1
    assert reservation == a_reservation(state), "the value before is untouched"
    if step.subject.state.is_terminal and not state.is_terminal:
        assert (step.subject.booking, step.subject.short, step.subject.ended_at) == (None, 0, NOW)
        assert step.effects == (Drop(),), "nothing is due any more of what is over"


def test_a_terminal_state_never_changes_again() -> None:
    """A reservation that is over could hold hosts again."""
    for state, event in lifecycle.TABLE:
        if state.is_terminal:
            assert event is ev.ReservationDeleted


def test_the_documented_diagram_is_the_table() -> None:
    """People would be shown steps that are not possible, or not the ones that are."""
    shown = set(re.findall(r"^ +(\w+) --> (\w+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    steps = {(a.value, b.value) for rows in EXPECTED.values() for a, b in rows.items() if a is not b}
    assert shown == steps


@pytest.mark.parametrize("state", [S.PENDING_APPROVAL, S.APPROVED], ids=str)
def test_what_is_due_when_it_was_asked(state: ReservationState) -> None:
    """It would never start, or wait for ever for an approval."""
    step = lifecycle.asked(ev.ReservationAsked(reservation=a_reservation(state)), NOW)
    window = (
        Do(kind=WorkKind.RESERVATION_LOCK, at=4_100),
        Do(kind=WorkKind.RESERVATION_START, at=5_000),
        Do(kind=WorkKind.RESERVATION_END, at=9_000),
    )
    expiry = (Do(kind=WorkKind.APPROVAL_EXPIRY, at=4_000),)
    assert step.effects == (expiry if state is S.PENDING_APPROVAL else window)
    approved = lifecycle.step(a_reservation(S.PENDING_APPROVAL), ev.ReservationApproved(), NOW)
    assert approved.effects == (Drop(), *window) and approved.subject.approve_by == 0


def test_a_change_is_the_whole_change_and_moves_what_is_due() -> None:
    """It would start at the old hour, or keep a value that was changed."""
    step = lifecycle.step(a_reservation(S.APPROVED), AMENDED, NOW)
    for field in dataclasses.fields(AMENDED):
        assert getattr(step.subject, field.name) == getattr(AMENDED, field.name), field.name
    assert step.subject.sequence == 1
    assert Do(kind=WorkKind.RESERVATION_START, at=6_000) in step.effects
    assert Do(kind=WorkKind.RESERVATION_END, at=8_000) in step.effects


def test_what_an_operator_moves_beyond_its_lock_can_be_changed_again() -> None:
    """It would be locked from now on, for a lock time that lies ahead."""
    assert lifecycle.step(a_reservation(S.PROCURING), AMENDED, NOW).subject.state is S.APPROVED
    assert lifecycle.step(a_reservation(S.PROCURING), AMENDED, 5_900).subject.state is S.PROCURING


def test_an_approval_comes_too_late_when_a_changed_window_has_begun() -> None:
    """It would be held, and approved, after its own start."""
    earlier = dataclasses.replace(AMENDED, window=Span(3_000, 8_000))
    step = lifecycle.step(a_reservation(S.PENDING_APPROVAL), earlier, NOW)
    assert step.subject.approve_by == 3_000
    assert step.effects == (Do(kind=WorkKind.APPROVAL_EXPIRY, at=3_000),)
    assert lifecycle.step(a_reservation(S.PENDING_APPROVAL), AMENDED, NOW).subject.approve_by == 4_000


def test_idle_time_counts_from_the_start_and_from_the_last_use() -> None:
    """A reservation in use could be taken back as unused."""
    started = lifecycle.step(a_reservation(S.PROCURING), ev.ReservationStarted(), NOW).subject
    assert started.idle_since == NOW
    used = lifecycle.step(started, ev.ReservationUsed(), NOW + 5)
    assert used.subject.idle_since == 0 and Drop(kinds=(WorkKind.RESERVATION_IDLE,)) in used.effects
    assert lifecycle.step(used.subject, ev.ReservationIdle(), NOW + 9).subject.idle_since == NOW + 9


def test_the_end_says_why_it_closed() -> None:
    """The owner would not learn that the reservation was given back, not over by time."""
    closing = lifecycle.step(a_reservation(S.FULFILLED, short=1), ev.ReservationClosing(cause="released"), NOW)
    assert (closing.subject.state, closing.subject.short) == (S.ENDING, 0)
    closed = lifecycle.step(closing.subject, ev.ReservationClosed(), NOW + 60).subject
    assert (closed.end_message, closed.ended_at) == ("released", NOW + 60)
