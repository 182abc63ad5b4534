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
from dws.api.compute_v1 import reservations, share_settings, sku_forms, templates
from dws.api.compute_v1.documents import Called
from dws.api.compute_v1.forms import invalid, required
from dws.api.compute_v1.masks import value_at
from dws.api.compute_v1.names import below_project, last, scope_of
from dws.api.compute_v1.shortages import EXHAUSTED
from dws.engine import reservations as native
from dws.engine.commands import Reserve
from dws.engine.ports import Reader
from dws.engine.write import Write
from dws.model.demand import Alternative
from dws.model.errors import InvalidArgument, NoRoom
from dws.model.names import derive_name
from dws.model.reservation import Reservation, Share, Terms
from dws.model.topology import Fleet
from dws.wire.timefmt import format_instant

COUNT: Final = "specificSkuProperties.totalCount"
MACHINE: Final = "specificSkuProperties.instanceProperties.machineType"
_OF_TEMPLATE: Final = ("machineType", "guestAccelerators", "minCpuPlatform")
_CARRIED: Final = ("deploymentType", "schedulingType", "enableEmergentMaintenance")


def machine_of(reader: Reader, call: Called, told: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """The properties of the machines that a body asks for, said there or in a template, and the template's id
    (0: none). Raises NotFound, or InvalidArgument when both say them."""
    sku = told.get("specificSkuProperties", {})
    said: dict[str, Any] = sku.get("instanceProperties", {})
    named = sku.get("sourceInstanceTemplate")
    if not named:
        return said, 0
    kept = templates.look_up(reader, call.project, named)
    if kept is None:
        raise scope_of(call).not_found(below_project(named, "global/instanceTemplates"))
    properties = kept.body["properties"]
    found = {name: properties[name] for name in _OF_TEMPLATE if properties.get(name)}
    found["machineType"] = last(found["machineType"])
    if said and said != found:
        why = "Give instanceProperties or sourceInstanceTemplate, not both."
        raise invalid("specificSkuProperties.instanceProperties", said, why)
    return found, kept.id


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
        name=_native_name(w, call.project, zone, created),
        alternative=alternative_of(w.books.fleet, zone, told, machine, length_s),
        start=window.start,
        terms=terms_of(told, call.project),
        description=told.get("description", ""),
    )
    with told_as_asked(zone, told):
        booked = native.book(w, call.who, command)
    body: dict[str, Any] = {field: told[field] for field in _CARRIED if field in told}
    if machine:
        body["specificReservation"] = {"instanceProperties": dict(machine)}
    place = f"zones/{zone}"
    reservations.keep(w, call.project, place, created, body, reservation=booked.id, future=name)
    return booked, created


def alternative_of(
    fleet: Fleet, zone: str, told: Mapping[str, Any], machine: Mapping[str, Any], length_s: int
) -> Alternative:
    """The machines, or chips, that a body asks for. Raises InvalidArgument."""
    where = (zone,)
    if "aggregateReservation" in told:
        chips, count = sku_forms.chips_of(told["aggregateReservation"])
        if count < 1:
            raise required("aggregateReservation.reservedResources.accelerator.acceleratorCount")
        if not chips or all(pool.shape.accelerator != chips for pool in fleet.pools_in(where)):
            family = told["aggregateReservation"].get("vmFamily")
            why = f"No pool in zone '{zone}' has TPUs of that family."
            raise invalid("aggregateReservation.vmFamily", family, why)
        return Alternative(accelerator=chips, count=count, duration_s=length_s, locations=where)
    count = value_at(told, COUNT)
    if count is None:
        raise required(COUNT)
    shape = machine.get("machineType")
    if not shape:
        raise required(MACHINE)
    serving = [pool for pool in fleet.pools_in(where) if pool.piece_of(shape) is not None]
    if not serving:
        why = f"Machine type with name '{shape}' does not exist in zone '{zone}'."
        raise invalid(MACHINE, shape, why)
    has = serving[0].shape_named(shape)
    for each in machine.get("guestAccelerators", ()):
        kind, number = last(each.get("acceleratorType", "")), each.get("acceleratorCount", 0)
        if (kind, number) != (has.accelerator, has.accelerators):
            why = f"Machine type '{shape}' has {has.accelerators} of '{has.accelerator}'."
            path = "specificSkuProperties.instanceProperties.guestAccelerators"
            raise invalid(path, f"{number} of {kind}", why)
    return Alternative(shape=shape, count=int(count), duration_s=length_s, locations=where)


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
        if not _is_free(w, call.project, zone, created):
            path = f"zones/{zone}/reservations/{created}"
            raise scope_of(call).exists(path)
        return created
    day, number = datetime.fromtimestamp(start, UTC).strftime("%Y%m%d"), 1
    while not _is_free(w, call.project, zone, f"{prefix}-{day}-{number}"):
        number += 1
    return f"{prefix}-{day}-{number}"


def _is_free(w: Write, project: str, zone: str, name: str) -> bool:
    """True when no reservation in the zone that is not over has that name, however it was made."""
    holder = w.tx.reservation_named(project, name)
    if holder is not None and not holder.state.is_terminal and holder.zone == zone:
        return False
    kept = w.tx.document_named(reservations.KIND, project, f"zones/{zone}", name)
    behind = w.tx.reservation(kept.reservation) if kept is not None else None
    return behind is None or behind.state.is_terminal


def _native_name(w: Write, project: str, zone: str, name: str) -> str:
    """The engine's name for it: the same, unless one in another zone has it; its names are of a project."""
    holder = w.tx.reservation_named(project, name)
    if holder is None or holder.state.is_terminal:
        return name
    return derive_name(name, zone)


# --- refusals ---------------------------------------------------------------------------------


@contextmanager
def told_as_asked(zone: str, told: Mapping[str, Any]) -> Iterator[None]:
    """The engine's refusals inside it name the fields of this body; one for want of room is the public
    service's, and names the nearest windows."""
    try:
        yield
    except NoRoom as error:
        raise _exhausted(zone, error) from None
    except InvalidArgument as error:
        path = _path_of(told, error.field or "")
        if path is None:
            raise
        said = error.message.partition(": ")[2] or error.message
        found = invalid(path, value_at(told, path) or "", f"{said[:1].upper()}{said[1:]}.")
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


def _exhausted(zone: str, error: NoRoom) -> NoRoom:
    nearest: Any = error.details.get("nearest", ())
    spans = [f"{format_instant(each['start'])} to {format_instant(each['end'])}" for each in nearest]
    hint = f" The nearest windows with room: {'; '.join(spans)}." if spans else ""
    return NoRoom(
        f"The zone '{zone}' does not have enough resources available to fulfill the request: "
        f"{error.message}.{hint}",
        reason=EXHAUSTED,
        details=error.details,
    )
