"""Every method of the Compute door."""

from __future__ import annotations

from typing import Final

from dws.api.compute_v1 import catalog, operations, templates

METHODS: Final = (*catalog.METHODS, *operations.METHODS, *templates.METHODS)
