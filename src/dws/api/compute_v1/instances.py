"""Instances by themselves: made, read and removed. Each stands for a request for one machine.

A FLEX_START instance waits for its machine as long as its owner said; any other starts now or not at all.
"""

from __future__ import annotations

from typing import Any, Final

from dws.api.compute_v1 import affinity, boot, documents, limits, operations, templates, times, vm
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.forms import invalid, merged, required, seconds
from dws.api.compute_v1.instance_forms import INSTANCE
from dws.api.compute_v1.names import below_project, check_resource_name, last, scope_of
from dws.api.method import Query
from dws.engine import planning, requests
from dws.engine.commands import Submit
from dws.engine.ports import Reader
from dws.engine.write import Write
from dws.model.demand import OPEN_ENDED_S, Alternative, Demand
from dws.model.document import Document
from dws.model.errors import FailedPrecondition
from dws.model.names import derive_name
from dws.model.request import CapacityRequest
from dws.planner.options import PolicyOptions
from dws.wire.timefmt import render_reason

FLEX_WAIT_S: Final = 90
"""How long a FLEX_START instance waits whose owner does not say."""
NOW_S: Final = 2
"""How long what must start now may take to: the planner's next look lies within it."""


class InsertQuery(Query):
    """What an instance is made like, where its body does not say it."""

    source_instance_template: str = ""


def insert(call: Called) -> dict[str, Any]:
    """Make an instance. Its operation runs until the machine is there."""
    scope, place, zone = scope_of(call), documents.where(call), call.path["zone"]
    properties = merged(made_like(call, call.query.source_instance_template), INSTANCE.read(call.body))
    name = check_resource_name(properties.pop("name", None))
    path = f"{place}/instances/{name}"
    demand, wait_s = demand_of(call, properties, (zone,))

    def work(w: Write) -> operations.Change:
        vm.check_free(w, scope.project, place, name)
        request = ask(w, call, name, properties, demand, wait_s)
        kept = vm.keep(w, scope.project, place, name, properties, request=request.id, rank=0)
        return operations.Change(type="insert", target=path, target_id=kept.id, request=request.id)

    return operations.run(call, place, work)


def ask(
    w: Write, call: Called, name: str, properties: dict[str, Any], demand: Demand, wait_s: int
) -> CapacityRequest:
    """Ask for the machine of an instance, or of several made together, whose name or first name it is. What
    may not wait starts, or is over, in this very write.

    Raises FailedPrecondition when the reservation it names is not open or has not enough left, and what
    `affinity.aim_of` raises.
    """
    locations = demand.alternatives[0].locations
    aim = affinity.aim_of(w.tx, properties, call.project, locations)
    affinity.check_ready(aim)
    command = Submit(
        project=call.project,
        name=derive_name(f"vm-{name}", f"{w.ids.next(w.now):x}"),
        demand=aim.applied(demand),
        wait_s=wait_s,
        labels=properties.get("labels", {}),
        workload=boot.workload_of(properties, w.books.fleet, locations),
    )
    request = affinity.submit(w, call, aim, command)
    reason = planning.start_now(w, request) if wait_s <= NOW_S else None
    if reason is None:
        return w.tx.request(request.id) or request
    why = render_reason(reason.text, dict(reason.facts))
    if aim.named is not None:
        raise affinity.full(aim.named.name, why)
    return requests.give_up(w, request, why)


def made_like(call: Called, named: str) -> dict[str, Any]:
    """The properties of a template, which what a body says goes before; none without one. Raises NotFound."""
    if not named:
        return {}
    with call.engine.reading() as reader:
        kept = templates.look_up(reader, call.project, named)
    if kept is None:
        raise scope_of(call).not_found(below_project(named, "global/instanceTemplates"))
    found: dict[str, Any] = kept.body["properties"]
    return found


