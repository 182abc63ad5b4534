"""The machines, or the chips, that a reservation is of: said by properties, by a template, or by number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dws.api.compute_v1 import templates, tpu_families
from dws.api.compute_v1.documents import Called
from dws.api.compute_v1.forms import invalid, required
from dws.api.compute_v1.masks import value_at
from dws.api.compute_v1.names import below_project, last, scope_of
from dws.engine.ports import Reader
from dws.model.demand import Alternative
from dws.model.topology import Fleet

_OF_TEMPLATE: Final = ("machineType", "guestAccelerators", "minCpuPlatform")


@dataclass(frozen=True, slots=True)
class Sku:
    """What a kind of reservation calls the part of its body that says its machines, and their number."""

    name: str
    number: str

    @property
    def count(self) -> str:
        """The path of the number."""
        return f"{self.name}.{self.number}"

    @property
    def machine(self) -> str:
        """The path of the machine type."""
        return f"{self.name}.instanceProperties.machineType"


def machine_of(
    reader: Reader, call: Called, told: Mapping[str, Any], sku: Sku
) -> tuple[dict[str, Any], int]:
    """The properties of the machines that a body asks for, said there or in a template, and the template's id
    (0: none). Raises NotFound, or InvalidArgument when both say them."""
    part = told.get(sku.name, {})
    said: dict[str, Any] = part.get("instanceProperties", {})
    named = part.get("sourceInstanceTemplate")
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
        raise invalid(f"{sku.name}.instanceProperties", said, why)
    return found, kept.id


def alternative_of(
    fleet: Fleet,
    zone: str,
    told: Mapping[str, Any],
    machine: Mapping[str, Any],
    sku: Sku,
    length_s: int,
) -> Alternative:
    """What a body asks the engine for. Raises InvalidArgument."""
    where = (zone,)
    if "aggregateReservation" in told:
        chips, count = tpu_families.chips_of(told["aggregateReservation"])
        if count < 1:
            raise required("aggregateReservation.reservedResources.accelerator.acceleratorCount")
        pools = [pool for pool in fleet.pools_in(where) if pool.shape.accelerator == chips]
        if not chips or not pools:
            family = told["aggregateReservation"].get("vmFamily")
            why = f"No pool in zone '{zone}' has TPUs of that family."
            raise invalid("aggregateReservation.vmFamily", family, why)
        asked = Alternative(accelerator=chips, count=count, duration_s=length_s, locations=where)
        found = tpu_families.as_slices(fleet, asked)
        if not found.topology and all(pool.topology for pool in pools):
            path = "aggregateReservation.reservedResources.accelerator.acceleratorCount"
            raise invalid(path, count, "No slices of one kind come to as many chips.")
        return found
    count = value_at(told, sku.count)
    if count is None:
        raise required(sku.count)
    shape = machine.get("machineType")
    if not shape:
        raise required(sku.machine)
    serving = [pool for pool in fleet.pools_in(where) if pool.piece_of(shape) is not None]
    if not serving:
        why = f"Machine type with name '{shape}' does not exist in zone '{zone}'."
        raise invalid(sku.machine, shape, why)
    has = serving[0].shape_named(shape)
    for each in machine.get("guestAccelerators", ()):
        kind, number = last(each.get("acceleratorType", "")), each.get("acceleratorCount", 0)
        if (kind, number) != (has.accelerator, has.accelerators):
            why = f"Machine type '{shape}' has {has.accelerators} of '{has.accelerator}'."
            raise invalid(f"{sku.name}.instanceProperties.guestAccelerators", f"{number} of {kind}", why)
    return Alternative(shape=shape, count=int(count), duration_s=length_s, locations=where)
