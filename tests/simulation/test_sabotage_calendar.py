"""The auditor notices what is done wrong to reservations and series: as `test_sabotage.py` for requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dws.engine import ledger, maintenance, occupancy, planning, reservations, series, usage, windows
from dws.engine.app import Engine
from dws.engine.books import Books
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.errors import DwsError
from dws.model.evolve import evolve
from dws.model.reservation import Reservation
from dws.model.work import WorkKind
from dws.planner import backfill
from dws.planner import windows as search
from dws.planner.calendar import PoolCalendar
from dws.planner.plan import Placement
from dws.store.memory import MemoryTransaction
from tests.simulation.test_sabotage import caught

Patch = pytest.MonkeyPatch
SEEDS = range(24)


def _nothing(*args: Any, **more: Any) -> None:
    del args, more


def _blind_calendars(patch: Patch, is_unseen: Callable[[Booking], bool]) -> None:
    """The planner does not see some bookings, and the store does not mind."""
    add, remove = PoolCalendar.add, PoolCalendar.remove
    patch.setattr(PoolCalendar, "add", lambda c, b: None if is_unseen(b) else add(c, b))
    patch.setattr(PoolCalendar, "remove", lambda c, b: None if is_unseen(b) else remove(c, b))
    patch.setattr(
        MemoryTransaction,
        "put_booking",
        lambda tx, b: tx._exchange_booking(tx._tables.bookings.get(b.id), b),
    )
    patch.setattr(planning, "_check_peaks", _nothing)


# --- what lies inside -------------------------------------------------------------------------


def _start_inside(patch: Patch, change: Callable[[Placement], Placement]) -> None:
    """What starts in a reservation is started a little otherwise."""
    start = planning.start

    def other(w: Write, request: Any, placement: Placement) -> Any:
        return start(w, request, change(placement) if placement.parent else placement)

    patch.setattr(planning, "start", other)


def test_work_that_runs_outside_the_reservation_it_names_is_noticed(monkeypatch: Patch) -> None:
    """Work could run on other people's hosts, and be billed apart from its reservation."""
    _blind_calendars(monkeypatch, lambda b: False)
    _start_inside(monkeypatch, lambda p: replace(p, parent=0))
    caught("names a reservation and was started outside it", seeds=SEEDS)


def test_a_run_that_is_longer_than_its_reservation_is_noticed(monkeypatch: Patch) -> None:
    """A run could hold hosts that the next reservation was promised."""
    _start_inside(monkeypatch, lambda p: replace(p, duration_s=p.duration_s + 100_000))
    caught(r"ends \d+ s after its window", "asked for another duration", seeds=SEEDS)


def test_two_that_share_a_host_inside_are_noticed(monkeypatch: Patch) -> None:
    """Two gangs of one reservation could be put on one host."""
    _blind_calendars(monkeypatch, lambda b: b.parent != 0)
    caught(r"was given to '.*' while '.*' holds it", r"shares a host of", seeds=SEEDS)


def test_a_host_that_is_not_the_reservations_is_noticed(monkeypatch: Patch) -> None:
    """Work could run beside its reservation, on hosts that only look like its own."""
    take = ledger.go_live

    def elsewhere(w: Write, request: Any, placement: Placement) -> Booking:
        booking = take(w, request, placement)
        if placement.parent:
            parent = w.books.bookings[placement.parent]  # type: ignore[index]
            kept = tuple(
                evolve(p, units=p.units[1:], count=len(p.units) - 1) for p in parent.parts if p.units
            )
            w.put_booking(evolve(parent, parts=kept, version=parent.version + 1))
        return booking

    _blind_calendars(monkeypatch, lambda b: False)
    monkeypatch.setattr(ledger, "go_live", elsewhere)
    caught(r"is booked as .*, not as its owner was told", r"is on hosts", seeds=SEEDS)


def test_a_stranger_on_reserved_hosts_is_noticed(monkeypatch: Patch) -> None:
    """Hosts could be lent to anybody while their owner pays for them."""
    _blind_calendars(monkeypatch, lambda b: b.owner_kind is OwnerKind.RESERVATION and b.stage is Stage.LIVE)
    caught(r"which is reserved for", r"are also those of", seeds=SEEDS)


def test_a_part_that_is_exceeded_is_noticed(monkeypatch: Patch) -> None:
    """One team could take the whole of what was lent to two."""
    monkeypatch.setattr(Books, "in_use", lambda books: {})
    caught(r"has \d+ slots in '.*', its part is \d+ x \d+", seeds=range(60))


