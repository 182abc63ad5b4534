"""Every method of the Compute door, each taking and giving what the version it is called in knows."""

from __future__ import annotations

from typing import Final

from dws.api.compute_v1 import (
    bulk,
    calendar_advice,
    capacity_advice,
    catalog,
    extension_advice,
    future_reservation_changes,
    future_reservations,
    group_instances,
    groups,
    images,
    instance_power,
    instance_settings,
    instances,
    operations,
    reservation_blocks,
    reservation_changes,
    reservations,
    resize_requests,
    schemas,
    serial_port,
    templates,
)

_EVERY: Final = (
    *catalog.METHODS,
    *images.METHODS,
    *operations.METHODS,
    *templates.METHODS,
    *groups.METHODS,
    *group_instances.METHODS,
    *instances.METHODS,
    *bulk.METHODS,
    *instance_power.METHODS,
    *instance_settings.METHODS,
    *serial_port.METHODS,
    *resize_requests.METHODS,
    *reservations.METHODS,
    *reservation_blocks.METHODS,
    *reservation_changes.METHODS,
    *calendar_advice.METHODS,
    *capacity_advice.METHODS,
    *extension_advice.METHODS,
    *future_reservations.METHODS,
    *future_reservation_changes.METHODS,
)
METHODS: Final = tuple(schemas.guarded(method) for method in _EVERY)
