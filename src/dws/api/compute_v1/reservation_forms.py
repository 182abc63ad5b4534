"""What a reservation's body may say, and when it deletes itself."""

from __future__ import annotations

from collections.abc import Mapping
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
from dws.api.compute_v1.names import last
from dws.api.compute_v1.reserved_machines import Sku
from dws.api.compute_v1.times import instant
from dws.model.time import length_in_words
from dws.wire.timefmt import format_instant

SKU: Final = Sku("specificReservation", "count")
_FIELDS: Final[dict[str, Kind]] = {
    "name": text,
    "zone": text,
    "description": text,
    "specificReservation": Form(
        {
            "count": int64,
            "instanceProperties": sku_forms.INSTANCE_PROPERTIES,
            "sourceInstanceTemplate": text,
        },
        ignored=frozenset({"assuredCount", "inUseCount"}),
    ),
    "aggregateReservation": sku_forms.AGGREGATE,
    "specificReservationRequired": boolean,
    "shareSettings": share_settings.FORM,
    "deleteAtTime": text,
    "deleteAfterDuration": DURATION,
    "reservationMode": words("CALENDAR", "DEFAULT", "RESERVATION_MODE_UNSPECIFIED"),
    "reservationSharingPolicy": Form(carried("serviceShareType")),
    "params": Form(carried("resourceManagerTags")),
}
FORM: Final = Form(
    _FIELDS
    | carried(
        "advancedDeploymentControl",
        "confidentialComputeType",
        "deploymentType",
        "earlyAccessMaintenance",
        "enableEmergentMaintenance",
        "protectionTier",
        "resourcePolicies",
        "schedulingType",
    ),
    ignored=OUTPUT_ONLY - {"zone"}
    | {"commitment", "linkedCommitments", "resourceMetadata", "resourceStatus", "satisfiesPzs"},
)
DERIVED: Final = frozenset(
    {
        "name",
        "description",
        "aggregateReservation",
        "specificReservation",
        "specificReservationRequired",
        "shareSettings",
        "deleteAtTime",
        "deleteAfterDuration",
        "reservationMode",
    }
)
"""Fields that are not kept as they were said: they are read from the engine's reservation."""


def read(body: Any, zone: str) -> dict[str, Any]:
    """A body about a reservation in `zone`, in one spelling, whatever of both shapes of share settings it
    has. Raises InvalidArgument."""
    found = FORM.read(body)
    told = found.pop("zone", "")
    if told and last(told) != zone:
        raise invalid("zone", told, f"The reservation is asked for in zone '{zone}'.")
    machine = found.get("specificReservation", {}).get("instanceProperties", {})
    if "machineType" in machine:
        machine["machineType"] = last(machine["machineType"])
    if found.get("reservationMode") in ("DEFAULT", "RESERVATION_MODE_UNSPECIFIED"):
        del found["reservationMode"]
    if "projects" in found.get("shareSettings", {}):
        settings = found["shareSettings"]
        listed = {last(project): {"projectId": last(project)} for project in settings.pop("projects")}
        settings["projectMap"] = settings.get("projectMap", {}) | listed
    return found


def check_new(told: Mapping[str, Any]) -> None:
    """Raises InvalidArgument naming what a new reservation lacks, or cannot have."""
    if "reservationMode" in told:
        why = "A reservation in calendar mode is made by a future reservation."
        raise invalid("reservationMode", told["reservationMode"], why)
    kinds = [kind for kind in ("specificReservation", "aggregateReservation") if kind in told]
    if not kinds:
        raise required("specificReservation")
    if len(kinds) > 1:
        why = "Give specificReservation or aggregateReservation, not both."
        raise invalid("aggregateReservation", "", why)
    count = told.get("specificReservation", {}).get("count")
    if count is not None:
        check_count(count, SKU.count)


def check_count(count: str, path: str) -> int:
    """A number of machines. Raises InvalidArgument."""
    if int(count) < 1:
        raise invalid(path, count, "At least 1 is needed.")
    return int(count)


def end_of(told: Mapping[str, Any], created: int, now: int) -> int | None:
    """When a reservation made at `created` deletes itself, None for never. Raises InvalidArgument."""
    after = seconds(told.get("deleteAfterDuration"))
    if after is not None and "deleteAtTime" in told:
        raise invalid("deleteAfterDuration", after, "Give deleteAtTime or deleteAfterDuration, not both.")
    if after is not None:
        if created + after <= now:
            why = f"It was made {length_in_words(now - created)} ago." if now > created else ""
            raise invalid("deleteAfterDuration.seconds", after, f"It must end in the future. {why}")
        return created + after
    if "deleteAtTime" not in told:
        return None
    end = instant(told["deleteAtTime"], "deleteAtTime")
    if end <= now:
        raise invalid("deleteAtTime", told["deleteAtTime"], f"It must lie behind now, {format_instant(now)}.")
    return end
