"""Bulk inserts: many instances in one call, all of them or, with a `minCount`, at least so many.

They come together, from one pool, so from one zone: in a region the one that has them. Each has an operation
of its own beside that of the whole; a group's id ties them together, as clients count by it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any, Final

from dws.api.compute_v1 import affinity, documents, instances, operations, vm
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.forms import (
    Form,
    anything,
    int64,
    invalid,
    many,
    merged,
    named,
    required,
    text,
    words,
)
from dws.api.compute_v1.instance_forms import PROPERTIES
from dws.api.compute_v1.names import check_resource_name, last
from dws.engine.ports import DocumentQuery
from dws.engine.write import Write
from dws.model.demand import Demand
from dws.model.evolve import evolve
from dws.planner import advise

LOCATION_POLICY: Final = Form(
    {
        "zones": many(Form({"zone": text})),
        "locations": named(
            Form(
                {
                    "preference": words("ALLOW", "DENY", "PREFERENCE_UNSPECIFIED"),
                    "constraints": Form({"maxCount": int64}),
                }
            )
        ),
        "targetShape": words("ANY", "ANY_SINGLE_ZONE", "BALANCED"),
    }
)
FORM: Final = Form(
    {
        "count": int64,
        "minCount": int64,
        "namePattern": text,
        "perInstanceProperties": named(Form({"hostname": text}, frozenset({"name"}))),
        "instanceProperties": PROPERTIES,
        "sourceInstanceTemplate": text,
        "locationPolicy": LOCATION_POLICY,
        "instanceFlexibilityPolicy": anything,
    }
)
_PATTERN: Final = re.compile(r"([^#]*)(#{1,18})([^#]*)")


def insert(call: Called) -> dict[str, Any]:
    """Make instances. Their operations run until all of them have their machines."""
    place, body = documents.where(call), FORM.read(call.body)
    told = body.get("perInstanceProperties", {})
    count, least = _counts(body)
    zones = _zones(call, place, body.get("locationPolicy", {}), count)
    template = instances.made_like(call, body.get("sourceInstanceTemplate", ""))
    properties = merged(template, body.get("instanceProperties", {}))
    if not properties:
        raise required("instanceProperties")
    if body.get("instanceFlexibilityPolicy"):
        why = "Instances that are made together are of one machine type; name it in instanceProperties."
        raise invalid("instanceFlexibilityPolicy", "", why)
    demand, wait_s = instances.demand_of(call, properties, zones, count=count, path="instanceProperties.")

    def work(w: Write) -> operations.Change:
        number = count if least == count else _possible(w, call, properties, demand, least)
        names = list(told) or _numbered(w, call, place, body["namePattern"], number)
        names = names[:number]
        for name in names:
            vm.check_free(w, call.project, place, name)
        wanted = _of(demand, number)
        request = instances.ask(w, call, names[0], properties, wanted, wait_s)
        group = str(uuid.UUID(int=w.ids.next(w.now)))
        for rank, name in enumerate(names):
            own = properties | told.get(name, {})
            kept = vm.keep(w, call.project, place, name, own, request=request.id, rank=rank)
            change = operations.Change(
                type="insert",
                target=f"{place}/instances/{name}",
                target_id=kept.id,
                request=request.id,
                group=group,
                instance=name,
            )
            operations.record(w, call, place, change)
        return operations.Change(
            type="bulkInsert",
            target=place,
            target_id=request.id,
            request=request.id,
            group=group,
            wanted=count,
            asked=number,
        )

    return operations.run(call, place, work)


def _counts(body: Mapping[str, Any]) -> tuple[int, int]:
    """How many instances are wanted, and how many at least. Raises InvalidArgument."""
    told, pattern = body.get("perInstanceProperties", {}), body.get("namePattern")
    if bool(told) == bool(pattern):
        why = "Give exactly one of namePattern and perInstanceProperties."
        raise invalid("namePattern", pattern or "", why)
    for name in told:
        check_resource_name(name, "resource.perInstanceProperties")
    if pattern:
        found = _PATTERN.fullmatch(pattern)
        if found is None:
            raise invalid("namePattern", pattern, "It needs one row of # for the number, as in 'vm-###'.")
        check_resource_name(pattern.replace("#", "1"), "resource.namePattern")
    count = int(body.get("count", len(told)))
    if count < 1:
        raise invalid("count", count, "At least 1 is needed.")
    if told and count != len(told):
        raise invalid("count", count, f"perInstanceProperties names {len(told)} instances.")
    least = int(body.get("minCount", count))
    if not 1 <= least <= count:
        raise invalid("minCount", least, f"It must lie between 1 and count, {count}.")
    return count, least


def _zones(call: Called, place: str, policy: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """The zones that come into question. Raises InvalidArgument."""
    where, _, inside = place.partition("/")
    if where == "zones":
        if policy:
            raise invalid("locationPolicy", "", "It goes with a region; this call names its zone.")
        return (inside,)
    if policy.get("targetShape") == "BALANCED":
        why = "Instances that are made together come from one zone; say ANY_SINGLE_ZONE."
        raise invalid("locationPolicy.targetShape", "BALANCED", why)
    every = call.engine.declared_fleet(call.who).zones_of(inside)
    chosen = [last(each.get("zone", "")) for each in policy.get("zones", [])]
    locations = {last(zone): told for zone, told in policy.get("locations", {}).items()}
    for zone in (*chosen, *locations):
        if zone not in every:
            raise invalid("locationPolicy", zone, f"The region '{inside}' has no such zone.")
    left = tuple(z for z in chosen or every if _is_allowed(locations.get(z, {}), count))
    if not left:
        why = f"It leaves no zone that may have {count} instances."
        raise invalid("locationPolicy.locations", ", ".join(locations), why)
    return left


def _is_allowed(told: Mapping[str, Any], count: int) -> bool:
    """Whether a location's preference and its bound let it have all of them."""
    most = told.get("constraints", {}).get("maxCount")
    return told.get("preference") != "DENY" and (most is None or count <= int(most))


