"""The weather of a run: faults of the world, drawn from the seed, one at a time.

Each fault is a small function of the dice and the world; `strike` picks one. What they do to the backend is
scripted there (`backends/simulated/faults.py`); what they do to the process is the frail store's cue.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from dws.backends.simulated.backend import SimulatedBackend
from dws.backends.simulated.faults import NO_FAULTS, Faults
from dws.engine.ports import FactKind
from dws.model.topology import Fleet
from dws.simulator.breaking.frail import FrailStore, Mood


class Weather:
    """Draws faults and does them. `fleet` tells the present hosts."""

    def __init__(
        self,
        dice: random.Random,
        backend: SimulatedBackend,
        store: FrailStore,
        fleet: Callable[[], Fleet],
    ) -> None:
        self._dice = dice
        self._backend = backend
        self._store = store
        self._fleet = fleet
        self._dead: list[tuple[str, int]] = []
        self._kinds: tuple[tuple[int, Callable[[], str]], ...] = (
            (6, self._backend_mood),
            (2, self._lose_instance),
            (2, self._kill_host),
            (3, self._revive_host),
            (2, self._cut_host),
            (2, self._say_something_stale),
            (4, self._trouble_with_the_store),
        )

    def strike(self) -> str:
        """Do one fault; returns what it was."""
        weights = [weight for weight, _ in self._kinds]
        ((_, fault),) = self._dice.choices(self._kinds, weights)
        return fault()

    def heal(self) -> None:
        """Everything works from now on; hosts that died are there again."""
        self._backend.faults = NO_FAULTS
        self._store.heal()
        for pool, unit in self._dead:
            self._backend.host_up(pool, unit)
        self._dead.clear()

    # --- faults -------------------------------------------------------------------------------

    def _backend_mood(self) -> str:
        dice = self._dice
        faults, name = dice.choice(
            (
                (NO_FAULTS, "works"),
                (Faults(unavailable=True), "answers nothing"),
                (Faults(refuse="no capacity"), "refuses"),
                (Faults(reject="not allowed"), "rejects"),
                (Faults(fail_ranks=((1, dice.randint(0, 2)), (2, 0))), "fails some ranks"),
                (Faults(silent_attempts=dice.randint(1, 2)), "does not say that instances run"),
                (
                    Faults(slow_units=(0, 1, 2), boot_extra_s=dice.choice((7, 400))),
                    "is slow on some hosts",
                ),
                (Faults(release_s=dice.choice((3, 90))), "is slow to release"),
                (Faults(lose_releases=True), "forgets releases"),
                (Faults(lie_about_releases=True), "lies about releases"),
                (Faults(repeat=2), "says everything twice"),
                (Faults(reverse=True), "says things out of order"),
                (Faults(stale=True, repeat=2), "repeats what is long over"),
            )
        )
        self._backend.faults = faults
        return f"the backend {name}"

    def _lose_instance(self) -> str:
        places = sorted(self._backend.holds())
        if not places:
            return "nothing to lose"
        key, rank = self._dice.choice(places)
        self._backend.lose(key, rank)
        return f"instance {key} rank {rank} vanishes"

    def _kill_host(self) -> str:
        pool, unit = self._any_host()
        self._backend.host_down(pool, unit)
        self._dead.append((pool, unit))
        return f"host {unit} of {pool} dies"

    def _revive_host(self) -> str:
        if not self._dead:
            return "no host to revive"
        pool, unit = self._dead.pop(self._dice.randrange(len(self._dead)))
        self._backend.host_up(pool, unit)
        return f"host {unit} of {pool} is back"

    def _cut_host(self) -> str:
        pool, unit = self._any_host()
        seconds = self._dice.choice((20, 100, 900))
        self._backend.cut(pool, unit, seconds)
        return f"host {unit} of {pool} cannot be seen for {seconds} s"

    def _say_something_stale(self) -> str:
        places = sorted(self._backend.holds())
        if not places:
            return "nothing to say"
        key, rank = self._dice.choice(places)
        request, _, attempt = key.partition("-")
        stale = f"{request}-{int(attempt.split('-')[0]) - 1}"
        kind = self._dice.choice((FactKind.RUNNING, FactKind.EXITED, FactKind.LOST, FactKind.GONE))
        self._backend.say(kind, stale, rank)
        return f"a stale {kind} about {stale} rank {rank}"

    def _trouble_with_the_store(self) -> str:
        mood = self._dice.choice([m for m in Mood if m is not Mood.FINE])
        writes = self._dice.randint(0, 12)
        self._store.cue(mood, writes)
        return f"after {writes} writes: {mood}"

    def _any_host(self) -> tuple[str, int]:
        pool = self._dice.choice(self._fleet().pools)
        return pool.name, self._dice.randrange(len(pool.hosts))
