"""What goes wrong in a simulated fleet: a script, so that the same run fails the same way.

The script can be exchanged while the world goes on (`backend.faults = Faults(...)`): a driver that draws
scripts from a seed makes any weather it likes, and the backend itself stays free of chance.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Scripted faults; the empty script is a perfect world. Seconds are of domain time.

    Orders: `unavailable` answers no call at all; `refuse` answers every order "no capacity" with this
    text; `reject` rejects it for good; `fail_ranks` lists (attempt, rank) pairs whose instance cannot be
    made. The first `silent_attempts` attempts of each request, and instances on `silent_units`, never say
    that they run; every instance boots `boot_extra_s` later on `slow_units`.

    Releases: `release_s` is how long it takes until one is confirmed; with `lose_releases` a soft one is
    answered and forgotten, only a hard one works; with `lie_about_releases` they are confirmed at once
    while the instance runs on, and says so.

    Facts: with `repeat` every fact is told that many times, with `reverse` in reverse order; with `stale`
    each is followed by one of the attempt before.
    """

    unavailable: bool = False
    refuse: str = ""
    reject: str = ""
    fail_ranks: tuple[tuple[int, int], ...] = ()
    silent_attempts: int = 0
    silent_units: tuple[int, ...] = ()
    slow_units: tuple[int, ...] = ()
    boot_extra_s: int = 0
    release_s: int = 0
    lose_releases: bool = False
    lie_about_releases: bool = False
    repeat: int = 1
    reverse: bool = False
    stale: bool = False


NO_FAULTS = Faults()
