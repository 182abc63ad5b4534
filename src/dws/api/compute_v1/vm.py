"""An instance as Compute's clients see it: a document that stands for one rank of a request.

What it is like now is read from the request. One whose zone is the planner's choice is kept in its region,
and shown in the zone its request was granted once it has one.

    request   PENDING, BOOKED   PROVISIONING   ACTIVE    ENDING     over
    instance  PENDING           PROVISIONING   RUNNING   STOPPING   gone, or TERMINATED when it only stops

One that was stopped and is started again stands for another request; `starts` counts them. It has been there
before, so it stays, stopped, when that request comes to nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dws.api.compute_v1 import documents, reservations
from dws.api.compute_v1.names import Scope, fingerprint, fingerprint_of, last
from dws.engine import requests
from dws.engine.commands import Release
from dws.engine.ports import DocumentQuery, Reader
from dws.engine.write import Write
from dws.model.access import Principal
from dws.model.demand import OPEN_ENDED_S, UNTIL_END
from dws.model.document import UNLESS_DELIVERED, WITH_REQUEST, Document
from dws.model.errors import AlreadyExists, InvalidArgument
from dws.model.request import CapacityRequest, Grant, Instance, InstanceState, RequestState
from dws.model.topology import Fleet
from dws.wire.timefmt import format_instant

KIND: Final = "compute.instance"
NETWORK: Final = int(ipaddress.IPv4Address("10.0.0.0"))
_OVER: Final = frozenset({InstanceState.RELEASED, InstanceState.LOST})
_OF_RANK: Final = {
    InstanceState.STARTING: "STAGING",
    InstanceState.RUNNING: "RUNNING",
    InstanceState.EXITED: "RUNNING",
    InstanceState.RELEASING: "STOPPING",
}
_HOLDS: Final = frozenset({"RUNNING", "STAGING", "STOPPING"})
_LEVELS: Final = ("block", "subblock")


def keep(
    w: Write,
    project: str,
    place: str,
    name: str,
    properties: dict[str, Any],
    *,
    request: int,
    rank: int,
    group: str = "",
    template: str = "",
) -> Document:
    """Keep an instance that stands for a rank of a request. `group` is the path of the group it belongs to,
    `template` what it was made like, empty for none. Raises AlreadyExists."""
    body = {"properties": properties, "group": group, "template": template, "stopped": False, "starts": 1}
    return documents.keep(
        w, KIND, project, place, name, body, request=request, rank=rank, ended_at=_over(properties)
    )


def _over(properties: Mapping[str, Any]) -> int:
    """When one that is made is over: with its request, unless it stays then, stopped."""
    return UNLESS_DELIVERED if _action(properties) == "STOP" else WITH_REQUEST


def of_request(reader: Reader, request: int) -> list[Document]:
    """The instances that stand for a request, by rank."""
    found = documents.every(reader, DocumentQuery(kind=KIND, request=request))
    return sorted(found, key=lambda kept: kept.rank)


def instance_of(kept: Document, request: CapacityRequest | None) -> Instance | None:
    """What its request was granted for it, None before that."""
    if request is None or request.grant is None or kept.rank >= len(request.grant.instances):
        return None
    return request.grant.instances[kept.rank]


def status(kept: Document, request: CapacityRequest | None) -> str | None:
    """Its status; None when it is no more."""
    if request is None or request.state.is_terminal:
        return _at_the_end(kept, request)
    if request.state.is_waiting or request.requeue:
        return "PENDING"
    if request.state is RequestState.PROVISIONING:
        return "PROVISIONING"
    instance = instance_of(kept, request)
    if instance is None or instance.state in _OVER:
        return _at_the_end(kept, request)
    return "STOPPING" if request.state is RequestState.ENDING else _OF_RANK[instance.state]


def _at_the_end(kept: Document, request: CapacityRequest | None) -> str | None:
    """What becomes of it when its run is over: it stays, stopped, or goes; it goes when it was let go."""
    if kept.body.get("let_go"):
        return None
    if request is not None and not request.deliveries:
        return "TERMINATED" if kept.body["starts"] > 1 else None  # it never came, or not again
    return "TERMINATED" if kept.body["stopped"] or at_end(kept) == "STOP" else None


def at_end(kept: Document) -> str:
    """STOP or DELETE: what becomes of it at the end of its run, as its owner said, or as its model has it."""
    return _action(kept.body["properties"])


def _action(properties: Mapping[str, Any]) -> str:
    scheduling = properties.get("scheduling", {})
    default = "DELETE" if scheduling.get("provisioningModel") == "FLEX_START" else "STOP"
    return str(scheduling.get("instanceTerminationAction", default))


def zone_of(kept: Document, request: CapacityRequest | None) -> str:
    """The zone it is in, empty while that is open."""
    where, _, name = kept.scope.partition("/")
    if where == "zones":
        return name
    return request.grant.zone if request is not None and request.grant is not None else ""


def path_of(kept: Document, request: CapacityRequest | None) -> str:
    """Its path below the project; while its zone is open, in its region."""
    zone = zone_of(kept, request)
    return f"{f'zones/{zone}' if zone else kept.scope}/instances/{kept.name}"


def find(reader: Reader, project: str, zone: str, region: str, name: str) -> Document | None:
    """The instance of that name in a zone, also when it is kept in the zone's region."""
    kept = reader.document_named(KIND, project, f"zones/{zone}", name)
    if kept is None:
        kept = reader.document_named(KIND, project, f"regions/{region}", name)
        if kept is not None and zone_of(kept, reader.request(kept.request)) != zone:
            return None
    return kept


