"""A reservation's window: opened in time, kept whole, used, and closed.

What time and the planner do to a reservation. At the start its hosts are drawn (a decision of the plan,
`bind`); a lost one is replaced or openly missed; at the end what still runs inside is stopped, and the
booking stays, for as many hosts as are still held, until the last one is confirmed free.
"""

from __future__ import annotations

from dws.engine import instances, ledger, occupancy
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.booking import Booking, Part, Stage
from dws.model.demand import Alternative
from dws.model.errors import FailedPrecondition, NoRoom
from dws.model.names import RequestId
from dws.model.request import CapacityRequest, EndReason, RequestState
from dws.model.reservation import Reservation, ReservationState
from dws.model.time import Span, in_words
from dws.model.topology import Pool
from dws.model.work import WorkItem, WorkKind
from dws.planner import slices
from dws.planner import windows as search
from dws.planner.calendar import PoolCalendar
from dws.planner.hold import Hold
from dws.planner.plan import Bind, Reason, WindowOption


def sentence(reason: Reason) -> str:
    """A reason's text with its numbers, instants in UTC."""
    text = reason.text
    for name, value in reason.facts.items():
        text = text.replace(f"{{{name}}}", str(value)).replace(f"{{{name}:duration}}", f"{value} s")
        if isinstance(value, int):
            text = text.replace(f"{{{name}:time}}", in_words(value))
    return text


# --- changes by people ------------------------------------------------------------------------


def given_up(
    w: Write,
    reservation: Reservation,
    event: ev.ReservationDeclined | ev.ReservationCancelled,
    cause: str,
) -> Reservation:
    """One that has not started is over: nothing is held any more, and who waits for it waits in vain."""
    over = w.apply_to(reservation, event, reason=cause)
    _turn_away(w, reservation, cause)
    ledger.end(w, reservation.booking)
    return over


def _turn_away(w: Write, reservation: Reservation, cause: str) -> None:
    why = f"reservation '{reservation.name}' is over: {cause}"
    for request in list(w.books.waiting.values()):
        if request.demand.reservation == reservation.id:
            ledger.end(w, request.booking)
            w.apply(request, ev.WindowClosed(cause=why), reason=why)


def place(
    w: Write, alternative: Alternative, window: Span, *, instead_of: Booking | None = None
) -> WindowOption:
    """Where exactly that window fits, beside everything but `instead_of`.

    Raises NoRoom with the reason, the nearest windows that fit and how many hosts the window has room for.
    """
    found = search.fit(
        w.books.snapshot(), w.policy, w.now, alternative, window, instead_of=instead_of
    )
    if found.option is not None:
        return found.option
    assert found.reason is not None, "what does not fit has a reason"
    raise _no_room(found.reason, found.most, found.nearest, changes=instead_of is not None)


def place_anew(w: Write, reservation: Reservation, window: Span, count: int) -> WindowOption:
    """Where a reservation of another size or window would be. Raises NoRoom, or FailedPrecondition when work
    inside is in the way."""
    if reservation.state.is_open:
        return _place_open(w, reservation, window, count)
    alternative = slices.as_reserved(reservation, _pool(w, reservation), count, window.length_s)
    return place(w, alternative, window, instead_of=occupancy.booking_of(w, reservation))


def _pool(w: Write, reservation: Reservation) -> Pool:
    return w.books.fleet.pool(reservation.pool)


def _no_room(
    reason: Reason, most: int, nearest: tuple[WindowOption, ...] = (), *, changes: bool = True
) -> NoRoom:
    """The refusal of a booking, or of a change of one, which then stays as it is."""
    return NoRoom(
        sentence(reason) + ("; nothing was changed" if changes else ""),
        field="count" if changes else "start",
        details={
            "code": reason.code,
            "text": reason.text,
            "facts": dict(reason.facts),
            "nearest": [
                {
                    "pool": o.pool,
                    "zone": o.zone,
                    "shape": o.shape,
                    "count": o.count,
                    "start": o.window.start,
                    "end": o.window.end,
                }
                for o in nearest
            ],
            "most": most,
        },
    )


