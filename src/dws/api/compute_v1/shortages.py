"""Why a request waits, or a reservation is refused, as Compute's errors say it: with the estimate, and the
nearest windows, that the public service left room for."""

from __future__ import annotations

from typing import Any, Final

from dws.model.errors import NoRoom
from dws.model.request import CapacityRequest
from dws.planner.plan import Forecast
from dws.wire.timefmt import format_instant, render_reason

EXHAUSTED: Final = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
NEVER: Final = "9999-12-31T23:59:59.997Z"
"""How the public service says that it knows no start."""
NOT_READY: Final = (
    "Cannot insert instance to a reservation with status: {status}, as it requires reservation to be in "
    "READY state."
)
FULL: Final = "Specified reservation '{name}' does not have available resources for the request."
_IN_A_RESERVATION: Final = {
    "RESERVATION_NOT_OPEN": ("RESERVATION_NOT_READY", NOT_READY),
    "RESERVATION_FULL": ("RESERVATION_CAPACITY_EXCEEDED", FULL),
    "SHARE_LIMIT": ("RESERVATION_CAPACITY_EXCEEDED", FULL),
    "RESERVATION_TOO_SHORT": ("RESERVATION_CAPACITY_EXCEEDED", FULL),
    "RESERVATION_OVER": ("RESERVATION_NOT_FOUND", "Specified reservations [{name}] do not exist."),
    "RESERVATION_NOT_SHARED": ("INVALID_RESERVATION", "Reservation '{name}' is not shared any more."),
    "RESERVATION_OTHER_KIND": (
        "RESERVATION_INCOMPATIBLE",
        "No available resources in specified reservations '{name}'.",
    ),
}
"""What clients look for where work waits for a reservation, by our reason."""


def shortage(request: CapacityRequest, forecast: Forecast) -> dict[str, Any]:
    """Why it has not started and when it is expected to: an entry of a list of errors."""
    start, told = forecast.expected_start, dict(forecast.reason.facts)
    facts = {
        "estimatedAvailabilityTime": NEVER if start is None else format_instant(start),
        "placeInLine": str(forecast.place),
        "reason": forecast.reason.code,
    }
    if forecast.promised_start:
        facts["promisedLatestStart"] = format_instant(forecast.promised_start)
    info = {"reason": "resource_availability", "domain": "compute.googleapis.com", "metadatas": facts}
    place = ", ".join(request.demand.alternatives[0].locations)
    code, known = _IN_A_RESERVATION.get(forecast.reason.code, (EXHAUSTED, ""))
    known = known.format(status="CREATING", name=told.get("name", "")) + " " if known else ""
    return {
        "code": code,
        "message": f"{known}{place}: {render_reason(forecast.reason.text, told)}",
        "errorDetails": [{"errorInfo": info}],
    }


def no_room(zone: str, error: NoRoom) -> NoRoom:
    """The refusal of a reservation for want of room, naming the nearest windows that have some."""
    nearest: Any = error.details.get("nearest", ())
    spans = [f"{format_instant(each['start'])} to {format_instant(each['end'])}" for each in nearest]
    hint = f" The nearest windows with room: {'; '.join(spans)}." if spans else ""
    return NoRoom(
        f"The zone '{zone}' does not have enough resources available to fulfill the request: "
        f"{error.message}.{hint}",
        reason=EXHAUSTED,
        details=error.details,
    )
