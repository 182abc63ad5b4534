"""What is wanted, apart from who wants it.

A demand is an ordered list of acceptable alternatives and a window for the start. Exactly one
alternative is ever held; the first to finish wins, ties go to the one listed first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dws.model.errors import InvalidArgument
from dws.model.time import DAY, FOREVER

UNTIL_END: Final = 0
"""The duration of a run inside a reservation that lasts to the reservation's end."""
OPEN_ENDED_S: Final = 10 * 365 * DAY
"""The duration of a run without an end of its own: until somebody gives it back."""
NO_RESERVATION: Final = 0
ANY_RESERVATION: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How machines, or slices, stand beside each other: always `together` of them in one domain of a level,
    and at most `at_most` in each (0: as many as there is room for).

    Raises InvalidArgument naming the field.
    """

    level: str
    together: int = 1
    at_most: int = 0

    def __post_init__(self) -> None:
        if not self.level:
            raise InvalidArgument("grouping: say in each of what: a level such as 'rack'", field="grouping")
        if self.together < 1 or self.at_most < 0:
            raise InvalidArgument(
                f"grouping: {self.together} together, or at most {self.at_most}, are not possible",
                field="grouping",
            )
        if 0 < self.at_most < self.together:
            raise InvalidArgument(
                f"grouping: {self.together} cannot be together in one {self.level} where at most "
                f"{self.at_most} may be",
                field="grouping",
            )
        if self.together == 1 and not self.at_most:
            raise InvalidArgument(
                f"grouping: say how many are together in a {self.level}, or at most in each",
                field="grouping",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One acceptable form: `count` of something, together, for `duration_s` seconds (`UNTIL_END`: to the
    end of the reservation it runs in).

    With `shape` set, `count` is instances of that machine shape; with `accelerator` set (a type or its
    alias, `h100`), `count` is accelerators. With `topology` set (`4x8`), or an accelerator that is the name
    of a TPU slice (`v5p-128`), `count` is slices of that. `locations` are zones or regions, empty for
    anywhere. `within` is a level of closeness (`block`) all of it must share, or one domain of a level
    (`block/b1`) it must be in, None for anywhere in one pool; `grouping` says more about how its parts stand.
    With `near` they stand as close as they can at the start that they get.
    Raises InvalidArgument naming the field.
    """

    count: int
    duration_s: int
    shape: str = ""
    accelerator: str = ""
    locations: tuple[str, ...] = ()
    within: str | None = None
    topology: str = ""
    grouping: Grouping | None = None
    near: bool = False

    def __post_init__(self) -> None:
        if bool(self.shape) == bool(self.accelerator):
            raise InvalidArgument(
                "demand: give either a machine shape or an accelerator type, for example "
                "machine 'a3-highgpu-8g' or accelerators 'h100:16'",
                field="accelerators",
            )
        if self.count < 1:
            raise InvalidArgument(
                f"count: {self.count} is not possible, at least 1 is needed "
                "(for work without accelerators ask for a CPU machine shape)",
                field="count",
            )
        if self.duration_s < UNTIL_END:
            raise InvalidArgument(
                f"duration: {self.duration_s} s is not possible, at least 1 s is needed, "
                "for example '4h' or '90m'",
                field="duration",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Ordered alternatives and the window in which the start must lie.

    The start is at or after `not_before` and at or before `not_after`. `reservation` is the id of the
    reservation it must run in, ANY_RESERVATION for one that is open to it (else outside), or NO_RESERVATION.
    With `end_by` (0: none) each run ends then at the latest, however short that makes it.
    """

    alternatives: tuple[Alternative, ...]
    not_before: int = 0
    not_after: int = FOREVER
    reservation: int = NO_RESERVATION
    end_by: int = 0

    def ends_at(self, now: int, duration_s: int) -> int:
        """When a run that is delivered `now` ends."""
        return max(now, min(now + duration_s, self.end_by or FOREVER))

    def __post_init__(self) -> None:
        if not self.alternatives:
            raise InvalidArgument("alternatives: at least one is needed", field="alternatives")
        if self.end_by:
            object.__setattr__(self, "not_after", min(self.not_after, self.end_by - 1))
        if self.not_after < self.not_before:
            raise InvalidArgument(
                "wait: the latest start lies before the earliest start", field="not_after"
            )
        if self.reservation < ANY_RESERVATION:
            raise InvalidArgument(
                f"reservation: no reservation has id {self.reservation}", field="reservation"
            )
