"""What a future reservation's body may say, and what it comes to: its mode, its window, its machines.

A body is checked for its form whenever it is said. Whether it could be booked is checked when it is
submitted: a draft may still lack things.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dws.api.compute_v1 import share_settings, sku_forms
from dws.api.compute_v1.forms import (
    DURATION,
    OUTPUT_ONLY,
    Form,
    Kind,
    boolean,
    int64,
    invalid,
    required,
    seconds,
    text,
    words,
)
from dws.api.compute_v1.instance_forms import carried
from dws.api.compute_v1.names import check_resource_name, last
from dws.api.compute_v1.times import instant
from dws.planner.options import PolicyOptions
from dws.wire.timefmt import format_instant

PREFIX_MAX: Final = 20
TIME_WINDOW: Final = Form({"startTime": text, "endTime": text, "duration": DURATION})
SKU: Final = Form(
    {
        "totalCount": int64,
        "instanceProperties": sku_forms.INSTANCE_PROPERTIES,
        "sourceInstanceTemplate": text,
    }
)
_FIELDS: Final[dict[str, Kind]] = {
    "name": text,
    "description": text,
    "namePrefix": text,
    "reservationName": text,
    "planningStatus": words("DRAFT", "PLANNING_STATUS_UNSPECIFIED", "SUBMITTED"),
    "reservationMode": words("CALENDAR", "DEFAULT", "RESERVATION_MODE_UNSPECIFIED"),
    "specificSkuProperties": SKU,
    "aggregateReservation": sku_forms.AGGREGATE,
    "timeWindow": TIME_WINDOW,
    "shareSettings": share_settings.FORM,
    "specificReservationRequired": boolean,
    "autoDeleteAutoCreatedReservations": boolean,
    "autoCreatedReservationsDeleteTime": text,
    "autoCreatedReservationsDuration": DURATION,
    "commitmentInfo": Form(carried("commitmentName", "commitmentPlan", "previousCommitmentTerms")),
    "params": Form(carried("resourceManagerTags")),
}
FORM: Final = Form(
    _FIELDS
    | carried(
        "advancedDeploymentControl",
        "colocationResource",
        "confidentialComputeType",
        "deploymentType",
        "enableEmergentMaintenance",
        "protectionTier",
        "resourceName",
        "schedulingType",
        "storagePoolProperties",
    ),
    ignored=OUTPUT_ONLY | {"resourceMetadata"},
)
_UNSAID: Final = {
    "planningStatus": "PLANNING_STATUS_UNSPECIFIED",
    "reservationMode": "RESERVATION_MODE_UNSPECIFIED",
}
UNLESS_SAID: Final = {"reservationMode": "DEFAULT", "planningStatus": "DRAFT"}


@dataclass(frozen=True, slots=True)
class Window:
    """From when to when a future reservation has its machines, in seconds since the epoch; `held_until` is
    when the reservation made for it is deleted, which is when they are free again."""

    start: int
    end: int
    held_until: int


def read(body: Any) -> dict[str, Any]:
    """A body, canonical, with nothing in it that is wrong by itself. Raises InvalidArgument."""
    return checked(FORM.read(body))


def checked(body: Mapping[str, Any]) -> dict[str, Any]:
    """A canonical body without what says nothing. Raises InvalidArgument naming a field that is wrong by
    itself, or contradicts another."""
    found = {name: value for name, value in body.items() if value != _UNSAID.get(name)}
    window = {name: value for name, value in found.pop("timeWindow", {}).items() if value}
    if window:
        found["timeWindow"] = window
    sku = found.get("specificSkuProperties", {})
    if machine := sku.get("instanceProperties", {}).get("machineType"):
        properties = sku["instanceProperties"] | {"machineType": last(machine)}
        found["specificSkuProperties"] = sku | {"instanceProperties": properties}
    _check(found)
    return found


def _check(body: Mapping[str, Any]) -> None:
    if "reservationName" in body and "namePrefix" in body:
        raise invalid("namePrefix", body["namePrefix"], "Give reservationName or namePrefix, not both.")
    if "reservationName" in body:
        check_resource_name(body["reservationName"], "resource.reservationName")
    if prefix := body.get("namePrefix"):
        check_resource_name(prefix, "resource.namePrefix")
        if len(prefix) > PREFIX_MAX:
            raise invalid("namePrefix", prefix, f"At most {PREFIX_MAX} characters are possible.")
    if body.get("storagePoolProperties"):
        raise invalid("storagePoolProperties", "", "This fleet has no storage pools.")
    if "specificSkuProperties" in body and "aggregateReservation" in body:
        why = "Give specificSkuProperties or aggregateReservation, not both."
        raise invalid("aggregateReservation", "", why)
    count = body.get("specificSkuProperties", {}).get("totalCount")
    if count is not None and int(count) < 1:
        raise invalid("specificSkuProperties.totalCount", count, "At least 1 is needed.")
    _check_times(body)


def _check_times(body: Mapping[str, Any]) -> None:
    window = body.get("timeWindow", {})
    for field in ("startTime", "endTime"):
        if field in window:
            instant(window[field], f"timeWindow.{field}")
    if "autoCreatedReservationsDeleteTime" in body:
        instant(body["autoCreatedReservationsDeleteTime"], "autoCreatedReservationsDeleteTime")
        if "autoCreatedReservationsDuration" in body:
            why = "Give autoCreatedReservationsDeleteTime or autoCreatedReservationsDuration."
            raise invalid("autoCreatedReservationsDuration", "", why)
    if is_timed(window):
        window_of(body)


def is_timed(window: Mapping[str, Any]) -> bool:
    """True when a window has a start and an end."""
    return "startTime" in window and ("endTime" in window or "duration" in window)


def window_of(body: Mapping[str, Any]) -> Window:
    """The window a body asks for. Raises InvalidArgument when it lacks one, or it ends before it starts."""
    window = body.get("timeWindow", {})
    if "startTime" not in window:
        raise required("timeWindow.startTime")
    if not is_timed(window):
        raise required("timeWindow.endTime")
    start = instant(window["startTime"], "timeWindow.startTime")
    length = seconds(window.get("duration"))
    if length is not None and length < 1:
        raise invalid("timeWindow.duration", length, "At least 1 second is needed.")
    end = start + (length or 0)
    if "endTime" in window:
        end = instant(window["endTime"], "timeWindow.endTime")
        if end <= start:
            why = f"It must lie after the start, {format_instant(start)}."
            raise invalid("timeWindow.endTime", window["endTime"], why)
        if length is not None and end - start != length:
            why = f"The window from startTime to endTime lasts {end - start} seconds; give one of the two."
            raise invalid("timeWindow.duration", length, why)
    return Window(start, end, _held_until(body, start, end))


def _held_until(body: Mapping[str, Any], start: int, end: int) -> int:
    """When the reservation made for a window is deleted."""
    told = body.get("autoCreatedReservationsDeleteTime")
    lasting = seconds(body.get("autoCreatedReservationsDuration"))
    if told is None and lasting is None:
        return end
    field = "autoCreatedReservationsDeleteTime" if told is not None else "autoCreatedReservationsDuration"
    until = instant(told, field) if told is not None else start + (lasting or 0)
    shown = told if told is not None else lasting
    if until <= start:
        raise invalid(field, shown, f"It must lie after the start, {format_instant(start)}.")
    if body.get("reservationMode") == "CALENDAR" and until > end:
        why = f"In calendar mode it may lie no later than the end of the window, {format_instant(end)}."
        raise invalid(field, shown, why)
    return until


def with_mode(body: dict[str, Any], policy: PolicyOptions) -> dict[str, Any]:
    """A body with its mode and planning status.

    Where it says neither, but a window and that its reservation is deleted automatically, it is a block of
    the calendar and submitted, if the owner's policy has it so; what clients announced for calendar blocks
    send is that. Otherwise what is missing is as in the public service: default mode, a draft.
    """
    unsaid = not body.keys() & _UNSAID.keys()
    block = body.get("autoDeleteAutoCreatedReservations") and is_timed(body.get("timeWindow", {}))
    if unsaid and block and policy.calendar_unless_said:
        booked = {"reservationMode": "CALENDAR", "planningStatus": "SUBMITTED"}
        return {"specificReservationRequired": True} | body | booked
    return UNLESS_SAID | body


def check_submitted(body: Mapping[str, Any]) -> None:
    """Raises InvalidArgument naming what a body that is submitted lacks by the rules of its mode."""
    if body.get("reservationMode") == "CALENDAR":
        needed = ["autoDeleteAutoCreatedReservations", "specificReservationRequired"]
        if "aggregateReservation" in body:
            del needed[1]
        for field in needed:
            if field not in body:
                raise required(field)
            if not body[field]:
                raise invalid(field, body[field], "A reservation in calendar mode needs true.")
    elif body.get("autoDeleteAutoCreatedReservations") is False:
        why = (
            "A reservation of this fleet ends when its window ends, or at autoCreatedReservationsDeleteTime."
        )
        raise invalid("autoDeleteAutoCreatedReservations", False, why)
    window_of(body)
