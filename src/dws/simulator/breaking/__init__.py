"""Break the scheduler: a seed chooses fleet, arrivals, policy and faults; an auditor judges everything.

    workload ──commands──▶ engine ──events──▶ auditor, with its own small model of the ledger
                             ▲  ▲
             weather ────────┘  └─ store that fails and crashes, backend that lies

Phase one, safety: anything may fail, no invariant may. Phase two, liveness: everything is healed, and every
request must come to its end. The same seed gives the same run, to the last event.
"""

from __future__ import annotations

from dws.simulator.breaking.outcome import Outcome
from dws.simulator.breaking.run import run

__all__ = ["Outcome", "run"]