def scopes_of_names(fleet: Fleet, place: str) -> tuple[str, ...]:
    """The scopes whose instances share their names with those of `place`: itself, a zone's region, a region's
    zones."""
    where, _, inside = place.partition("/")
    if where == "regions":
        return place, *(f"zones/{name}" for name in fleet.zones_of(inside))
    zone = fleet.zone(inside)
    return (place,) if zone is None else (place, f"regions/{zone.region}")


def check_free(w: Write, project: str, place: str, name: str) -> None:
    """Raises AlreadyExists when an instance has the name where a new one in `place` would be; those that are
    over give it up. In a region that is all of it: the zone is open."""
    where, _, inside = place.partition("/")
    for scope in scopes_of_names(w.books.fleet, place):
        kept = w.tx.document_named(KIND, project, scope, name)
        if kept is None:
            continue
        request = w.tx.request(kept.request)
        if status(kept, request) is None:
            w.tx.drop_document(kept.id)
        elif scope == place or where == "regions" or zone_of(kept, request) in ("", inside):
            raise AlreadyExists(f"The resource 'projects/{project}/{path_of(kept, request)}' already exists")


def give_back(w: Write, who: Principal, request: CapacityRequest | None, ranks: tuple[int, ...] = ()) -> None:
    """Nobody wants these instances of a request any more (`ranks` empty: all): give them back, or stop
    wanting them while it waits. Harmless when it is over."""
    if request is None or request.state.is_terminal:
        return
    if request.state is RequestState.ENDING and not request.requeue:
        return
    if request.state is RequestState.ACTIVE:
        requests.release(w, who, Release(project=request.project, name=str(request.id), ranks=ranks))
    else:
        requests.cancel(w, who, request.project, str(request.id))


def let_go(w: Write, who: Principal, some: Sequence[Document]) -> None:
    """Nobody wants these instances any more: what they hold is given back, and they are seen until it is.
    Those that are still to come go with all of their request.

    Raises InvalidArgument when only some of one request's are let go while it is not delivered.
    """
    by_request: dict[int, list[Document]] = {}
    for kept in some:
        by_request.setdefault(kept.request, []).append(kept)
    for number, its in by_request.items():
        request = w.tx.request(number)
        if _is_coming(request) and len(its) < len(of_request(w.tx, number)):
            raise InvalidArgument(
                f"Instance '{its[0].name}' is being created together with others and cannot be deleted by "
                "itself; cancel the whole request.",
                field="resource.instances",
                reason="resourceNotReady",
            )
        give_back(w, who, request, tuple(kept.rank for kept in its))
        request = w.tx.request(number)
        for kept in its:
            body = kept.body | {"let_go": True, "stopped": False}
            gone = replace(kept, body=body, version=kept.version + 1, ended_at=WITH_REQUEST)
            if status(gone, request) is None:
                w.tx.drop_document(kept.id)
            else:
                w.tx.put_document(gone)


def _is_coming(request: CapacityRequest | None) -> bool:
    """Whether a request's instances are still to be delivered, all together."""
    if request is None or request.state.is_terminal or request.state is RequestState.ACTIVE:
        return False
    return request.state is not RequestState.ENDING or request.requeue


