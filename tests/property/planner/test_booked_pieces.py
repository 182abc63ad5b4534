"""Reservations of slices and fractions against brute force: whether a window fits, what is drawn at the start,
and what takes the place of lost hosts. Small pods and shared pools, with work, outages and maintenance."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from dws.declared import fleetfile
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.demand import Alternative
from dws.model.names import BookingId, ReservationId
from dws.model.piece import Piece
from dws.model.reservation import Reservation, ReservationState
from dws.model.time import FOREVER, Span
from dws.model.topology import Fleet, HostState, HostStatus, Pool
from dws.planner import invariants, snapshot, windows
from dws.planner.backfill import plan
from dws.planner.hold import Hold
from dws.planner.options import PolicyOptions
from dws.planner.plan import Bind
from dws.planner.recheck import still_holds
from dws.planner.snapshot import FleetSnapshot
from tests.property.planner.test_pieces import could_be_placed

NOW, END = 100, 160
OWN = 7
HEAD = '[[zones]]\nname = "z"\n[[pools]]\nname = "p"\nzone = "z"\n'
PLANES = HEAD + 'machine = "ct5lp-hightpu-4t"\ntopology = "{topology}"\npods = {pods}\n'
SHARED_PLANE = HEAD + 'machine = "ct5lp-hightpu-8t"\ntopology = "4x8"\nshared = true\n'
CUBES = HEAD + 'machine = "ct5p-hightpu-4t"\ntopology = "4x4x{depth}"\npods = 2\n'
BLOCKS = HEAD + 'machine = "a3-highgpu-8g"\nshared = true\nhosts = 4\n' + "".join(
    f'[[pools.blocks]]\nname = "b{i}"\nhosts = 2\n' for i in range(2)
)


@dataclass(slots=True, repr=False)
class Case:
    """A pool of pods or of shared hosts, and what is wanted of it."""

    fleet: Fleet
    shape: str
    topology: str
    count: int
    piece: Piece
    each: int
    within: str | None = None
    bookings: list[Booking] = field(default_factory=list)
    out: dict[int, HostStatus] = field(default_factory=dict)

    @property
    def pool(self) -> Pool:
        return self.fleet.pools[0]

    def runs(self) -> list[tuple[int, ...]]:
        span, cells = self.piece.span, range(len(self.pool.cells))
        return [tuple(cells[i : i + span]) for i in range(0, len(cells) - span + 1, span)]

    def domain(self, run: tuple[int, ...]) -> int:
        """The pod of a run, where slices are made of cubes."""
        level = self.piece.level
        return self.group(run, level) if level else 0

    def group(self, run: tuple[int, ...], level: str | None) -> int:
        """Which domain of a level has the run's hosts, found from the domains alone."""
        if level is None:
            return 0
        first = self.pool.cells[run[0]].first
        domains = [d for d in self.pool.domains if d.level == level]
        return next(i for i, d in enumerate(domains) if d.first <= first < d.first + d.size)

    def free(self, cell: int, second: int) -> int:
        """Units of a cell that nothing has in one second."""
        units = set(self.pool.cells[cell].units)
        gone = {
            u
            for u in units
            for h in (self.out.get(self.pool.host_of(u)),)
            if h is not None and second < (h.until or FOREVER)
        }
        free = len(units - gone)
        for booking in self.bookings:
            if booking.span.covers(second):
                for part in (p for p in booking.parts if p.cell == cell):
                    free -= len(set(part.units) - gone) if part.units else part.count
        return free

    def least(self, cell: int, span: Span) -> int:
        """The least over the seconds at which anything changes."""
        changes = {t for b in self.bookings for t in (b.span.start, b.span.end)}
        changes |= {h.until for h in self.out.values()}
        return min(self.free(cell, s) for s in (span.start, *(c for c in changes if span.start < c < span.end)))

    def reserved(self, span: Span) -> int:
        """The most units that reservations have at one instant."""
        others = [b for b in self.bookings if b.owner_kind is OwnerKind.RESERVATION]
        instants = (span.start, *(b.span.start for b in others if span.start < b.span.start < span.end))
        return max(sum(b.count for b in others if b.span.covers(s)) for s in instants)

    def __repr__(self) -> str:
        pool = self.pool
        return (
            f"{self.count} x {self.topology or self.shape} within {self.within}, {self.piece} of {pool.shape.name} "
            f"{pool.topology} {len(pool.hosts)} hosts; out { {h: s.until for h, s in self.out.items()} }; "
            + "; ".join(f"{b.owner_kind}{b.id} {b.span} {b.parts}" for b in self.bookings)
        )

    def snapshot(self, *reservations: Reservation) -> FleetSnapshot:
        return snapshot.build(
            self.fleet, bookings=self.bookings, hosts=self.out.values(), reservations=reservations
        )


