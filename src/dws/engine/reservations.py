"""What people do with reservations: book, approve, decline, amend, cancel, release, delete.

Each verb is one unit of writing, checked against every promise and every other reservation in the same
instant in which it is written: confirmed, or refused with the reason and the nearest windows that would fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dws.engine import access, ledger, replies, windows
from dws.engine.commands import AmendReservation, Reserve, Seek
from dws.engine.ports import Reader
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.access import Principal, Role
from dws.model.booking import Stage
from dws.model.demand import OPEN_ENDED_S
from dws.model.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
)
from dws.model.evolve import evolve
from dws.model.names import ReservationId, check_labels, check_name, check_project
from dws.model.recurrence import occurrences
from dws.model.reservation import Reservation, ReservationState, Terms
from dws.model.time import DAY, Span, in_words, length_in_words
from dws.planner import windows as windows_of
from dws.planner.options import PolicyOptions
from dws.planner.plan import WindowOption

DESCRIPTION_MAX: Final = 2_048
SHARES_MAX: Final = 100
SEEK_MAX: Final = 100


def look_up(reader: Reader, project: str, name: str) -> Reservation:
    """The reservation of that name (the newest) or decimal id. Raises NotFound."""
    found = reader.reservation_named(project, name)
    if found is None and name.isdecimal():
        found = reader.reservation(int(name))
    if found is None or found.deleted or found.project != project:
        raise NotFound(f"no reservation '{name}' in project '{project}' ('dws reservations' shows them)")
    return found


def find_for(reader: Reader, project: str, name: str) -> Reservation:
    """The reservation that work of `project` names, by NAME in its own project or PROJECT/NAME.

    Raises NotFound, with a hint where another project shares one of that name, or PermissionDenied when it
    is not shared with `project`.
    """
    owner, _, short = name.rpartition("/")
    if not owner:
        found = reader.reservation_named(project, name)
        if found is None:
            raise NotFound(
                f"reservation: no reservation '{name}' in project '{project}'; one that another project "
                "shares is named PROJECT/NAME",
                field="reservation",
            )
        return found
    found = reader.reservation_named(owner, short)
    if found is None or found.hosts_max_of(project) is None:
        raise PermissionDenied(
            f"reservation: '{name}' is not shared with project '{project}'", field="reservation"
        )
    return found


def _once(
    w: Write,
    who: Principal,
    method: str,
    call_id: str,
    body: object,
    act: Callable[[], Reservation],
) -> Reservation:
    return replies.once(w, who, method, call_id, body, lambda: [act()], w.tx.reservation)[0]


# --- booking ----------------------------------------------------------------------------------


def reserve(w: Write, who: Principal, command: Reserve) -> Reservation:
    """Book it, or hold it until it is approved; with `dry_run` only say how it would be."""
    access.may_write(who, command.project)
    if command.dry_run:
        return _propose(w, who, command)[0]
    act = lambda: book(w, who, command)  # noqa: E731
    return _once(w, who, "reserve", command.call_id, command, act)


def book(w: Write, who: Principal, command: Reserve, *, series: str = "") -> Reservation:
    """Book it, or hold it until it is approved; `series` is the one it is an occurrence of."""
    reservation, option = _propose(w, who, command)
    reservation = evolve(reservation, series=series)
    tentative = reservation.state is ReservationState.PENDING_APPROVAL
    stage = Stage.HOLD if tentative else Stage.FIRM
    booking = ledger.reserve(w, reservation.id, option.pool, option.window, option.parts, stage)
    booked = w.reserve(evolve(reservation, booking=booking.id))
    return windows.start(w, booked) if command.on_demand else booked


def _propose(
    w: Write, who: Principal, command: Reserve
) -> tuple[Reservation, WindowOption]:
    """The reservation as it would be, and where. Raises InvalidArgument, AlreadyExists or NoRoom."""
    window = window_of(w.now, w.policy, command)
    _check(command)
    _check_name_is_free(w, command.project, command.name)
    needs_approval = w.policy.reservation_approval == "approver" and who.role is not Role.OPERATOR
    if needs_approval and command.on_demand:
        raise PermissionDenied(
            "on this fleet an operator approves reservations before they start, so none starts at once; book "
            "one ahead, or ask an operator to make it"
        )
    option = windows.place(w, command.alternative, window)
    state = ReservationState.PENDING_APPROVAL if needs_approval else ReservationState.APPROVED
    approve_by = min(window.start, w.now + w.policy.approval_expiry_s) if needs_approval else 0
    reservation = Reservation(
        id=ReservationId(w.ids.next(w.now)),
        name=command.name,
        project=command.project,
        principal=who.name,
        state=state,
        window=window,
        pool=option.pool,
        zone=option.zone,
        shape=option.shape,
        count=option.count,
        within=option.within,
        topology=option.topology,
        created_at=w.now,
        terms=command.terms,
        description=command.description,
        labels=command.labels,
        time_zone=command.time_zone,
        on_demand=command.on_demand,
        approve_by=approve_by,
        lock_at=lock_at(w.now, w.policy, window.start),
        cancel_until=cancel_until(w.now, w.policy, window.start),
    )
    return reservation, option


def window_of(now: int, policy: PolicyOptions, command: Reserve) -> Span:
    """The window asked for, resolved against the server's clock and held against the policy.

    Raises InvalidArgument naming the field, the value and the limit.
    """
    if command.on_demand:
        check_length(policy, command.alternative.duration_s, on_demand=True)
        return Span(now, now + command.alternative.duration_s)
    start = command.start if command.start_in_s is None else now + command.start_in_s
    if start < now:
        if now - start > policy.past_tolerance_s:
            raise InvalidArgument(
                f"start: lies {length_in_words(now - start)} in the past; a start at most "
                f"{length_in_words(policy.past_tolerance_s)} ago means now",
                field="start",
            )
        start = now
    window = Span(start, start + command.alternative.duration_s)
    check_window(now, policy, window)
    return window


def check_window(now: int, policy: PolicyOptions, window: Span) -> None:
    """Raises InvalidArgument when the policy does not allow a reservation of that window."""
    ahead = window.start - now
    if ahead > policy.calendar_horizon_s:
        raise InvalidArgument(
            f"start: is {length_in_words(ahead)} ahead; reservations can be made "
            f"{length_in_words(policy.calendar_horizon_s)} ahead",
            field="start",
        )
    if ahead < policy.reservation_notice_s:
        raise InvalidArgument(
            f"start: is {length_in_words(ahead)} ahead; a notice of at least "
            f"{length_in_words(policy.reservation_notice_s)} is needed",
            field="start",
        )
    check_length(policy, window.length_s)


def hours_of(command: Seek, search: windows_of.Search) -> list[Span] | None:
    """The stretches of time that the windows must lie in, None for any."""
    if command.hours is None:
        return None
    found = occurrences(command.hours, after=search.start_from - DAY, before=search.start_to + 1)
    return [one.span for one in found]


def search_of(now: int, policy: PolicyOptions, command: Seek) -> windows_of.Search:
    """What a search for windows comes to under the policy. Raises InvalidArgument naming the field."""
    check_length(policy, command.min_s)
    check_length(policy, command.max_s)
    if command.max_s < command.min_s:
        raise InvalidArgument(
            f"duration: the longest ({command.max_s} s) is shorter than the shortest ({command.min_s} s)",
            field="maxDuration",
        )
    first = max(command.start_from, now + policy.reservation_notice_s)
    last = min(command.start_to, now + policy.calendar_horizon_s)
    if last < first:
        raise InvalidArgument(
            "startRange: no start in it is allowed: it lies behind, nearer than the notice of "
            f"{policy.reservation_notice_s} s, or beyond the horizon of {policy.calendar_horizon_s} s",
            field="startRange",
        )
    end = command.end_to or last + command.max_s
    if not 1 <= command.limit <= SEEK_MAX:
        raise InvalidArgument(f"limit: {command.limit} is outside 1 … {SEEK_MAX}", field="limit")
    return windows_of.Search(
        start_from=first,
        start_to=last,
        end_to=end,
        min_s=command.min_s,
        max_s=command.max_s,
        end_from=command.end_from,
    )


def check_length(policy: PolicyOptions, length: int, *, on_demand: bool = False) -> None:
    """Raises InvalidArgument when the policy has no reservations of that length; those made on demand are
    bound by `open_ended` alone."""
    if on_demand and policy.open_ended:
        _check_between(length, 1, OPEN_ENDED_S)
        return
    if on_demand and length >= OPEN_ENDED_S:
        raise InvalidArgument(
            "duration: the policy of this fleet (open_ended = false) has no reservation without an end; say "
            "when it ends",
            field="duration",
        )
    if on_demand:
        _check_between(length, 1, policy.reservation_max_s)
        return
    if policy.reservation_lengths_s and length not in policy.reservation_lengths_s:
        allowed = " or ".join(map(length_in_words, policy.reservation_lengths_s))
        raise InvalidArgument(
            f"duration: {length_in_words(length)}; reservations last {allowed}", field="duration"
        )
    _check_between(length, policy.reservation_min_s, policy.reservation_max_s)


def _check_between(length: int, least: int, most: int) -> None:
    if not least <= length <= most:
        raise InvalidArgument(
            f"duration: {length_in_words(length)} is outside the allowed {length_in_words(least)} … "
            f"{length_in_words(most)}",
            field="duration",
        )


def lock_at(now: int, policy: PolicyOptions, start: int) -> int:
    """When a reservation can no longer be changed: at once, if that lies behind."""
    return max(now, start - policy.reservation_lock_s)


def cancel_until(now: int, policy: PolicyOptions, start: int) -> int:
    """The last instant of a free cancellation, 0 for never."""
    if policy.reservation_cancel == "never":
        return 0
    last = start - max(policy.reservation_lock_s, policy.reservation_cancel_s)
    return last if last > now else 0


def _check(command: Reserve) -> None:
    check_project(command.project)
    check_name(command.name)
    _check_texts(command.description, command.labels, command.time_zone)
    check_terms(command.terms)


def _check_texts(description: str, labels: dict[str, str], time_zone: str) -> None:
    check_labels(labels)
    if len(description) > DESCRIPTION_MAX:
        raise InvalidArgument(
            f"description: {len(description)} characters; at most {DESCRIPTION_MAX}", field="description"
        )
    if time_zone:
        try:
            ZoneInfo(time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise InvalidArgument(
                f"timeZone: '{time_zone}' is not a zone of the IANA database, such as Europe/Berlin",
                field="timeZone",
            ) from None


def check_terms(terms: Terms) -> None:
    """Raises InvalidArgument when the terms name what cannot be."""
    if len(terms.shares) > SHARES_MAX:
        raise InvalidArgument(
            f"shares: {len(terms.shares)} projects; at most {SHARES_MAX}", field="shares"
        )
    for share in terms.shares:
        check_project(share.project, field="shares.project")
        if share.hosts_max < 0:
            raise InvalidArgument("shares.hostsMax: must not be negative", field="shares.hostsMax")


def _check_name_is_free(w: Write, project: str, name: str) -> None:
    holder = w.tx.reservation_named(project, name)
    if holder is not None and not holder.state.is_terminal:
        raise AlreadyExists(
            f"projects/{project}/reservations/{name} already exists and is {holder.state}; "
            "take another name, or amend or cancel it",
            field="name",
        )


# --- approval ---------------------------------------------------------------------------------


def approve(w: Write, who: Principal, project: str, name: str) -> Reservation:
    """An operator says yes: what was held is booked."""
    access.may_operate(who)
    reservation = _pending(w, project, name)
    assert reservation.booking is not None, "what waits for approval is held"
    ledger.rebook(w, reservation.booking, stage=Stage.FIRM)
    return w.apply_to(reservation, ev.ReservationApproved())


def decline(w: Write, who: Principal, project: str, name: str, reason: str) -> Reservation:
    """An operator says no: what was held is free."""
    access.may_operate(who)
    reservation = _pending(w, project, name)
    cause = reason or f"declined by {who.name}"
    return windows.given_up(w, reservation, ev.ReservationDeclined(cause=cause), cause)


def _pending(w: Write, project: str, name: str) -> Reservation:
    reservation = look_up(w.tx, project, name)
    if reservation.state is not ReservationState.PENDING_APPROVAL:
        raise FailedPrecondition(
            f"reservation '{name}' is {reservation.state}; only one that waits for approval can be "
            "approved or declined"
        )
    return reservation


# --- changing ---------------------------------------------------------------------------------


def amend(w: Write, who: Principal, command: AmendReservation) -> Reservation:
    """Change it in one step: what it has is given up only for what it gets. With `dry_run` only say how
    it would be."""
    access.may_write(who, command.project)
    if command.dry_run:
        return _amended(w, who, look_up(w.tx, command.project, command.name), command)[0]
    act = lambda: _amend(w, who, command)  # noqa: E731
    return _once(w, who, "amend_reservation", command.call_id, command, act)


def _amend(w: Write, who: Principal, command: AmendReservation) -> Reservation:
    reservation = look_up(w.tx, command.project, command.name)
    changed, option = _amended(w, who, reservation, command)
    if option is not None:
        windows.move(w, reservation, changed, option)
    if changed.terms != reservation.terms:
        windows.unbook_inside(w, reservation)
    event = ev.ReservationAmended(
        name=changed.name,
        window=changed.window,
        count=changed.count,
        pool=changed.pool,
        zone=changed.zone,
        terms=changed.terms,
        description=changed.description,
        labels=changed.labels,
        time_zone=changed.time_zone,
        lock_at=changed.lock_at,
        cancel_until=changed.cancel_until,
    )
    amended = w.apply_to(reservation, event)
    windows.schedule_warnings(w, amended)
    return amended


def _amended(
    w: Write, who: Principal, reservation: Reservation, command: AmendReservation
) -> tuple[Reservation, WindowOption | None]:
    """The reservation as it would be and, when its size or window changes, where."""
    if command.new_name is not None and command.new_name != reservation.name:
        check_name(command.new_name)
        _check_name_is_free(w, command.project, command.new_name)
    terms = reservation.terms if command.terms is None else command.terms
    check_terms(terms)
    description = reservation.description if command.description is None else command.description
    labels = reservation.labels if command.labels is None else command.labels
    zone = reservation.time_zone if command.time_zone is None else command.time_zone
    _check_texts(description, labels, zone)
    changed = evolve(
        reservation,
        name=command.new_name or reservation.name,
        terms=terms,
        description=description,
        labels=labels,
        time_zone=zone,
    )
    window = Span(
        reservation.window.start if command.start is None else command.start,
        max(
            reservation.window.start if command.start is None else command.start,
            reservation.window.end if command.end is None else command.end,
        ),
    )
    count = reservation.count if command.count is None else command.count
    if (window, count) == (reservation.window, reservation.count):
        _check_may_amend(w, reservation, moves=False)
        return changed, None
    forced = command.force and who.role is Role.OPERATOR
    _check_may_amend(w, reservation, moves=not forced)
    return _resized(w, who, reservation, changed, window, count)


def _check_may_amend(w: Write, reservation: Reservation, *, moves: bool) -> None:
    if reservation.state.is_terminal or reservation.state is ReservationState.ENDING:
        raise FailedPrecondition(f"reservation '{reservation.name}' is {reservation.state}")
    if not moves or reservation.on_demand:
        return
    if w.policy.reservation_amend == "never":
        raise FailedPrecondition(
            "the policy of this fleet (reservation_amend = never) does not let reservations be changed",
            reason="amendNotAllowed",
        )
    if reservation.state is ReservationState.PROCURING:
        raise FailedPrecondition(
            f"reservation '{reservation.name}' is locked since {in_words(reservation.lock_at)} "
            f"(policy: {length_in_words(w.policy.reservation_lock_s)} before its start); it can be extended "
            "once it is open",
            reason="reservationLocked",
            details={"lockedAt": reservation.lock_at},
        )


def _resized(
    w: Write,
    who: Principal,
    reservation: Reservation,
    changed: Reservation,
    window: Span,
    count: int,
) -> tuple[Reservation, WindowOption]:
    if count < 1:
        raise InvalidArgument(
            f"count: {count} is not possible, at least 1 is needed (cancel or release it instead)",
            field="count",
        )
    is_open = reservation.state.is_open
    if is_open and window.start != reservation.window.start:
        raise FailedPrecondition(
            "start: it has started; its end and its size can still change", field="start"
        )
    if window.end <= w.now:
        raise InvalidArgument("end: lies in the past; 'dws reservations release' ends it now", field="end")
    if is_open:
        check_length(w.policy, window.length_s, on_demand=reservation.on_demand)
    elif window.start < w.now:
        raise InvalidArgument("start: lies in the past", field="start")
    else:
        check_window(w.now, w.policy, window)
    grows = count > reservation.count or not reservation.window.contains(window)
    needs_approval = w.policy.reservation_approval == "approver" and who.role is not Role.OPERATOR
    if grows and needs_approval and reservation.state is not ReservationState.PENDING_APPROVAL:
        raise PermissionDenied(
            "on this fleet reservations are approved by an operator; ask one to enlarge or move this one"
        )
    option = windows.place_anew(w, reservation, window, count)
    return (
        evolve(
            changed,
            window=window,
            count=count,
            pool=option.pool,
            zone=option.zone,
            lock_at=reservation.lock_at if is_open else lock_at(w.now, w.policy, window.start),
            cancel_until=0 if is_open else cancel_until(w.now, w.policy, window.start),
        ),
        option,
    )


def cancel(
    w: Write, who: Principal, project: str, name: str, *, force: bool = False
) -> Reservation:
    """Stop wanting one that has not started, as the policy allows; an operator may force it."""
    access.may_write(who, project)
    reservation = look_up(w.tx, project, name)
    may_cancel(w, who, reservation, force=force)
    cause = f"cancelled by {who.name}"
    return windows.given_up(w, reservation, ev.ReservationCancelled(cause=cause), cause)


def may_cancel(
    w: Write, who: Principal, reservation: Reservation, *, force: bool = False
) -> None:
    """Raises FailedPrecondition when it has started, or the policy does not let it be cancelled now, unless
    an operator forces it."""
    if reservation.state.is_open:
        raise FailedPrecondition(
            f"reservation '{reservation.name}' has started; 'dws reservations release' gives it back early",
            reason="reservationStarted",
        )
    if reservation.state is ReservationState.PENDING_APPROVAL:
        return
    if not reservation.state.is_ahead:
        raise FailedPrecondition(f"reservation '{reservation.name}' is {reservation.state}")
    if force and who.role is Role.OPERATOR:
        return
    if w.policy.reservation_cancel == "never":
        raise FailedPrecondition(
            "the policy of this fleet (reservation_cancel = never): an approved reservation cannot be "
            "cancelled",
            reason="cancelNotAllowed",
        )
    if w.now > reservation.cancel_until or not reservation.cancel_until:
        before = max(w.policy.reservation_lock_s, w.policy.reservation_cancel_s)
        raise FailedPrecondition(
            f"reservation '{reservation.name}' could be cancelled until {length_in_words(before)} before its "
            "start",
            reason="cancelNotAllowed",
            details={"cancelUntil": reservation.cancel_until},
        )


def release(w: Write, who: Principal, project: str, name: str) -> Reservation:
    """Give an open one back early: what runs in it is stopped, and its hosts are free."""
    access.may_write(who, project)
    reservation = look_up(w.tx, project, name)
    if not reservation.state.is_open:
        raise FailedPrecondition(
            f"reservation '{name}' is {reservation.state}; only an open one can be released "
            "('dws reservations cancel' ends one that has not started)"
        )
    return windows.close(w, reservation, f"released by {who.name}")


def delete(w: Write, who: Principal, project: str, name: str) -> None:
    """Put the record of one that is over away; its name is free at once."""
    access.may_write(who, project)
    reservation = look_up(w.tx, project, name)
    if not reservation.state.is_terminal:
        raise FailedPrecondition(
            f"reservation '{name}' is {reservation.state}; cancel or release it first"
        )
    w.apply_to(reservation, ev.ReservationDeleted())
