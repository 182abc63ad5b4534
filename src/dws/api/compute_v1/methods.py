"""Every method of the Compute door."""

from __future__ import annotations

from typing import Final

METHODS: Final = ()
