"""How reservations and the calendar look to a reader."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from dws.engine.answers import Bar, BarKind, CalendarView, PoolCalendarView, ReservationView
from dws.engine.books import Books
from dws.model.access import Principal, Role
from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.request import CapacityRequest
from dws.model.reservation import AtEnd, Reservation
from dws.model.time import FOREVER, Span
from dws.model.topology import Pool
from dws.planner import slices
from dws.planner.options import PolicyOptions
from dws.planner.plan import Reason

STEPS_MAX = 5_000
_KINDS = {
    OwnerKind.RESERVATION: BarKind.RESERVATION,
    OwnerKind.OUTAGE: BarKind.OUTAGE,
    OwnerKind.MAINTENANCE: BarKind.MAINTENANCE,
}


def may_see(who: Principal, reservation: Reservation) -> bool:
    """True for operators, its own project and those it is shared with."""
    if not who.projects or who.role is Role.OPERATOR:
        return True
    return any(reservation.hosts_max_of(p) is not None for p in who.projects)


def view(books: Books, reservation: Reservation) -> ReservationView:
    """A reservation with what runs and waits in it."""
    return views(books, [reservation])[0]


def views(books: Books, reservations: Sequence[Reservation]) -> tuple[ReservationView, ...]:
    """Reservations, each with what runs and waits in it."""
    with books.lock:
        running: defaultdict[int, list[CapacityRequest]] = defaultdict(list)
        for request in books.holding.values():
            if request.grant is not None:
                running[request.grant.reservation].append(request)
        waiting: defaultdict[int, list[CapacityRequest]] = defaultdict(list)
        for request in books.waiting.values():
            waiting[request.demand.reservation].append(request)
        return tuple(_view(books, r, running[r.id], waiting[r.id]) for r in reservations)


def _view(
    books: Books,
    reservation: Reservation,
    running: list[CapacityRequest],
    waiting: list[CapacityRequest],
) -> ReservationView:
    booking = books.bookings.get(reservation.booking or 0)
    pool = next((p for p in books.fleet.pools if p.name == reservation.pool), None)
    held = sum(len(i.slots) or 1 for r in running if r.grant for i in r.grant.instances if i.is_held)
    used = -(-held // slices.units_each(reservation, pool)) if booking and pool else held
    hosts = pool.hosts_of(booking.units) if booking and pool else ()
    price = 0
    if pool is not None and not reservation.is_open_ended:
        price = slices.cost_micros(reservation, pool)
    return ReservationView(
        reservation=reservation,
        in_use=used,
        waiting=len(waiting),
        inside=(*running, *waiting),
        hosts=hosts,
        cost_micros=price,
    )


def rules(policy: PolicyOptions, reservation: Reservation) -> tuple[Reason, ...]:
    """What holds for it, in words: shown when it is booked, enforced after."""
    approval = policy.reservation_approval == "approver" and reservation.approve_by > 0
    told = [_cancelling(policy, reservation), _amending(policy, reservation)]
    if reservation.on_demand:
        told = [Reason(code="RULE_AMEND", text="it can be changed and given back at any time")]
    if approval:
        text = "an operator has to approve it until {at:time}"
        told.insert(0, Reason(code="RULE_APPROVAL", text=text, facts={"at": reservation.approve_by}))
    if policy.no_show_release_s:
        text = "it is taken back when nothing has run in it for {at:duration}"
        told.append(Reason(code="RULE_NO_SHOW", text=text, facts={"at": policy.no_show_release_s}))
    fate = "stopped" if reservation.terms.at_end is AtEnd.STOP else "deleted"
    text = f"what still runs in it at {{at:time}} is {fate}"
    if not reservation.is_open_ended:
        told.append(Reason(code="RULE_END", text=text, facts={"at": reservation.window.end}))
    return tuple(told)


def _cancelling(policy: PolicyOptions, reservation: Reservation) -> Reason:
    if policy.reservation_cancel == "never":
        return Reason(code="RULE_CANCEL", text="it cannot be cancelled once it is approved")
    if not reservation.cancel_until:
        return Reason(code="RULE_CANCEL", text="it starts too soon to be cancelled")
    text = "it can be cancelled at no cost until {at:time}"
    return Reason(code="RULE_CANCEL", text=text, facts={"at": reservation.cancel_until})


def _amending(policy: PolicyOptions, reservation: Reservation) -> Reason:
    if policy.reservation_amend == "never":
        return Reason(code="RULE_AMEND", text="it cannot be changed once it is approved")
    text = "it can be changed until {at:time}"
    return Reason(code="RULE_AMEND", text=text, facts={"at": reservation.lock_at})


def calendar(books: Books, who: Principal, now: int, span: Span, pools: frozenset[str]) -> CalendarView:
    """Every booking that overlaps the span, as `who` may see it, and what is free."""
    with books.lock:
        used: Counter[int] = Counter()
        for (reservation, _), hosts in books.in_use().items():
            used[reservation] += hosts
        shown = [p for p in books.fleet.pools if not pools or p.name in pools or p.zone in pools]
        return CalendarView(
            now=now,
            start=span.start,
            end=span.end,
            pools=tuple(_pool(books, who, now, span, p, used) for p in shown),
        )


def _pool(
    books: Books, who: Principal, now: int, span: Span, pool: Pool, used: Mapping[int, int]
) -> PoolCalendarView:
    bookings = sorted(
        (
            b
            for b in books.bookings.values()
            if b.pool == pool.name and b.count and _shown(b, now).overlaps(span)
        ),
        key=lambda b: (b.span, b.id),
    )
    return PoolCalendarView(
        pool=pool.name,
        zone=pool.zone,
        shape=pool.shape.name,
        hosts=len(pool.hosts),
        host_units=pool.host_units,
        bars=tuple(_bar(books, who, now, b, used) for b in bookings),
        free=_free(books, pool, span),
    )


def _shown(booking: Booking, now: int) -> Span:
    """A live booking past its end is still there."""
    overran = booking.stage is Stage.LIVE and booking.span.end <= now
    return Span(booking.span.start, now + 1) if overran else booking.span


def _bar(
    books: Books, who: Principal, now: int, booking: Booking, used: Mapping[int, int]
) -> Bar:
    kind = _KINDS.get(booking.owner_kind)
    span = _shown(booking, now)
    if kind is BarKind.RESERVATION:
        reservation = books.reservations[booking.owner]
        seen = may_see(who, reservation)
        return Bar(
            kind=kind,
            pool=booking.pool,
            count=booking.count,
            start=span.start,
            end=span.end,
            name=reservation.name if seen else "",
            project=reservation.project if seen else "",
            state=reservation.state.value,
            own=seen and (not who.projects or reservation.project in who.projects),
            in_use=used.get(reservation.id, 0),
            short=reservation.short * slices.units_each(reservation, books.fleet.pool(booking.pool)),
        )
    if kind is not None:
        host = next(iter(books.fleet.pool(booking.pool).hosts_of(booking.units)), "")
        end = min(span.end, FOREVER)
        return Bar(kind=kind, pool=booking.pool, count=booking.count, start=span.start, end=end, name=host)
    request = books.holding.get(booking.owner) or books.waiting.get(booking.owner)
    seen = request is not None and (not who.projects or request.project in who.projects)
    holder = books.bookings.get(booking.parent)
    return Bar(
        kind=BarKind.RUN if booking.stage is Stage.LIVE else BarKind.PROMISE,
        pool=booking.pool,
        count=booking.count,
        start=span.start,
        end=span.end,
        name=request.name if request is not None and seen else "",
        project=request.project if request is not None and seen else "",
        state=request.state.value if request is not None else "",
        own=seen,
        parent=books.reservations[holder.owner].name if holder is not None else "",
    )


def _free(books: Books, pool: Pool, span: Span) -> tuple[tuple[int, int], ...]:
    """Free units over the span, as steps; a place where the calendar is overbooked counts as none."""
    steps: list[tuple[int, int]] = []
    for at, row in books.calendars[pool.name].rows():
        if at >= span.end:
            break
        free = sum(max(0, n) for n in row)
        if at <= span.start:
            steps = [(span.start, free)]
        elif not steps or steps[-1][1] != free:
            steps.append((at, free))
    return tuple(steps[:STEPS_MAX])

