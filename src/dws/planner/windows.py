"""Windows for reservations: does one fit from then until then, and which would.

A reservation has to have room beside every promise and every other reservation, and all reservations of a
pool together stay within `calendar_share` of it. A search is exact: a longest window begins where it was
asked to begin at the earliest, or where something becomes free, so only those instants are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from dws.model.booking import Booking, OwnerKind, Part
from dws.model.demand import Alternative, Demand
from dws.model.time import Span
from dws.model.topology import Pool
from dws.planner.calendar import PoolCalendar
from dws.planner.options import PolicyOptions
from dws.planner.plan import Advice, Reason, WindowOption, ZoneLoss
from dws.planner.resolve import Candidate, candidates
from dws.planner.snapshot import FleetSnapshot

OPTIONS_PER_POOL = 64
OUT_OF_HOURS = Reason(code="OUT_OF_HOURS", text="none of the hours asked for is long enough, or in the range")
NEAREST_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A start in [start_from, start_to], an end in [end_from, end_to], a length from `min_s` to `max_s`."""

    start_from: int
    start_to: int
    end_to: int
    min_s: int
    max_s: int
    end_from: int = 0


@dataclass(slots=True)
class Ground:
    """Where one candidate may be booked: its pool's calendar, without the booking that is to be changed, and
    what other reservations leave of the pool's share."""

    candidate: Candidate
    calendar: PoolCalendar
    others: list[Booking]
    limit: int
    _edges: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._edges = sorted({b.span.start for b in self.others} | {b.span.end for b in self.others})

    @property
    def pool(self) -> Pool:
        """The candidate's pool."""
        return self.candidate.pool

    def options(self, search: Search) -> Iterator[tuple[Span, tuple[Part, ...]]]:
        """The longest window from each start that comes into question, in order of start."""
        at, given = max(search.start_from, search.end_from - search.max_s), 0
        while given < OPTIONS_PER_POOL:
            start = self._earliest(at, search)
            if start is None:
                return
            found = self.longest(start, min(search.max_s, search.end_to - start))
            assert found is not None, "what was found free is free"
            if found[0].end >= search.end_from:
                yield found
                given += 1
            later = self._next_change(start)
            if later is None or later > search.start_to:
                return
            at = later

    def _earliest(self, after: int, search: Search) -> int | None:
        """The first start in the search from `after` on with room for the least length."""
        before = min(search.start_to, search.end_to - search.min_s)
        at = after
        while at <= before:
            found = self.calendar.earliest(
                self.candidate.count,
                search.min_s,
                within=self.candidate.within,
                after=at,
                before=before,
                piece=self.candidate.piece,
            )
            if found is None:
                return None
            over = self._share_is_full_until(Span(found[0], found[0] + search.min_s))
            if over is None:
                return found[0]
            at = over
        return None

    def fits(self, span: Span) -> tuple[Part, ...] | None:
        """What to book in each cell for exactly that window, None when there is no room."""
        if self._share_is_full_until(span) is not None:
            return None
        found = self.calendar.earliest(
            self.candidate.count,
            span.length_s,
            within=self.candidate.within,
            after=span.start,
            before=span.start,
            piece=self.candidate.piece,
        )
        return None if found is None else found[1]

    def longest(self, start: int, limit_s: int) -> tuple[Span, tuple[Part, ...]] | None:
        """The longest window from `start`, at most `limit_s`, and where; None when not a second is free."""
        end = min(start + limit_s, self._share_end(start, start + limit_s))
        best, group = start, tuple[int, ...]()
        count, piece = self.candidate.count, self.candidate.piece
        for cells in self.pool.groups(self.candidate.within):
            until = self.calendar.free_until(cells, count, start, end, piece)
            if until > best:
                best, group = until, cells
        if best <= start:
            return None
        parts = self.calendar.choose(group, count, start, best, piece)
        return Span(start, best), parts

    def most_free(self, span: Span) -> int:
        """How many machines or slices of one domain of the wanted level are free for the window, within the
        share."""
        piece, cells = self.candidate.piece, range(len(self.pool.cells))
        units = self.calendar.free_during(span.start, span.end, cells)
        groups = self.pool.groups(self.candidate.within)
        free = max((self.pool.pieces_in(g, units, piece) for g in groups), default=0)
        within_share = (self.limit - self._reserved(span)) // piece.units
        return max(0, self.candidate.number_of(min(free, within_share)))

    def _reserved(self, span: Span) -> int:
        """The most units that other reservations have at one instant of a window."""
        return _most_at_once(self.others, span)

    def _share_is_full_until(self, span: Span) -> int | None:
        """None when the share has room for the window; else the first later start that may do better."""
        if self._reserved(span) + self.candidate.units <= self.limit:
            return None
        later = [e for e in self._edges if e > span.start]
        return later[0] if later and self.candidate.units <= self.limit else 1 << 62

    def _share_end(self, start: int, end: int) -> int:
        """The first instant from `start` at which the share has no room any more, at most `end`."""
        for at in (start, *(e for e in self._edges if start < e < end)):
            if sum(b.count for b in self.others if b.span.covers(at)) + self.candidate.units > self.limit:
                return at
        return end

    def changes(self) -> set[int]:
        """Every instant at which what is free, or what the share leaves, changes."""
        return self.calendar.changes() | {*self._edges}

    def _next_change(self, after: int) -> int | None:
        changes = (self.calendar.next_change(after), *(e for e in self._edges if e > after))
        return min((c for c in changes if c is not None), default=None)


