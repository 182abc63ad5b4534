"""The one loop: who starts now, who is promised what.

    repair     promises that no longer fit are moved, openly, or withdrawn
    protect    the first in line of every pool starts now or is promised its earliest fit
    start      everyone else, short first, starts where that collides with no promise
    promise    everyone else, oldest first, is promised earliest fit + slack, within horizon and cap

Protecting comes before starting others, so the head of the line is never delayed by them; a promise only
ever moves earlier, except in repair. Which comes first is a total order, so equal inputs give equal plans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from dws.model.booking import Booking, OwnerKind, Stage
from dws.model.request import CapacityRequest
from dws.model.time import FOREVER, Span
from dws.planner.calendar import PoolCalendar
from dws.planner.kernels import Ints
from dws.planner.options import DEFAULT_POLICY, PolicyOptions
from dws.planner.plan import Book, Decision, Move, Placement, Plan, Reason, Start, Withdraw
from dws.planner.resolve import Candidate, candidates
from dws.planner.snapshot import FleetSnapshot


def plan(snapshot: FleetSnapshot, options: PolicyOptions, now: int) -> Plan:
    """What should happen at `now`. Pure: the snapshot is not changed."""
    return Pass(snapshot, options, now).run()


def standing(request: CapacityRequest) -> tuple[int, int, int]:
    """The order of promises: priority, then age."""
    return (-request.priority, request.submitted_at, request.id)


def start_order(request: CapacityRequest) -> tuple[int, int, int, int]:
    """The order in which free capacity is offered: priority, then short first, then age."""
    shortest = min(a.duration_s for a in request.demand.alternatives)
    return (-request.priority, shortest, request.submitted_at, request.id)


@dataclass(slots=True)
class Pass:
    """One pass over one snapshot: the working calendars, and what has been decided so far."""

    snapshot: FleetSnapshot
    options: PolicyOptions
    now: int
    calendars: dict[str, PoolCalendar] = field(init=False)
    held: dict[str, Ints] = field(init=False)
    _rooms: dict[tuple[str, str | None], int] = field(init=False)
    promises: dict[int, Booking] = field(init=False)
    decisions: list[Decision] = field(init=False)

    def __post_init__(self) -> None:
        self.calendars = {}
        self.held = {}
        self._rooms = {}
        self.decisions = []
        self.promises = {
            r.id: self.snapshot.bookings[r.booking]
            for r in self.snapshot.queue
            if r.booking is not None
        }

    # --- the steps ----------------------------------------------------------------------------

    def run(self) -> Plan:
        """All steps in order."""
        line = sorted(self.snapshot.queue, key=standing)[: self.options.queue_depth]
        self._repair(line)
        waiting, protected = self._protect(line)
        waiting = self._start_others(waiting, protected)
        self._promise_others(waiting, protected)
        return Plan(
            ledger_version=self.snapshot.ledger_version,
            now=self.now,
            decisions=tuple(self.decisions),
            look_again_at=self._look_again_at(waiting),
        )

    def _repair(self, line: list[CapacityRequest]) -> None:
        """Promises are taken in standing order; each must still fit beside those before it."""
        for pool in {b.pool: None for b in self.promises.values()}:
            calendar = self.calendar(pool)
            if calendar.least_free(self.now, FOREVER) >= 0:
                continue
            own = [r for r in line if r.id in self.promises and self.promises[r.id].pool == pool]
            for request in own:
                calendar.lift(self.promises[request.id])
            for request in own:
                self._repair_one(request, calendar)

    def _repair_one(self, request: CapacityRequest, calendar: PoolCalendar) -> None:
        booking = self.promises[request.id]
        calendar.drop(booking)
        if calendar.least_free(max(self.now, booking.span.start), booking.span.end) >= 0:
            return
        calendar.lift(booking)
        cause = f"capacity was lost in pool {booking.pool}"
        placement = self.best(request, after=max(self.now, booking.span.start))
        if placement is None:
            del self.promises[request.id]
            self.decisions.append(Withdraw(request=request.id, cause=cause))
        else:
            self._take(request, placement)
            self.decisions.append(Move(request=request.id, placement=placement, cause=cause))

    def _protect(self, line: list[CapacityRequest]) -> tuple[list[CapacityRequest], set[int]]:
        """The first `protected_depth` of every pool start now or get their earliest fit. Returns who
        still waits, and who of them is protected."""
        depth: defaultdict[str, int] = defaultdict(int)
        waiting: list[CapacityRequest] = []
        protected: set[int] = set()
        limit = self.options.protected_depth
        open_pools = {p.name for p in self.snapshot.fleet.pools} if limit else set()
        for request in line:
            if not open_pools or request.not_again_before > self.now:
                waiting.append(request)
                continue
            pools = {c.pool.name for c in self.usable(request)}
            if not pools & open_pools:
                waiting.append(request)
                continue
            placement = self._better(request, self._lifted_best(request))
            if placement is not None and placement.start == self.now:
                self._start(request, placement)
                continue
            if placement is not None:
                self._book(request, placement)
            waiting.append(request)
            protected.add(request.id)
            for pool in pools:
                depth[pool] += 1
                if depth[pool] >= limit:
                    open_pools.discard(pool)
        return waiting, protected

    def _lifted_best(self, request: CapacityRequest) -> Placement | None:
        with_own = self._lift(request)
        placement = self.best(request, after=self.now)
        self._drop(with_own)
        return placement

    def _better(self, request: CapacityRequest, placement: Placement | None) -> Placement | None:
        """Keep or improve: None unless it starts earlier than what is promised, or starts now."""
        promise = self.promises.get(request.id)
        if placement is None or promise is None or placement.start <= self.now:
            return placement
        return placement if placement.start < promise.span.start else None

    def _start_others(
        self, waiting: list[CapacityRequest], protected: set[int]
    ) -> list[CapacityRequest]:
        """Whoever fits now starts now, in start order; a class that failed once is not tried again."""
        hopeless: set[object] = set()
        left = []
        for request in sorted(waiting, key=start_order):
            if request.id not in protected and self._try_start(request, hopeless):
                continue
            left.append(request)
        left.sort(key=standing)
        return left

    def _try_start(self, request: CapacityRequest, hopeless: set[object]) -> bool:
        demand = request.demand
        if not demand.not_before <= self.now <= demand.not_after:
            return False
        if request.not_again_before > self.now:
            return False
        own = request.id in self.promises
        kind = None if own else demand.alternatives
        if kind is not None and kind in hopeless:
            return False
        if not self.has_room_now(request):
            return False
        lifted = self._lift(request)
        placement = self._best_now(request)
        self._drop(lifted)
        if placement is None:
            hopeless.add(kind)
            return False
        self._start(request, placement)
        return True

    def _best_now(self, request: CapacityRequest) -> Placement | None:
        """The placement that starts now, unless another one, starting later, finishes earlier."""
        now_best = self.best(request, after=self.now, before=self.now)
        if now_best is None:
            return None
        shorter = any(c.length_s < now_best.span.length_s for c in self.usable(request))
        if not shorter:
            return now_best
        best = self.best(request, after=self.now)
        return now_best if best is None or best.start == self.now else None

    def _promise_others(self, waiting: list[CapacityRequest], protected: set[int]) -> None:
        promised = self._promised_accelerator_s()
        behind: defaultdict[str, int] = defaultdict(int)
        given = 0
        none_for: set[object] = set()
        for request in waiting:
            own = self.promises.get(request.id)
            if own is not None:
                behind[own.pool] = max(behind[own.pool], own.span.start)
                continue
            if request.id in protected:
                continue
            if given >= self.options.promise_depth:
                return
            kind = (request.project, request.demand)
            aged = self.now >= request.submitted_at + self.options.max_wait_age_s
            if request.not_again_before > self.now and not aged:
                continue
            if kind in none_for and not aged:
                continue
            placement = self.with_slack(request, behind)
            if placement is None or not (
                aged or self._may_be_promised(request, placement, promised)
            ):
                none_for.add(kind)
                continue
            self._book(request, placement)
            behind[placement.pool] = max(behind[placement.pool], placement.start)
            given += 1

    def with_slack(
        self, request: CapacityRequest, behind: Mapping[str, int] = MappingProxyType({})
    ) -> Placement | None:
        """The latest start to promise: earliest fit plus slack, and not before what is promised `behind`
        whom it stands in each pool; the earliest fit itself when its window leaves nothing else.

        Were a later promise put before an earlier one, it would be in the way when that request comes to
        the head of the line; what is free before is used all the same, by starting, not by promising.
        """
        first = self.best(request, after=max(self.now, request.not_again_before))
        if first is None:
            return None
        slack = int(self.options.promise_slack * first.duration_s)
        return self.best(request, after=first.start + slack, behind=behind) or first

    def _may_be_promised(
        self, request: CapacityRequest, placement: Placement, promised: defaultdict[str, int]
    ) -> bool:
        if placement.start > self.now + self.options.promise_horizon_s:
            return False
        more = self._accelerator_s(placement)
        cap = self.options.promise_cap_accelerator_hours * 3600
        if promised[request.project] + more > cap:
            return False
        promised[request.project] += more
        return True

    def _promised_accelerator_s(self) -> defaultdict[str, int]:
        by_project: defaultdict[str, int] = defaultdict(int)
        for request in self.snapshot.queue:
            booking = self.promises.get(request.id)
            if booking is not None:
                pool = self.snapshot.fleet.pool(booking.pool)
                held = booking.count * max(1, pool.shape.accelerators)
                by_project[request.project] += held * booking.span.length_s
        return by_project

    def _accelerator_s(self, placement: Placement) -> int:
        pool = self.snapshot.fleet.pool(placement.pool)
        return placement.count * max(1, pool.shape.accelerators) * placement.span.length_s

    # --- searching ----------------------------------------------------------------------------

    def calendar(self, pool: str) -> PoolCalendar:
        """The working calendar of a pool, forked when first needed."""
        found = self.calendars.get(pool)
        if found is None:
            found = self.calendars[pool] = self.snapshot.calendars[pool].fork()
        return found

    def usable(self, request: CapacityRequest) -> tuple[Candidate, ...]:
        """The request's candidates that could ever fit, in pools that are available."""
        kind = request.demand.alternatives
        found = self.snapshot.usable.get(kind)
        if found is None:
            found = self.snapshot.usable[kind] = usable(request, self.snapshot)
        return found

    def best(
        self,
        request: CapacityRequest,
        *,
        after: int,
        before: int = FOREVER,
        behind: Mapping[str, int] = MappingProxyType({}),
    ) -> Placement | None:
        """The placement that finishes first with its start in [after, before], in the request's own window
        and not before the pool's instant in `behind`; ties go to the alternative listed first."""
        after = max(after, request.demand.not_before, request.not_again_before)
        before = min(before, request.demand.not_after)
        best: Placement | None = None
        for candidate in self.usable(request):
            limit = before if best is None else min(before, best.span.end - candidate.length_s - 1)
            first = max(after, behind.get(candidate.pool.name, 0))
            if first > limit:
                continue
            found = self.calendar(candidate.pool.name).earliest(
                candidate.count,
                candidate.length_s,
                within=candidate.within,
                after=first,
                before=limit,
                held=self.held_at(candidate.pool.name) if first == self.now else None,
            )
            if found is not None:
                best = Placement(
                    alternative=candidate.alternative,
                    pool=candidate.pool.name,
                    span=Span(found[0], min(FOREVER, found[0] + candidate.length_s)),
                    parts=found[1],
                    duration_s=candidate.duration_s,
                )
        return best

    def held_at(self, pool: str) -> Ints:
        """Units per cell that the table calls free now but that are not confirmed free yet."""
        held = self.held.get(pool)
        if held is None:
            held = self.held[pool] = self.snapshot.calendars[pool].not_confirmed_free(self.now)
        return held

    def has_room_now(self, request: CapacityRequest) -> bool:
        """A quick no: without enough idle hosts in any group it cannot start, whatever is promised."""
        return any(self._room(c.pool.name, c.within) >= c.count for c in self.usable(request))

    def _room(self, pool: str, within: str | None) -> int:
        """Idle hosts of the group of a level that has most."""
        room = self._rooms.get((pool, within))
        if room is None:
            room = max(self.calendar(pool).idle_in_groups(within), default=0)
            self._rooms[pool, within] = room
        return room

    # --- deciding -----------------------------------------------------------------------------

    def _start(self, request: CapacityRequest, placement: Placement) -> None:
        self._lift(request)
        self.promises.pop(request.id, None)
        doubted = frozenset(u for p, u in self.snapshot.hosts if p == placement.pool)
        calendar = self.calendar(placement.pool)
        placement = replace(placement, parts=calendar.draw(placement.parts, doubted))
        self._rooms.clear()
        calendar.take(placement.span.start, placement.span.end, placement.parts)
        self.decisions.append(Start(request=request.id, placement=placement))

    def _book(self, request: CapacityRequest, placement: Placement) -> None:
        self._lift(request)
        self._take(request, placement)
        self.decisions.append(Book(request=request.id, placement=placement))

    def _take(self, request: CapacityRequest, placement: Placement) -> None:
        """Hold the placement in the working calendars as the request's promise."""
        self.calendar(placement.pool).take(
            placement.span.start, placement.span.end, placement.parts
        )
        self.promises[request.id] = Booking(
            id=request.booking or 0,  # type: ignore[arg-type]
            pool=placement.pool,
            span=placement.span,
            stage=Stage.FIRM,
            owner_kind=OwnerKind.REQUEST,
            owner=request.id,
            parts=placement.parts,
        )

    def _lift(self, request: CapacityRequest) -> Booking | None:
        """Take the request's own promise out of the table while it is tried elsewhere."""
        promise = self.promises.get(request.id)
        if promise is not None:
            self.calendar(promise.pool).lift(promise)
        return promise

    def _drop(self, promise: Booking | None) -> None:
        if promise is not None:
            self.calendar(promise.pool).drop(promise)

    def _look_again_at(self, waiting: list[CapacityRequest]) -> int | None:
        """The next instant at which time alone makes another pass worthwhile."""
        return min((t for t in self._instants(waiting) if t > self.now), default=None)

    def _instants(self, waiting: list[CapacityRequest]) -> Iterator[int]:
        for request in waiting:
            promise = self.promises.get(request.id)
            if promise is not None:
                yield max(promise.span.start, request.not_again_before)
            else:
                yield request.submitted_at + self.options.max_wait_age_s
            yield request.demand.not_before
            yield request.not_again_before
        if waiting:
            yield from (h.until for h in self.snapshot.hosts.values() if h.until)


