"""Advice on capacity: where so many instances would start, how likely at once, and after how long a wait.

It is the engine's own quote, so what is advised is what a request made now would be told. Nothing is held.
Instances that are asked for together come from one zone here, whatever shape of distribution is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dws.api.compute_v1 import documents
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.forms import Form, anything, int32, int64, invalid, many, named, required, text, words
from dws.api.compute_v1.names import ROOT, last
from dws.api.compute_v1.times import length
from dws.api.method import Method
from dws.model import catalog, tpu
from dws.model.demand import OPEN_ENDED_S, Alternative, Demand
from dws.planner.plan import Quote

SELECTION: Final = Form(
    {
        "machineTypes": many(text),
        "rank": int64,
        "disks": many(Form({"type": words("DISK_TYPE_UNSPECIFIED", "SCRATCH")})),
        "guestAccelerators": anything,
    }
)
FORM: Final = Form(
    {
        "size": int32,
        "instanceProperties": Form(
            {
                "acceleratorTopology": text,
                "scheduling": Form(
                    {
                        "provisioningModel": words("FLEX_START", "RESERVATION_BOUND", "SPOT", "STANDARD"),
                        "maxRunDuration": length,
                    }
                ),
            }
        ),
        "instanceFlexibilityPolicy": Form({"instanceSelections": named(SELECTION)}),
        "distributionPolicy": Form(
            {
                "targetShape": words("ANY", "ANY_SINGLE_ZONE", "BALANCED", "TARGET_SHAPE_UNSPECIFIED"),
                "zones": many(Form({"zone": text})),
            }
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What advice is asked on: `size` instances of one of `machines`, in one of `zones`, for `run_s`."""

    size: int
    machines: tuple[str, ...]
    zones: tuple[str, ...]
    run_s: int
    model: str
    topology: str


def advise(call: Called) -> dict[str, Any]:
    """What would become of a request for so many instances, made now."""
    asked = _asked(call, FORM.read(call.body), last(documents.where(call)))
    demand = Demand(alternatives=tuple(_alternative(asked, machine) for machine in asked.machines))
    told = call.engine.quote(call.who, call.project, demand)
    return {"recommendations": [_recommendation(call, asked, told)]}


def _asked(call: Called, body: Mapping[str, Any], region: str) -> Asked:
    """What a body asks. Raises InvalidArgument naming what is missing or cannot be."""
    properties = body.get("instanceProperties", {})
    scheduling = properties.get("scheduling", {})
    model = scheduling.get("provisioningModel")
    if model is None:
        raise required("instanceProperties.scheduling.provisioningModel")
    if model == "RESERVATION_BOUND":
        why = "Whether a reservation has room is read from the reservation: count and inUseCount."
        raise invalid("instanceProperties.scheduling.provisioningModel", model, why)
    size = body.get("size", 1)
    if size < 1:
        raise invalid("size", size, "At least 1 is needed.")
    if body.get("distributionPolicy", {}).get("targetShape") == "BALANCED":
        why = "Instances that are asked for together come from one zone; say ANY_SINGLE_ZONE."
        raise invalid("distributionPolicy.targetShape", "BALANCED", why)
    zones = _zones(call, body.get("distributionPolicy", {}).get("zones", []), region)
    policy = call.engine.policy
    unsaid = policy.run_duration_max_s if model == "FLEX_START" else OPEN_ENDED_S
    return Asked(
        size=size,
        machines=_machines(call, body.get("instanceFlexibilityPolicy", {}), zones),
        zones=zones,
        run_s=scheduling.get("maxRunDuration") or unsaid,
        model=model,
        topology=properties.get("acceleratorTopology", ""),
    )


def _zones(call: Called, told: list[dict[str, str]], region: str) -> tuple[str, ...]:
    """The zones that come into question: those named, or all of the region."""
    every = call.engine.declared_fleet(call.who).zones_of(region)
    chosen = [last(each.get("zone", "")) for each in told]
    for zone in chosen:
        if zone not in every:
            raise invalid("distributionPolicy.zones", zone, f"The region '{region}' has no such zone.")
    return tuple(dict.fromkeys(chosen or every))


def _machines(call: Called, policy: Mapping[str, Any], zones: tuple[str, ...]) -> tuple[str, ...]:
    """The machine types that come into question and are in one of the zones, in the order of their rank."""
    selections = policy.get("instanceSelections", {})
    path = "instanceFlexibilityPolicy.instanceSelections"
    ranked = sorted(selections.values(), key=lambda each: int(each.get("rank", 0)))
    told = [last(machine) for each in ranked for machine in each.get("machineTypes", [])]
    if not told:
        raise required(f"{path}.machineTypes")
    pools = call.engine.declared_fleet(call.who).pools_in(zones)
    found = [machine for machine in told if any(pool.piece_of(machine) for pool in pools)]
    if not found:
        why = f"No zone of {', '.join(zones)} has a machine type of these."
        raise invalid(f"{path}.machineTypes", ", ".join(told), why)
    return tuple(dict.fromkeys(found))


def _alternative(asked: Asked, machine: str) -> Alternative:
    """So many of a machine type; with a topology as many slices as they make."""
    count = asked.size
    if asked.topology:
        shape, path = catalog.shape(machine), "instanceProperties.acceleratorTopology"
        generation = tpu.generation_of(shape.accelerator) if shape is not None else None
        if shape is None or generation is None:
            raise invalid(path, asked.topology, f"It goes with TPUs, not with '{machine}'.")
        chips = tpu.topology(generation, asked.topology).chips
        count, rest = divmod(asked.size * shape.accelerators, chips)
        if rest or not count:
            why = f"{asked.size} of {machine} are {asked.size * shape.accelerators} chips, not whole slices."
            raise invalid(path, asked.topology, why)
    return Alternative(
        shape=machine,
        count=count,
        duration_s=asked.run_s,
        locations=asked.zones,
        topology=asked.topology,
    )


def _recommendation(call: Called, asked: Asked, told: Quote) -> dict[str, Any]:
    """Where it would start, how likely, and in alpha after how long at the latest."""
    best = told.asked
    if best.start is None:
        return {"scores": {"obtainability": 0.0}, "shards": []}
    scores: dict[str, Any] = {"obtainability": obtainability(asked.model, best.start - told.now, asked.run_s)}
    if call.path["version"] == "alpha":
        latest = told.promised_latest if told.promised_latest is not None else best.start
        scores["estimatedWaitDuration"] = f"{latest - told.now}s"
    shard = {
        "zone": best.zone,
        "machineType": best.shape,
        "instanceCount": asked.size,
        "provisioningModel": asked.model,
    }
    return {"scores": scores, "shards": [shard]}


def obtainability(model: str, wait_s: int, run_s: int) -> float:
    """From 0 to 1: 1 for what starts at once. What may wait has the share of its run in the wait and the run
    together; what may not has 0 when it would have to."""
    if wait_s == 0:
        return 1.0
    return round(run_s / (run_s + wait_s), 3) if model == "FLEX_START" else 0.0


METHODS: Final = (
    Method(
        id="compute.advice.capacity",
        verb="POST",
        path=f"{ROOT}/regions/{{region}}/advice/capacity",
        summary="Where instances would start, how likely at once, and after how long a wait.",
        request=Body,
        lenient=True,
        handler=advise,
    ),
)