def test_a_door_that_is_open_to_everybody_is_noticed(monkeypatch: Patch) -> None:
    """Whom a reservation was never shared with could run in it."""
    monkeypatch.setattr(Reservation, "hosts_max_of", lambda r, project: r.count)
    caught(r"should get (PermissionDenied|NeverFits)", r"has no part in", seeds=SEEDS)


def test_who_waits_in_vain_and_is_not_told_is_noticed(monkeypatch: Patch) -> None:
    """Work could wait for a reservation that is long over."""
    monkeypatch.setattr(windows, "_turn_away", _nothing)
    caught(r"waits for reservation '.*', which is", seeds=SEEDS)


# --- kept as booked ---------------------------------------------------------------------------


def _each_pass_also(patch: Patch, change: Callable[[Write, Booking], None]) -> None:
    """With every plan that is written, something is done to the reservations that are booked."""
    commit = planning.commit_plan

    def commit_more(w: Write, plan: Any) -> int:
        for booking in list(w.books.bookings.values()):
            if booking.owner_kind is OwnerKind.RESERVATION and booking.stage is Stage.FIRM:
                change(w, booking)
        return commit(w, plan)

    patch.setattr(planning, "commit_plan", commit_more)


def test_a_reservation_that_moves_by_a_second_is_noticed(monkeypatch: Patch) -> None:
    """A reservation could begin later than its owner was told."""
    _each_pass_also(monkeypatch, lambda w, b: _rebook(w, b, span=b.span.shifted(1)))
    caught(r"is booked as .*, not as its owner was told", seeds=SEEDS)


def test_a_reservation_that_shrinks_is_noticed(monkeypatch: Patch) -> None:
    """A host could be taken off a reservation without a word."""
    first = lambda b: tuple(evolve(p, count=p.count - (i == 0)) for i, p in enumerate(b.parts))  # noqa: E731
    _each_pass_also(monkeypatch, lambda w, b: _rebook(w, b, parts=first(b)))
    caught(r"is booked as .*, not as its owner was told", seeds=SEEDS)


def _rebook(w: Write, booking: Booking, **changes: Any) -> None:
    ledger.rebook(w, booking.id, **changes)


def test_a_start_that_is_late_is_noticed(monkeypatch: Patch) -> None:
    """The doors could open minutes after nine."""
    start = windows.start

    def late(w: Write, reservation: Reservation) -> Reservation:
        if w.now >= reservation.window.start + 5:
            return start(w, reservation)
        w.wake(reservation.id, WorkKind.RESERVATION_START, reservation.window.start + 5)
        return reservation

    monkeypatch.setattr(windows, "start", late)
    caught(r"is not open \d+ s after its start", seeds=SEEDS)


def test_an_end_that_is_not_kept_is_noticed(monkeypatch: Patch) -> None:
    """A reservation could go on at the cost of the next one."""
    monkeypatch.setattr(windows, "_end", _nothing)
    caught(r"is open \d+ s after its end", seeds=SEEDS)


def test_a_missing_host_that_is_there_is_noticed(monkeypatch: Patch) -> None:
    """A reservation could stay short beside idle hosts."""
    collect = backfill.binding.collect

    def lazy(state: Any) -> None:
        if not any(r.short and r.state.is_open for r in state.snapshot.reservations.values()):
            collect(state)

    monkeypatch.setattr(backfill.binding, "collect", lazy)
    caught(r"lacks \d+ hosts, and .* stands idle", seeds=range(60))


def test_a_missing_host_that_nobody_speaks_of_is_noticed(monkeypatch: Patch) -> None:
    """The owner could find fewer hosts than were booked, called delivered."""
    bind = windows.bind
    monkeypatch.setattr(windows, "bind", lambda w, decision: bind(w, evolve(decision, short=0)))
    caught(r"has \d+ of \d+ hosts, lacks 0", r"\d+ hosts are booked at one instant, there are", seeds=SEEDS)


def test_a_lost_host_that_is_kept_is_noticed(monkeypatch: Patch) -> None:
    """A dead host could be counted as delivered, and billed."""
    _blind_calendars(monkeypatch, lambda b: False)
    monkeypatch.setattr(occupancy, "host_lost", _nothing)
    caught(r"are also those of OUTAGE", seeds=range(80))


# --- the rules ----------------------------------------------------------------------------------


