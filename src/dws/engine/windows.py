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
from dws.model.evolve import evolve
from dws.model.names import RequestId
from dws.model.request import CapacityRequest, EndReason, RequestState
from dws.model.reservation import Reservation, ReservationState
from dws.model.time import Span, in_words
from dws.model.topology import Pool
from dws.model.work import WorkItem, WorkKind
from dws.planner import windows as search
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
    alternative = Alternative(
        count=count,
        duration_s=window.length_s,
        shape=reservation.shape,
        locations=(reservation.zone,),
        within=reservation.within,
    )
    return place(w, alternative, window, instead_of=occupancy.booking_of(w, reservation))


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
    each = calendar.pool.piece_held(reservation.shape).units
    cells = [g for g in calendar.pool.groups(reservation.within) if {p.cell for p in booking.parts} <= set(g)]
    group = cells[0] if cells else tuple(range(len(calendar.pool.cells)))
    free = {c: calendar.least_free_in(c, w.now, window.end) for c in group}
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
    parts = _resized(reservation, booking, children, free, count, calendar.pool)
    if count * each > booking.count or window.end > booking.span.end:
        _keep_to_the_share(w, booking, Span(w.now, window.end), count, each)
    return WindowOption(
        pool=booking.pool,
        zone=reservation.zone,
        shape=reservation.shape,
        count=count,
        within=reservation.within,
        window=window,
        parts=parts,
        cost_micros=0,
        reason=Reason(code="FITS", text="fits"),
    )


def _keep_to_the_share(w: Write, booking: Booking, window: Span, count: int, each: int) -> None:
    """Raises NoRoom when reservations would take more of the pool than the policy lets them."""
    room = search.share_left(w.books.snapshot(), w.policy, booking, window) // each
    if count > room:
        reason = Reason(
            code="CALENDAR_SHARE",
            text="reservations leave {room} hosts of {pool} to this one until {until:time}, {count} were "
            "asked for",
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
    free: dict[int, int],
    count: int,
    pool: Pool,
) -> tuple[Part, ...]:
    """The booking's parts for another number of machines: what is used stays, what is new is drawn later."""
    each, what = pool.piece_held(reservation.shape).units, pool.noun(reservation.shape)
    more = count * each - booking.count
    had = _by_cell(booking.parts)
    if more < 0:
        used = {u for b in children for u in b.units}
        return _smaller(reservation, booking, used, -more, each, what)
    parts = list(booking.parts)
    room_for = {c: max(0, n - had.get(c, 0)) // each for c, n in free.items()}
    spare = sum(room_for.values())
    if spare * each < more:
        reason = Reason(
            code="NO_ROOM",
            text=f"{{spare}} more {what} of {{pool}} are free until its end, {{more}} more were asked for",
            facts={"spare": spare, "more": more // each, "pool": booking.pool},
        )
        raise _no_room(reason, booking.count // each + spare)
    for cell, room in room_for.items():
        taken = min(more, room * each)
        if taken:
            parts.append(Part(cell=cell, count=taken))
            more -= taken
    return tuple(parts)


def _smaller(
    reservation: Reservation, booking: Booking, used: set[int], fewer: int, each: int, what: str
) -> tuple[Part, ...]:
    """Without `fewer` units, in whole machines of `each` so many: first those it still lacks, then unused
    ones, the last first."""
    unused: list[int] = []
    for cell in sorted({p.cell for p in booking.parts}, reverse=True):
        own = [u for p in booking.parts if p.cell == cell for u in p.units if u not in used]
        unused += sorted(own, reverse=True)[: len(own) // each * each]
    lacking = sum(p.count for p in booking.parts if not p.units)
    if lacking + len(unused) < fewer:
        busy = reservation.count - (lacking + len(unused)) // each
        raise FailedPrecondition(
            f"count: {busy} of its {reservation.count} {what} are in use; release what runs there first",
            field="count",
        )
    parts: list[Part] = []
    for part in booking.parts:
        dropped = min(fewer, part.count) if not part.units else 0
        fewer -= dropped
        parts.append(evolve(part, count=part.count - dropped))
    gone = set(unused[:fewer])
    kept = (
        evolve(p, units=tuple(u for u in p.units if u not in gone), count=len(set(p.units) - gone))
        if p.units
        else p
        for p in parts
    )
    return tuple(p for p in kept if p.count)


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