def grounds(
    snapshot: FleetSnapshot,
    options: PolicyOptions,
    alternative: Alternative,
    *,
    instead_of: Booking | None = None,
) -> list[Ground]:
    """A ground for each pool that is of the kind asked for and large enough, in fleet order."""
    closed = {z.name for z in snapshot.fleet.zones if z.unavailable}
    found = []
    for candidate in candidates(Demand(alternatives=(alternative,)), snapshot.fleet):
        pool = candidate.pool
        if not candidate.could_ever_fit or pool.unavailable or pool.zone in closed:
            continue
        calendar = snapshot.calendars[pool.name].fork()
        if instead_of is not None and instead_of.pool == pool.name:
            calendar.remove(instead_of)
        others, limit = _reserved_beside(snapshot, options, pool, instead_of)
        found.append(Ground(candidate=candidate, calendar=calendar, others=others, limit=limit))
    return found


def share_left(
    snapshot: FleetSnapshot, options: PolicyOptions, booking: Booking, window: Span
) -> int:
    """How many units reservations may still take in the pool of one of them over a window, without it."""
    pool = snapshot.fleet.pool(booking.pool)
    others, limit = _reserved_beside(snapshot, options, pool, booking)
    return max(0, limit - _most_at_once(others, window))


def _reserved_beside(
    snapshot: FleetSnapshot, options: PolicyOptions, pool: Pool, booking: Booking | None
) -> tuple[list[Booking], int]:
    """What other reservations are booked in a pool, and how many units all together may have."""
    others = [
        b
        for b in snapshot.bookings.values()
        if b.owner_kind is OwnerKind.RESERVATION and b.pool == pool.name and b != booking
    ]
    return others, int(options.calendar_share * pool.size + 1e-9)


def _most_at_once(bookings: list[Booking], span: Span) -> int:
    """The most units that bookings have at one instant of a window."""
    starts = (b.span.start for b in bookings)
    instants = [span.start, *(at for at in starts if span.start < at < span.end)]
    return max(sum(b.count for b in bookings if b.span.covers(at)) for at in instants)


