"""The auditor's own small model of the ledger, made from events alone.

It shares nothing with the engine but the events' types: the slots of hosts with their holders, and for each
request where it is, what it was promised, which instance is on which slots, and which use is to be billed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dws.model.demand import ANY_RESERVATION, Demand
from dws.model.request import HostLossPolicy, Instance
from dws.simulator.breaking.shapes import Spot

Phase = Literal[
    "PENDING", "BOOKED", "PROVISIONING", "ACTIVE", "ENDING", "COMPLETED", "CANCELLED", "FAILED", "EXPIRED"
]
OVER: frozenset[str] = frozenset({"COMPLETED", "CANCELLED", "FAILED", "EXPIRED"})
HOLDING: frozenset[str] = frozenset({"PROVISIONING", "ACTIVE", "ENDING"})
END_OF: dict[str, Phase] = {
    "DURATION_REACHED": "COMPLETED",
    "RELEASED": "COMPLETED",
    "PROGRAM_SUCCEEDED": "COMPLETED",
    "PROGRAM_FAILED": "FAILED",
    "PROVISIONING_FAILED": "FAILED",
    "HOST_LOST": "FAILED",
    "CANCELLED": "CANCELLED",
    "WAIT_LIMIT": "EXPIRED",
    "RESERVATION_ENDED": "COMPLETED",
}

Use = tuple[int, int, int, str, int]
"""(rank, start, end, kind, reservation it ran in) of one usage record."""


@dataclass(slots=True)
class Place:
    """One instance: the host it is on, by its place in the pool, the slots that it has there (slot 0 of a
    host that is handed out whole), and how it is."""

    unit: int
    host: str
    slots: tuple[int, ...]
    incarnation: int
    is_up: bool = False
    is_held: bool = True
    is_leaving: bool = False
    is_lost: bool = False
    metered_from: int = 0

    @property
    def spots(self) -> tuple[Spot, ...]:
        """Every slot that it has."""
        return tuple((self.unit, slot) for slot in self.slots)


def place_of(instance: Instance) -> Place:
    """Where an event says that an instance is."""
    slots = instance.slots or (0,)
    return Place(unit=instance.unit, host=instance.host, slots=slots, incarnation=instance.incarnation)


@dataclass(slots=True)
class Held:
    """What one attempt holds; `inside` is the reservation it is in, 0 for none; `slices` are those it is, of
    several machines each, 0 for anything else."""

    attempt: int
    pool: str
    duration_s: int
    started: int
    places: dict[int, Place]
    slices: int = 0
    inside: int = 0
    delivered: int = 0
    ends_at: int = 0
    unreachable: bool = False

    def mates(self, rank: int) -> range:
        """The ranks of the slice that one belongs to; itself where it is no slice of several machines."""
        if not self.slices:
            return range(rank, rank + 1)
        size = len(self.places) // self.slices
        return range(rank // size * size, (rank // size + 1) * size)

    def booked(self) -> tuple[Spot, ...]:
        """The slots that must still be booked: those of what is held, and of slices that are not all given
        back yet what is not lost."""
        mates = {rank for own, place in self.places.items() if place.is_held for rank in self.mates(own)}
        return tuple(s for rank in mates if not self.places[rank].is_lost for s in self.places[rank].spots)


@dataclass(slots=True)
class Told:
    """One request, as its events tell it. `promise` is the latest start promised, 0 without one, and
    `promised_at_seq` the event that said so."""

    id: int
    name: str
    project: str
    demand: Demand
    on_host_loss: HostLossPolicy
    submitted: int
    phase: Phase = "PENDING"
    promise: int = 0
    promised_at_seq: int = 0
    held: Held | None = None
    attempts: int = 0
    not_again_before: int = 0
    ending: str = ""
    requeue: bool = False
    deleted: bool = False
    uses: list[Use] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """True in a terminal state."""
        return self.phase in OVER

    @property
    def inside(self) -> int:
        """The reservation in which it holds hosts, 0 for none."""
        return self.held.inside if self.held is not None else 0

    @property
    def slots_held(self) -> int:
        """How many slots of hosts it holds now."""
        places = self.held.places.values() if self.held is not None else ()
        return sum(len(p.slots) for p in places if p.is_held)


class Excuses:
    """What happened that explains why something came later than promised: trouble, by the number of the
    event that told it, and spans in which no process was there to act."""

    def __init__(self) -> None:
        self._trouble_at_seq = 0
        self._inside: dict[int, int] = {}
        self._away: list[tuple[int, int]] = []

    def trouble(self, seq: int) -> None:
        """Something went wrong, or a host is not what it was, as event `seq` says."""
        self._trouble_at_seq = max(self._trouble_at_seq, seq)

    def since(self, seq: int) -> bool:
        """True when there was trouble after event `seq`."""
        return self._trouble_at_seq > seq

    def inside(self, reservation: int, seq: int) -> None:
        """A reservation was changed or is over: promises inside it are made anew."""
        self._inside[reservation] = seq

    def since_inside(self, reservation: int, seq: int) -> bool:
        """True when that reservation, or any where any would do, was changed, or was over, after event
        `seq`."""
        if reservation == ANY_RESERVATION:
            return max(self._inside.values(), default=0) > seq
        return self._inside.get(reservation, 0) > seq

    def away(self, start: int, end: int) -> None:
        """Nobody could act between these instants."""
        self._away.append((start, end))

    def was_away_at(self, instant: int) -> bool:
        """True when nobody could act then."""
        return any(start <= instant <= end for start, end in self._away)