def test_a_share_that_is_exceeded_is_noticed(monkeypatch: Patch) -> None:
    """The calendar could close the fleet to everybody else."""
    beside = search._reserved_beside
    monkeypatch.setattr(search, "_reserved_beside", lambda *args: (beside(*args)[0], 1_000))
    caught(r"reserved at one instant, more than .*, the share of them", seeds=SEEDS)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("_check_may_amend", r"amends .* should get FailedPrecondition"),
        ("may_cancel", r"cancels .* should get FailedPrecondition"),
        ("check_window", r"books .* should get InvalidArgument"),
    ],
)
def test_a_rule_that_nobody_keeps_is_noticed(monkeypatch: Patch, rule: str, words: str) -> None:
    """A rule that is shown when booking could be no rule at all."""
    monkeypatch.setattr(reservations, rule, _nothing)
    caught(words, "against the rules", "which the policy forbids", seeds=SEEDS)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (WorkKind.APPROVAL_EXPIRY, "waits for an approval that would come too late"),
        (WorkKind.RESERVATION_LOCK, r"is not locked, \d+ s too late"),
    ],
)
def test_a_timer_that_is_forgotten_is_noticed(monkeypatch: Patch, kind: WorkKind, words: str) -> None:
    """Hosts could be held for ever for an approval nobody gives, or changes be taken at the last minute."""
    do = Write.do

    def forget(w: Write, subject: int, effect: Any) -> None:
        if effect.kind is not kind:
            do(w, subject, effect)

    monkeypatch.setattr(Write, "do", forget)
    caught(words, seeds=SEEDS)


def test_a_reservation_taken_back_too_early_is_noticed(monkeypatch: Patch) -> None:
    """Who comes a minute after the start could find the hosts gone."""
    monkeypatch.setattr(windows, "_look_whether_used", lambda w, r: windows.close(w, r, "nobody came"))
    caught(r"was closed \d+ s early", seeds=SEEDS)


def test_an_occurrence_that_is_forgotten_is_noticed(monkeypatch: Patch) -> None:
    """A weekly class could take place for as long as the horizon goes, and never again."""
    monkeypatch.setattr(series, "book_next", _nothing)
    caught(r"is within the horizon, neither booked nor missed", seeds=SEEDS)


def test_advice_that_cannot_be_booked_is_noticed(monkeypatch: Patch) -> None:
    """People could be sent to a window that is taken."""
    monkeypatch.setattr(search.Ground, "_share_is_full_until", lambda ground, span: None)
    monkeypatch.setattr(search.Ground, "fits", lambda ground, span: None)
    caught(r"as advised: .* should get an answer", r"books .* should get an answer", seeds=SEEDS)


def test_a_refused_change_that_is_made_is_noticed(monkeypatch: Patch) -> None:
    """A change could be refused and made all the same."""
    amend = Engine.amend_reservation

    def half_done(engine: Engine, *args: Any) -> Any:
        try:
            return amend(engine, *args)
        except DwsError:
            note = ev.Noted(what="hm", facts={})
            engine.committer.write(lambda w: w.record(ev.SubjectKind.SYSTEM, 0, note), actor="nobody")
            raise

    monkeypatch.setattr(Engine, "amend_reservation", half_done)
    caught(r"amends .* was refused, and yet something changed", seeds=SEEDS)


# --- what it costs ------------------------------------------------------------------------------


@pytest.mark.parametrize(("early", "late"), [(0, 1), (0, -1), (1, 0)])
def test_a_reserved_second_billed_wrongly_is_noticed(monkeypatch: Patch, early: int, late: int) -> None:
    """An owner could pay for a second that the hosts were not there."""
    reserved = occupancy.reserved
    monkeypatch.setattr(
        occupancy,
        "reserved",
        lambda *args: [replace(r, start=r.start - early, end=r.end + late) for r in reserved(*args)],
    )
    caught(r"reservation '.*' was billed \[.*\], it had", seeds=SEEDS)


def test_idle_time_that_does_not_add_up_is_noticed(monkeypatch: Patch) -> None:
    """Nobody could see who keeps hosts from everybody, or be blamed for what was used."""
    idle = usage._reserved_idle
    monkeypatch.setattr(
        usage,
        "_reserved_idle",
        lambda *args: (replace(line, seconds=line.seconds + 1) for line in idle(*args)),
    )
    caught(r"stood idle \d+ seconds of machines, \d+ are told", seeds=SEEDS)


def test_maintenance_that_never_ends_is_noticed(monkeypatch: Patch) -> None:
    """Hosts could stay out of service for ever because of fans changed last year."""
    monkeypatch.setattr(maintenance, "end", _nothing)
    caught(r"maintenance '.*' is not over", seeds=SEEDS)