def demand_of(
    call: Called, properties: dict[str, Any], zones: tuple[str, ...], *, count: int = 1, path: str = ""
) -> tuple[Demand, int]:
    """What so many instances together ask for, in one of `zones`, and how long they may wait, in seconds.
    `path` is where the properties stand in the body. Raises InvalidArgument."""
    if not properties.get("machineType"):
        raise required(f"{path}machineType")
    shape, scheduling = last(properties["machineType"]), properties.get("scheduling", {})
    fleet = call.engine.declared_fleet(call.who)
    if all(pool.piece_of(shape) is None for pool in fleet.pools_in(zones)):
        why = f"Machine type with name '{shape}' does not exist in zone '{', '.join(zones)}'."
        raise invalid(f"{path}machineType", properties["machineType"], why)
    inside = affinity.reference_in(properties, path) is not None
    flex = scheduling.get("provisioningModel") == "FLEX_START"
    end_by = times.end_of(call.engine.policy, call.engine.now(), scheduling, f"{path}scheduling")
    run_s = seconds(scheduling.get("maxRunDuration"))
    if flex and run_s is None and not end_by:
        raise required(f"{path}scheduling.maxRunDuration")
    if not inside:  # in a reservation its end bounds the run
        limits.check_run(call.engine.policy, run_s, f"{path}scheduling.maxRunDuration")
    if end_by:
        run_s = end_by - call.engine.now()
    one = Alternative(shape=shape, count=count, duration_s=run_s or OPEN_ENDED_S, locations=zones)
    demand = Demand(alternatives=(one,), end_by=end_by)
    return demand, _wait(call.engine.policy, properties) if flex else NOW_S


def _wait(policy: PolicyOptions, properties: dict[str, Any]) -> int:
    """How long a FLEX_START instance may wait, in seconds. Raises InvalidArgument."""
    asked = properties.get("params", {}).get("requestValidForDuration")
    asked = asked or properties.get("scheduling", {}).get("requestValidForDuration")
    wait_s = seconds(asked)
    if wait_s is None:
        return FLEX_WAIT_S
    limits.check_wait(policy, wait_s, "params.requestValidForDuration")
    return wait_s or NOW_S


def not_now(path: str, verb: str, why: str) -> FailedPrecondition:
    """The error for what cannot be done to an instance as it is."""
    return FailedPrecondition(
        f"The resource '{path}' cannot be {verb}: {why}.", reason="resourceNotReady"
    )


def look_up(reader: Reader, call: Called) -> Document:
    """The instance a path names. Raises NotFound in the words clients look for."""
    scope, place, name = scope_of(call), documents.where(call), call.path["instance"]
    zone = call.engine.declared_fleet(call.who).zone(call.path["zone"])
    region = zone.region if zone is not None else ""
    kept = vm.find(reader, scope.project, call.path["zone"], region, name)
    if kept is None or vm.shown(scope, reader, kept) is None:
        raise scope.not_found(f"{place}/instances/{name}")
    return kept


def get(call: Called) -> dict[str, Any]:
    """One instance."""
    with call.engine.reading() as reader:
        found = vm.shown(scope_of(call), reader, look_up(reader, call))
        assert found is not None
        return found


def delete(call: Called) -> dict[str, Any]:
    """Remove an instance, and give back what it holds; a group is smaller by it."""
    place = documents.where(call)

    def work(w: Write) -> operations.Change:
        kept = look_up(w.tx, call)
        path = vm.path_of(kept, w.tx.request(kept.request))
        if kept.body["properties"].get("deletionProtection"):
            raise not_now(path, "deleted", "it is protected against deletion (deletionProtection)")
        vm.let_go(w, call.who, [kept])
        w.tx.drop_document(kept.id)
        return operations.Change(type="delete", target=path, target_id=kept.id)

    return operations.run(call, place, work)


_ALL: Final = "zones/{zone}/instances"
METHODS: Final = (
    *documents.reads(vm.COLLECTION, get, scopes=("zones/{zone}",)),
    documents.change(
        "instances.insert", "POST", _ALL, "Make an instance.", insert, body=Body, query=InsertQuery
    ),
    documents.change("instances.delete", "DELETE", f"{_ALL}/{{instance}}", "Remove an instance.", delete),
)