def _place_open(w: Write, reservation: Reservation, window: Span, count: int) -> WindowOption:
    booking = occupancy.booking_of(w, reservation)
    children = [b for b in w.books.inside(booking.id) if b.stage is Stage.LIVE]
    longest = max(children, key=lambda b: b.span.end, default=None)
    if longest is not None and longest.span.end > window.end:
        name = w.books.holding[RequestId(longest.owner)].name
        raise FailedPrecondition(
            f"end: '{name}' runs in it until {in_words(longest.span.end)}; release it first, or take a later "
            "end",
            field="end",
        )
    calendar = w.books.snapshot().calendars[booking.pool]
    calendar.remove(booking)
    had = _by_cell(booking.parts)
    end = booking.span.end
    if any(calendar.least_free_in(c, end, window.end) < n for c, n in had.items() if end < window.end):
        until = end + min(
            calendar.longest(end, (Part(cell=c, count=n),), window.end - end) for c, n in had.items()
        )
        reason = Reason(
            code="PROMISED_TO_OTHERS",
            text="its hosts are promised to others; it can last until {until:time} at the latest",
            facts={"until": until},
        )
        raise _no_room(reason, 0)
    parts = _resized(reservation, booking, children, calendar, Span(w.now, window.end), count)
    each = slices.units_each(reservation, calendar.pool)
    if count * each > booking.count or window.end > booking.span.end:
        _keep_to_the_share(w, reservation, booking, Span(w.now, window.end), count)
    return WindowOption(
        pool=booking.pool,
        zone=reservation.zone,
        shape=reservation.shape,
        count=count,
        topology=reservation.topology,
        within=reservation.within,
        window=window,
        parts=parts,
        cost_micros=0,
        reason=Reason(code="FITS", text="fits"),
    )


def _keep_to_the_share(
    w: Write, reservation: Reservation, booking: Booking, window: Span, count: int
) -> None:
    """Raises NoRoom when reservations would take more of the pool than the policy lets them."""
    pool = _pool(w, reservation)
    left = search.share_left(w.books.snapshot(), w.policy, booking, window)
    room = left // slices.units_each(reservation, pool)
    if count > room:
        what = slices.noun(reservation.shape, reservation.topology, pool)
        reason = Reason(
            code="CALENDAR_SHARE",
            text=f"reservations leave {{room}} {what} of {{pool}} to this one until {{until:time}}, "
            "{count} were asked for",
            facts={"room": room, "pool": booking.pool, "until": window.end, "count": count},
        )
        raise _no_room(reason, room)