def usable(request: CapacityRequest, snapshot: FleetSnapshot) -> tuple[Candidate, ...]:
    """Candidates that the empty fleet could hold, in pools and zones that are available."""
    fleet = snapshot.fleet
    closed = {z.name for z in fleet.zones if z.unavailable}
    return tuple(
        c
        for c in candidates(request.demand, fleet)
        if c.could_ever_fit and not c.pool.unavailable and c.pool.zone not in closed
    )


def still_holds(decision: Decision, snapshot: FleetSnapshot, now: int) -> Reason | None:
    """None when a decision made on an older snapshot may still be committed, else why not."""
    request = next((r for r in snapshot.queue if r.id == decision.request), None)
    if request is None:
        return Reason(code="NOT_WAITING", text="the request does not wait any more")
    if isinstance(decision, Withdraw):
        return None
    placement = decision.placement
    state = Pass(snapshot, DEFAULT_POLICY, now)
    state._lift(request)  # its own promise does not stand in its way
    calendar = state.calendar(placement.pool)
    calendar.take(placement.span.start, placement.span.end, placement.parts)
    if calendar.least_free(max(now, placement.span.start), placement.span.end) < 0:
        return Reason(code="TAKEN", text="the capacity was taken in the meantime")
    if isinstance(decision, Start):
        if any(set(p.units) - set(calendar.idle_units(p.cell)) for p in placement.parts):
            return Reason(code="TAKEN", text="a host was taken in the meantime")
    return None
