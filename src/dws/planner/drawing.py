"""Drawing the hosts of a reservation: where they were booked, else elsewhere, whole pieces only.

What is missing goes to other runs of the same domain. Where so many pieces must stand together, as the cubes
of a slice in one pod, the whole slice goes to another domain when its own has no room. Nothing is taken from
under what runs in the reservation.
"""

from __future__ import annotations

from dataclasses import dataclass

from dws.planner.calendar import PoolCalendar
from dws.planner.hold import Hold, Run


@dataclass(frozen=True, slots=True)
class Idle:
    """What is idle from now to the end of a reservation, in a calendar without it. `doubted` units are drawn
    last."""

    calendar: PoolCalendar
    now: int
    end: int
    doubted: frozenset[int]

    def units(self, cell: int, hold: Hold) -> list[int]:
        """The idle units of a cell that a hold does not have yet."""
        free = self.calendar.free_to(cell, self.now, self.end)
        return sorted((u for u in free if u not in hold.units[cell]), key=lambda u: (u in self.doubted, u))

    def room(self, run: Run, hold: Hold) -> int:
        """How many further pieces of a hold a run has room for."""
        size = hold.piece.size
        least = min(self.calendar.least_free_in(c, self.now, self.end) - hold.booked[c] for c in run)
        if least < size:
            return 0
        return min(least, *(len(self.units(c, hold)) for c in run)) // size


def in_place(hold: Hold, idle: Idle, since: int) -> None:
    """Draw what is missing where it is booked, as far as it is idle."""
    for run in hold.runs:
        if hold.missing(run):
            free = {c: idle.units(c, hold) for c in run}
            there = min(len(hold.units[c]) + len(free[c]) for c in run) // hold.piece.size
            _draw(hold, run, min(hold.number(run), there), free, since)


def elsewhere(hold: Hold, idle: Idle, since: int, used: frozenset[int]) -> None:
    """Put what is still missing on other runs, and draw it there; on `used` units work runs."""
    if not _missing(hold, hold.runs):
        return
    domains = list(hold.by_domain().values())
    for runs in domains:
        short = [run for run in runs if hold.missing(run)]
        room = {run: n for run in runs if (n := idle.room(run, hold))} if short else {}
        for run in short:
            _move(hold, idle, since, run, room, used)
    if hold.piece.level:
        for runs in domains:
            _to_other_domains(hold, idle, since, runs, [d for d in domains if d is not runs], used)


def _draw(hold: Hold, run: Run, pieces: int, free: dict[int, list[int]], since: int) -> None:
    """Draw units until a run has so many pieces."""
    for cell in run:
        few = max(0, pieces * hold.piece.size - len(hold.units[cell]))
        hold.draw(cell, free[cell][:few], since)


def _add(hold: Hold, idle: Idle, since: int, run: Run, pieces: int) -> None:
    whole = hold.whole(run)
    hold.book(run, pieces)
    _draw(hold, run, whole + pieces, {c: idle.units(c, hold) for c in run}, since)


def _move(
    hold: Hold, idle: Idle, since: int, run: Run, room: dict[Run, int], used: frozenset[int]
) -> None:
    """What a run is missing goes to others, as far as they have `room`, which is kept up to date."""
    missing = hold.missing(run)
    for other, there in list(room.items()):
        if not missing:
            return
        pieces = min(missing, there)
        if other != run and hold.give_up(run, pieces, used):
            _add(hold, idle, since, other, pieces)
            missing -= pieces
            room[other] = idle.room(other, hold)
            if not room[other]:
                del room[other]


def _to_other_domains(
    hold: Hold, idle: Idle, since: int, runs: list[Run], others: list[list[Run]], used: frozenset[int]
) -> None:
    """As many pieces as must stand together move from a domain to another one, missing ones first."""
    together, most = hold.piece.together, hold.piece.at_most
    for target in others:
        while _missing(hold, runs):
            room = [(run, n) for run in target if (n := idle.room(run, hold))]
            there = sum(hold.number(run) for run in target)
            if sum(n for _, n in room) < together or 0 < most < there + together:
                break
            trial = hold.copy()
            if not trial.drop(runs, together, used) or _missing(trial, runs) == _missing(hold, runs):
                return  # something runs on it, or what is missing would stay
            hold.become(trial)
            left = together
            for run, n in room:
                pieces = min(left, n)
                if pieces:
                    _add(hold, idle, since, run, pieces)
                    left -= pieces


def _missing(hold: Hold, runs: list[Run]) -> int:
    return sum(map(hold.missing, runs))
