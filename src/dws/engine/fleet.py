"""Changing the declared fleet, and how it stands.

A fleet is applied as a whole. Units are positions in their pool's line, so what is in use must keep its
position: an apply that would move or remove a host under live work or an outage is refused and says
which. Promises in a pool whose line changed are drawn again by the next pass.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dws.engine import hosts, ledger
from dws.engine.answers import FleetView, Fragments, HostUse, HostView, PoolView
from dws.engine.books import Books
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.errors import FailedPrecondition
from dws.model.piece import Piece
from dws.model.topology import HOST_LEVEL, POD_LEVEL, Fleet, HostState, HostStatus, Pool
from dws.planner import slices
from dws.planner.calendar import PoolCalendar

SETUP_MIN_S: Final = 5
TEARDOWN_MIN_S: Final = 2


def differences(old: Fleet, new: Fleet) -> tuple[str, ...]:
    """What applying `new` over `old` changes, one line each; empty when nothing."""
    lines = []
    before, after = {p.name: p for p in old.pools}, {p.name: p for p in new.pools}
    for name in after.keys() - before.keys():
        pool = after[name]
        lines.append(f"+ pool {name}: {len(pool.hosts)} hosts {pool.shape.name} in {pool.zone}")
    for name in before.keys() - after.keys():
        lines.append(f"- pool {name}: {len(before[name].hosts)} hosts")
    for name in before.keys() & after.keys():
        if before[name] != after[name]:
            was, now = len(before[name].hosts), len(after[name].hosts)
            hosts = f"{was} → {now} hosts" if was != now else "changed"
            lines.append(f"~ pool {name}: {hosts}")
    old_zones, new_zones = {z.name for z in old.zones}, {z.name for z in new.zones}
    lines += [f"+ zone {z}" for z in new_zones - old_zones]
    lines += [f"- zone {z}" for z in old_zones - new_zones]
    return tuple(sorted(lines, key=lambda line: (line[2:], line)))


def for_real_time(fleet: Fleet) -> Fleet:
    """On a real clock nothing takes no time: every pool's set-up bound is at least `SETUP_MIN_S` and its
    tear-down at least `TEARDOWN_MIN_S`, so that the seconds it takes to hand hosts over and back are never
    taken from the next promise."""
    return replace(fleet, pools=tuple(_with_least_overheads(p) for p in fleet.pools))


def _with_least_overheads(pool: Pool) -> Pool:
    own = pool.overheads
    least = replace(
        own,
        setup_s=max(own.setup_s, SETUP_MIN_S),
        teardown_s=max(own.teardown_s, TEARDOWN_MIN_S),
    )
    return pool if least == own else replace(pool, overheads=least)


def refuse_if_in_use(books: Books, new: Fleet) -> None:
    """Raises FailedPrecondition naming hosts in use that would vanish or change position."""
    moved: list[str] = []
    after = {p.name: p for p in new.pools}
    for booking in books.bookings.values():
        old_pool = books.fleet.pool(booking.pool)
        pool = after.get(booking.pool)
        for unit in booking.units:
            place = old_pool.host_of(unit)
            host = old_pool.hosts[place]
            if pool is None or place >= len(pool.hosts) or pool.hosts[place] != host:
                moved.append(f"{booking.pool}/{host}")
                continue
            shared_alike = pool.host_units == old_pool.host_units
            same_place = shared_alike and pool.cell_of(unit) == old_pool.cell_of(unit)
            if not same_place or pool.backend != old_pool.backend:
                moved.append(f"{booking.pool}/{host}")
    _refuse_if_served_no_more(books, after)
    _refuse_if_reserved(books, after)
    if moved:
        raise FailedPrecondition(
            f"fleet: {', '.join(sorted(set(moved))[:8])} would vanish or change position while in use; "
            "drain them first, or add hosts at the end of their block's pool",
            details={"hosts": sorted(set(moved))},
        )


def _refuse_if_served_no_more(books: Books, after: dict[str, Pool]) -> None:
    """Raises FailedPrecondition naming a shape that is held, and would not be served any more."""
    grants = [(r.name, r.grant.pool, r.grant.shape) for r in books.holding.values() if r.grant is not None]
    reserved = [(r.name, r.pool, r.shape) for r in books.reservations.values()]
    for name, pool, shape in (*grants, *reserved):
        if pool in after and books.fleet.pool(pool).piece_of(shape) != after[pool].piece_of(shape):
            raise FailedPrecondition(
                f"fleet: pool {pool} would serve '{shape}' no more, or differently; '{name}' holds it",
                details={"name": name},
            )


def _refuse_if_reserved(books: Books, after: dict[str, Pool]) -> None:
    """Raises FailedPrecondition naming reservations whose pool would go, or lose the places they count on."""
    for reservation in books.reservations.values():
        pool, old = after.get(reservation.pool), books.fleet.pool(reservation.pool)
        alike = pool is not None and (pool.beside, pool.topology) == (old.beside, old.topology)
        kept = pool is not None and alike and len(pool.cells) >= len(old.cells) and all(
            (new.first, new.size) >= (was.first, was.size) and new.first == was.first
            for new, was in zip(pool.cells, old.cells, strict=False)
        )
        if not kept:
            raise FailedPrecondition(
                f"fleet: pool {old.name} holds reservation '{reservation.name}' until "
                f"{reservation.window.end}; it cannot go or get smaller before (add hosts at its end)",
                details={"reservation": reservation.name},
            )


def apply(w: Write, new: Fleet, lines: tuple[str, ...]) -> Fleet:
    """Make `new` the declared fleet."""
    refuse_if_in_use(w.books, new)
    after = {p.name: p for p in new.pools}
    changed = {
        p.name for p in w.books.fleet.pools if p.name not in after or after[p.name] != p
    }
    for booking in list(w.books.bookings.values()):
        is_promise = booking.owner_kind is OwnerKind.REQUEST and booking.stage is Stage.FIRM
        if booking.pool in changed and is_promise:
            _withdraw(w, booking)
    for (pool, unit), status in list(w.books.hosts.items()):
        gone = pool not in after or unit >= len(after[pool].hosts)
        if gone or after[pool].hosts[unit] != w.books.fleet.pool(pool).hosts[unit]:
            ready = HostStatus(pool=pool, unit=unit, state=HostState.READY)
            host = w.books.fleet.pool(pool).hosts[unit]
            w.put_host(
                ready, ev.HostChanged(pool=pool, host=host, state="READY"), f"was {status.state}"
            )
    fleet = replace(new, version=w.books.fleet.version + 1)
    w.put_fleet(fleet, "; ".join(lines))
    _tell_those_beside(w)
    return fleet


def _tell_those_beside(w: Write) -> None:
    """A pool that is new beside another one has the other's hosts as they are."""
    first = {p.beside for p in w.books.fleet.pools if p.beside}
    for (pool, place), status in list(w.books.hosts.items()):
        if pool in first and status.state is HostState.DOWN:
            hosts.take_down(w, pool, place, reason=status.reason, until=status.until)
        elif pool in first and status.state is HostState.DRAINING:
            hosts.drain(w, pool, place, reason=status.reason)


