"""Series of reservations: begun, booked occurrence by occurrence as they come within the horizon, changed,
ended.

Each occurrence is a reservation of its own, so it can be changed or cancelled alone. Beginning and changing
a series is all or nothing unless its owner says that what does not fit may be missed; occurrences that come
within the horizon later and do not fit are missed openly.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Final

from dws.engine import access, replies, reservations, windows
from dws.engine.answers import Upcoming
from dws.engine.commands import AmendSeries, Repeat, Reserve
from dws.engine.ports import Reader, ReservationQuery
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.access import Principal, Role
from dws.model.errors import AlreadyExists, DwsError, FailedPrecondition, InvalidArgument, NoRoom, NotFound
from dws.model.evolve import evolve
from dws.model.names import SeriesId, check_labels, check_name, check_project
from dws.model.recurrence import Occurrence, Recurrence, occurrences
from dws.model.reservation import Reservation
from dws.model.series import Missed, Series, SeriesState
from dws.model.time import DAY, FOREVER
from dws.model.work import WorkKind

MISSED_KEPT: Final = 100
SHOWN: Final = 100
LONGEST_S: Final = 8 * DAY  # a week, and what a change of the clocks may add


def look_up(reader: Reader, project: str, name: str) -> Series:
    """The series of that name (the newest) or decimal id. Raises NotFound."""
    found = reader.series_named(project, name)
    if found is None and name.isdecimal():
        found = reader.series(int(name))
    if found is None or found.project != project:
        raise NotFound(f"no series '{name}' in project '{project}'")
    return found


def upcoming(reader: Reader, series: Series, now: int, horizon_s: int) -> tuple[Upcoming, ...]:
    """Its occurrences that are not over, the one under way first: booked, missed, or booked later, when they
    come within the horizon. Of a series that is over only those that are kept."""
    reservation_of = _booked(reader, series)
    missed = {m.day: m.cause for m in series.missed}
    found = []
    for one in occurrences(series.recurrence, after=now - LONGEST_S, before=FOREVER):
        reservation = reservation_of(one)
        is_kept = reservation is not None and not reservation.state.is_terminal
        if not is_kept and (one.span.start < now or series.state is not SeriesState.ACTIVE):
            continue
        cause = "" if is_kept else missed.get(one.day, "")
        is_later = reservation is None and not cause and one.span.start >= series.booked_until
        found.append(
            Upcoming(
                day=one.day,
                span=reservation.window if reservation is not None and is_kept else one.span,
                note=one.note,
                reservation=None if cause else reservation,
                cause=cause,
                books_at=max(now, one.span.start - horizon_s) if is_later else 0,
            )
        )
    return tuple(found[:SHOWN])


def _booked(reader: Reader, series: Series) -> Callable[[Occurrence], Reservation | None]:
    """Finds the reservation of an occurrence, the newest of its name, or one that was given another name."""
    rows = members(reader, series)
    named = {r.name: r for r in rows}
    starting = {r.window.start: r for r in rows if not r.state.is_terminal}

    def of(one: Occurrence) -> Reservation | None:
        return starting.get(one.span.start) or named.get(series.occurrence_name(one.day))

    return of


def members(reader: Reader, series: Series) -> list[Reservation]:
    """Every reservation of a series, oldest first."""
    return reader.reservations(ReservationQuery(project=series.project, series=series.name, limit=100_000))


# --- beginning --------------------------------------------------------------------------------


def repeat(w: Write, who: Principal, command: Repeat) -> Series:
    """Begin a series and book what lies within the horizon.

    Raises NoRoom naming the occurrences that do not fit, unless they may be missed.
    """
    access.may_write(who, command.project)
    act = lambda: [_repeat(w, who, command)]  # noqa: E731
    return replies.once(w, who, "repeat", command.call_id, command, act, w.tx.series)[0]


def _repeat(w: Write, who: Principal, command: Repeat) -> Series:
    check_project(command.project)
    check_name(command.name)
    check_labels(command.labels)
    reservations.check_terms(command.terms)
    holder = w.tx.series_named(command.project, command.name)
    if holder is not None and holder.state is SeriesState.ACTIVE:
        raise AlreadyExists(
            f"projects/{command.project}/series/{command.name} already exists; take another name, or amend "
            "or cancel it",
            field="name",
        )
    _lies_ahead(command.recurrence, w.now)
    series = Series(
        id=SeriesId(w.ids.next(w.now)),
        name=command.name,
        project=command.project,
        principal=who.name,
        alternative=command.alternative,
        recurrence=command.recurrence,
        created_at=w.now,
        terms=command.terms,
        description=command.description,
        labels=command.labels,
        booked_until=w.now,
    )
    w.put_series(series, ev.SeriesBegun(series=series))
    return _book(w, who, series, may_miss=command.may_miss)


def _lies_ahead(recurrence: Recurrence, now: int) -> None:
    """Raises InvalidArgument when no occurrence does."""
    if not occurrences(recurrence, after=now, before=FOREVER):
        raise InvalidArgument("every: no occurrence of it lies ahead", field="every")


def _book(w: Write, who: Principal, series: Series, *, may_miss: bool) -> Series:
    """Book every occurrence that has come within the horizon, and look again when the next one does."""
    until = w.now + w.policy.calendar_horizon_s + 1
    missed: list[Missed] = []
    for one in occurrences(series.recurrence, after=series.booked_until, before=until):
        cause = _book_one(w, who, series, one)
        if cause:
            missed.append(Missed(day=one.day, start=one.span.start, cause=cause))
    if missed and not may_miss:
        days = ", ".join(f"{m.day}" for m in missed[:5]) + (" …" if len(missed) > 5 else "")
        raise NoRoom(
            f"every: {len(missed)} of its occurrences cannot be booked ({days}): {missed[0].cause}; nothing "
            "was booked (may_miss books the others)",
            field="every",
            details={"missed": [{"day": str(m.day), "cause": m.cause} for m in missed]},
        )
    for one_missed in missed:
        event = ev.OccurrenceMissed(day=one_missed.day, start=one_missed.start, cause=one_missed.cause)
        w.record(ev.SubjectKind.SERIES, series.id, event, name=series.name, project=series.project)
    booked_until = max(series.booked_until, until)
    kept = (*series.missed, *missed)[-MISSED_KEPT:]
    series = evolve(series, booked_until=booked_until, missed=kept, version=series.version + 1)
    again = _look_again_at(w, series)
    if again is None:
        series = evolve(series, state=SeriesState.ENDED, ended_at=w.now)
        w.put_series(series, ev.SeriesEnded(cause="its last occurrence is over"))
        return series
    w.tx.put_series(series)
    w.wake(series.id, WorkKind.SERIES_NEXT, again)
    return series


def _look_again_at(w: Write, series: Series) -> int | None:
    """When the next occurrence comes within the horizon, or the last one is over; None when it is."""
    ahead = occurrences(series.recurrence, after=series.booked_until, before=FOREVER)
    if ahead:
        return ahead[0].span.start - w.policy.calendar_horizon_s
    last = max((r.window.end for r in members(w.tx, series) if not r.state.is_terminal), default=0)
    return last if last > w.now else None


def _book_one(w: Write, who: Principal, series: Series, one: Occurrence) -> str:
    """Book one occurrence; the reason why not, empty when it is booked."""
    if one.span.length_s < 1:
        return one.note
    command = Reserve(
        project=series.project,
        name=series.occurrence_name(one.day),
        alternative=evolve(series.alternative, duration_s=one.span.length_s),
        start=one.span.start,
        terms=series.terms,
        description=series.description,
        labels=series.labels,
        time_zone=series.recurrence.zone,
    )
    try:
        with w.part():
            reservations.book(w, who, command, series=series.name)
    except DwsError as error:
        return error.message
    return ""


def book_next(w: Write, series: Series) -> None:
    """A timer: the next occurrence has come within the horizon."""
    if series.state is SeriesState.ACTIVE:
        owner = Principal(name=series.principal, role=Role.USER, projects=(series.project,))
        _book(w, owner, series, may_miss=True)


# --- changing ---------------------------------------------------------------------------------


def amend(w: Write, who: Principal, command: AmendSeries) -> Series:
    """Change what is booked, or when, from now on: occurrences that can still be changed are booked anew, in
    one step. Raises NoRoom, and nothing is changed, when one does not fit."""
    access.may_write(who, command.project)
    series = _active(w, command.project, command.name)
    if command.recurrence is not None:
        _lies_ahead(command.recurrence, w.now)
    changed = evolve(
        series,
        recurrence=command.recurrence or series.recurrence,
        alternative=command.alternative or series.alternative,
        terms=series.terms if command.terms is None else command.terms,
        description=series.description if command.description is None else command.description,
        booked_until=w.now,
        missed=tuple(m for m in series.missed if m.start < w.now),
        version=series.version + 1,
    )
    kept = _give_up(w, who, series, "the series was changed")
    latest = max((r.window.end for r in kept), default=w.now)
    changed = evolve(changed, booked_until=max(w.now, latest))
    w.put_series(changed, ev.SeriesAmended(series=changed))
    return _book(w, who, changed, may_miss=command.may_miss)


def leave_out(w: Write, who: Principal, project: str, name: str, day: date) -> Series:
    """Cancel the occurrence of one day; the others are not touched."""
    access.may_write(who, project)
    series = _active(w, project, name)
    ahead = occurrences(series.recurrence, after=w.now, before=FOREVER)
    one = next((o for o in ahead if o.day == day), None)
    if one is None:
        raise InvalidArgument(f"day: no occurrence of '{name}' on {day} lies ahead", field="day")
    reservation = _booked(w.tx, series)(one)
    if reservation is not None and not reservation.state.is_terminal:
        reservations.cancel(w, who, project, reservation.name)
    changed = evolve(series, recurrence=series.recurrence.without(day), version=series.version + 1)
    w.put_series(changed, ev.SeriesAmended(series=changed))
    return changed


def _active(w: Write, project: str, name: str) -> Series:
    """The series of that name. Raises NotFound, FailedPrecondition when it is over."""
    series = look_up(w.tx, project, name)
    if series.state is not SeriesState.ACTIVE:
        raise FailedPrecondition(f"series '{series.name}' is {series.state}")
    return series


def cancel(w: Write, who: Principal, project: str, name: str) -> Series:
    """End a series: occurrences that have not started are cancelled, where the policy allows it."""
    access.may_write(who, project)
    series = _active(w, project, name)
    cause = f"cancelled by {who.name}"
    _give_up(w, who, series, cause)
    w.tx.unschedule(series.id)
    ended = evolve(series, state=SeriesState.CANCELLED, ended_at=w.now, version=series.version + 1)
    w.put_series(ended, ev.SeriesEnded(cause=cause))
    return ended


def _give_up(w: Write, who: Principal, series: Series, cause: str) -> list[Reservation]:
    """Cancel its occurrences that have not started; returns those that the rules keep."""
    kept = []
    for reservation in members(w.tx, series):
        if reservation.state.is_terminal:
            continue
        try:
            reservations.may_cancel(w, who, reservation)
        except FailedPrecondition:
            kept.append(reservation)
            continue
        windows.given_up(w, reservation, ev.ReservationCancelled(cause=cause), cause)
    return kept
