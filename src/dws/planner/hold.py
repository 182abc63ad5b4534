"""What a reservation has of its pool, while that changes: pieces on runs of cells, drawn or still by number.

    cells   0 1 2 3 | 4 5 6 7        two runs of four; a slice on each, every cell a host
    booked  1 1 1 1 | 1 1 1 1
    drawn   * * . * | * * * *        the first lost a host: one of two slices is missing

A run may carry several pieces: machines of a block, fractions of a host.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dws.model.booking import Booking, Part
from dws.model.evolve import evolve
from dws.model.piece import Piece
from dws.model.reservation import Reservation
from dws.model.topology import Pool
from dws.planner import slices

Run = tuple[int, ...]
"""Neighbouring cells that a piece takes together."""


@dataclass(slots=True)
class Hold:
    """The parts of one booking. `runs` are those of its domain, in order; `each` is how many pieces one of
    what the reservation counts is, a slice of several cubes being so many."""

    pool: Pool
    piece: Piece
    each: int
    runs: list[Run]
    booked: Counter[int]
    drawn: list[Part]
    units: defaultdict[int, set[int]]

    @classmethod
    def of(cls, pool: Pool, reservation: Reservation, booking: Booking) -> Hold:
        """What a reservation has by a booking."""
        count, piece = slices.reserved(reservation, pool)
        cells = {p.cell for p in booking.parts}
        groups = [g for g in pool.groups(reservation.within) if cells & set(g)]
        booked: Counter[int] = Counter()
        units: defaultdict[int, set[int]] = defaultdict(set)
        for part in booking.parts:
            booked[part.cell] += part.count
            units[part.cell].update(part.units)
        return cls(
            pool=pool,
            piece=piece,
            each=max(1, count // reservation.count),
            runs=[run for group in groups for run in pool.runs(group, piece.span)],
            booked=booked,
            drawn=[p for p in booking.parts if p.units],
            units=units,
        )

    def parts(self) -> tuple[Part, ...]:
        """What is drawn, then what is still to be."""
        lacking = ((cell, n - len(self.units[cell])) for cell, n in sorted(self.booked.items()))
        return (*self.drawn, *(Part(cell=cell, count=n) for cell, n in lacking if n > 0))

    def copy(self) -> Hold:
        """An independent one, to try something."""
        units = defaultdict(set, {cell: set(own) for cell, own in self.units.items()})
        return replace(self, booked=self.booked.copy(), drawn=list(self.drawn), units=units)

    # --- pieces -------------------------------------------------------------------------------

    def number(self, run: Run) -> int:
        """How many pieces are booked on a run."""
        return self._least(run, self.booked)

    def whole(self, run: Run) -> int:
        """How many of them are drawn."""
        return self._least(run, {c: len(self.units[c]) for c in run})

    def missing(self, run: Run) -> int:
        """How many of them are not."""
        return self.number(run) - self.whole(run)

    def domain(self, run: Run) -> int:
        """The domain in which the pieces of a run stand together or apart with others."""
        return self.pool.domains_by_cell(self.piece.level)[run[0]] if self.piece.level else 0

    def by_domain(self) -> dict[int, list[Run]]:
        """The runs of each domain."""
        found: dict[int, list[Run]] = {}
        for run in self.runs:
            found.setdefault(self.domain(run), []).append(run)
        return found

    def short(self) -> int:
        """How many of what the reservation counts are not whole."""
        return self._in_wholes({run: self.missing(run) for run in self.runs})

    def without(self, lacking: Iterable[Part]) -> int:
        """How many would not be whole if cells had so many units less than are booked."""
        few = {p.cell: p.count for p in lacking}
        left = {c: n - few.get(c, 0) for c, n in self.booked.items()}
        return self._in_wholes({run: self.number(run) - self._least(run, left) for run in self.runs})

    def _in_wholes(self, missing: dict[Run, int]) -> int:
        total: Counter[int] = Counter()
        for run, number in missing.items():
            total[self.domain(run) if self.each > 1 else 0] += number
        return sum(-(-n // self.each) for n in total.values())

    def _least(self, run: Run, units: dict[int, int] | Counter[int]) -> int:
        return min(units.get(c, 0) for c in run) // self.piece.size

    # --- changes ------------------------------------------------------------------------------

    def draw(self, cell: int, units: Iterable[int], since: int) -> None:
        """Units of a cell are drawn, and are its own from `since`."""
        own = tuple(sorted(units))
        if own:
            self.drawn.append(Part(cell=cell, count=len(own), units=own, since=since))
            self.units[cell].update(own)

    def book(self, run: Run, pieces: int) -> None:
        """So many pieces more are booked on a run."""
        for cell in run:
            self.booked[cell] += pieces * self.piece.size

    def give_up(self, run: Run, pieces: int, in_use: frozenset[int]) -> bool:
        """So many pieces less: those that are missing first, then the last ones. False, and nothing changed,
        when something runs on them."""
        keep = (self.number(run) - pieces) * self.piece.size
        gone: set[int] = set()
        for cell in run:
            idle = sorted(self.units[cell] - in_use)
            too_many = max(0, len(self.units[cell]) - keep)
            if too_many > len(idle):
                return False
            gone.update(idle[len(idle) - too_many :])
        for cell in run:
            self.booked[cell] = keep
            self.units[cell] -= gone
        if gone:
            left = ((p, tuple(u for u in p.units if u not in gone)) for p in self.drawn)
            self.drawn = [evolve(p, count=len(own), units=own) for p, own in left if own]
        return True

    def drop(self, runs: list[Run], pieces: int, in_use: frozenset[int]) -> bool:
        """So many pieces of some runs less: those that are missing first, then the last ones. False, and
        nothing changed, when something runs on too many."""
        trial, left = self.copy(), pieces
        for run in runs:
            number = min(left, trial.missing(run))
            if number and trial.give_up(run, number, in_use):
                left -= number
        for run in reversed(runs):
            while left and trial.number(run) and trial.give_up(run, 1, in_use):
                left -= 1
        if not left:
            self.become(trial)
        return not left

    def shrink(self, number: int, in_use: frozenset[int]) -> int:
        """So many fewer of what the reservation counts, missing ones first, none on which something runs.
        Says how many there were to take."""
        for taken in range(number):
            domains = list(self.by_domain().values()) if self.each > 1 else [self.runs]
            domains.sort(key=lambda runs: not sum(map(self.missing, runs)))
            if not any(self.drop(runs, self.each, in_use) for runs in domains):
                return taken
        return number

    def become(self, other: Hold) -> None:
        """What was tried is so from now on."""
        self.booked, self.drawn, self.units = other.booked, other.drawn, other.units
