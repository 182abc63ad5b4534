"""Reads the Standard Workload Format: one job a line, eighteen numbers, comments after `;`.

Fields used (counted from 1): 2 submit, 4 run time, 5 allocated and 8 requested processors, 9 requested
time, 11 status, 12 user. -1 means "not known".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dws.model.errors import InvalidArgument
from dws.simulator.traces.job import Job, Trace

_STATUS = {0: "failed", 1: "completed", 5: "cancelled"}
_HEADER = re.compile(r";\s*(MaxProcs|MaxNodes):\s*(\d+)")


def read_swf(lines: Iterable[str], *, source: str) -> Trace:
    """Every job that ran. Raises InvalidArgument naming the first line that is not SWF."""
    jobs: list[Job] = []
    capacity = skipped = 0
    for number, line in enumerate(lines, 1):
        header = _HEADER.match(line)
        if header:
            capacity = max(capacity, int(header[2]))
        if not line.strip() or line.lstrip().startswith(";"):
            continue
        job = _job(line, f"{source}, line {number}")
        if job is None:
            skipped += 1
        else:
            jobs.append(job)
    jobs.sort(key=lambda job: job.submit_s)
    return Trace(source=source, unit="processor", jobs=tuple(jobs), capacity=capacity, skipped=skipped)


def _job(line: str, where: str) -> Job | None:
    try:
        field = [int(float(text)) for text in line.split()]
        submit_s, run_s, used, wanted, requested_s = field[1], field[3], field[4], field[7], field[8]
        status, user = field[10], field[11]
    except (ValueError, IndexError, OverflowError):
        raise InvalidArgument(f"{where}: not a line of Standard Workload Format", field="trace") from None
    size = wanted if wanted > 0 else used
    if run_s <= 0 or size <= 0:
        return None
    return Job(
        submit_s=submit_s,
        run_s=run_s,
        requested_s=max(0, requested_s),
        size=size,
        user=str(user) if user >= 0 else "",
        status=_STATUS.get(status, ""),
    )
