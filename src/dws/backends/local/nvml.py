"""The accelerators of this machine as the NVIDIA driver tells of them; without a driver there are none."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pynvml

from dws.model.catalog import canonical_accelerator

_KNOWN: Final = (
    (r"\bgb300\b", "gb300"),
    (r"\bgb200\b", "gb200"),
    (r"\bb200\b", "b200"),
    (r"\bg?h200\b", "h200"),
    (r"\bg?h100\b", "h100"),
    (r"\ba100\b.*\b80gb\b", "a100-80gb"),
    (r"\ba100\b", "a100"),
    (r"\brtx pro 6000\b", "rtx-pro-6000"),
    (r"\bl4\b", "l4"),
)


class Device(NamedTuple):
    """One accelerator: what makes it visible to a program, and its type."""

    id: str
    kind: str


@contextlib.contextmanager
def _driver() -> Iterator[bool]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        pynvml.nvmlShutdown()


def probe() -> tuple[Device, ...]:
    """Every accelerator, in the driver's order; none without a driver that answers."""
    with _driver() as is_there:
        if not is_there:
            return ()
        try:
            handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
            return tuple(
                Device(
                    id=_text(pynvml.nvmlDeviceGetUUID(handle)),
                    kind=type_of(_text(pynvml.nvmlDeviceGetName(handle))),
                )
                for handle in handles
            )
        except pynvml.NVMLError:
            return ()


def computing_on(device: str) -> tuple[int, ...]:
    """Pids of the processes that compute on an accelerator; none when the driver cannot say."""
    with _driver() as is_there:
        if not is_there:
            return ()
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(device)
            return tuple(int(p.pid) for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
        except pynvml.NVMLError:
            return ()


def type_of(product: str) -> str:
    """The accelerator type of a product name: "NVIDIA H100 80GB HBM3" is nvidia-h100-80gb."""
    plain = product.lower()
    for pattern, name in _KNOWN:
        if re.search(pattern, plain):
            return canonical_accelerator(name) or name
    bare = re.sub(r"[^a-z0-9]+", "-", plain.removeprefix("nvidia")).strip("-")
    return f"nvidia-{bare}"


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