def cases(seed: int, number: int) -> Iterator[tuple[Case, random.Random]]:
    rng = random.Random(seed)
    for _ in range(number):
        yield _a_case(rng), rng


_FLEETS: dict[str, Fleet] = {}


def _a_case(rng: random.Random) -> Case:
    kind = rng.choice(("plane", "plane", "shared", "cubes", "cubes", "blocks", "blocks"))
    if kind == "plane":
        pods = rng.choice((1, 2))
        text = PLANES.format(topology=rng.choice(("4x4", "4x8")), pods=pods)
        topology, chips = rng.choice((("2x2", 4), ("2x4", 8), ("4x4", 16)))
        within = rng.choice((None, "pod"))
        made = ("ct5lp-hightpu-4t", topology, Piece(span=chips // 4), 1, within)
    elif kind == "shared":
        text = SHARED_PLANE
        topology, chips = rng.choice((("1x1", 1), ("2x2", 4), ("2x4", 8), ("4x4", 16)))
        piece = Piece(span=max(1, chips // 8), size=min(8, chips))
        made = (f"ct5lp-hightpu-{min(4, chips)}t", topology, piece, 1, None)
    elif kind == "cubes":
        text = CUBES.format(depth=rng.choice((8, 12)))
        topology, cubes = rng.choice((("4x4x4", 1), ("4x4x8", 2)))
        piece = Piece(span=16, level="pod", together=2) if cubes == 2 else Piece(span=16)
        made = ("ct5p-hightpu-4t", topology, piece, cubes, rng.choice((None, None, "pod")))
    else:
        text = BLOCKS
        size = rng.choice((1, 2, 4, 8))
        made = (f"a3-highgpu-{size}g", "", Piece(size=size), 1, rng.choice((None, "block")))
    fleet = _FLEETS.get(text) or _FLEETS.setdefault(text, fleetfile.parse(text))
    shape, topology, piece, each, within = made
    most = 2 if piece.span == 16 else 3
    return Case(fleet, shape, topology, rng.randint(1, most), piece, each, within)


def trouble(case: Case, rng: random.Random, *, live: bool = False) -> None:
    """Hosts that are out, work and other reservations, and maintenance ahead, never overbooked. With `live`
    work runs now, on drawn units."""
    hosts = range(len(case.pool.hosts))
    few = max(1, len(case.runs()) // 4)
    for host in rng.sample(hosts, rng.randint(0, few)):
        until = rng.choice((0, rng.randint(NOW + 1, END)))
        state = rng.choice((HostState.DOWN, HostState.DRAINING)) if not until else HostState.DOWN
        case.out[host] = HostStatus(pool="p", unit=host, state=state, until=until)
    for number in range(rng.randint(0, 6)):
        start = rng.randint(NOW + 1, END - 2)
        span = Span(start, rng.randint(start + 1, END))
        cell = rng.randrange(len(case.pool.cells))
        room = case.least(cell, span)
        whole = room == case.pool.cells[cell].size
        if room <= 0:
            continue
        count = rng.randint(1, room)
        kind, units = rng.choice((OwnerKind.REQUEST, OwnerKind.RESERVATION)), ()
        if whole and rng.random() < 0.4:
            kind, count = OwnerKind.MAINTENANCE, room
            units = tuple(case.pool.cells[cell].units)
        case.bookings.append(_a_booking(100 + number, span, kind, Part(cell=cell, count=count, units=units)))
    for number in range(rng.randint(0, few + 1) if live else 0):
        cell = rng.randrange(len(case.pool.cells))
        span = Span(NOW - 5, rng.randint(NOW + 1, END))
        idle = _idle(case, cell)
        room = min(len(idle), case.least(cell, Span(NOW, span.end)))
        if room > 0:
            units = tuple(sorted(rng.sample(idle, rng.randint(1, room))))
            part = Part(cell=cell, count=len(units), units=units)
            case.bookings.append(_a_booking(200 + number, span, OwnerKind.REQUEST, part, Stage.LIVE))


def _a_booking(
    number: int, span: Span, kind: OwnerKind, part: Part, stage: Stage = Stage.FIRM, parent: int = 0
) -> Booking:
    return Booking(
        id=BookingId(number),
        pool="p",
        span=span,
        stage=stage,
        owner_kind=kind,
        owner=number,
        parts=(part,),
        parent=parent,
    )


def _idle(case: Case, cell: int) -> list[int]:
    """Units of a cell on healthy hosts that nothing holds now."""
    held = {u for b in case.bookings if b.stage is Stage.LIVE for u in b.units}
    units = case.pool.cells[cell].units
    return [u for u in units if u not in held and case.pool.host_of(u) not in case.out]


# --- windows ----------------------------------------------------------------------------------


def fits(case: Case, span: Span, pieces: int) -> bool:
    """Tries every placement of the pieces in every domain asked for."""
    if case.reserved(span) + pieces * case.piece.units > case.pool.size:
        return False
    runs = case.runs()
    for group in {case.group(run, case.within) for run in runs}:
        cells = [c for run in runs if case.group(run, case.within) == group for c in run]
        least = [max(0, case.least(c, span)) for c in cells]
        domains = [case.domain((c,)) for c in cells]
        if could_be_placed(least, case.piece, pieces, domains):
            return True
    return False


def test_a_window_for_pieces_fits_exactly_when_they_can_be_placed() -> None:
    """A reservation of slices or fractions could be confirmed that cannot be placed, or refused although it
    can."""
    yes = no = 0
    options = PolicyOptions(calendar_share=1.0, calendar_horizon_s=1000, reservation_min_s=1)
    for case, rng in cases(1, 1500):
        trouble(case, rng)
        start = rng.randint(NOW + 1, END)
        span = Span(start, start + rng.randint(1, 30))
        wanted = Alternative(
            shape=case.shape,
            topology=case.topology,
            count=case.count,
            within=case.within,
            duration_s=span.length_s,
        )
        fit = windows.fit(case.snapshot(), options, NOW, wanted, span)
        expected = fits(case, span, case.count * case.each)
        assert (fit.option is not None) == expected, (case, span)
        if fit.option is None:
            no += 1
            assert fit.most < case.count
            assert not fit.most or fits(case, span, fit.most * case.each)
            continue
        yes += 1
        assert (fit.option.count, fit.option.topology) == (case.count, case.topology)
        _is_placed(case, fit.option.parts, span)
        length = windows.grounds(case.snapshot(), options, wanted)[0].longest(span.start, END)
        assert length is not None and length[0].end >= span.end, "the longest window is as long at least"
        _is_placed(case, length[1], length[0])
        longer = Span(length[0].start, length[0].end + 1)
        assert longer.length_s > END or not fits(case, longer, case.count * case.each), "it is the longest"
    assert min(yes, no) > 150


def _is_placed(case: Case, parts: tuple[Part, ...], span: Span) -> None:
    """The parts are free, and whole aligned pieces of one domain."""
    counts = Counter({p.cell: p.count for p in parts})
    assert all(case.least(c, span) >= n for c, n in counts.items())
    _are_pieces(case, counts)


def _are_pieces(case: Case, counts: Counter[int]) -> None:
    used = [run for run in case.runs() if any(counts[c] for c in run)]
    assert all(len({counts[c] for c in run}) == 1 and counts[run[0]] % case.piece.size == 0 for run in used)
    assert len({case.group(run, case.within) for run in used}) == 1, "all in one domain"
    in_domain: Counter[int] = Counter()
    for run in used:
        in_domain[case.domain(run)] += counts[run[0]] // case.piece.size
    assert sum(in_domain.values()) == case.count * case.each
    assert all(n % case.piece.together == 0 for n in in_domain.values()), "cubes of a slice are in one pod"


# --- hosts ------------------------------------------------------------------------------------


def a_reservation(case: Case, state: ReservationState, window: Span) -> Reservation:
    return Reservation(
        id=ReservationId(OWN),
        name="own",
        project="p",
        principal="ann",
        state=state,
        window=window,
        pool="p",
        zone="z",
        shape=case.shape,
        topology=case.topology,
        count=case.count,
        within=case.within,
        created_at=0,
        booking=BookingId(OWN),
    )


def place(case: Case, rng: random.Random) -> Counter[int] | None:
    """A random placement of what is wanted in an empty pool."""
    runs = case.runs()
    group = rng.choice(sorted({case.group(run, case.within) for run in runs}))
    own = [r for r in runs if case.group(r, case.within) == group]
    room = {r: case.pool.cells[r[0]].size // case.piece.size for r in own}
    counts: Counter[int] = Counter()
    for _ in range(case.count):
        domains = sorted({case.domain(r) for r in own})
        able = [d for d in domains if sum(room[r] for r in own if case.domain(r) == d) >= case.each]
        if not able:
            return None
        domain = rng.choice(able)
        for _ in range(case.each):
            run = rng.choice([r for r in own if case.domain(r) == domain and room[r]])
            room[run] -= 1
            for cell in run:
                counts[cell] += case.piece.size
    return counts


def bound(case: Case, reservation: Reservation, booking: Booking) -> tuple[tuple[Part, ...], int]:
    """What the plan makes of a reservation: its parts, and how many it lacks."""
    seen = case.snapshot(reservation)
    made = plan(seen, PolicyOptions(), NOW)
    invariants.check(made, seen)
    binds = [d for d in made.decisions if isinstance(d, Bind) and d.reservation == OWN]
    assert len(binds) <= 1
    for bind in binds:
        assert still_holds(bind, seen, NOW) is None
        return bind.parts, bind.short
    return booking.parts, reservation.short


def test_pieces_that_lose_hosts_before_the_start_are_placed_anew_exactly_when_they_can_be() -> None:
    """A reservation ahead could be called short although it fits elsewhere, or keep a slice with a hole."""
    short = moved = 0
    for case, rng in cases(2, 900):
        counts = place(case, rng)
        if counts is None:
            continue
        trouble(case, rng)
        case.bookings = [b for b in case.bookings if b.owner_kind is not OwnerKind.RESERVATION]
        promised = [b for b in case.bookings if b.owner_kind is OwnerKind.REQUEST]
        case.bookings = [b for b in case.bookings if b not in promised]
        window = Span(rng.randint(NOW + 1, END - 5), END)
        stays = all(case.least(c, window) >= n for c, n in counts.items())
        able = fits(case, window, case.count * case.each)
        parts = tuple(Part(cell=c, count=n) for c, n in sorted(counts.items()))
        booking = _a_booking(OWN, window, OwnerKind.RESERVATION, parts[0])
        booking = Booking(
            id=booking.id,
            pool="p",
            span=window,
            stage=Stage.FIRM,
            owner_kind=OwnerKind.RESERVATION,
            owner=OWN,
            parts=parts,
        )
        case.bookings.append(booking)
        told, lacks = bound(case, a_reservation(case, ReservationState.APPROVED, window), booking)
        case.bookings.pop()
        _are_pieces(case, Counter({p.cell: p.count for p in told}))
        assert (lacks == 0) == (stays or able), (case, counts, window)
        if lacks:
            short += 1
            assert told == parts, "it stays where it is"
        elif stays:
            assert told == parts, "nothing moves without need"
        else:
            moved += 1
            _is_placed(case, told, window)
    assert min(short, moved) > 25, (short, moved)


def fewest_short(case: Case, counts: Counter[int], own: set[int], used: set[int], end: int) -> int:
    """How many it must lack, at least: tries every number of pieces on every run."""
    size, runs = case.piece.size, case.runs()
    group = {case.group(r, case.within) for r in runs if counts[r[0]]}
    runs = [r for r in runs if case.group(r, case.within) in group]
    able: list[int] = []
    least: list[int] = []
    for run in runs:
        there = []
        for c in run:
            mine = own & set(case.pool.cells[c].units)
            others = max(0, case.least(c, Span(NOW, end)) - len(mine))
            free = len(set(_sure(case, c, end)) - own)
            there.append(len(mine) + min(free, max(others, 0)))
        able.append(min(there) // size)
        least.append(max(-(-len(used & set(case.pool.cells[c].units)) // size) for c in run))
    best = case.count
    booked = [counts[r[0]] // size for r in runs]
    most = case.pool.cells[0].size // size
    for tried in product(*(range(low, most + 1) for low in least)):
        if sum(tried) != sum(booked):
            continue
        total: Counter[int] = Counter()
        missing: Counter[int] = Counter()
        for run, n, there in zip(runs, tried, able, strict=True):
            total[case.domain(run)] += n
            missing[case.domain(run)] += max(0, n - there)
        if all(n % case.piece.together == 0 for n in total.values()):
            best = min(best, sum(-(-n // case.each) for n in missing.values()))
    return best


def _sure(case: Case, cell: int, end: int) -> list[int]:
    """Idle units of a cell on which no maintenance begins before `end`."""
    ahead = {
        u
        for b in case.bookings
        if b.owner_kind is OwnerKind.MAINTENANCE and b.span.start < end
        for u in b.units
    }
    return [u for u in _idle(case, cell) if u not in ahead]


def test_an_open_reservation_lacks_as_few_slices_as_can_be_and_takes_none_from_under_work() -> None:
    """A lost slice could be missed although there is room for it, or what runs on its rest be evicted."""
    short = mended = 0
    for case, rng in cases(3, 1200):
        counts = place(case, rng)
        if counts is None:
            continue
        end = rng.randint(NOW + 5, END)
        own = {u for c, n in counts.items() for u in rng.sample(case.pool.cells[c].units, n)}
        is_start = rng.random() < 0.3
        lost = {case.pool.host_of(u) for u in rng.sample(sorted(own), rng.randint(0, min(3, len(own))))}
        kept = set() if is_start else {u for u in own if case.pool.host_of(u) not in lost}
        used: set[int] = set()
        if kept and rng.random() < 0.6:
            used = set(rng.sample(sorted(kept), rng.randint(1, min(2, len(kept)))))
        booking = _open(case, counts, kept, Span(NOW if is_start else NOW - 10, end), is_start)
        for host in lost:
            case.out[host] = HostStatus(pool="p", unit=host, state=HostState.DOWN)
        case.bookings.append(booking)
        trouble(case, rng, live=True)
        case.bookings = [b for b in case.bookings if b.owner_kind is not OwnerKind.RESERVATION]
        case.out = {h: s for h, s in case.out.items() if h in lost or not _units(case, h) & kept}
        expected = fewest_short(case, counts, kept, used, end)
        inside = [
            _a_booking(
                300 + u,
                Span(NOW - 5, end),
                OwnerKind.REQUEST,
                Part(cell=case.pool.cell_of(u), count=1, units=(u,)),
                Stage.LIVE,
                parent=OWN,
            )
            for u in sorted(used)
        ]
        case.bookings += [booking, *inside]
        state = ReservationState.PROVISIONING if is_start else ReservationState.FULFILLED
        told, lacks = bound(case, a_reservation(case, state, booking.span), booking)
        drawn = {u for p in told for u in p.units}
        assert used <= drawn
        total: Counter[int] = Counter()
        for part in told:
            total[part.cell] += part.count
        _are_pieces(case, total)
        assert lacks == expected, (case, counts, sorted(kept), sorted(used), told)
        short += lacks > 0
        mended += lacks == 0 and bool(lost)
    assert min(short, mended) > 60, (short, mended)


def _units(case: Case, host: int) -> set[int]:
    return set(case.pool.units_of(host))


def _open(case: Case, counts: Counter[int], kept: set[int], span: Span, is_start: bool) -> Booking:
    parts: list[Part] = []
    for cell, n in sorted(counts.items()):
        units = tuple(sorted(kept & set(case.pool.cells[cell].units)))
        parts += [Part(cell=cell, count=len(units), units=units)] if units else []
        parts += [Part(cell=cell, count=n - len(units))] if n > len(units) else []
    return Booking(
        id=BookingId(OWN),
        pool="p",
        span=span,
        stage=Stage.FIRM if is_start else Stage.LIVE,
        owner_kind=OwnerKind.RESERVATION,
        owner=OWN,
        parts=tuple(parts),
    )


def most_spare(case: Case, counts: Counter[int], used: set[int]) -> int:
    """How many fewer it can be at most when nothing may be taken from under work: tries every way."""
    size, runs = case.piece.size, [r for r in case.runs() if counts[r[0]]]
    least = [max(-(-len(used & set(case.pool.cells[c].units)) // size) for c in run) for run in runs]
    booked = [counts[run[0]] // size for run in runs]
    best = 0
    for tried in product(*(range(low, high + 1) for low, high in zip(least, booked, strict=True))):
        total: Counter[int] = Counter()
        for run, n in zip(runs, tried, strict=True):
            total[case.domain(run)] += n
        if all(n % case.piece.together == 0 for n in total.values()):
            left = sum(total.values())
            if left % case.each == 0:
                best = max(best, case.count - left // case.each)
    return best


def test_a_reservation_gives_back_as_many_slices_as_nothing_runs_on() -> None:
    """Giving slices back could be refused although they are idle, or end work that runs on them."""
    given = refused = 0
    for case, rng in cases(4, 900):
        counts = place(case, rng)
        if counts is None:
            continue
        own = {u for c, n in counts.items() for u in rng.sample(case.pool.cells[c].units, n)}
        kept = {u for u in own if rng.random() < 0.9}
        used = set(rng.sample(sorted(kept), min(len(kept), rng.randint(0, 3))))
        booking = _open(case, counts, kept, Span(NOW - 10, END), is_start=False)
        hold = Hold.of(case.pool, a_reservation(case, ReservationState.FULFILLED, booking.span), booking)
        most = most_spare(case, counts, used)
        fewer = rng.randint(1, case.count)
        assert hold.shrink(fewer, frozenset(used)) == min(fewer, most), (case, counts, kept, used)
        given += fewer <= most
        refused += fewer > most
        if fewer > most:
            continue
        drawn = {u for p in hold.parts() for u in p.units}
        assert used <= drawn <= kept
        case.count -= fewer
        total: Counter[int] = Counter()
        for part in hold.parts():
            total[part.cell] += part.count
        if case.count:
            _are_pieces(case, total)
        assert bool(case.count) == bool(total)
    assert min(given, refused) > 100, (given, refused)
