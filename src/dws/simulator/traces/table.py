"""Reads job tables: CSV with a header, as the published GPU-cluster traces come.

Known columns, whichever the header has: `submit_s` or `creation_time`; `run_s`, or `deletion_time` minus
the creation; `req_walltime_s`; `gpus` or `num_gpu`; `nodes`; `user` or `vc`; `status`. Sizes are GPUs where
any job has some (jobs without are skipped then), nodes otherwise.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping

from dws.model.errors import InvalidArgument
from dws.simulator.traces.job import Job, Trace

Row = Mapping[str, str]


def read_table(lines: Iterable[str], *, source: str) -> Trace:
    """Every job that ran. Raises InvalidArgument when the header has no submission or no length."""
    rows = list(csv.DictReader(lines))
    header = set(rows[0]) if rows else set()
    if not header & {"submit_s", "creation_time"} or not header & {"run_s", "deletion_time"}:
        raise InvalidArgument(
            f"{source}: no column for the submission or for the length of a job "
            f"(its columns: {', '.join(sorted(header)) or 'none'})",
            field="trace",
        )
    by_gpu = any(_number(row, "gpus", "num_gpu") > 0 for row in rows)
    jobs = [job for row in rows if (job := _job(row, by_gpu=by_gpu)) is not None]
    jobs.sort(key=lambda job: job.submit_s)
    return Trace(
        source=source,
        unit="GPU" if by_gpu else "node",
        jobs=tuple(jobs),
        skipped=len(rows) - len(jobs),
    )


def _job(row: Row, *, by_gpu: bool) -> Job | None:
    submit_s = _number(row, "submit_s", "creation_time")
    run_s = _number(row, "run_s")
    if "run_s" not in row:
        run_s = _number(row, "deletion_time") - submit_s
    size = _number(row, "gpus", "num_gpu") if by_gpu else _number(row, "nodes")
    if run_s <= 0 or size <= 0:
        return None
    return Job(
        submit_s=submit_s,
        run_s=run_s,
        requested_s=_number(row, "req_walltime_s"),
        size=size,
        user=row.get("user") or row.get("vc") or "",
        status=(row.get("status") or row.get("pod_phase") or "").lower(),
    )


def _number(row: Row, *names: str) -> int:
    """The first of these columns that has a number, 0 when none has."""
    text = next((row[name] for name in names if row.get(name)), "0")
    return int(float(text))
