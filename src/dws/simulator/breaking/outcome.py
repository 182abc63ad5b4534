"""What came of a run, and how it is told: the seed to replay it, and a line for each event."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from dws.model import events as ev

CHECKOUT: Final = Path(__file__).parents[4]
"""Where the code comes from, when it runs from a checkout."""


class Broken(Exception):
    """The auditor found something that must not be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`fault` is what was found, empty when nothing was. `story` has a line for each event, command and
    fault of the world, in order; `counts` how often each happened; times in simulated seconds."""

    seed: int
    steps: int
    fault: str
    story: tuple[str, ...]
    counts: Counter[str] = field(default_factory=Counter)
    simulated_s: int = 0

    @property
    def ok(self) -> bool:
        """True when nothing was found."""
        return not self.fault

    @property
    def replay(self) -> str:
        """The command that tells the same story again."""
        return f"dws simulate --break {self.seed}" + (f" --steps {self.steps}" if self.steps else "")

    def data(self) -> dict[str, object]:
        """The same for programs; the story only when it matters."""
        return {
            "seed": self.seed,
            "ok": self.ok,
            "fault": self.fault,
            "revision": revision(),
            "replay": self.replay,
            "simulatedS": self.simulated_s,
            "counts": dict(sorted(self.counts.items())),
            "story": [] if self.ok else list(self.story),
        }

    def text(self) -> str:
        """One line when all is well; the whole story, the fault and how to replay it otherwise."""
        if self.ok:
            events = sum(n for kind, n in self.counts.items() if not kind.startswith("("))
            crashes, commands = self.counts["(crash)"], self.counts["(command)"]
            return (
                f"seed {self.seed}: ok, {commands} commands, {events} events, {crashes} crashes, "
                f"{self.simulated_s} s"
            )
        return "\n".join(
            (
                *self.story,
                "",
                f"BROKEN: {self.fault}",
                f"seed {self.seed}, opendws {revision()}, replay: {self.replay}",
            )
        )


@cache
def revision() -> str:
    """The version; in a checkout also the commit, marked when files are not as committed."""
    told = version("opendws")
    if not (CHECKOUT / ".git").exists():
        return told
    ask = ("git", "-C", str(CHECKOUT), "describe", "--always", "--dirty", "--exclude=*")
    try:
        commit = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return told
    return f"{told} at {commit}"


def line(origin: int, event: ev.Event) -> str:
    """One event as a line of the story; instants are seconds since `origin`."""
    who = event.name or f"{event.subject}"
    told = _details(event.body, origin)
    return f"{event.at - origin:>7} #{event.seq:<4} {who:<14} {event.kind:<18} {told} [{event.actor}]"


def _details(body: ev.EventBody, origin: int) -> str:
    match body:
        case ev.Submitted(request=r):
            wanted = " | ".join(
                f"{a.count} {a.shape or a.accelerator} {a.duration_s}s within {a.within}"
                for a in r.demand.alternatives
            )
            return f"{r.project}: {wanted}"
        case ev.Booked(start=start) | ev.Moved(start=start):
            cause = f" because {body.cause}" if isinstance(body, ev.Moved) else ""
            return f"latest start {start - origin}{cause}"
        case ev.Started(grant=g):
            units = ",".join(str(i.unit) for i in g.instances)
            return f"attempt {g.attempt} on {g.pool} {units} for {g.duration_s}s"
        case ev.InstancesRan(addresses=up):
            return f"ranks {sorted(up)}"
        case ev.InstancesReleased(ranks=ranks) | ev.PartReleased(ranks=ranks):
            return f"ranks {list(ranks)}"
        case ev.InstanceLost(rank=rank, host=host, cause=cause):
            return f"rank {rank} on {host}: {cause}"
        case ev.InstanceReplaced(instance=i):
            return f"rank {i.rank} now on {i.host}"
        case ev.Ended(why=why, requeue=requeue):
            return f"{why}{' (requeue)' if requeue else ''}"
        case ev.DeliveryFailed(cause=cause):
            return cause
        case ev.ReservationAsked(reservation=r):
            return f"{r.state}: {r.count} of {r.pool} {r.window.start - origin} … {r.window.end - origin}"
        case ev.ReservationAmended(window=w, count=count, pool=pool):
            return f"{count} of {pool} {w.start - origin} … {w.end - origin}"
        case ev.ReservationDegraded(short=short, cause=cause):
            return f"lacks {short}: {cause}"
        case ev.ReservationClosing(cause=cause) | ev.OccurrenceMissed(cause=cause):
            return cause
        case ev.HostChanged(state=state):
            return state
        case _:
            return ""