def advise(
    snapshot: FleetSnapshot,
    options: PolicyOptions,
    now: int,
    alternative: Alternative,
    search: Search,
    *,
    limit: int,
    hours: Sequence[Span] | None = None,
    soonest: bool = False,
) -> Advice:
    """The best windows: the longest first, then the earliest, then the cheapest, or the `soonest` before the
    longest; and why the other pools have none. Each can be booked as it is, and lies in one of the `hours`
    where these are given."""
    searches = [search] if hours is None else list(_narrowed(search, hours))
    every = {c.pool.name: c for c in candidates(Demand(alternatives=(alternative,)), snapshot.fleet)}
    found: list[WindowOption] = []
    lost: list[ZoneLoss] = []
    there = {g.pool.name: g for g in grounds(snapshot, options, alternative)}
    for name, candidate in every.items():
        ground = there.get(name)
        windows = [
            _option(candidate, span, parts, each)
            for each in searches
            for span, parts in (ground.options(each) if ground is not None else ())
        ]
        found += windows
        if not windows:
            reason = OUT_OF_HOURS
            if searches:
                reason = _why_none(snapshot, candidate, ground, searches[0])
            lost.append(ZoneLoss(zone=candidate.pool.zone, pool=name, reason=reason))
    found.sort(key=lambda o: (-o.window.length_s, o.window.start, o.cost_micros, o.pool))
    if soonest:
        found.sort(key=lambda o: o.window.start)
    return Advice(now=now, options=tuple(found[:limit]), lost=tuple(lost))


def _narrowed(search: Search, hours: Sequence[Span]) -> Iterator[Search]:
    """The search within each of the hours that is long enough."""
    for span in hours:
        first, end = max(search.start_from, span.start), min(search.end_to, span.end)
        last = min(search.start_to, end - search.min_s)
        if first <= last:
            yield replace(search, start_from=first, start_to=last, end_to=end)


def _option(
    candidate: Candidate, span: Span, parts: tuple[Part, ...], search: Search
) -> WindowOption:
    if span.length_s >= search.max_s:
        text = "the whole length asked for"
    else:
        text = "free for {length:duration}, until {end:time}"
    return WindowOption(
        pool=candidate.pool.name,
        zone=candidate.pool.zone,
        shape=candidate.shape,
        count=candidate.number,
        topology=str(candidate.topology or ""),
        within=candidate.within,
        window=span,
        parts=parts,
        cost_micros=candidate.cost_micros_of(span.length_s),
        reason=Reason(
            code="FITS", text=text, facts={"length": span.length_s, "end": span.end}
        ),
    )