def shown(scope: Scope, reader: Reader, kept: Document) -> dict[str, Any] | None:
    """An instance as clients see it; None when it is no more, or nowhere yet."""
    request = reader.request(kept.request) if kept.request else None
    state, zone = status(kept, request), zone_of(kept, request)
    if state is None or not zone:
        return None
    properties: Mapping[str, Any] = kept.body["properties"]
    instance = instance_of(kept, request)
    found: dict[str, Any] = {
        name: value for name, value in properties.items() if name not in ("resourceManagerTags",)
    }
    found |= {
        "kind": "compute#instance",
        "id": str(kept.id),
        "name": kept.name,
        "creationTimestamp": format_instant(kept.created_at),
        "zone": scope.link(f"zones/{zone}"),
        "selfLink": scope.link(f"zones/{zone}/instances/{kept.name}"),
        "machineType": scope.link(f"zones/{zone}/machineTypes/{last(properties['machineType'])}"),
        "status": state,
        "labels": properties.get("labels", {}),
        "labelFingerprint": fingerprint_in(properties, "labels"),
        "fingerprint": fingerprint(kept.version),
        "metadata": {
            "kind": "compute#metadata",
            "fingerprint": fingerprint_in(properties, "metadata"),
            **properties.get("metadata", {}),
        },
        "tags": {"fingerprint": fingerprint_in(properties, "tags"), **properties.get("tags", {})},
        "networkInterfaces": _interfaces(kept, properties, instance),
        "startRestricted": False,
        "deletionProtection": properties.get("deletionProtection", False),
    }
    if request is not None and request.grant is not None and request.was_delivered:
        found["lastStartTimestamp"] = format_instant(request.grant.delivered_at)
        if state in _HOLDS and instance is not None:
            found["resourceStatus"] = _resource_status(scope, reader, request, request.grant, instance)
    if state == "TERMINATED" and request is not None and request.ended_at:
        found["lastStopTimestamp"] = format_instant(request.ended_at)
    return found


def fingerprint_in(properties: Mapping[str, Any], name: str) -> str:
    """The fingerprint of one part of what was said of an instance: a change of another part leaves it."""
    return fingerprint_of(properties.get(name) or {})


def _resource_status(
    scope: Scope, reader: Reader, request: CapacityRequest, grant: Grant, instance: Instance
) -> dict[str, Any]:
    """Where the machine is, whose pool is the cluster, which reservation it consumes, and when the run ends,
    if it does."""
    place = {"cluster": grant.pool}
    pool = next((p for p in scope.fleet.pools if p.name == grant.pool), None)
    if pool is not None:
        place |= {level: name for level in _LEVELS if (name := pool.domain_of(instance.unit, level))}
    place["host"] = instance.host
    found: dict[str, Any] = {
        "physicalHost": f"/{'/'.join(place.values())}",
        "physicalHostTopology": place,
    }
    behind = reader.reservation(grant.reservation) if grant.reservation else None
    if behind is not None and request.demand.reservation:  # what is lent is not consumed
        found["reservationConsumptionInfo"] = reservations.consumed(reader, behind, instance.unit)
    asked_s = request.demand.alternatives[grant.alternative].duration_s
    if asked_s == OPEN_ENDED_S or (asked_s == UNTIL_END and behind is not None and behind.is_open_ended):
        return found
    return found | {"scheduling": {"terminationTimestamp": format_instant(grant.ends_at)}}


def _interfaces(
    kept: Document, properties: Mapping[str, Any], instance: Instance | None
) -> list[dict[str, Any]]:
    """Its interfaces with their addresses; one where its owner named none."""
    address = _address(kept, instance)
    told = properties.get("networkInterfaces") or [{}]
    found = []
    for index, interface in enumerate(told):
        access = [
            {"kind": "compute#accessConfig", "name": "external-nat", "type": "ONE_TO_ONE_NAT"}
            | config
            | {"natIP": address}
            for config in interface.get("accessConfigs", [])
        ]
        shown_as = {"kind": "compute#networkInterface", "name": f"nic{index}"} | interface
        shown_as |= {"networkIP": address, "fingerprint": fingerprint(1)}
        found.append(shown_as | ({"accessConfigs": access} if access else {}))
    return found


def _address(kept: Document, instance: Instance | None) -> str:
    """Where it can be reached when its backend said so; else an address that is always the same."""
    try:
        return str(ipaddress.ip_address(instance.address if instance is not None else ""))
    except ValueError:
        return str(ipaddress.IPv4Address(NETWORK + kept.id % 0xFFFFFE + 1))


COLLECTION: Final = documents.Collection(
    kind=KIND, name="instances", word="instance", show=shown, in_regions=True
)
