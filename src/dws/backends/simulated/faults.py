"""What goes wrong in a simulated fleet: a script, so that the same run fails the same way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Scripted faults; the empty script is a perfect world. Seconds are of domain time.

    `refuse` answers every order "no capacity" with this text; `reject` rejects it for good. `fail_ranks`
    lists (attempt, rank) pairs whose instance cannot be made. The first `silent_attempts` attempts of each
    request, and instances on `silent_units`, never say that they run. Every instance boots `boot_extra_s`
    later on `slow_units`. `release_s` is how long it takes until a release is confirmed. With `repeat` every
    fact is told that many times, with `reverse` in reverse order.
    """

    refuse: str = ""
    reject: str = ""
    fail_ranks: tuple[tuple[int, int], ...] = ()
    silent_attempts: int = 0
    silent_units: tuple[int, ...] = ()
    slow_units: tuple[int, ...] = ()
    boot_extra_s: int = 0
    release_s: int = 0
    repeat: int = 1
    reverse: bool = False


NO_FAULTS = Faults()
