"""Python's garbage collector during a batch run.

A run makes millions of small values, and hardly any of them are in a cycle. As it is set by default the
collector looks for cycles every 700 new ones, and over everything again and again while the history grows:
a fifth of the run. Here it looks seldom, and never at what was there before.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (100_000, 50, 100)


@contextmanager
def seldom() -> Iterator[None]:
    """Collect garbage seldom within the block; behind it everything is as before."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