def _numbered(w: Write, call: Called, place: str, pattern: str, count: int) -> list[str]:
    """So many names of a pattern, their numbers behind the largest that an instance of it has there."""
    found = _PATTERN.fullmatch(pattern)
    assert found is not None, "it was checked"
    head, marks, tail = found.groups()
    taken = re.compile(rf"{re.escape(head)}(\d{{{len(marks)},18}}){re.escape(tail)}")
    query = DocumentQuery(kind=vm.KIND, project=call.project)
    there = vm.scopes_of_names(w.books.fleet, place)
    numbers = (taken.fullmatch(k.name) for k in documents.every(w.tx, query) if k.scope in there)
    first = max((int(number[1]) for number in numbers if number), default=0) + 1
    names = [f"{head}{number:0{len(marks)}}{tail}" for number in range(first, first + count)]
    check_resource_name(names[-1], "resource.namePattern")
    return names


def _possible(w: Write, call: Called, properties: dict[str, Any], demand: Demand, least: int) -> int:
    """The most instances that could start now, of those asked for; `least` when not even these could."""
    first = demand.alternatives[0]
    aim = affinity.aim_of(w.tx, properties, call.project, first.locations)
    low, high = least, first.count + 1
    while high - low > 1:
        middle = (low + high) // 2
        wanted = aim.applied(_of(demand, middle))
        told = advise.quote(w.books.snapshot(), w.policy, w.now, wanted, project=call.project, priority=0)
        if told.asked.start == w.now:
            low = middle
        else:
            high = middle
    return low


def _of(demand: Demand, count: int) -> Demand:
    """The same for so many."""
    return evolve(demand, alternatives=tuple(evolve(each, count=count) for each in demand.alternatives))


METHODS: Final = tuple(
    documents.change(
        f"{title}.bulkInsert", "POST", f"{where}/instances/bulkInsert", summary, insert, body=Body
    )
    for title, where, summary in (
        ("instances", "zones/{zone}", "Make many instances in a zone."),
        ("regionInstances", "regions/{region}", "Make many instances in one of a region's zones."),
    )
)
