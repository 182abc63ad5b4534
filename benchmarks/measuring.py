"""What the benchmarks share: a clock, memory, and a table."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. `goal` is in words; `ratio` is to another figure of the same run."""

    what: str
    value: float
    unit: str
    goal: str = ""
    ratio: str = ""


def seconds(act: Callable[[], object], *, least_s: float = 0.0) -> float:
    """Wall seconds of one call, the mean over as many calls as fill `least_s`."""
    calls, began = 0, time.perf_counter()
    while True:
        act()
        calls += 1
        spent = time.perf_counter() - began
        if spent >= least_s:
            return spent / calls


def peak_memory_mb() -> float:
    """The largest resident size of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(title: str, figures: list[Figure], *, as_json: bool) -> None:
    """Print the figures as a table, or as one JSON object a line."""
    if as_json:
        for figure in figures:
            print(json.dumps({"benchmark": title, **asdict(figure)}))
        return
    print(f"\n{title}")
    for figure in figures:
        extra = ", ".join(x for x in (figure.ratio, f"goal {figure.goal}" if figure.goal else "") if x)
        print(f"  {figure.what:<52} {figure.value:>10,.1f} {figure.unit:<8} {extra}")
    sys.stdout.flush()
