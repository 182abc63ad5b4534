"""Workloads to simulate: recorded ones from files, generated ones where there is no file."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from dws.model.errors import InvalidArgument
from dws.simulator.traces.job import Job, Trace
from dws.simulator.traces.swf import read_swf
from dws.simulator.traces.table import read_table

__all__ = ["Job", "Trace", "read"]


def read(path: Path) -> Trace:
    """The jobs in a file: `.swf` or `.csv`, plain or `.gz`.

    Raises InvalidArgument when it cannot be read or is of no known kind.
    """
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    readers = {"swf": read_swf, "csv": read_table}
    if kind not in readers:
        raise InvalidArgument(f"trace: {path} is neither .swf nor .csv (nor .gz of these)", field="trace")
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as lines:
            return readers[kind](lines, source=path.name)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InvalidArgument(f"trace: cannot read {path}: {error}", field="trace") from None
