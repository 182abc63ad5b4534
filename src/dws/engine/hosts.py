"""Hosts going down, draining and coming back, and whom that affects.

An outage is a LIVE booking owned by the fault. Recording it takes the host out of every other booking in
the same transaction: a live owner is repaired, shrunk or ended by its policy; promises by number are
looked at again in the next pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from dws.engine import instances, ledger, occupancy, orphans
from dws.engine.answers import Affected
from dws.engine.books import Books
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.errors import InvalidArgument, NotFound
from dws.model.evolve import evolve
from dws.model.names import BookingId
from dws.model.request import CapacityRequest, HostLossPolicy, RequestState
from dws.model.time import FOREVER
from dws.model.topology import Fleet, HostState, HostStatus, Pool
from dws.model.work import WorkKind
from dws.planner import backfill
from dws.planner.options import PolicyOptions
from dws.planner.plan import Bind, Move, Withdraw


def find(fleet: Fleet, name: str) -> tuple[Pool, int]:
    """The pool of a host and its place there, by `HOST` or `POOL/HOST`; the pool whose it is, where others
    stand beside it.

    Raises NotFound, or InvalidArgument when two pools have a host of that name.
    """
    pool_name, slash, host = name.rpartition("/")
    found = [
        (fleet.lines_of(pool.name)[0], unit)
        for pool in fleet.pools
        if (pool.name == pool_name if slash else not pool.beside)
        for unit in (pool.host_named(host),)
        if unit is not None
    ]
    if not found:
        raise NotFound(f"hosts: no host '{name}' in this fleet ('dws fleet show' lists them)")
    if len(found) > 1:
        pools = ", ".join(p.name for p, _ in found)
        raise InvalidArgument(
            f"hosts: '{name}' is in several pools ({pools}); write POOL/HOST", field="hosts"
        )
    return found[0]


def users_of(books: Books, pool: str, unit: int) -> list[CapacityRequest]:
    """Requests that hold some of that host now."""
    return [
        r
        for r in books.holding.values()
        if r.grant is not None
        and r.grant.pool == pool
        and any(i.unit == unit and i.is_held for i in r.grant.instances)
    ]


def affected(
    books: Books,
    targets: list[tuple[Pool, int]],
    state: HostState,
    *,
    until: int,
    policy: PolicyOptions,
    now: int,
) -> tuple[Affected, ...]:
    """Whom a change of these hosts would touch, and how: who holds them, and whose promise would move."""
    targets = [(line, place) for pool, place in targets for line in books.fleet.lines_of(pool.name)]
    return (
        *_holders(books, targets, state),
        *_reserved(books, targets, state),
        *_promised(books, targets, state, until=until, policy=policy, now=now),
    )


def _promised(
    books: Books,
    targets: list[tuple[Pool, int]],
    state: HostState,
    *,
    until: int,
    policy: PolicyOptions,
    now: int,
) -> Iterator[Affected]:
    """Waiting requests whose promise a plan without these hosts would move or withdraw, and reservations
    ahead that would then lack some of what they have."""
    if state is HostState.READY:
        return
    snapshot = books.snapshot()
    for pool in {p.name: None for p, _ in targets}:
        calendar = snapshot.calendars[pool]
        out = {
            unit: HostStatus(pool=pool, unit=host, state=state, until=until)
            for p, host in targets
            if p.name == pool
            for unit in p.units_of(host)
        }
        calendar.set_hosts({**calendar.unready_units(), **out})
    for decision in backfill.plan(snapshot, policy, now).decisions:
        if isinstance(decision, Bind):
            reservation = books.reservations[decision.reservation]
            if decision.short > reservation.short:
                effect = f"would lack {decision.short} of its {reservation.count}"
                yield Affected(request=reservation, effect=effect)
            continue
        request = books.waiting.get(decision.request)
        if request is None:
            continue
        if isinstance(decision, Move):
            later = decision.placement.start - request.promised_start
            if later > 0:
                yield Affected(request=request, effect=f"its promised start moves {later} s later")
        elif isinstance(decision, Withdraw):
            yield Affected(request=request, effect="its promised start is withdrawn")


def _holders(
    books: Books, targets: list[tuple[Pool, int]], state: HostState
) -> tuple[Affected, ...]:
    names: dict[int, list[str]] = {}
    for pool, unit in targets:
        for request in users_of(books, pool.name, unit):
            names.setdefault(request.id, []).append(pool.hosts[unit])
    return tuple(
        Affected(
            request=books.holding[request_id],
            effect=_effect(books.holding[request_id], state),
            hosts=tuple(on),
        )
        for request_id, on in sorted(names.items())
    )


def _reserved(
    books: Books, targets: list[tuple[Pool, int]], state: HostState
) -> Iterator[Affected]:
    """Open reservations that have some of these hosts and would lose it."""
    if state is not HostState.DOWN:
        return
    gone: dict[str, set[int]] = {}
    for pool, host in targets:
        gone.setdefault(pool.name, set()).update(pool.units_of(host))
    for reservation in books.reservations.values():
        booking = books.bookings.get(reservation.booking or BookingId(0))
        units = gone.get(booking.pool, set()) & set(booking.units) if booking is not None else set()
        if units:
            on = books.fleet.pool(reservation.pool).hosts_of(sorted(units))
            effect = f"loses {', '.join(on)}, unless others are free"
            yield Affected(request=reservation, effect=effect, hosts=on)


def _effect(request: CapacityRequest, state: HostState) -> str:
    if state is not HostState.DOWN:
        return "runs on to its end"
    if request.state is RequestState.ENDING:
        return "is ending anyway"
    if request.state is RequestState.PROVISIONING:
        return "goes back in line"
    if instances.granted(request).is_torn_by_loss and request.on_host_loss is HostLossPolicy.REPLACE:
        return "ends and goes back in line, being a slice (on-host-loss: replace)"
    return {
        HostLossPolicy.END: "ends (on-host-loss: end)",
        HostLossPolicy.REQUEUE: "ends and goes back in line (on-host-loss: requeue)",
        HostLossPolicy.REPLACE: "gets a spare host, or ends if there is none (on-host-loss: replace)",
    }[request.on_host_loss]


def take_down(w: Write, pool_name: str, unit: int, *, reason: str, until: int) -> None:
    """A host is down from now on. Harmless when it already is."""
    for pool in w.books.fleet.lines_of(pool_name):
        _take_down(w, pool, unit, reason, until)


def _take_down(w: Write, pool: Pool, unit: int, reason: str, until: int) -> None:
    if ledger.outage_of(w, pool.name, unit) is not None:
        return
    holders = users_of(w.books, pool.name, unit)
    status = HostStatus(
        pool=pool.name,
        unit=unit,
        state=HostState.DOWN,
        reason=reason,
        actor=w.actor,
        since=w.now,
        until=until,
    )
    changed = ev.HostChanged(pool=pool.name, host=pool.hosts[unit], state="DOWN", until=until)
    w.put_host(status, changed, reason)
    for request in holders:
        grant = instances.granted(request)
        for instance in grant.instances:
            if instance.unit == unit and instance.is_held:
                instances.lost(w, w.books.holding[request.id], instance.rank, reason)
    occupancy.host_lost(w, pool, unit)
    ledger.open_outage(w, pool, unit, until)
    if until:
        w.wake(orphans.FLEET, WorkKind.OUTAGE_END, until, tag=f"{pool.name}/{unit}")


def not_back_yet(w: Write, pool_name: str, unit: int) -> None:
    """A host was expected back by now and is not: from here on nobody knows when it will be, and what was
    promised on it is promised elsewhere. Harmless when it is back."""
    status = w.books.hosts.get((pool_name, unit))
    if status is None or status.state is not HostState.DOWN or not status.until:
        return
    host = w.books.fleet.pool(pool_name).hosts[unit]
    outage = ledger.outage_of(w, pool_name, unit)
    if outage is not None:
        ledger.set_end(w, outage.id, FOREVER)
    w.put_host(
        evolve(status, until=0),
        ev.HostChanged(pool=pool_name, host=host, state="DOWN"),
        f"was expected back and is not: {status.reason}",
    )


def drain(w: Write, pool_name: str, unit: int, *, reason: str) -> None:
    """Nothing new starts on the host; what runs there runs to its end. Harmless on one not READY."""
    for pool in w.books.fleet.lines_of(pool_name):
        _drain(w, pool, unit, reason)


def _drain(w: Write, pool: Pool, unit: int, reason: str) -> None:
    if (pool.name, unit) in w.books.hosts and w.books.hosts[
        pool.name, unit
    ].state is not HostState.READY:
        return
    status = HostStatus(
        pool=pool.name,
        unit=unit,
        state=HostState.DRAINING,
        reason=reason,
        actor=w.actor,
        since=w.now,
    )
    w.put_host(
        status, ev.HostChanged(pool=pool.name, host=pool.hosts[unit], state="DRAINING"), reason
    )


def bring_back(w: Write, pool_name: str, unit: int, *, reason: str) -> None:
    """A host may be used again. Harmless on one that is READY."""
    for pool in w.books.fleet.lines_of(pool_name):
        _bring_back(w, pool, unit, reason)


def _bring_back(w: Write, pool: Pool, unit: int, reason: str) -> None:
    if (pool.name, unit) not in w.books.hosts:
        return
    outage = ledger.outage_of(w, pool.name, unit)
    if outage is not None:
        ledger.end(w, outage.id)
    w.tx.unschedule(orphans.FLEET, (WorkKind.OUTAGE_END,), f"{pool.name}/{unit}")
    status = HostStatus(pool=pool.name, unit=unit, state=HostState.READY, since=w.now)
    w.put_host(
        status, ev.HostChanged(pool=pool.name, host=pool.hosts[unit], state="READY"), reason
    )
