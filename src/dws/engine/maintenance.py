"""Maintenance windows: hosts out of service from then until then, planned ahead.

A window is a booking of the operator's that names its hosts. Who would be touched is shown before it is
confirmed, and work or a reservation in the way refuses it unless it is forced. At its start the hosts go
down, as in any outage whose end is known; at its end they are back.
"""

from __future__ import annotations

from dws.engine import hosts, ledger
from dws.engine.answers import Affected, MaintenanceView
from dws.engine.books import Books
from dws.engine.commands import PlanMaintenance
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from dws.model.names import BookingId, check_name
from dws.model.time import Span
from dws.model.topology import Pool
from dws.model.work import WorkKind
from dws.planner import backfill
from dws.planner.options import PolicyOptions
from dws.planner.plan import Bind, Move, Withdraw


def windows(books: Books) -> tuple[MaintenanceView, ...]:
    """Every window that is not over, by start."""
    every = (b for b in books.bookings.values() if b.owner_kind is OwnerKind.MAINTENANCE)
    found = [b for b in every if not books.fleet.pool(b.pool).beside]
    return tuple(view(books, b) for b in sorted(found, key=lambda b: (b.span, b.id)))


def view(books: Books, booking: Booking) -> MaintenanceView:
    """A window as a reader sees it."""
    return MaintenanceView(
        id=booking.id,
        name=booking.name,
        pool=booking.pool,
        hosts=books.fleet.pool(booking.pool).hosts_of(booking.units),
        window=booking.span,
        reason=booking.note,
        begun=booking.stage is Stage.LIVE,
    )


def plan(w: Write, command: PlanMaintenance, targets: list[tuple[Pool, int]]) -> Booking:
    """Write the window down. Raises FailedPrecondition when it would touch somebody and is not forced."""
    pool = check(w.books, w.now, command, targets)
    touched = affected(w.books, w.policy, w.now, targets, window_of(command))
    if touched and not command.force:
        names = ", ".join(dict.fromkeys(t.name for t in touched))
        raise FailedPrecondition(
            f"hosts: the window would touch {names}; choose another one, or force it",
            field="hosts",
            details={"affected": [{"name": t.name, "effect": t.effect} for t in touched]},
        )
    booking, *_ = [
        ledger.plan_maintenance(
            w, line, units, window_of(command), name=command.name, note=command.reason
        )
        for line, units in _lines(w.books, targets)
    ]
    event = ev.MaintenancePlanned(
        pool=pool.name, hosts=pool.hosts_of(booking.units), window=booking.span
    )
    w.record(
        ev.SubjectKind.MAINTENANCE, booking.id, event, name=command.name, reason=command.reason
    )
    w.wake(booking.id, WorkKind.MAINTENANCE_START, booking.span.start)
    return booking


def window_of(command: PlanMaintenance) -> Span:
    """The window asked for; raises InvalidArgument when it ends before it begins."""
    if command.end <= command.start:
        raise InvalidArgument("end: must lie after the start", field="end")
    return Span(command.start, command.end)


def check(
    books: Books, now: int, command: PlanMaintenance, targets: list[tuple[Pool, int]]
) -> Pool:
    """The one pool that the hosts are of. Raises InvalidArgument or AlreadyExists naming the field."""
    check_name(command.name)
    if not targets:
        raise InvalidArgument("hosts: name at least one", field="hosts")
    pools = {pool.name: pool for pool, _ in targets}
    if len(pools) > 1:
        raise InvalidArgument(
            f"hosts: they are of several pools ({', '.join(sorted(pools))}); plan a window for each",
            field="hosts",
        )
    if command.start < now:
        raise InvalidArgument(
            f"start: lies {now - command.start} s in the past ('dws fleet outage' takes a host down now)",
            field="start",
        )
    window_of(command)
    if any(v.name == command.name for v in windows(books)):
        raise AlreadyExists(f"a maintenance window '{command.name}' exists already", field="name")
    return next(iter(pools.values()))


def _lines(books: Books, targets: list[tuple[Pool, int]]) -> list[tuple[Pool, tuple[int, ...]]]:
    """The units of hosts of one pool: there, then in the pools beside it."""
    places = sorted({place for _, place in targets})
    return [
        (line, tuple(unit for place in places for unit in line.units_of(place)))
        for line in books.fleet.lines_of(targets[0][0].name)
    ]


def affected(
    books: Books, policy: PolicyOptions, now: int, targets: list[tuple[Pool, int]], window: Span
) -> tuple[Affected, ...]:
    """Whom the window would touch: who holds one of the hosts into it, which reservations would be short,
    whose promise would move."""
    lines = _lines(books, targets)
    touched = [a for pool, units in lines for a in _holders(books, pool, units, window)]
    return (*touched, *_replanned(books, policy, now, lines, window))