def _why_none(
    snapshot: FleetSnapshot, candidate: Candidate, ground: Ground | None, search: Search
) -> Reason:
    pool = candidate.pool
    what, total = candidate.noun, _most(candidate, None)
    facts: dict[str, int | str] = {"pool": pool.name, "need": candidate.number, "total": total}
    zone = snapshot.fleet.zone(pool.zone)
    closed = pool.unavailable or (zone.unavailable if zone is not None else "")
    if closed:
        return Reason(
            code="POOL_UNAVAILABLE",
            text="pool {pool} is unavailable: {why}",
            facts={"pool": pool.name, "why": closed},
        )
    if ground is None:
        return Reason(
            code="NEVER_FITS",
            text=f"needs {{need}} {what}; the largest {{level}} of {{pool}} has {{most}}",
            facts={
                **facts,
                "level": candidate.within or "pool",
                "most": _most(candidate, candidate.within),
            },
        )
    if candidate.units > ground.limit:
        return Reason(
            code="CALENDAR_SHARE",
            text=f"needs {{need}} {what}; reservations may take {{limit}} of the {{total}} of {{pool}}",
            facts={**facts, "limit": candidate.number_of(ground.limit // candidate.piece.units)},
        )
    first = max(search.start_from, search.end_from - search.max_s)
    return _why_not(ground, Span(first, max(first + search.min_s, search.end_from)))


def _most(candidate: Candidate, within: str | None) -> int:
    """How many machines or slices of its kind the largest domain of a level has, when empty."""
    return candidate.number_of(candidate.pool.largest(within, candidate.piece))


def _why_not(ground: Ground, span: Span) -> Reason:
    """What is missing for a window, with the reservation or promise that is in the way."""
    most = ground.most_free(span)
    blocking = ground.longest(span.start, span.length_s)
    facts: dict[str, int | str] = {
        "pool": ground.pool.name,
        "need": ground.candidate.number,
        "total": _most(ground.candidate, None),
        "most": most,
        "start": span.start,
        "end": span.end,
    }
    what = ground.candidate.noun
    if blocking is None:
        return Reason(
            code="NO_ROOM",
            text=f"needs {{need}} {what}; {{pool}} has {{most}} of {{total}} free from {{start:time}} until "
            "{end:time}",
            facts=facts,
        )
    return Reason(
        code="NO_ROOM",
        text=f"needs {{need}} {what}; {{pool}} has {{most}} of {{total}} free for the whole window, and "
        "{need} only from {start:time} until {until:time}",
        facts={**facts, "until": blocking[0].end},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether a window fits. Where, or why not, with the nearest windows that would and how many hosts or
    slices the window itself has room for."""

    option: WindowOption | None
    reason: Reason | None
    nearest: tuple[WindowOption, ...] = ()
    most: int = 0


def fit(
    snapshot: FleetSnapshot,
    options: PolicyOptions,
    now: int,
    alternative: Alternative,
    window: Span,
    *,
    instead_of: Booking | None = None,
) -> Fit:
    """Is there room for exactly that window: in the first pool, in fleet order, that has it."""
    search = Search(
        start_from=window.start,
        start_to=window.start,
        end_to=window.end,
        min_s=window.length_s,
        max_s=window.length_s,
    )
    there = grounds(snapshot, options, alternative, instead_of=instead_of)
    for ground in there:
        parts = ground.fits(window)
        if parts is not None:
            return Fit(option=_option(ground.candidate, window, parts, search), reason=None)
    every = candidates(Demand(alternatives=(alternative,)), snapshot.fleet)
    by_pool = {g.pool.name: g for g in there}
    reasons = [_why_none(snapshot, c, by_pool.get(c.pool.name), search) for c in every]
    if not reasons:
        reasons = [Reason(code="NEVER_FITS", text="no pool of this fleet has what is asked for")]
    return Fit(
        option=None,
        reason=next((r for r in reasons if r.code == "NO_ROOM"), reasons[0]),
        nearest=_nearest(there, options, now, window),
        most=max((g.most_free(window) for g in there), default=0),
    )


def _nearest(
    there: list[Ground], options: PolicyOptions, now: int, window: Span
) -> tuple[WindowOption, ...]:
    """Windows of the same length that fit: the first one later and the last one earlier, in each pool."""
    length = window.length_s
    soonest = now + options.reservation_notice_s
    latest = max(now + options.calendar_horizon_s, window.start)
    found: list[WindowOption] = []
    for ground in there:
        later = Search(
            start_from=window.start, start_to=latest, end_to=latest + length, min_s=length, max_s=length
        )
        found += [_option(ground.candidate, s, p, later) for s, p in _first(ground.options(later))]
        if soonest < window.start:
            found += _last_before(ground, soonest, window)
    found.sort(key=lambda o: (abs(o.window.start - window.start), o.window.start, o.pool))
    return tuple(found[:NEAREST_MAX])


def _first(windows: Iterator[tuple[Span, tuple[Part, ...]]]) -> list[tuple[Span, tuple[Part, ...]]]:
    return [found for found in (next(windows, None),) if found is not None]


def _last_before(ground: Ground, soonest: int, window: Span) -> list[WindowOption]:
    """The last window of the same length that starts before the one asked for."""
    length = window.length_s
    starts = {end - length for end in ground.changes() if soonest < end - length < window.start}
    for start in sorted(starts | {soonest}, reverse=True):
        span = Span(start, start + length)
        parts = ground.fits(span)
        if parts is not None:
            search = Search(
                start_from=start, start_to=start, end_to=span.end, min_s=length, max_s=length
            )
            return [_option(ground.candidate, span, parts, search)]
    return []
