"""What belongs to an instance group: the requests made for it, and the instances that stand for them.

Every request of a group has a link, a document below the group named by the request's id. A resize request's
own record may be deleted; its instances stay the group's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dws.api.compute_v1 import affinity, boot, documents, templates, times, vm
from dws.api.compute_v1.documents import Called
from dws.api.compute_v1.forms import required, seconds
from dws.api.compute_v1.names import last, scope_of
from dws.engine.commands import Submit
from dws.engine.ports import DocumentQuery, Reader
from dws.engine.write import Write
from dws.model.demand import OPEN_ENDED_S, UNTIL_END, Alternative, Demand
from dws.model.document import WITH_REQUEST, Document
from dws.model.request import CapacityRequest
from dws.model.topology import Fleet

LINK: Final = "compute.groupRequest"
RESIZE_REQUEST: Final = "compute.resizeRequest"
COMING: Final = frozenset({"PENDING", "PROVISIONING", "STAGING"})
_ALPHABET: Final = "0123456789bcdfghjklmnpqrstvwxz"


@dataclass(frozen=True, slots=True)
class Member:
    """An instance of a group, with its request (None: long over) and its status."""

    kept: Document
    request: CapacityRequest | None
    status: str


def links(reader: Reader, group: Document) -> Iterator[Document]:
    """The links of a group's requests."""
    query = DocumentQuery(kind=LINK, project=group.project, scope=group.scope, parent=group.name)
    return documents.every(reader, query)


def members(reader: Reader, group: Document) -> list[Member]:
    """The instances of a group that are there or still to come."""
    found = []
    for link in links(reader, group):
        request = reader.request(link.request)
        for kept in vm.of_request(reader, link.request):
            state = vm.status(kept, request)
            if state is not None:
                found.append(Member(kept, request, state))
    return found


def target_size(there: Sequence[Member]) -> int:
    """How many instances a group is to have."""
    return sum(m.status != "STOPPING" for m in there)


def path_of(group: Document) -> str:
    """A group's path below its project."""
    return f"{group.scope}/instanceGroupManagers/{group.name}"


def ask(
    w: Write,
    call: Called,
    group: Document,
    *,
    count: int,
    names: Sequence[str] = (),
    run_s: int | None = None,
    may_stay: bool = False,
) -> CapacityRequest:
    """Ask for `count` more instances of a group, all at once, for `run_s` seconds (None: as its template
    says, and when that says nothing until they are given back, if they `may_stay`).

    Raises InvalidArgument.
    """
    template = templates.look_up(w.tx, group.project, group.body["instanceTemplate"])
    if template is None:
        raise scope_of(call).not_found(f"global/instanceTemplates/{last(group.body['instanceTemplate'])}")
    properties: dict[str, Any] = template.body["properties"]
    locations = _locations(group)
    end_by = times.end_of(w.policy, w.now, properties.get("scheduling", {}), "properties.scheduling")
    if end_by and run_s is None:
        run_s = end_by - w.now
    aim = affinity.aim_of(w.tx, properties, group.project, _zones(w.books.fleet, locations))
    wanted = Alternative(
        shape=last(properties["machineType"]),
        count=count,
        duration_s=_duration(properties, run_s, inside=aim.named is not None, may_stay=may_stay),
        locations=locations,
    )
    command = Submit(
        project=group.project,
        name=f"{group.name[:40].rstrip('-')}-{_digest(group.id, w.ids.next(w.now), size=8)}",
        demand=aim.applied(Demand(alternatives=(wanted,), end_by=end_by)),
        labels=properties.get("labels", {}),
        workload=boot.workload_of(properties, w.books.fleet, locations),
        never_fits="wait",
    )
    request = affinity.submit(w, call, aim, command)
    documents.keep(
        w,
        LINK,
        group.project,
        group.scope,
        str(request.id),
        {},
        parent=group.name,
        request=request.id,
        ended_at=WITH_REQUEST,
    )
    for rank in range(count):
        if names:
            vm.check_free(w, group.project, group.scope, names[rank])
        vm.keep(
            w,
            group.project,
            group.scope,
            names[rank] if names else _free_name(w, group, request.id, rank),
            _ran(properties, request.demand.alternatives[0].duration_s),
            request=request.id,
            rank=rank,
            group=path_of(group),
            template=group.body["instanceTemplate"],
        )
    _unlink(w, group)
    return request


def _unlink(w: Write, group: Document) -> None:
    """Drop the links of requests of which nothing is left: they would be read whenever the group is."""
    for link in list(links(w.tx, group)):
        if link.request in w.books.waiting or link.request in w.books.holding:
            continue
        request = w.tx.request(link.request)
        if all(vm.status(kept, request) is None for kept in vm.of_request(w.tx, link.request)):
            w.tx.drop_document(link.id)


def _duration(properties: dict[str, Any], run_s: int | None, *, inside: bool, may_stay: bool) -> int:
    scheduling = properties.get("scheduling", {})
    told = seconds(scheduling.get("maxRunDuration"))
    flex = scheduling.get("provisioningModel") == "FLEX_START"
    asked = told if run_s is None or (flex and told is not None) else run_s
    if asked is not None:
        return asked
    if inside:
        return UNTIL_END
    if flex or not may_stay:
        raise required("requestedRunDuration")
    return OPEN_ENDED_S


def _ran(properties: dict[str, Any], run_s: int) -> dict[str, Any]:
    """The properties of a group's instances: they are deleted at the end of their run, unless the template
    says that they stop, and stay."""
    told = {"instanceTerminationAction": "DELETE"} | properties.get("scheduling", {})
    if run_s not in (UNTIL_END, OPEN_ENDED_S) and "terminationTime" not in told:
        told |= {"maxRunDuration": {"seconds": str(run_s)}}
    return properties | {"scheduling": told}


def _locations(group: Document) -> tuple[str, ...]:
    """Where a group's instances may be: its zone, the zones of its policy, or its region."""
    where, _, place = group.scope.partition("/")
    if where == "zones":
        return (place,)
    told = group.body.get("distributionPolicy", {}).get("zones", [])
    return tuple(last(each["zone"]) for each in told if "zone" in each) or (place,)


def _zones(fleet: Fleet, locations: tuple[str, ...]) -> list[str]:
    """The zones that zones and regions come to."""
    return [zone.name for zone in fleet.zones if zone.name in locations or zone.region in locations]


def _free_name(w: Write, group: Document, request: int, rank: int) -> str:
    base = group.body["baseInstanceName"][:58]
    for attempt in range(100):
        name = f"{base}-{_digest(request, rank, attempt, size=4)}"
        if w.tx.document_named(vm.KIND, group.project, group.scope, name) is None:
            return name
    raise AssertionError("a hundred names were taken")


def _digest(*parts: int, size: int) -> str:
    number = int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=16).digest())
    letters = []
    for _ in range(size):
        number, letter = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[letter])
    return "".join(letters)