def _by_cell(parts: tuple[Part, ...]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for part in parts:
        counts[part.cell] = counts.get(part.cell, 0) + part.count
    return counts


def _resized(
    reservation: Reservation,
    booking: Booking,
    children: list[Booking],
    calendar: PoolCalendar,
    left: Span,
    count: int,
) -> tuple[Part, ...]:
    """The booking's parts for another number of machines or slices: what is used stays, what is new is drawn
    later. `calendar` is without the booking, `left` what is left of its window."""
    pool, more = calendar.pool, count - reservation.count
    what = slices.noun(reservation.shape, reservation.topology, pool)
    hold = Hold.of(pool, reservation, booking)
    if more < 0:
        unused = hold.shrink(-more, frozenset(u for b in children for u in b.units))
        if unused < -more:
            raise FailedPrecondition(
                f"count: {reservation.count - unused} of its {reservation.count} {what} are in use; release "
                "what runs there first",
                field="count",
            )
        return hold.parts()
    calendar.take(left.start, left.end, tuple(Part(cell=c, count=n) for c, n in hold.booked.items()))
    cells = [cell for run in hold.runs for cell in run]
    free = dict(zip(cells, calendar.free_during(left.start, left.end, cells), strict=True))
    units = [free.get(cell, 0) for cell in range(len(pool.cells))]
    spare = pool.pieces_in(cells, units, hold.piece) // hold.each
    if spare < more:
        reason = Reason(
            code="NO_ROOM",
            text=f"{{spare}} more {what} of {{pool}} are free until its end, {{more}} more were asked for",
            facts={"spare": spare, "more": more, "pool": booking.pool},
        )
        raise _no_room(reason, reservation.count + spare)
    new = calendar.choose(cells, more * hold.each, left.start, left.end, hold.piece) if more else ()
    return (*booking.parts, *new)


def move(w: Write, before: Reservation, after: Reservation, option: WindowOption) -> None:
    """The booking becomes what was found for it; promises inside it are made anew by the next plan."""
    booking = occupancy.booking_of(w, before)
    if not before.state.is_open:
        unbook_inside(w, before)
        ledger.rebook(w, booking.id, pool=option.pool, span=after.window, parts=option.parts)
        return
    gone = set(booking.units) - {u for p in option.parts for u in p.units}
    occupancy.meter(w, before, booking, gone)
    span = Span(booking.span.start, after.window.end)
    ledger.rebook(w, booking.id, span=span, parts=option.parts)


def unbook_inside(w: Write, reservation: Reservation) -> None:
    """Whose turn in it was promised may not be allowed in any more: the next plan promises anew."""
    booking = occupancy.booking_of(w, reservation)
    _unbook_inside(w, booking, f"reservation '{reservation.name}' was changed")


def _unbook_inside(w: Write, booking: Booking, cause: str) -> None:
    for child in w.books.inside(booking.id):
        request = w.books.waiting.get(RequestId(child.owner))
        if child.stage is Stage.FIRM and request is not None:
            ledger.end(w, child.id)
            w.apply(request, ev.Unbooked(cause=cause), reason=cause)


# --- what the plan decides --------------------------------------------------------------------


def bind(w: Write, decision: Bind) -> None:
    """Its booking has these hosts from now on; said openly when it lacks some, or has others than before."""
    reservation = w.books.reservations[decision.reservation]
    booking = occupancy.booking_of(w, reservation)
    new = {u for p in decision.parts for u in p.units} - set(booking.units)
    gone = set(booking.units) - {u for p in decision.parts for u in p.units}
    occupancy.meter(w, reservation, booking, gone)
    moved = decision.parts != booking.parts
    if moved or reservation.state.is_open:
        stage = Stage.LIVE if reservation.state.is_open else None
        ledger.rebook(w, booking.id, parts=decision.parts, stage=stage)
    if decision.short > reservation.short or (decision.short and decision.short != reservation.short):
        event = ev.ReservationDegraded(short=decision.short, cause=decision.cause)
        reservation = w.apply_to(reservation, event, reason=decision.cause)
    elif reservation.short and not decision.short:
        reservation = w.apply_to(reservation, ev.ReservationRestored())
    hosts_of = w.books.fleet.pool(booking.pool).hosts_of
    if reservation.state is ReservationState.PROVISIONING and not decision.short:
        late = w.now - reservation.window.start
        w.apply_to(reservation, ev.ReservationDelivered(late_s=late))
    elif moved and reservation.state is not ReservationState.PROVISIONING:
        replaced = ev.ReservationReplaced(hosts=hosts_of(sorted(new)), cause=decision.cause)
        w.apply_to(reservation, replaced)


# --- timers -----------------------------------------------------------------------------------


def fire(w: Write, reservation: Reservation, item: WorkItem) -> None:
    """A timer of a reservation is due."""
    match item.kind:
        case WorkKind.APPROVAL_EXPIRY:
            if reservation.state is ReservationState.PENDING_APPROVAL and w.now >= reservation.approve_by:
                cause = "nobody approved it in time"
                given_up(w, reservation, ev.ReservationDeclined(cause=cause), cause)
        case WorkKind.RESERVATION_LOCK:
            if reservation.state is ReservationState.APPROVED and w.now >= reservation.lock_at:
                w.apply_to(reservation, ev.ReservationLocked())
        case WorkKind.RESERVATION_START:
            if reservation.state.is_ahead and w.now >= reservation.window.start:
                start(w, reservation)
        case WorkKind.RESERVATION_WARN:
            _warn(w, reservation, int(item.tag))
        case WorkKind.RESERVATION_IDLE:
            _look_whether_used(w, reservation)
        case WorkKind.RESERVATION_END:
            _end(w, reservation)


def start(w: Write, reservation: Reservation) -> Reservation:
    """Its time has come: it is open, and the next plan draws its hosts."""
    started = w.apply_to(reservation, ev.ReservationStarted())
    schedule_warnings(w, started)
    occupancy.look_later_whether_used(w, started)
    return started


def schedule_warnings(w: Write, reservation: Reservation) -> None:
    """Timers for each lead time before the end of an open one that still lies ahead."""
    if not reservation.state.is_open:
        return
    w.tx.unschedule(reservation.id, (WorkKind.RESERVATION_WARN,))
    for lead in w.policy.reservation_warning_leads_s:
        if reservation.window.end - lead > w.now:
            at = reservation.window.end - lead
            w.wake(reservation.id, WorkKind.RESERVATION_WARN, at, tag=str(lead))


def _warn(w: Write, reservation: Reservation, lead_s: int) -> None:
    if reservation.state.is_open and lead_s not in reservation.warned_s:
        w.apply_to(reservation, ev.ReservationWarned(lead_s=lead_s))


def _end(w: Write, reservation: Reservation) -> None:
    if reservation.state is ReservationState.ENDING:
        occupancy.close_if_empty(w, reservation)
    elif reservation.state.is_open and w.now >= reservation.window.end:
        close(w, reservation, "its window is over")
    elif reservation.state.is_open:
        w.wake(reservation.id, WorkKind.RESERVATION_END, reservation.window.end)


def close(w: Write, reservation: Reservation, cause: str) -> Reservation:
    """It is over: who waits for it is turned away, what runs in it is stopped, and it ends with the last of
    it."""
    reservation = w.apply_to(reservation, ev.ReservationClosing(cause=cause), reason=cause)
    _turn_away(w, reservation, cause)
    _unbook_inside(w, occupancy.booking_of(w, reservation), cause)
    for request in list(w.books.holding.values()):
        if request.grant is not None and request.grant.reservation == reservation.id:
            _stop(w, request, f"reservation '{reservation.name}' ended: {cause}")
    current = w.books.reservations.get(reservation.id)
    if current is not None:
        return occupancy.close_if_empty(w, current)
    ended = w.tx.reservation(reservation.id)
    assert ended is not None, "what has ended is still stored"
    return ended


def _stop(w: Write, request: CapacityRequest, message: str) -> None:
    if request.state is RequestState.PROVISIONING:
        instances.failed(w, request, message, may_retry=False, phase="provisioning")
    elif request.state is RequestState.ACTIVE:
        over = instances.granted(request).ends_at <= w.now
        why = EndReason.DURATION_REACHED if over else EndReason.RESERVATION_ENDED
        instances.ended(w, request, why, message)


def _look_whether_used(w: Write, reservation: Reservation) -> None:
    """Tells the owner of an unused reservation, and takes it back when the policy says so."""
    if not reservation.state.is_open or not reservation.idle_since:
        return
    idle_s = w.now - reservation.idle_since
    release_s = w.policy.no_show_release_s
    if release_s and idle_s >= release_s:
        close(w, reservation, f"nothing ran in it for {idle_s} s (policy: no_show_release_s)")
        return
    at = reservation.idle_since + release_s if release_s else 0
    w.apply_to(reservation, ev.ReservationUnused(idle_s=idle_s, release_at=at))
    if at:
        w.wake(reservation.id, WorkKind.RESERVATION_IDLE, at)
