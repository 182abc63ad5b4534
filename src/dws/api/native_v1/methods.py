"""Every method of the native door."""

from __future__ import annotations

from typing import Final

from dws.api.native_v1 import (
    calendar,
    events,
    fleet,
    logs,
    maintenance,
    requests,
    reservations,
    series,
    system,
)

METHODS: Final = (
    *requests.METHODS,
    *logs.METHODS,
    *reservations.METHODS,
    *series.METHODS,
    *calendar.METHODS,
    *maintenance.METHODS,
    *fleet.METHODS,
    *events.METHODS,
    *system.METHODS,
)
