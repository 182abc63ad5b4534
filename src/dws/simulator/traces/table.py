"""Reads job tables: CSV with a header, as the published GPU-cluster traces come.

Known columns, whichever the header has: `submit_s` or `creation_time`; `run_s`, or `deletion_time` minus
the creation; `req_walltime_s`; `gpus` or `num_gpu`; `nodes`; `user` or `vc`; `status`. Sizes are GPUs where
any job has some (jobs without are skipped then), nodes otherwise.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from dws.model.errors import InvalidArgument
from dws.simulator.traces.job import Job, Trace

NEEDED: Final = {
    "when a job was submitted": ("submit_s", "creation_time"),
    "how long it ran": ("run_s", "deletion_time"),
    "how large it was": ("gpus", "num_gpu", "nodes"),
}
NUMBERS: Final = frozenset({"req_walltime_s", *(name for names in NEEDED.values() for name in names)})

Row = Mapping[str, str | int]


def read_table(lines: Iterable[str], *, source: str) -> Trace:
    """Every job that ran. Raises InvalidArgument when the header lacks a column that is needed, or naming the
    first line with a number that is none."""
    table = csv.DictReader(lines)
    _check_header(table.fieldnames or (), source)
    rows = []
    try:
        for row in table:
            rows.append(_numbers(row))
    except (ValueError, OverflowError, csv.Error) as error:
        raise InvalidArgument(f"{source}, line {table.line_num}: {error}", field="trace") from None
    by_gpu = any(_first(row, "gpus", "num_gpu") > 0 for row in rows)
    jobs = [job for row in rows if (job := _job(row, by_gpu=by_gpu)) is not None]
    jobs.sort(key=lambda job: job.submit_s)
    return Trace(
        source=source,
        unit="GPU" if by_gpu else "node",
        jobs=tuple(jobs),
        skipped=len(rows) - len(jobs),
    )


def _check_header(header: Sequence[str], source: str) -> None:
    """Raises InvalidArgument naming what no column says."""
    for what, columns in NEEDED.items():
        if not set(header) & set(columns):
            raise InvalidArgument(
                f"{source}: no column says {what} ({' or '.join(columns)}); "
                f"its columns: {', '.join(header) or 'none'}",
                field="trace",
            )


def _numbers(row: Mapping[str, str | None]) -> Row:
    """The row with its known numbers read, those left empty not there; raises ValueError for others."""
    return {
        name: int(float(text)) if name in NUMBERS else text
        for name, text in row.items()
        if name is not None and text
    }


def _job(row: Row, *, by_gpu: bool) -> Job | None:
    submit_s = _first(row, "submit_s", "creation_time")
    run_s = _first(row, "run_s")
    if "run_s" not in row and "deletion_time" in row:
        run_s = _first(row, "deletion_time") - submit_s
    size = _first(row, "gpus", "num_gpu") if by_gpu else _first(row, "nodes")
    if run_s <= 0 or size <= 0:
        return None
    return Job(
        submit_s=submit_s,
        run_s=run_s,
        requested_s=max(0, _first(row, "req_walltime_s")),
        size=size,
        user=str(row.get("user") or row.get("vc") or ""),
        status=str(row.get("status") or row.get("pod_phase") or "").lower(),
    )


def _first(row: Row, *names: str) -> int:
    """The first of these columns that the row has, 0 when it has none."""
    return next((int(row[name]) for name in names if name in row), 0)
