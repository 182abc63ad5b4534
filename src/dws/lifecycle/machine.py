"""The one way a value moves through its lifecycle.

A table maps (state, event type) to a handler; a handler is small and pure and returns the next value
and its effects. `advance` looks the step up, refuses an unknown one, and checks the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dws.lifecycle.effects import Effect
from dws.model.errors import InvalidTransition
from dws.model.events import EventBody
from dws.model.evolve import evolve
from dws.model.request import CapacityRequest
from dws.model.reservation import Reservation

S = TypeVar("S", CapacityRequest, Reservation)


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """The next value of a subject, and what has to be done about it."""

    subject: S
    effects: tuple[Effect, ...] = ()


Handler = Callable[[S, Any, int], Step[S]]
Table = Mapping[tuple[Any, type], Handler[S]]


def advance(table: Table[S], subject: S, event: EventBody, now: int) -> Step[S]:
    """The step that `event` makes from `subject`'s state, its version grown by one.

    Raises InvalidTransition naming the subject, its state and the event when the table has no such
    step.
    """
    handler = table.get((subject.state, type(event)))
    if handler is None:
        kind = "request" if isinstance(subject, CapacityRequest) else "reservation"
        raise InvalidTransition(
            f"{kind} '{subject.name}' is {subject.state}: {type(event).__name__} cannot happen to it now"
        )
    step = handler(subject, event, now)
    return Step(evolve(step.subject, version=subject.version + 1), step.effects)
