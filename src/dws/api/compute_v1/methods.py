"""Every method of the Compute door."""

from __future__ import annotations

from typing import Final

from dws.api.compute_v1 import catalog

METHODS: Final = (*catalog.METHODS,)
