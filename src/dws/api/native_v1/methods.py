"""Every method of the native door."""

from __future__ import annotations

from typing import Final

from dws.api.native_v1 import events, fleet, logs, requests, system

METHODS: Final = (
    *requests.METHODS,
    *logs.METHODS,
    *fleet.METHODS,
    *events.METHODS,
    *system.METHODS,
)
