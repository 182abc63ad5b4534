"""The open part of the ledger, in memory: what the planner sees and what commits are checked against.

    store ──load──▶ Books ──snapshot()──▶ planner
                      ▲
             Write.apply, ledger.*          (one writer, under `lock`)

Books mirrors the committed store exactly. A writer changes it as it writes and a failed write is undone
from the journal, so what one command of a batch did is seen by the next. The version is the store's
ledger version; a plan made on another version is re-checked before it is committed. `stirred` grows with
each change that could let something start or break a promise: what calls for another plan.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from dws.engine.ports import Reader, RequestQuery, ReservationQuery
from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.demand import Alternative
from dws.model.request import CapacityRequest, RequestState
from dws.model.reservation import Reservation, ReservationState
from dws.model.topology import Fleet, HostState, HostStatus
from dws.planner.calendar import PoolCalendar
from dws.planner.resolve import Candidate
from dws.planner.snapshot import FleetSnapshot, calendars, inside_of, unready

EMPTY_FLEET = Fleet(zones=(), pools=())
_HELD = (RequestState.PROVISIONING, RequestState.ACTIVE, RequestState.ENDING)


class Books:
    """Open bookings, waiting and holding requests, hosts that are not simply ready, calendars."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = 0
        self.fleet = EMPTY_FLEET
        self.bookings: dict[int, Booking] = {}
        self.waiting: dict[int, CapacityRequest] = {}
        self.holding: dict[int, CapacityRequest] = {}
        self.reservations: dict[int, Reservation] = {}
        self.hosts: dict[tuple[str, int], HostStatus] = {}
        self.calendars: dict[str, PoolCalendar] = {}
        self.stirred = 0
        self._usable: dict[tuple[Alternative, ...], tuple[Candidate, ...]] = {}
        self._journal: list[Callable[[], None]] = []

    def load(self, reader: Reader) -> None:
        """Become what the store says, forgetting everything else."""
        self.fleet = reader.fleet() or EMPTY_FLEET
        self.version = reader.ledger_version()
        self.bookings = {b.id: b for b in reader.open_bookings()}
        open_states = (RequestState.PENDING, RequestState.BOOKED, *_HELD)
        rows = reader.requests(RequestQuery(states=open_states, limit=1_000_000_000))
        self.waiting = {r.id: r for r in rows if r.state.is_waiting}
        self.holding = {r.id: r for r in rows if not r.state.is_waiting}
        unfinished = tuple(s for s in ReservationState if not s.is_terminal)
        booked = reader.reservations(ReservationQuery(states=unfinished, limit=1_000_000_000))
        self.reservations = {r.id: r for r in booked}
        self.hosts = {(h.pool, h.unit): h for h in reader.host_statuses()}
        self._rebuild_calendars()
        self._journal.clear()
        self.stirred += 1

    def snapshot(self) -> FleetSnapshot:
        """An independent copy for a planner, at the present version."""
        with self.lock:
            return FleetSnapshot(
                ledger_version=self.version,
                fleet=self.fleet,
                bookings=dict(self.bookings),
                hosts=dict(self.hosts),
                queue=tuple(self.waiting.values()),
                calendars={name: c.fork() for name, c in self.calendars.items()},
                reservations=dict(self.reservations),
                in_use=self.in_use(),
                usable=self._usable,
            )

    # --- changes, each with its undo ----------------------------------------------------------

    def mark(self) -> int:
        """Where the journal stands."""
        return len(self._journal)

    def undo_to(self, mark: int) -> None:
        """Take back every change since `mark`."""
        while len(self._journal) > mark:
            self._journal.pop()()

    def committed(self) -> None:
        """What was changed is durable; forget how to undo it."""
        self._journal.clear()

    def set_version(self, version: int) -> None:
        """The ledger's version is now `version`."""
        before = self.version
        self.version = version

        def undo() -> None:
            self.version = before

        self._journal.append(undo)

    def put_request(self, request: CapacityRequest) -> None:
        """A request is new or changed; a terminal one is forgotten."""
        before = self.waiting.get(request.id) or self.holding.get(request.id)
        self._place(request.id, request)
        if request.state.is_waiting:
            self.stirred += 1
        self._journal.append(lambda: self._place(request.id, before))

    def _place(self, request_id: int, request: CapacityRequest | None) -> None:
        if request is not None and request.state.is_waiting:
            self.waiting[request_id] = request
            self.holding.pop(request_id, None)
        elif request is not None and request.state in _HELD:
            self.holding[request_id] = request
            self.waiting.pop(request_id, None)
        else:
            self.waiting.pop(request_id, None)
            self.holding.pop(request_id, None)

    def put_reservation(self, reservation: Reservation) -> None:
        """A reservation is new or changed; one that is over is forgotten."""
        before = self.reservations.get(reservation.id)
        self._keep(reservation.id, None if reservation.state.is_terminal else reservation)
        self.stirred += 1
        self._journal.append(lambda: self._keep(reservation.id, before))

    def _keep(self, reservation_id: int, reservation: Reservation | None) -> None:
        if reservation is None:
            self.reservations.pop(reservation_id, None)
        else:
            self.reservations[reservation_id] = reservation

    def in_use(self) -> dict[tuple[int, str], int]:
        """How many units each project uses in each reservation."""
        used: Counter[tuple[int, str]] = Counter()
        if self.reservations:
            for request in self.holding.values():
                if request.grant is not None and request.grant.reservation:
                    held = sum(len(i.slots) or 1 for i in request.grant.instances if i.is_held)
                    used[request.grant.reservation, request.project] += held
        return dict(used)

    def inside(self, booking_id: int) -> list[Booking]:
        """The open bookings that lie inside another one."""
        return [b for b in self.bookings.values() if b.parent == booking_id]

    def put_booking(self, booking: Booking) -> None:
        """A booking is new or changed; an ended one is forgotten."""
        before = self.bookings.get(booking.id)
        after = None if booking.stage is Stage.ENDED else booking
        is_new = before is None and booking.owner_kind is OwnerKind.MAINTENANCE
        if after is None or is_new or (before and (before.span, before.parts) != (after.span, after.parts)):
            self.stirred += 1
        self._exchange(before, after)
        self._journal.append(lambda: self._exchange(after, before))

    def _exchange(self, old: Booking | None, new: Booking | None) -> None:
        if old is not None:
            del self.bookings[old.id]
            self.calendars[old.calendar].remove(old)
        if new is not None:
            self.bookings[new.id] = new
            self.calendars[new.calendar].add(new)
        if OwnerKind.RESERVATION in (old and old.owner_kind, new and new.owner_kind):
            self._exchange_inside(old, new)

    def _exchange_inside(self, old: Booking | None, new: Booking | None) -> None:
        """The calendar inside a reservation's booking follows it."""
        was = inside_of(old) if old is not None else ""
        name = inside_of(new) if new is not None else ""
        if was and was != name:
            del self.calendars[was]
        if new is None:
            return
        if was == name:
            self.calendars[name].set_inside(new)
        else:
            self.calendars[name] = PoolCalendar(self.fleet.pool(new.pool), new)
        self.calendars[name].set_hosts(unready(self.hosts, self.fleet.pool(new.pool)))
        if was != name:
            for child in self.inside(new.id):
                self.calendars[name].add(child)

    def put_host(self, status: HostStatus) -> None:
        """The status of a host changed."""
        key = (status.pool, status.unit)
        before = self.hosts.get(key)
        self._set_host(key, status)
        self.stirred += 1
        self._journal.append(lambda: self._set_host(key, before))

    def _set_host(self, key: tuple[str, int], status: HostStatus | None) -> None:
        plain = status is None or (
            status.state is HostState.READY and not status.unreachable_since
        )
        if plain:
            self.hosts.pop(key, None)
        elif status is not None:
            self.hosts[key] = status
        self._tell_unready(key[0])

    def _tell_unready(self, pool: str) -> None:
        for calendar in self.calendars.values():
            if calendar.pool.name == pool:
                calendar.set_hosts(unready(self.hosts, calendar.pool))

    def put_fleet(self, fleet: Fleet) -> None:
        """The declared fleet changed."""
        before = self.fleet
        self.fleet = fleet
        self._rebuild_calendars()
        self.stirred += 1

        def undo() -> None:
            self.fleet = before
            self._rebuild_calendars()

        self._journal.append(undo)

    def prune(self, now: int) -> None:
        """Let the calendars forget what is over."""
        with self.lock:
            for calendar in self.calendars.values():
                calendar.prune(now)

    def _rebuild_calendars(self) -> None:
        self._usable = {}
        self.calendars = calendars(self.fleet, self.bookings.values(), self.hosts)
