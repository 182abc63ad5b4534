"""What must hold of reservations whenever the engine has nothing left to do at an instant.

The rows and the bookings that are stored are held against what the events said: a booking is where, when and
as large as its owner was told, its hosts are nobody else's, what runs inside lies inside, and what is lacking
is lacking because no host is there. Which hosts it had, and since when, is written down for the bill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dws.engine.app import Engine
from dws.engine.ports import Reader, Store
from dws.model.access import SYSTEM
from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.time import FOREVER, Span
from dws.model.topology import Pool
from dws.model.usage import UsageKind
from dws.planner.options import PolicyOptions
from dws.simulator.breaking.auditor import Auditor
from dws.simulator.breaking.block import AHEAD, OPEN, Block, Cycle, Held, clipped, covers, merged, seconds
from dws.simulator.breaking.model import HOLDING
from dws.simulator.breaking.outcome import Broken
from dws.simulator.breaking.shapes import Spot, each_of, whole_slices


def quiet(auditor: Auditor, engine: Engine, store: Store, now: int) -> None:
    """Rows and bookings say what the events said, and nothing is overdue."""
    calendar = auditor.calendar
    with store.read() as reader:
        for block in calendar.blocks.values():
            _row_agrees(block, reader)
            _nothing_is_overdue(block, engine.policy, now)
        for cycle in calendar.cycles.values():
            _is_dealt_with(cycle, engine.policy, now)
        bookings = reader.open_bookings()
    own = {b.owner: b for b in bookings if b.owner_kind is OwnerKind.RESERVATION}
    for block in calendar.blocks.values():
        booking = own.pop(block.id, None)
        pool = engine.books.fleet.pool(block.pool)
        _is_booked_as_told(block, booking, pool)
        _write_down_hosts(block, booking, pool, now)
        if booking is not None and block.phase in OPEN:
            _hosts_are_its_own(auditor, block, booking, bookings, pool)
            _lacks_what_is_not_there(auditor, block, booking, bookings, pool, now)
            _is_idle_when_nothing_runs(auditor, block)
    for window in (b for b in bookings if b.owner_kind is OwnerKind.MAINTENANCE):
        if now >= window.span.end or (now >= window.span.start and window.stage is Stage.FIRM):
            raise Broken(f"maintenance '{window.name}' is not over, or has not begun, in time")
    if own:
        raise Broken(f"bookings of reservations {sorted(own)}, which were never asked for")
    _children_lie_inside(auditor, bookings)


def deep(auditor: Auditor, engine: Engine, store: Store) -> None:
    """Slower: what was billed for reserved hosts adds up to what they had and what ran on them."""
    calendar = auditor.calendar
    lines = engine.usage(SYSTEM, start=0, end=FOREVER)
    idle: Counter[tuple[str, str]] = Counter()
    for line in lines:
        if line.kind == "RESERVED_IDLE":
            idle[line.project, line.request] += line.seconds
    fleet = engine.books.fleet
    with store.read() as reader:
        for block in calendar.blocks.values():
            records = reader.usage(start=0, end=FOREVER, request=block.id)
            if any(r.kind is not UsageKind.RESERVED for r in records):
                raise Broken(f"reservation '{block.name}' was billed for something else than holding hosts")
            pool = fleet.pool(block.pool)
            billed = [(_spot(pool, r.rank), r.start, r.end) for r in records]
            _adds_up(block, billed, engine.now())
            shared = any(b.names & block.names for b in calendar.blocks.values() if b is not block)
            if block.is_over and not shared:
                _idle_is_told(
                    block, each_of(pool, block.shape), sum(idle[block.project, name] for name in block.names)
                )


def _spot(pool: Pool, unit: int) -> Spot:
    return divmod(unit, pool.host_units)


def _adds_up(block: Block, billed: list[Held], now: int) -> None:
    if seconds(billed) != seconds(merged(billed)):
        raise Broken(f"reservation '{block.name}' was billed twice for one host: {sorted(billed)}")
    holding = [(spot, since, now) for spot, since in block.drawn.items()]
    had = merged(clipped(block.holds + holding, block.window))
    if merged(billed) != had if block.is_over else not covers(had, billed):
        raise Broken(f"reservation '{block.name}' was billed {merged(billed)}, it had {had}")
    uses = clipped(block.uses, block.window)
    if block.is_over and not covers(had, uses):
        raise Broken(f"reservation '{block.name}' had {had}, in it ran {merged(uses)}")


def _idle_is_told(block: Block, each: int, idle_s: int) -> None:
    had, uses = clipped(block.holds, block.window), clipped(block.uses, block.window)
    stood_s = (seconds(had) - seconds(uses)) // each
    if idle_s != stood_s:
        raise Broken(
            f"reservation '{block.name}' stood idle {stood_s} seconds of machines, {idle_s} are told"
        )


# --- rows -----------------------------------------------------------------------------------------


def _row_agrees(block: Block, reader: Reader) -> None:
    row = reader.reservation(block.id)
    if row is None:
        raise Broken(f"the row of reservation '{block.name}' is gone")
    in_row = (row.state.value, row.name, row.window, row.count, row.pool, row.terms, row.short)
    told = (block.phase, block.name, block.window, block.count, block.pool, block.terms, block.short)
    if in_row != told:
        raise Broken(f"the row of reservation '{block.name}' says {in_row}, its events say {told}")
    if block.phase in AHEAD and (row.lock_at, row.cancel_until) != (block.lock_at, block.cancel_until):
        raise Broken(f"reservation '{block.name}' is locked at {row.lock_at}, not {block.lock_at}")


def _nothing_is_overdue(block: Block, policy: PolicyOptions, now: int) -> None:
    if block.phase == "PENDING_APPROVAL" and now >= block.approve_by:
        raise Broken(f"reservation '{block.name}' waits for an approval that would come too late")
    if block.phase == "APPROVED" and now >= block.lock_at:
        raise Broken(f"reservation '{block.name}' is not locked, {now - block.lock_at} s too late")
    if block.phase in AHEAD and now >= block.window.start:
        raise Broken(f"reservation '{block.name}' is not open {now - block.window.start} s after its start")
    if block.phase == "PROVISIONING" and not block.short:
        raise Broken(f"reservation '{block.name}' was not delivered and lacks nothing")
    if block.phase in OPEN and now >= block.window.end:
        raise Broken(f"reservation '{block.name}' is open {now - block.window.end} s after its end")
    limit = policy.no_show_release_s
    if block.phase in OPEN and limit and block.idle_since and now - block.idle_since >= limit:
        raise Broken(f"nobody came for reservation '{block.name}', and it is kept")


def _is_dealt_with(cycle: Cycle, policy: PolicyOptions, now: int) -> None:
    if cycle.is_over:
        return
    for day, span in cycle.occurrences():
        within = cycle.since <= span.start <= now + policy.calendar_horizon_s
        if within and day not in cycle.dealt:
            raise Broken(f"series '{cycle.name}': {day} is within the horizon, neither booked nor missed")


# --- bookings -------------------------------------------------------------------------------------


def _is_booked_as_told(block: Block, booking: Booking | None, pool: Pool) -> None:
    if block.is_over != (booking is None):
        raise Broken(f"reservation '{block.name}' is {block.phase}, its booking is {booking}")
    if booking is None or block.phase == "ENDING":
        return
    booked = (booking.pool, booking.span, booking.count)
    if booked != (block.pool, block.window, block.count * block.slots_each(pool)):
        raise Broken(f"reservation '{block.name}' is booked as {booked}, not as its owner was told")
    stage = Stage.LIVE if block.phase in OPEN else Stage.FIRM
    stage = Stage.HOLD if block.phase == "PENDING_APPROVAL" else stage
    if booking.stage is not stage:
        raise Broken(f"reservation '{block.name}' is {block.phase}, its booking {booking.stage}")


def _write_down_hosts(block: Block, booking: Booking | None, pool: Pool, now: int) -> None:
    units = booking.units if booking is not None and booking.stage is Stage.LIVE else ()
    has = [_spot(pool, unit) for unit in units]
    for spot in block.drawn.keys() - set(has):
        block.holds.append((spot, block.drawn.pop(spot), now))
    for spot in has:
        block.drawn.setdefault(spot, now)


def _hosts_are_its_own(
    auditor: Auditor, block: Block, booking: Booking, bookings: Iterable[Booking], pool: Pool
) -> None:
    units = set(booking.units)
    groups = pool.groups(block.within)
    if not any({p.cell for p in booking.parts} <= set(group) for group in groups):
        raise Broken(f"reservation '{block.name}' is spread over more than one {block.within}")
    if block.topology:
        whole = whole_slices(pool, block.topology, [_spot(pool, unit) for unit in units])
        if whole + block.short != block.count:
            raise Broken(f"reservation '{block.name}': {whole} of {block.count} slices, lacks {block.short}")
    else:
        _machines_are_whole(block, units, pool)
    for other in bookings:
        is_beside = not other.parent and other.id != booking.id and other.pool == booking.pool
        taken = units.intersection(other.units) if is_beside and other.stage is Stage.LIVE else set()
        if taken and other.owner_kind is not OwnerKind.MAINTENANCE:
            hosts = [pool.hosts[u // pool.host_units] for u in sorted(taken)]
            raise Broken(
                f"{hosts} of reservation '{block.name}' are also those of {other.owner_kind} {other.owner}"
            )
    for unit in units:
        host, slot = _spot(pool, unit)
        holder = auditor.holders.get((block.pool, host, slot))
        if holder is not None and auditor.requests[holder].inside != block.id:
            name = auditor.requests[holder].name
            raise Broken(f"'{name}' runs on {pool.hosts[host]}, which is reserved for '{block.name}'")


def _machines_are_whole(block: Block, units: set[int], pool: Pool) -> None:
    each = block.slots_each(pool)
    if len(units) + block.short * each != block.count * each:
        raise Broken(
            f"reservation '{block.name}': {len(units)} of {block.count * each} slots of hosts, "
            f"lacks {block.short} machines"
        )
    on = Counter(unit // pool.host_units for unit in units)
    torn = [pool.hosts[host] for host, slots in on.items() if slots % each and pool.is_shared]
    if torn:
        raise Broken(f"reservation '{block.name}' has part of a machine on {torn}")


def _lacks_what_is_not_there(
    auditor: Auditor, block: Block, booking: Booking, bookings: list[Booking], pool: Pool, now: int
) -> None:
    """A machine that nobody has, in a cell where one is lacking, is drawn at once."""
    lacking = {p.cell for p in booking.parts if not p.units}
    if not lacking or block.topology:  # a slice needs neighbours, which the planner alone looks for
        return
    until_end = Span(now, block.window.end)
    taken = {u for b in bookings if b.pool == pool.name and _is_in_the_way(b, until_end) for u in b.units}
    taken |= {h * pool.host_units + slot for name, h, slot in auditor.holders if name == pool.name}
    for cell in lacking:
        idle = Counter(u // pool.host_units for u in pool.cells[cell].units if u not in taken)
        for place, slots in idle.items():
            host = pool.hosts[place]
            is_ready = auditor.host_states.get((pool.name, host), "READY") == "READY"
            if is_ready and slots >= each_of(pool, block.shape):
                raise Broken(f"reservation '{block.name}' lacks {block.short} hosts, and {host} stands idle")


def _is_in_the_way(booking: Booking, until_end: Span) -> bool:
    if booking.owner_kind is OwnerKind.MAINTENANCE:
        return booking.span.overlaps(until_end)
    return booking.stage is Stage.LIVE and not booking.parent


def _is_idle_when_nothing_runs(auditor: Auditor, block: Block) -> None:
    runs = [
        t.name
        for t in auditor.requests.values()
        if t.phase in HOLDING and t.inside == block.id and t.demand.reservation
    ]
    if bool(runs) == bool(block.idle_since):
        raise Broken(f"in reservation '{block.name}' run {runs}, it is idle since {block.idle_since}")


def _children_lie_inside(auditor: Auditor, bookings: list[Booking]) -> None:
    by_id = {b.id: b for b in bookings}
    held: dict[tuple[int, int], Booking] = {}
    inside: dict[int, list[Booking]] = {}
    for child in bookings:
        if child.owner_kind is not OwnerKind.REQUEST:
            continue
        told = auditor.requests[child.owner]
        if not child.parent:
            if told.demand.reservation > 0 or told.inside:
                raise Broken(f"'{told.name}' names a reservation and is booked outside it")
            continue
        parent = by_id.get(child.parent)  # type: ignore[call-overload]
        if parent is None:
            raise Broken(f"'{told.name}' is booked inside booking {child.parent}, which is not there")
        block = auditor.calendar.blocks[parent.owner]
        if told.demand.reservation > 0 and told.demand.reservation != block.id:
            raise Broken(f"'{told.name}' is booked inside '{block.name}', which it did not name")
        if not parent.span.contains(child.span):
            raise Broken(f"'{told.name}' is booked over {child.span}, '{block.name}' over {parent.span}")
        if not set(child.units) <= set(parent.units):
            raise Broken(f"'{told.name}' is on hosts {child.units}, '{block.name}' has {parent.units}")
        for unit in child.units:
            sibling = held.setdefault((parent.id, unit), child)
            if sibling is not child:
                raise Broken(f"'{told.name}' shares a host of '{block.name}' with request {sibling.owner}")
        inside.setdefault(parent.id, []).append(child)
    for parent_id, children in inside.items():
        booked = max(sum(c.count for c in children if c.span.covers(x.span.start)) for x in children)
        if booked > by_id[parent_id].count:  # type: ignore[index]
            name = auditor.calendar.blocks[by_id[parent_id].owner].name  # type: ignore[index]
            raise Broken(f"{booked} hosts are booked at one instant inside '{name}', which has fewer")
