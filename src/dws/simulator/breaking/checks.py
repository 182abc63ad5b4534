"""What must hold whenever the engine has nothing left to do at an instant.

The auditor's model, the stored rows, the engine's books and the simulated world are four accounts of the
same thing; here they are compared, and the clock with what was due.
"""

from __future__ import annotations

from dws.backends.simulated.backend import SimulatedBackend
from dws.engine.app import Engine
from dws.engine.ports import Reader, Store
from dws.model.access import SYSTEM
from dws.model.booking import Booking, OwnerKind
from dws.model.request import CapacityRequest
from dws.model.time import FOREVER
from dws.model.topology import Pool
from dws.simulator.breaking import calendar_checks
from dws.simulator.breaking.auditor import Auditor
from dws.simulator.breaking.model import HOLDING, Told, place_of
from dws.simulator.breaking.outcome import Broken

_MAINTENANCE = OwnerKind.MAINTENANCE  # may be forced over what somebody has, openly
UNANSWERED_S = 60
"""An order that the backend has not answered may take this much longer than the set-up limit."""


def quiet(auditor: Auditor, engine: Engine, store: Store, now: int) -> None:
    """Everything due by `now` is done, and rows and books say what the events said."""
    with store.read() as reader:
        for told in auditor.requests.values():
            row = reader.request(told.id)
            if row is None:
                raise Broken(f"the row of '{told.name}' is gone")
            _row_agrees(told, row)
            _nothing_is_overdue(auditor, engine, told, now)
            _gang_is_whole(told)
        _books_mirror(auditor, engine, reader)
        _runs_where_it_is_booked(auditor, engine, reader)
        _peaks(auditor, engine, reader, now)
    calendar_checks.quiet(auditor, engine, store, now)


def deep(auditor: Auditor, engine: Engine, store: Store) -> None:
    """Slower: every event folded through the lifecycles, and what use was billed."""
    faults = engine.verify(SYSTEM).faults
    if faults:
        raise Broken(f"the ledger does not verify: {faults[0]}")
    with store.read() as reader:
        for told in auditor.requests.values():
            records = reader.usage(start=0, end=FOREVER, request=told.id)
            billed = sorted(
                (r.rank, r.start, r.end, r.kind.value, r.reservation) for r in records if r.seconds
            )
            used = sorted(use for use in told.uses if use[1] < use[2])
            if billed != used:
                raise Broken(f"'{told.name}' was billed {billed}, it used {used}")
    calendar_checks.deep(auditor, engine, store)


def nobody_is_left_over(auditor: Auditor, backend: SimulatedBackend) -> None:
    """What really runs is held by somebody. Only once all faults are healed."""
    held = {
        (_key(told, place.incarnation), rank)
        for told in auditor.requests.values()
        if told.held is not None
        for rank, place in told.held.places.items()
        if place.is_held
    }
    for place, spot in sorted(backend.holds().items()):
        if place not in held:
            raise Broken(f"instance {place} runs on {spot} and nobody holds it")


def nothing_is_imagined(auditor: Auditor, backend: SimulatedBackend) -> None:
    """What is called running is really there. Only when the backend has just been heard."""
    real = backend.holds()
    for told in auditor.requests.values():
        if told.phase not in ("PROVISIONING", "ACTIVE") or told.held is None:
            continue
        for rank, place in told.held.places.items():
            is_in_use = place.is_up and place.is_held and not place.is_leaving
            if is_in_use and (_key(told, place.incarnation), rank) not in real:
                raise Broken(f"rank {rank} of '{told.name}' is called running, and it is not there")


def _key(told: Told, incarnation: int) -> str:
    key = f"{told.id}-{told.attempts}"
    return f"{key}-{incarnation}" if incarnation else key


def _row_agrees(told: Told, row: CapacityRequest) -> None:
    if row.state.value != told.phase:
        raise Broken(f"the row of '{told.name}' says {row.state}, its events say {told.phase}")
    if row.state.is_waiting and row.promised_start != told.promise:
        raise Broken(f"the row of '{told.name}' promises {row.promised_start}, it was told {told.promise}")
    held = told.held
    in_row = {i.rank: place_of(i).spots for i in row.grant.instances if i.is_held} if row.grant else {}
    in_story = {r: p.spots for r, p in held.places.items() if p.is_held} if held else {}
    if in_row != in_story:
        raise Broken(f"the row of '{told.name}' holds {in_row}, its events say {in_story}")


