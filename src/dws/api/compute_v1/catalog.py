"""Compute's catalogue: projects, regions, zones, machine types, accelerator types. Read-only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from dws.api.compute_v1 import convert, lists, wire
from dws.api.compute_v1.lists import ListQuery
from dws.api.compute_v1.names import ROOT, Scope, scope_of
from dws.api.method import Call, Method, NoQuery
from dws.model.topology import Fleet, Zone

R = TypeVar("R", bound=wire.Resource)
InZone = Callable[[Scope, Fleet, str], list[Any]]


def get_project(call: Call[None, NoQuery]) -> wire.Project:
    """Any project the caller may see."""
    return convert.project(scope_of(call))


def list_zones(call: Call[None, ListQuery]) -> wire.ResourceList:
    """Every zone."""
    scope = scope_of(call)
    zones = [convert.zone(scope, zone) for zone in _fleet(call).zones]
    return lists.page(call, "zones", kind="zone", items=zones)


def get_zone(call: Call[None, NoQuery]) -> wire.Zone:
    """One zone."""
    return convert.zone(scope_of(call), _zone(call))


def list_regions(call: Call[None, ListQuery]) -> wire.ResourceList:
    """Every region."""
    scope = scope_of(call)
    regions = convert.regions(scope, _fleet(call))
    return lists.page(call, "regions", kind="region", items=regions)


def get_region(call: Call[None, NoQuery]) -> wire.Region:
    """One region."""
    scope, name = scope_of(call), call.path["region"]
    return _named(convert.regions(scope, _fleet(call)), name, scope, f"regions/{name}")


def _zone(call: Call[Any, Any]) -> Zone:
    name = call.path["zone"]
    zone = _fleet(call).zone(name)
    if zone is None:
        raise scope_of(call).not_found(f"zones/{name}")
    return zone


def _fleet(call: Call[Any, Any]) -> Fleet:
    return call.engine.declared_fleet(call.who)


def _named(found: Iterable[R], name: str, scope: Scope, path: str) -> R:
    for each in found:
        if each.name == name:
            return each
    raise scope.not_found(path)


def _zonal(collection: str, *, kind: str, convert_zone: InZone, answer: Any) -> tuple[Method, ...]:
    """List, get and aggregated list of something every zone has its own of."""

    def list_them(call: Call[None, ListQuery]) -> wire.ResourceList:
        zone = _zone(call).name
        found = convert_zone(scope_of(call), _fleet(call), zone)
        return lists.page(call, f"zones/{zone}/{collection}", kind=kind, items=found)

    def get(call: Call[None, NoQuery]) -> Any:
        scope, zone, name = scope_of(call), _zone(call).name, call.path[kind]
        found = convert_zone(scope, _fleet(call), zone)
        return _named(found, name, scope, f"zones/{zone}/{collection}/{name}")

    def aggregate(call: Call[None, ListQuery]) -> wire.AggregatedList:
        scope, fleet = scope_of(call), _fleet(call)
        by_scope = {f"zones/{z.name}": convert_zone(scope, fleet, z.name) for z in fleet.zones}
        if call.query.include_all_scopes:
            by_scope |= {f"regions/{z.region}": [] for z in fleet.zones} | {"global": []}
        return lists.aggregated(call, collection, kind=kind, by_scope=by_scope)

    in_zone = f"zones/{{zone}}/{collection}"
    return (
        _method(f"{collection}.list", in_zone, f"The {collection} of a zone.", list_them, wire.ResourceList),
        _method(f"{collection}.get", f"{in_zone}/{{{kind}}}", f"One of a zone's {collection}.", get, answer),
        _method(
            f"{collection}.aggregatedList",
            f"aggregated/{collection}",
            f"The {collection} of every zone.",
            aggregate,
            wire.AggregatedList,
        ),
    )


def _method(name: str, path: str, summary: str, handler: Callable[..., Any], answer: Any) -> Method:
    return Method(
        id=f"compute.{name}",
        verb="GET",
        path=f"{ROOT}/{path}".rstrip("/"),
        summary=summary,
        query=ListQuery if name.lower().endswith("list") else NoQuery,
        response=answer,
        lenient=True,
        handler=handler,
    )


METHODS: Final = (
    _method("projects.get", "", "A project.", get_project, wire.Project),
    _method("zones.list", "zones", "Every zone.", list_zones, wire.ResourceList),
    _method("zones.get", "zones/{zone}", "One zone.", get_zone, wire.Zone),
    _method("regions.list", "regions", "Every region.", list_regions, wire.ResourceList),
    _method("regions.get", "regions/{region}", "One region.", get_region, wire.Region),
    *_zonal(
        "machineTypes",
        kind="machineType",
        convert_zone=convert.machine_types,
        answer=wire.MachineType,
    ),
    *_zonal(
        "acceleratorTypes",
        kind="acceleratorType",
        convert_zone=convert.accelerator_types,
        answer=wire.AcceleratorType,
    ),
)
