"""The one loop: who starts now, who is promised what.

    bind       reservations get their hosts at their start, and others in place of those they lost
    repair     promises that no longer fit, or could not be kept in time, are moved openly or withdrawn
    protect    the first in line of every kind starts now or is promised its earliest fit
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
from typing import NamedTuple

from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.piece import UNIT, Piece
from dws.model.request import CapacityRequest
from dws.model.time import FOREVER, Span
from dws.model.topology import HOST_LEVEL, Pool
from dws.planner import binding
from dws.planner.calendar import PoolCalendar
from dws.planner.eligible import eligible, kind_of
from dws.planner.kernels import Ints
from dws.planner.options import PolicyOptions
from dws.planner.plan import Book, Decision, Move, Placement, Plan, Start, Withdraw
from dws.planner.resolve import Candidate
from dws.planner.snapshot import FleetSnapshot

USABLE_MAX = 20_000
"""How many lists of alternatives a fleet's memory of candidates may have before it begins anew."""


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


class Idle(NamedTuple):
    """Pieces that nothing holds now: the `most` in one `group` of a level, the `total` over all groups."""

    most: int
    group: int
    total: int


@dataclass(slots=True)
class Pass:
    """One pass over one snapshot: the working calendars, and what has been decided so far."""

    snapshot: FleetSnapshot
    options: PolicyOptions
    now: int
    calendars: dict[str, PoolCalendar] = field(init=False)
    held: dict[str, Ints] = field(init=False)
    _idle: dict[tuple[str, str | None, Piece], Idle] = field(init=False)
    _pools: dict[object, frozenset[str]] = field(init=False)
    protected: set[int] = field(init=False)
    promises: dict[int, Booking] = field(init=False)
    in_use: dict[tuple[int, str], int] = field(init=False)
    _inside: dict[object, tuple[Candidate, ...]] = field(init=False)
    _project_of: dict[int, str] = field(init=False)
    decisions: list[Decision] = field(init=False)
    is_unfinished: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.calendars = {}
        self.held = {}
        self._idle = {}
        self._pools = {}
        self.protected = set()
        self.decisions = []
        self.in_use = dict(self.snapshot.in_use)
        self._inside = {}
        self.promises = {
            r.id: self.snapshot.bookings[r.booking]
            for r in self.snapshot.queue
            if r.booking is not None
        }
        self._project_of = {r.id: r.project for r in self.snapshot.queue if r.booking is not None}
        for promise in self.promises.values():
            self._count(promise, 1)

    # --- the steps ----------------------------------------------------------------------------

    def run(self) -> Plan:
        """All steps in order."""
        line = sorted(self.snapshot.queue, key=standing)[: self.options.queue_depth]
        binding.collect(self)
        waiting = self._protect(self._repair(line))
        waiting = self._start_others(waiting)
        self._promise_others(waiting)
        return Plan(
            ledger_version=self.snapshot.ledger_version,
            now=self.now,
            decisions=tuple(self.decisions),
            look_again_at=self._look_again_at(waiting),
        )

    def _repair(self, line: list[CapacityRequest]) -> list[CapacityRequest]:
        """Promises are taken in standing order; each must still fit beside those before it, and one that
        is overdue is put where it fits now. Returns who still waits."""
        started: set[int] = set()
        reserved = binding.ahead(self.snapshot)
        for name in {b.calendar: None for b in (*reserved, *self.promises.values())}:
            calendar = self.calendar(name)
            own = [r for r in line if r.id in self.promises and self.promises[r.id].calendar == name]
            ahead = [b for b in reserved if b.calendar == name]
            lost = calendar.least_free(self.now, FOREVER) < 0
            short = any(self.snapshot.reservations[b.owner].short for b in ahead)
            if not lost and not short and not any(self._is_overdue(r) for r in own):
                continue
            for request in own:
                calendar.lift(self.promises[request.id])
            cause = self._cause(calendar.pool, lost=lost)
            binding.rebook(self, calendar, ahead, cause)
            started.update(r.id for r in own if self._repair_one(r, calendar, cause))
        return [r for r in line if r.id not in started] if started else line

    def _is_overdue(self, request: CapacityRequest) -> bool:
        return self.promises[request.id].span.start < self.now

    def _repair_one(self, request: CapacityRequest, calendar: PoolCalendar, cause: str) -> bool:
        """Put a lifted promise back where it is, or elsewhere; True when the request starts instead."""
        promise = self.promises[request.id]
        if not self._is_overdue(request):
            calendar.drop(promise)
            if calendar.least_free(promise.span.start, promise.span.end, promise.parts) >= 0:
                return False
            calendar.lift(promise)
        self._count(promise, -1)
        del self.promises[request.id]
        placement = self.best(request, after=max(self.now, promise.span.start))
        if placement is None:
            self.decisions.append(Withdraw(request=request.id, cause=cause))
        elif placement.start == self.now:
            # late by a moment, and said so: the promise is moved to now, then kept
            self.decisions.append(Move(request=request.id, placement=placement, cause=cause))
            self._start(request, placement)
            return True
        else:
            self.hold(request, placement)
            self.decisions.append(Move(request=request.id, placement=placement, cause=cause))
        return False

    def _cause(self, pool: Pool, *, lost: bool) -> str:
        zone = self.snapshot.fleet.zone(pool.zone)
        closed = pool.unavailable or (zone.unavailable if zone is not None else "")
        if closed:
            return f"pool {pool.name} is unavailable: {closed}"
        if lost:
            return f"capacity was lost in pool {pool.name}"
        return f"hosts of pool {pool.name} were not free in time"

    def _protect(self, line: list[CapacityRequest]) -> list[CapacityRequest]:
        """The first `protected_depth` of every kind, which is a set of pools that would do, start now or
        get their earliest fit. Returns who still waits.

        Who cannot start yet, or not at all, takes nobody's protection away.
        """
        depth: defaultdict[frozenset[str], int] = defaultdict(int)
        waiting: list[CapacityRequest] = []
        for request in line:
            backs_off = request.not_again_before > self.now
            pools = frozenset() if backs_off else self._pools_of(request)
            if not pools or depth[pools] >= self.options.protected_depth:
                waiting.append(request)
                continue
            placement = self._better(request)
            if placement is not None and placement.start == self.now:
                self._start(request, placement)
                continue
            waiting.append(request)
            if placement is not None:
                self._book(request, placement)
            if request.id in self.promises:
                self.protected.add(request.id)
                depth[pools] += request.demand.not_before <= self.now
        return waiting

    def _pools_of(self, request: CapacityRequest) -> frozenset[str]:
        kind = kind_of(request)
        pools = self._pools.get(kind)
        if pools is None:
            pools = self._pools[kind] = frozenset(c.calendar for c in self.usable(request))
        return pools

    def _better(self, request: CapacityRequest) -> Placement | None:
        """Keep or improve: the best placement that starts now or earlier than what is promised."""
        promise = self.lift(request)
        latest = FOREVER if promise is None else promise.span.start
        placement = self.best(request, after=self.now, before=latest)
        self.drop(promise)
        if placement is None or placement.start == self.now:
            return placement
        return placement if placement.start < latest else None

    def _start_others(self, waiting: list[CapacityRequest]) -> list[CapacityRequest]:
        """Whoever fits now starts now, in start order; a class that failed once is not tried again."""
        hopeless: set[object] = set()
        left = []
        for request in sorted(waiting, key=start_order):
            if request.id not in self.protected and self._try_start(request, hopeless):
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
        kind = None if own else kind_of(request)
        if kind is not None and kind in hopeless:
            return False
        inside = own and self.promises[request.id].parent  # its own promise is what its project has there
        if not inside and not self.has_room_now(request):
            return False
        lifted = self.lift(request)
        placement = self._best_now(request)
        self.drop(lifted)
        if placement is None:
            hopeless.add(kind)
            return False
        self._start(request, placement)
        return True

    def _best_now(self, request: CapacityRequest) -> Placement | None:
        """The placement that starts now, unless another one, starting later but not later than promised,
        finishes earlier."""
        now_best = self.best(request, after=self.now, before=self.now)
        if now_best is None:
            return None
        shorter = any(c.length_s < now_best.span.length_s for c in self.usable(request))
        if not shorter:
            return now_best
        promise = self.promises.get(request.id)
        latest = FOREVER if promise is None else promise.span.start
        best = self.best(request, after=self.now, before=latest)
        return now_best if best is None or best.start == self.now else None

    def _promise_others(self, waiting: list[CapacityRequest]) -> None:
        promised = self._promised_accelerator_s()
        cap = self.options.promise_cap_accelerator_hours * 3600
        behind: defaultdict[str, int] = defaultdict(int)
        given = 0
        none_for: set[object] = set()
        for request in waiting:
            own = self.promises.get(request.id)
            if own is not None:
                behind[own.calendar] = max(behind[own.calendar], own.span.start)
                continue
            if self.now < request.submitted_at + self.options.max_wait_age_s:
                kind = (request.project, request.demand)
                if kind in none_for or request.not_again_before > self.now:
                    continue
                if given >= self.options.promise_depth:
                    self.is_unfinished = True
                    continue
                room = cap - promised[request.project]
                placement = self._within_limits(request, behind, room)
                if placement is None:
                    none_for.add(kind)
                    continue
            else:
                placement = self.with_slack(request, behind)
                if placement is None:
                    continue
            if placement.start == self.now:
                # room that somebody promised elsewhere has left in this very pass
                self._start(request, placement)
                continue
            self._book(request, placement)
            promised[request.project] += self._accelerator_s(placement)
            behind[placement.calendar] = max(behind[placement.calendar], placement.start)
            given += 1

    def _within_limits(
        self, request: CapacityRequest, behind: Mapping[str, int], room: int
    ) -> Placement | None:
        """What may be promised before its time: within the horizon, and the accelerator-seconds that are
        left to its project."""
        if all(c.accelerator_s > room for c in self.usable(request)):
            return None
        placement = self.with_slack(request, behind)
        if placement is None or placement.start > self.now + self.options.promise_horizon_s:
            return None
        return placement if self._accelerator_s(placement) <= room else None

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

    def _promised_accelerator_s(self) -> defaultdict[str, int]:
        by_project: defaultdict[str, int] = defaultdict(int)
        for request in self.snapshot.queue:
            booking = self.promises.get(request.id)
            if booking is not None:
                pool = self.snapshot.fleet.pool(booking.pool)
                held = booking.count * pool.unit_weight
                by_project[request.project] += held * booking.span.length_s
        return by_project

    def _accelerator_s(self, placement: Placement) -> int:
        pool = self.snapshot.fleet.pool(placement.pool)
        return placement.count * pool.unit_weight * placement.span.length_s

    @property
    def _lends(self) -> bool:
        """True when reservations lend what they do not use."""
        return self.options.lend_idle_s > 0 and bool(self.snapshot.reservations)

    # --- searching ----------------------------------------------------------------------------

    def calendar(self, name: str) -> PoolCalendar:
        """The working calendar of that name, forked when first needed."""
        found = self.calendars.get(name)
        if found is None:
            found = self.calendars[name] = self.snapshot.calendars[name].fork()
        return found

    def usable(self, request: CapacityRequest) -> tuple[Candidate, ...]:
        """The request's candidates that could ever fit, in pools and reservations that are available."""
        kind = request.demand.alternatives
        if request.demand.reservation or self._lends:
            inside = kind_of(request)
            if inside not in self._inside:
                lend_s = self.options.lend_idle_s
                self._inside[inside] = eligible(request, self.snapshot, self.in_use, lend_s)
            return self._inside[inside]
        known = self.snapshot.usable
        found = known.get(kind)
        if found is None:
            if len(known) >= USABLE_MAX:
                known.clear()
            found = known[kind] = eligible(request, self.snapshot, self.in_use)
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
            if candidate.lent:
                limit = min(limit, self.now)
            first = max(after, behind.get(candidate.calendar, 0))
            if first > limit:
                continue
            best = self._earliest(candidate, first, limit) or best
        return best

    def _earliest(self, candidate: Candidate, after: int, before: int) -> Placement | None:
        """Where the candidate fits first with its start in [after, before]."""
        calendar = self.calendar(candidate.calendar)
        held = self.held_at(candidate.calendar) if after == self.now else None
        late_s = 0
        if candidate.inside is not None and candidate.until_end:
            end = candidate.inside.span.end
            found = calendar.earliest_lasting(
                candidate.count,
                end,
                within=candidate.within,
                after=after,
                before=min(before, end - candidate.pool.overheads.total_s - 1),
                held=held,
                piece=candidate.piece,
            )
            late_s = found[0] - candidate.inside.span.start if found is not None else 0
        else:
            found = calendar.earliest(
                candidate.count,
                candidate.length_s,
                within=candidate.within,
                after=after,
                before=before,
                held=held,
                piece=candidate.piece,
            )
        if found is None:
            return None
        start, parts = found
        if candidate.near:
            parts = self._nearer(candidate, start, late_s, held if start == after else None) or parts
        return Placement(
            alternative=candidate.alternative,
            pool=candidate.pool.name,
            span=Span(start, min(FOREVER, start + candidate.length_s - late_s)),
            parts=parts,
            duration_s=candidate.duration_s - late_s,
            parent=candidate.parent,
        )

    def _nearer(
        self, candidate: Candidate, start: int, late_s: int, held: Ints | None
    ) -> tuple[Part, ...] | None:
        """Where it stands as close as it can at the start that it gets: in one domain of the finest level."""
        calendar = self.calendar(candidate.calendar)
        for level in _inner_levels(candidate.pool, candidate.within):
            found = calendar.earliest(
                candidate.count,
                candidate.length_s - late_s,
                within=level,
                after=start,
                before=start,
                held=held,
                piece=candidate.piece,
            )
            if found is not None:
                return found[1]
        return None

    def held_at(self, name: str) -> Ints:
        """Units per cell that the table calls free now but that are not confirmed free yet."""
        held = self.held.get(name)
        if held is None:
            held = self.held[name] = self.snapshot.calendars[name].not_confirmed_free(self.now)
        return held

    def has_room_now(self, request: CapacityRequest) -> bool:
        """A quick no: without enough idle hosts in any group it cannot start, whatever is promised."""
        return any(self.idle(c.calendar, c.within, c.piece).most >= c.count for c in self.usable(request))

    def idle(self, calendar: str, within: str | None, piece: Piece = UNIT) -> Idle:
        """Idle pieces now in the groups of a level, what starts in this pass taken off."""
        idle = self._idle.get((calendar, within, piece))
        if idle is None:
            groups = self.calendar(calendar).idle_in_groups(within, piece)
            most = max(groups, default=0)
            group = groups.index(most) if groups else 0
            idle = Idle(most=most, group=group, total=sum(groups))
            self._idle[calendar, within, piece] = idle
        return idle

    def forget_idle(self) -> None:
        """Hosts were drawn: what was known to be idle is not any more."""
        self._idle.clear()

    # --- deciding -----------------------------------------------------------------------------

    def _start(self, request: CapacityRequest, placement: Placement) -> None:
        self.lift(request)
        self.promises.pop(request.id, None)
        calendar = self.calendar(placement.calendar)
        drawn = calendar.draw(placement.parts, self.doubted(placement.pool), placement.span)
        placement = replace(placement, parts=drawn)
        self.forget_idle()
        calendar.take(placement.span.start, placement.span.end, placement.parts)
        if placement.parent:
            reservation = self.snapshot.bookings[placement.parent].owner
            used = self.in_use.get((reservation, request.project), 0)
            self.in_use[reservation, request.project] = used + placement.count
            self._inside.clear()
        self.decisions.append(Start(request=request.id, placement=placement))

    def doubted(self, pool: str) -> frozenset[int]:
        """Units of a pool that are better drawn last."""
        units_of = self.snapshot.fleet.pool(pool).units_of
        return frozenset(u for p, host in self.snapshot.hosts if p == pool for u in units_of(host))

    def _book(self, request: CapacityRequest, placement: Placement) -> None:
        self.lift(request)
        self.hold(request, placement)
        self.decisions.append(Book(request=request.id, placement=placement))

    def hold(self, request: CapacityRequest, placement: Placement) -> None:
        """Hold the placement in the working calendars as the request's promise."""
        self.calendar(placement.calendar).take(
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
            parent=placement.parent,
        )
        self._project_of[request.id] = request.project
        self._count(self.promises[request.id], 1)

    def lift(self, request: CapacityRequest) -> Booking | None:
        """Take the request's own promise out of the table while it is tried elsewhere."""
        promise = self.promises.get(request.id)
        if promise is not None:
            self.calendar(promise.calendar).lift(promise)
            self._count(promise, -1)
        return promise

    def drop(self, promise: Booking | None) -> None:
        """Put a lifted promise back where it was."""
        if promise is not None:
            self.calendar(promise.calendar).drop(promise)
            self._count(promise, 1)

    def _count(self, promise: Booking, sign: int) -> None:
        """What is promised inside a reservation counts as used by the project it is promised to."""
        parent = self.snapshot.bookings.get(promise.parent)
        if parent is None:
            return
        key = parent.owner, self._project_of[promise.owner]
        self.in_use[key] = self.in_use.get(key, 0) + sign * promise.count
        self._inside.clear()

    def _look_again_at(self, waiting: list[CapacityRequest]) -> int | None:
        """The next instant at which time alone makes another pass worthwhile: now, when this one gave as
        many promises as a pass may and others still wait for theirs."""
        if self.is_unfinished:
            return self.now
        return min((t for t in self._instants(waiting) if t > self.now), default=None)

    def _instants(self, waiting: list[CapacityRequest]) -> Iterator[int]:
        for request in waiting:
            promise = self.promises.get(request.id)
            if promise is not None:
                yield max(promise.span.start, request.not_again_before, self.now + 1)
            else:
                yield request.submitted_at + self.options.max_wait_age_s
            yield request.demand.not_before
            yield request.not_again_before
        if waiting:
            yield from (h.until for h in self.snapshot.hosts.values() if h.until)


def _inner_levels(pool: Pool, within: str | None) -> Iterator[str]:
    """The levels finer than what all must share, the finest first; inside a domain that is named, its own."""
    named = pool.domain_named(within or "")
    if named is None and pool.is_shared and within != HOST_LEVEL:
        yield HOST_LEVEL
    outer = named.level if named is not None else within
    for level in reversed(pool.levels):
        if outer in (level, HOST_LEVEL):
            return
        if named is None:
            yield level
        else:
            own = (d for d in pool.domains if d.level == level and d.first in named.units)
            yield from (f"{level}/{d.name}" for d in own)