def _nothing_is_overdue(auditor: Auditor, engine: Engine, told: Told, now: int) -> None:
    held = told.held
    if told.phase in ("PENDING", "BOOKED") and now > told.demand.not_after:
        raise Broken(f"'{told.name}' waits although its window closed {now - told.demand.not_after} s ago")
    aim = auditor.calendar.blocks.get(told.demand.reservation)
    if told.phase in ("PENDING", "BOOKED") and aim is not None and aim.is_closed:
        raise Broken(f"'{told.name}' waits for reservation '{aim.name}', which is {aim.phase}")
    if told.phase == "BOOKED" and now > max(told.promise, told.not_again_before):
        raise Broken(f"the promise of '{told.name}' passed {now - told.promise} s ago without a word")
    if told.phase == "ACTIVE" and held is not None and now >= held.ends_at:
        raise Broken(f"'{told.name}' runs {now - held.ends_at} s after its end")
    if told.phase == "PROVISIONING" and held is not None:
        limit = held.started + engine.books.fleet.pool(held.pool).overheads.setup_s + UNANSWERED_S
        if now > limit:
            raise Broken(f"'{told.name}' is being provisioned {now - limit} s after the set-up limit")
    with_timer = told.phase in HOLDING
    if with_timer and engine.next_due() is None:
        raise Broken(f"'{told.name}' is {told.phase} and nothing will ever be due")


def _gang_is_whole(told: Told) -> None:
    """An active gang is whole but for what its owner gave back."""
    if told.phase != "ACTIVE" or told.held is None:
        return
    missing = [rank for rank, place in told.held.places.items() if not place.is_held and not place.is_leaving]
    if missing:
        raise Broken(f"'{told.name}' is active without its ranks {missing}")
    if not any(place.is_held for place in told.held.places.values()):
        raise Broken(f"'{told.name}' is active and holds nothing")


def _books_mirror(auditor: Auditor, engine: Engine, reader: Reader) -> None:
    books = engine.books
    stored: dict[int, Booking] = {b.id: b for b in reader.open_bookings()}
    if books.bookings != stored:
        wrong = {b for b in books.bookings.keys() | stored.keys() if books.bookings.get(b) != stored.get(b)}
        raise Broken(f"books and store disagree on bookings {sorted(wrong)}")
    known = {**books.waiting, **books.holding}
    for told in auditor.requests.values():
        if known.pop(told.id, None) != (None if told.is_over else reader.request(told.id)):
            raise Broken(f"books and store disagree on '{told.name}'")
    if known:
        raise Broken(f"the books have requests {sorted(known)}, which were never submitted")
    if books.version != reader.ledger_version():
        raise Broken(f"books are at version {books.version}, the store at {reader.ledger_version()}")
    if books.hosts != {(h.pool, h.unit): h for h in reader.host_statuses()}:
        raise Broken("books and store disagree on hosts")


def _runs_where_it_is_booked(auditor: Auditor, engine: Engine, reader: Reader) -> None:
    """What a request holds, as its events say, is what its booking has drawn, slot by slot."""
    booked = {
        b.owner: (b.pool, set(b.units)) for b in reader.open_bookings() if b.owner_kind is OwnerKind.REQUEST
    }
    for told in auditor.requests.values():
        if told.held is None or not told.slots_held:
            continue
        pool = engine.books.fleet.pool(told.held.pool)
        held = {host * pool.host_units + slot for host, slot in told.held.booked()}
        name, units = booked.get(told.id, ("", set()))
        if (name, units) != (pool.name, held):
            raise Broken(f"'{told.name}' is booked on {sorted(units)} and runs on {sorted(held)}")


def _peaks(auditor: Auditor, engine: Engine, reader: Reader, now: int) -> None:
    """The most that is booked at any instant from now on is never more than there is and what reservations
    openly lack, and the store counts the same."""
    bookings = reader.open_bookings()
    blocks = auditor.calendar.blocks.values()
    for pool in engine.books.fleet.pools:
        lacking = sum(b.short * b.slots_each(pool) for b in blocks if b.pool == pool.name)
        for cell, domain in enumerate(pool.cells):
            own = _peak(bookings, pool, cell, now)
            if own > domain.size + lacking:
                where = f"{pool.name} {domain.level} {domain.name}"
                what = "slots" if pool.is_shared else "hosts"
                raise Broken(f"{where}: {own} {what} are booked at one instant, there are {domain.size}")
            by_store = reader.peak(pool.name, cell, now, FOREVER)
            if own != by_store:
                raise Broken(f"{pool.name} cell {cell}: the store says peak {by_store}, it is {own}")


def _peak(bookings: list[Booking], pool: Pool, cell: int, now: int) -> int:
    spans = [
        (max(now, b.span.start), b.span.end, part.count)
        for b in bookings
        if b.pool == pool.name and not b.parent and b.span.end > now and b.owner_kind is not _MAINTENANCE
        for part in b.parts
        if part.cell == cell
    ]
    return max(
        (sum(count for start, end, count in spans if start <= instant < end) for instant, _, _ in spans),
        default=0,
    )
