"""The one record every trace reader yields."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job of a trace, in seconds from the trace's first submission.

    `run_s` is how long it really ran, `requested_s` what its owner asked for (0 where the trace does not
    say); they are never mixed. `size` counts the trace's units (accelerators, nodes or processors).
    `status` is the trace's own word for how it ended.
    """

    submit_s: int
    run_s: int
    requested_s: int
    size: int
    user: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Jobs in order of submission. `capacity` is the machine's size in the same `unit` as the jobs' sizes,
    0 where the trace does not say; `source` says where they come from, `skipped` how many rows were no use
    (never ran, or asked for nothing)."""

    source: str
    unit: str
    jobs: tuple[Job, ...]
    capacity: int = 0
    skipped: int = 0
    notes: tuple[str, ...] = field(default=())
