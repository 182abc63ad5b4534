"""What a future reservation comes to in the engine: so many machines, from when to when, for whom.

What the engine refuses is told in the words of the client's fields; where there is no room, with the nearest
windows that have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from dws.api.compute_v1 import future_reservation_forms as forms
from dws.api.compute_v1 import reservations, reserved_machines, share_settings, shortages
from dws.api.compute_v1.documents import Called
from dws.api.compute_v1.forms import invalid
from dws.api.compute_v1.masks import value_at
from dws.api.compute_v1.names import scope_of
from dws.api.compute_v1.reserved_machines import Sku
from dws.engine import reservations as native
from dws.engine.commands import Reserve
from dws.engine.write import Write
from dws.model.errors import InvalidArgument, NoRoom
from dws.model.reservation import Reservation, Share, Terms

SKU: Final = Sku("specificSkuProperties", "totalCount")
COUNT: Final = SKU.count
MACHINE: Final = SKU.machine
_VERBS: Final = ("is ", "lies ")
"""How the engine goes on behind the name of a field."""
_CARRIED: Final = ("reservationMode", "deploymentType", "schedulingType", "enableEmergentMaintenance")


def book(
    w: Write, call: Called, zone: str, name: str, told: dict[str, Any], machine: Mapping[str, Any]
) -> tuple[Reservation, str]:
    """Book what a submitted body asks for, and keep the reservation that is made for it beside it; its name.

    Raises InvalidArgument, AlreadyExists or NoRoom.
    """
    forms.check_submitted(told)
    window = forms.window_of(told)
    length_s = window.held_until - window.start
    created = _created_name(w, call, zone, name, told, window.start)
    command = Reserve(
        project=call.project,
        name=reservations.native_name(w.tx, call.project, zone, created),
        alternative=reserved_machines.alternative_of(w.books.fleet, zone, told, machine, SKU, length_s),
        start=window.start,
        terms=terms_of(told, call.project),
        description=told.get("description", ""),
    )
    with told_as_asked(zone, told):
        booked = native.book(w, call.who, command)
    body: dict[str, Any] = {field: told[field] for field in _CARRIED if field in told}
    if "aggregateReservation" in told:
        body["aggregateReservation"] = told["aggregateReservation"]
    elif machine:
        body["specificReservation"] = {"instanceProperties": dict(machine)}
    place = f"zones/{zone}"
    reservations.keep(w, call.project, place, created, body, reservation=booked.id, future=name)
    return booked, created


def terms_of(told: Mapping[str, Any], owner: str, before: tuple[Share, ...] = ()) -> Terms:
    """Who may use it, and whether only work that names it. Raises InvalidArgument."""
    return Terms(
        shares=share_settings.shares(told.get("shareSettings"), owner, before),
        specific_only=told.get("specificReservationRequired", told["reservationMode"] == "CALENDAR"),
    )


# --- names ------------------------------------------------------------------------------------


def _created_name(w: Write, call: Called, zone: str, name: str, told: Mapping[str, Any], start: int) -> str:
    """The name of the reservation that is made: as said, or of the prefix, the day and the first free number,
    or the future reservation's own. Raises AlreadyExists."""
    prefix = told.get("namePrefix")
    if not prefix:
        created = str(told.get("reservationName", name))
        if not reservations.is_free(w.tx, call.project, zone, created):
            path = f"zones/{zone}/reservations/{created}"
            raise scope_of(call).exists(path)
        return created
    day, number = datetime.fromtimestamp(start, UTC).strftime("%Y%m%d"), 1
    while not reservations.is_free(w.tx, call.project, zone, f"{prefix}-{day}-{number}"):
        number += 1
    return f"{prefix}-{day}-{number}"


# --- refusals ---------------------------------------------------------------------------------


@contextmanager
def told_as_asked(zone: str, told: Mapping[str, Any]) -> Iterator[None]:
    """The engine's refusals inside it name the fields of this body; one for want of room is the public
    service's, and names the nearest windows."""
    try:
        yield
    except NoRoom as error:
        raise shortages.no_room(zone, error) from None
    except InvalidArgument as error:
        path = _path_of(told, error.field or "")
        if path is None:
            raise
        said = error.message.partition(": ")[2] or error.message
        said = f"It {said}" if said.startswith(_VERBS) else f"{said[:1].upper()}{said[1:]}"
        found = invalid(path, value_at(told, path) or "", f"{said}.")
        found.reason = error.reason
        raise found from None


def _path_of(told: Mapping[str, Any], field: str) -> str | None:
    """The path, in a body, of what the engine calls by its own name; None for what has none there."""
    window = told.get("timeWindow", {})
    length = "timeWindow.endTime" if "endTime" in window else "timeWindow.duration"
    for name in ("autoCreatedReservationsDeleteTime", "autoCreatedReservationsDuration"):
        length = name if name in told else length
    chips = "aggregateReservation" in told
    of_sort = "aggregateReservation.reservedResources" if chips else MACHINE
    return {
        "start": "timeWindow.startTime",
        "end": length,
        "duration": length,
        "count": of_sort if chips else COUNT,
        "accelerators": of_sort,
        "topology": of_sort,
        "machine": of_sort,
        "description": "description",
    }.get(field)