def _withdraw(w: Write, booking: Booking) -> None:
    ledger.end(w, booking.id)
    request = w.books.waiting.get(booking.owner)
    if booking.owner_kind is OwnerKind.REQUEST and request is not None:
        cause = f"pool {booking.pool} was changed by the operator"
        w.apply(request, ev.Unbooked(cause=cause), reason=cause)


def view(books: Books, now: int) -> FleetView:
    """How every host stands now."""
    with books.lock:
        uses = _uses(books)
        return FleetView(
            version=books.fleet.version,
            now=now,
            currency=books.fleet.currency,
            zones=books.fleet.zones,
            pools=tuple(_pool_view(books, pool, uses) for pool in books.fleet.pools),
        )


def _uses(books: Books) -> dict[tuple[str, int], list[HostUse]]:
    """Who has which host, or some of it, by pool and the host's place."""
    found: dict[tuple[str, int], list[HostUse]] = {}
    for request in books.holding.values():
        grant = request.grant
        booking = books.bookings.get(grant.booking) if grant is not None else None
        if grant is None or booking is None:
            continue
        for instance in grant.instances:
            if instance.is_held:
                use = HostUse(
                    request=request.name,
                    project=request.project,
                    until=booking.span.end,
                    slots=instance.slots,
                )
                found.setdefault((grant.pool, instance.unit), []).append(use)
    return found