def _holders(
    books: Books, pool: Pool, units: tuple[int, ...], window: Span
) -> list[Affected]:
    touched = []
    places = {pool.host_of(u) for u in units}
    for request in books.holding.values():
        grant = request.grant
        booking = books.bookings.get(grant.booking) if grant is not None else None
        if grant is None or booking is None or grant.pool != pool.name:
            continue
        on = tuple(dict.fromkeys(i.host for i in grant.instances if i.is_held and i.unit in places))
        if on and booking.span.overlaps(window):
            effect = f"loses {', '.join(on)} at its start (on-host-loss: {request.on_host_loss})"
            touched.append(Affected(request=request, effect=effect, hosts=on))
    return touched


def _replanned(
    books: Books,
    policy: PolicyOptions,
    now: int,
    lines: list[tuple[Pool, tuple[int, ...]]],
    window: Span,
) -> list[Affected]:
    snapshot = books.snapshot()
    for pool, units in lines:
        snapshot.calendars[pool.name].add(_as_booking(pool, units, window))
    touched = []
    out = {pool.name: set(units) for pool, units in lines}
    for reservation in books.reservations.values():
        booking = books.bookings.get(reservation.booking or BookingId(0))
        if booking is None or booking.pool not in out:
            continue
        on = books.fleet.pool(booking.pool).hosts_of(u for u in booking.units if u in out[booking.pool])
        if on and booking.span.overlaps(window):
            effect = f"loses {', '.join(on)} at the start of the window, unless others are free"
            touched.append(Affected(request=reservation, effect=effect, hosts=on))
    for decision in backfill.plan(snapshot, policy, now).decisions:
        if isinstance(decision, Bind):
            reservation = books.reservations[decision.reservation]
            if decision.short > reservation.short:
                effect = f"would lack {decision.short} hosts"
                touched.append(Affected(request=reservation, effect=effect))
        elif isinstance(decision, Move | Withdraw) and decision.request in books.waiting:
            request = books.waiting[decision.request]
            touched.append(Affected(request=request, effect="its promised start moves later"))
    return touched


def _as_booking(pool: Pool, units: tuple[int, ...], window: Span) -> Booking:
    return Booking(
        id=BookingId(0),
        pool=pool.name,
        span=window,
        stage=Stage.FIRM,
        owner_kind=OwnerKind.MAINTENANCE,
        owner=0,
        parts=ledger.parts_of(pool, units),
    )


def cancel(w: Write, name: str) -> None:
    """It will not be, or is over before its time: the hosts are back. Raises NotFound."""
    for planned in windows(w.books):
        if name in (planned.name, str(planned.id)):
            _over(w, w.books.bookings[BookingId(planned.id)], "cancelled")
            return
    raise NotFound(f"no maintenance window '{name}'")


def begin(w: Write, booking: Booking) -> None:
    """A timer: the window begins, its hosts go down."""
    if booking.stage is not Stage.FIRM or w.now < booking.span.start:
        return
    if w.now >= booking.span.end:  # nobody was there to begin it
        _over(w, booking, "its window is over")
        return
    for each in _of_window(w, booking):
        ledger.begin_maintenance(w, each)
    w.record(ev.SubjectKind.MAINTENANCE, booking.id, ev.MaintenanceBegun(), name=booking.name)
    reason = f"maintenance {booking.name}" + (f": {booking.note}" if booking.note else "")
    for host in _places(w, booking):
        hosts.take_down(w, booking.pool, host, reason=reason, until=booking.span.end)
    w.wake(booking.id, WorkKind.MAINTENANCE_END, booking.span.end)


def end(w: Write, booking: Booking) -> None:
    """A timer: the window is over, its hosts are back."""
    if booking.stage is Stage.LIVE and w.now >= booking.span.end:
        _over(w, booking, "its window is over")


def _of_window(w: Write, booking: Booking) -> list[Booking]:
    """The bookings of a window: one in each pool over its hosts."""
    lines = {line.name for line in w.books.fleet.lines_of(booking.pool)}
    return [
        b
        for b in w.books.bookings.values()
        if b.owner_kind is OwnerKind.MAINTENANCE and b.name == booking.name and b.pool in lines
    ]


def _places(w: Write, booking: Booking) -> list[int]:
    """The hosts of a window, by their place in the pool."""
    host_of = w.books.fleet.pool(booking.pool).host_of
    return list(dict.fromkeys(host_of(unit) for unit in booking.units))


def _over(w: Write, booking: Booking, cause: str) -> None:
    w.tx.unschedule(booking.id)
    begun = booking.stage is Stage.LIVE
    for each in _of_window(w, booking):
        ledger.end(w, each.id)
    w.record(
        ev.SubjectKind.MAINTENANCE,
        booking.id,
        ev.MaintenanceOver(cause=cause),
        name=booking.name,
        reason=cause,
    )
    for host in _places(w, booking) if begun else ():
        hosts.bring_back(w, booking.pool, host, reason=f"maintenance {booking.name}: {cause}")