def fragments(books: Books) -> tuple[Fragments, ...]:
    """What is free now in each pool, and what of it each of its shapes could use."""
    with books.lock:
        return tuple(_fragments_of(pool, books.calendars[pool.name]) for pool in books.fleet.pools)


def _fragments_of(pool: Pool, calendar: PoolCalendar) -> Fragments:
    def usable(piece: Piece) -> int:
        return sum(calendar.idle_in_groups(None, piece)) * piece.units * pool.unit_weight

    largest = slices.largest_free(pool, calendar.idle_in_groups(HOST_LEVEL)) if pool.topology else None
    return Fragments(
        pool=pool.name,
        free=sum(calendar.idle_in_groups(None)) * pool.unit_weight,
        usable={shape.name: usable(pool.piece_held(shape.name)) for shape in pool.shapes},
        in_slices={
            str(t): usable(slices.piece_of(t, pool)) for t in (slices.served(pool) if pool.topology else ())
        },
        largest_slice=(largest.chips if largest is not None else 0) if pool.topology else None,
    )


def _pool_view(books: Books, pool: Pool, uses: dict[tuple[str, int], list[HostUse]]) -> PoolView:
    hosts = tuple(_host_view(books, pool, place, uses) for place in range(len(pool.hosts)))
    free_by_cell = {c.name or pool.name: 0 for c in pool.cells}
    for host in hosts:
        cell = pool.cells[pool.cell_of(pool.units_of(host.unit).start)]
        free_by_cell[cell.name or pool.name] += host.free
    return PoolView(
        pool=pool,
        hosts=hosts,
        ready=sum(1 for h in hosts if h.status.state is HostState.READY),
        busy=sum(1 for h in hosts if h.uses),
        free=sum(1 for h in hosts if h.free == pool.host_units),
        draining=sum(1 for h in hosts if h.status.state is HostState.DRAINING),
        down=sum(1 for h in hosts if h.status.state is HostState.DOWN),
        free_by_cell=free_by_cell,
        fits={s.name: pool.piece_held(s.name).in_cells([h.free for h in hosts]) for s in pool.shapes},
        free_hosts={level: _free_hosts(pool, level, hosts) for level in pool.levels},
        largest=_largest(pool, hosts) if pool.topology else {},
    )


def _free_hosts(pool: Pool, level: str, hosts: tuple[HostView, ...]) -> dict[str, int]:
    """How many hosts are wholly free in each domain of a level."""
    each = pool.host_units
    return {
        d.name: sum(h.free == each for h in hosts[d.first // each : (d.first + d.size) // each])
        for d in pool.domains
        if d.level == level
    }


def _largest(pool: Pool, hosts: tuple[HostView, ...]) -> dict[str, str]:
    """The largest slice that each pod has room for."""
    pods = (d.name for d in pool.domains if d.level == POD_LEVEL)
    idle = [h.free for h in hosts]
    found = (slices.largest_free(pool, idle, cells) for cells in pool.groups(POD_LEVEL))
    return {pod: str(largest or "") for pod, largest in zip(pods, found, strict=True)}


def _host_view(
    books: Books, pool: Pool, place: int, uses: dict[tuple[str, int], list[HostUse]]
) -> HostView:
    own = tuple(sorted(uses.get((pool.name, place), ()), key=lambda use: use.slots))
    ready = HostStatus(pool=pool.name, unit=place, state=HostState.READY)
    status = books.hosts.get((pool.name, place), ready)
    used = sum(len(use.slots) or pool.host_units for use in own)
    return HostView(
        pool=pool.name,
        unit=place,
        name=pool.hosts[place],
        status=status,
        domains={level: pool.domain_of(place, level) for level in pool.levels},
        request=own[0].request if own else "",
        project=own[0].project if own else "",
        busy_until=max((use.until for use in own), default=0),
        uses=own,
        free=max(0, pool.host_units - used) if status.state is HostState.READY else 0,
    )
