"""Instance groups: named sets of like instances that grow and shrink, zonal and regional.

A group's document holds what its owner said of it. Its size is counted from the requests made for it
(`group_members`), so it rises when more are asked for and falls when a run ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from msgspec import Meta

from dws.api.compute_v1 import affinity, documents, group_members, group_size, operations, templates, vm
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.forms import (
    OUTPUT_ONLY,
    Form,
    Kind,
    anything,
    int32,
    invalid,
    many,
    required,
    text,
    words,
)
from dws.api.compute_v1.group_members import COMING, Member
from dws.api.compute_v1.instance_forms import carried
from dws.api.compute_v1.names import Scope, below_project, check_resource_name, fingerprint, scope_of
from dws.api.compute_v1.shortages import shortage
from dws.api.method import Call, NoQuery, Query
from dws.engine.ports import Reader
from dws.engine.write import Write
from dws.model.document import Document
from dws.wire.timefmt import format_instant

KIND: Final = templates.GROUP
ONE: Final = "instanceGroupManagers/{instanceGroupManager}"
_SAID: Final[dict[str, Kind]] = {
    "name": text,
    "description": anything,
    "targetSize": int32,
    "instanceTemplate": text,
    "versions": many(Form({"instanceTemplate": text} | carried("name", "targetSize"))),
    "baseInstanceName": text,
    "distributionPolicy": Form(
        {
            "targetShape": words("ANY", "ANY_SINGLE_ZONE", "BALANCED", "EVEN"),
            "zones": many(Form({"zone": text})),
        }
    ),
    "targetSizePolicy": Form({"mode": words("BULK", "INDIVIDUAL", "UNSPECIFIED_MODE")}),
}
FORM: Final = Form(
    _SAID
    | carried(
        "allInstancesConfig",
        "autoHealingPolicies",
        "instanceFlexibilityPolicy",
        "instanceLifecyclePolicy",
        "listManagedInstancesResults",
        "namedPorts",
        "resourcePolicies",
        "standbyPolicy",
        "statefulPolicy",
        "targetPools",
        "targetStoppedSize",
        "targetSuspendedSize",
        "updatePolicy",
    ),
    ignored=OUTPUT_ONLY | {"instanceGroup", "currentActions", "satisfiesPzi", "satisfiesPzs"},
)
_ACTIONS: Final = (
    "abandoning",
    "creatingWithoutRetries",
    "recreating",
    "refreshing",
    "restarting",
    "resuming",
    "starting",
    "stopping",
    "suspending",
    "verifying",
)


class SizeQuery(Query):
    """How large a group is to be."""

    size: Annotated[int, Meta(ge=0, description="So many instances.")]


def find(reader: Reader, call: Called) -> Document:
    """The group a path names. Raises NotFound in the words clients look for."""
    return documents.find(reader, call, COLLECTION, call.path["instanceGroupManager"])


# --- changes ----------------------------------------------------------------------------------


def insert(call: Called) -> dict[str, Any]:
    """Make a group, with as many instances as it is to start with."""
    scope, place = scope_of(call), documents.where(call)
    body = FORM.read(call.body)
    name, size = check_resource_name(body.get("name")), int(body.pop("targetSize", 0))
    body["baseInstanceName"] = check_resource_name(
        body.get("baseInstanceName", name[:58]), "resource.baseInstanceName"
    )
    body["instanceTemplate"] = _template_of(body)
    path = f"{place}/instanceGroupManagers/{name}"

    def work(w: Write) -> operations.Change:
        if w.tx.document_named(KIND, scope.project, place, name) is not None:
            raise scope.exists(path)
        group = documents.keep(w, KIND, scope.project, place, name, body)
        _check_flex(scope, w.tx, group)
        group_size.set_size(w, call, group, size)
        return operations.Change(type="insert", target=path, target_id=group.id)

    return operations.run(call, place, work)


def _template_of(body: dict[str, Any]) -> str:
    told = body.get("instanceTemplate") or next(
        (v["instanceTemplate"] for v in body.get("versions", []) if v.get("instanceTemplate")), ""
    )
    if not told:
        raise required("instanceTemplate")
    return below_project(told, "global/instanceTemplates")


def _check_flex(scope: Scope, reader: Reader, group: Document) -> None:
    """Raises NotFound for a missing template, InvalidArgument for what flex start does not allow."""
    template = templates.look_up(reader, group.project, group.body["instanceTemplate"])
    if template is None:
        raise scope.not_found(group.body["instanceTemplate"])
    affinity.reference_in(template.body["properties"], "properties.")
    if group_size.model(reader, group) != "FLEX_START":
        return
    action = template.body["properties"]["scheduling"].get("instanceTerminationAction", "DELETE")
    if action != "DELETE":
        raise invalid(
            "instanceTemplate",
            group.body["instanceTemplate"],
            "In a group, instances with provisioning model FLEX_START need instanceTerminationAction DELETE.",
        )
    repair = group.body.get("instanceLifecyclePolicy", {}).get("defaultActionOnFailure", "DO_NOTHING")
    if repair != "DO_NOTHING":
        raise invalid(
            "instanceLifecyclePolicy.defaultActionOnFailure",
            repair,
            "With provisioning model FLEX_START it must be DO_NOTHING.",
        )
    shape = group.body.get("distributionPolicy", {}).get("targetShape", "ANY_SINGLE_ZONE")
    if shape != "ANY_SINGLE_ZONE":
        raise invalid(
            "distributionPolicy.targetShape",
            shape,
            "With provisioning model FLEX_START it must be ANY_SINGLE_ZONE.",
        )


def patch(call: Called) -> dict[str, Any]:
    """Change what is said of a group; what is not sent stays as it is."""
    scope, place = scope_of(call), documents.where(call)
    body = FORM.read(call.body)
    size, mode = body.pop("targetSize", None), body.get("targetSizePolicy")
    if body.get("instanceTemplate") or body.get("versions"):
        body["instanceTemplate"] = _template_of(body)

    def work(w: Write) -> operations.Change:
        kept = find(w.tx, call)
        if body.get("name", kept.name) != kept.name:
            raise invalid("name", body["name"], "A group cannot be renamed.")
        if mode is not None and mode != kept.body.get("targetSizePolicy"):
            raise invalid("targetSizePolicy", mode.get("mode", ""), "It cannot be changed.")
        group = replace(kept, body=kept.body | body, version=kept.version + 1)
        _check_flex(scope, w.tx, group)
        w.tx.put_document(group)
        if size is not None:
            group_size.set_size(w, call, group, int(size))
        return operations.Change(type="patch", target=group_members.path_of(group), target_id=group.id)

    return operations.run(call, place, work)


def resize(call: Call[None, SizeQuery]) -> dict[str, Any]:
    """Say how many instances a group is to have."""

    def work(w: Write) -> operations.Change:
        group = find(w.tx, call)
        group_size.set_size(w, call, group, call.query.size)
        return operations.Change(type="resize", target=group_members.path_of(group), target_id=group.id)

    return operations.run(call, documents.where(call), work)


def delete(call: Called) -> dict[str, Any]:
    """Give back all a group has, stop wanting the rest, and forget it."""

    def work(w: Write) -> operations.Change:
        group = find(w.tx, call)
        for link in list(group_members.links(w.tx, group)):
            vm.let_go(w, call.who, vm.of_request(w.tx, link.request))
            w.tx.drop_document(link.id)
        for kept in list(documents.every(w.tx, group_size.resize_requests_of(group))):
            w.tx.drop_document(kept.id)
        w.tx.drop_document(group.id)
        return operations.Change(type="delete", target=group_members.path_of(group), target_id=group.id)

    return operations.run(call, documents.where(call), work)


# --- as clients see it ------------------------------------------------------------------------


def shown(scope: Scope, reader: Reader, kept: Document) -> dict[str, Any]:
    """A group as clients see it."""
    there = group_members.members(reader, kept)
    path, place = group_members.path_of(kept), kept.scope.partition("/")[0].removesuffix("s")
    template = scope.link(kept.body["instanceTemplate"])
    found: dict[str, Any] = {
        "kind": "compute#instanceGroupManager",
        "id": str(kept.id),
        "name": kept.name,
        "description": "",
        "creationTimestamp": format_instant(kept.created_at),
        place: scope.link(kept.scope),
        "selfLink": scope.link(path),
        "instanceGroup": scope.link(f"{kept.scope}/instanceGroups/{kept.name}"),
        "fingerprint": fingerprint(kept.version),
        "versions": [{"instanceTemplate": template, "targetSize": {"calculated": len(there)}}],
    } | kept.body
    return found | {
        "instanceTemplate": template,
        "targetSize": group_members.target_size(there),
        "currentActions": _actions(there),
        "status": _status(kept, there),
    }


def _actions(there: Sequence[Member]) -> dict[str, int]:
    creating = sum(m.status in COMING for m in there)
    deleting = sum(m.status == "STOPPING" for m in there)
    counts = {"creating": creating, "deleting": deleting, "none": len(there) - creating - deleting}
    return dict.fromkeys(_ACTIONS, 0) | counts


def _status(kept: Document, there: Sequence[Member]) -> dict[str, Any]:
    """Stable is a group that has what it wants and is getting rid of nothing."""
    coming = any(m.status in COMING for m in there)
    found: dict[str, Any] = {
        "isStable": not coming and all(m.status != "STOPPING" for m in there),
        "versionTarget": {"isReached": True},
        "stateful": {"hasStatefulConfig": False},
    }
    return found | ({"bulkInstanceOperation": {"inProgress": coming}} if group_size.is_bulk(kept) else {})


def get(call: Called) -> dict[str, Any]:
    """One group; one in bulk mode with why it waits."""
    with call.engine.reading() as reader:
        kept = find(reader, call)
        answer = shown(scope_of(call), reader, kept)
        waiting = [m.request for m in group_members.members(reader, kept) if m.status == "PENDING"]
    if not (group_size.is_bulk(kept) and waiting and waiting[0] is not None):
        return answer
    forecast = call.engine.forecast().get(waiting[0].id)
    if forecast is not None:
        check = {
            "timestamp": format_instant(call.engine.now()),
            "error": {"errors": [shortage(waiting[0], forecast)]},
        }
        answer["status"]["bulkInstanceOperation"]["lastProgressCheck"] = check
    return answer


def shown_as_set(scope: Scope, reader: Reader, kept: Document) -> dict[str, Any]:
    """The set of a group's instances: its size is what is there."""
    there = group_members.members(reader, kept)
    place = kept.scope.partition("/")[0].removesuffix("s")
    return {
        "kind": "compute#instanceGroup",
        "id": str(kept.id),
        "name": kept.name,
        "description": "This instance group is controlled by an instance group manager of the same name.",
        "creationTimestamp": format_instant(kept.created_at),
        place: scope.link(kept.scope),
        "selfLink": scope.link(f"{kept.scope}/instanceGroups/{kept.name}"),
        "fingerprint": fingerprint(kept.version),
        "size": sum(m.status not in COMING for m in there),
    }


def get_set(call: Called) -> dict[str, Any]:
    """One set."""
    with call.engine.reading() as reader:
        kept = documents.find(reader, call, SETS, call.path["instanceGroup"])
        return shown_as_set(scope_of(call), reader, kept)


def get_autoscaler(call: Called) -> dict[str, Any]:
    """None: what a group asks for decides its size."""
    raise scope_of(call).not_found(f"{documents.where(call)}/autoscalers/{call.path['autoscaler']}")


_RESIZE: Final = "Say how many instances a group is to have."
SCOPES: Final = ("zones/{zone}", "regions/{region}")
COLLECTION: Final = documents.Collection(
    kind=KIND, name="instanceGroupManagers", word="instanceGroupManager", show=shown
)
SETS: Final = documents.Collection(kind=KIND, name="instanceGroups", word="instanceGroup", show=shown_as_set)
AUTOSCALERS: Final = documents.Collection(
    kind="compute.autoscaler", name="autoscalers", word="autoscaler", show=lambda *_: None
)
METHODS: Final = (
    *documents.reads(COLLECTION, get, scopes=SCOPES),
    *documents.reads(SETS, get_set, scopes=SCOPES),
    *documents.reads(AUTOSCALERS, get_autoscaler, scopes=SCOPES),
    *(
        documents.change(f"{title}.{name}", verb, f"{place}/{tail}", summary, handler, body=body, query=query)
        for title, place in (("instanceGroupManagers", SCOPES[0]), ("regionInstanceGroupManagers", SCOPES[1]))
        for name, verb, tail, summary, body, query, handler in (
            ("insert", "POST", "instanceGroupManagers", "Make an instance group.", Body, NoQuery, insert),
            ("patch", "PATCH", ONE, "Change an instance group.", Body, NoQuery, patch),
            ("delete", "DELETE", ONE, "Give an instance group back and forget it.", None, NoQuery, delete),
            (
                "resize",
                "POST",
                f"{ONE}/resize",
                "Say how many instances it is to have.",
                None,
                SizeQuery,
                resize,
            ),
        )
    ),
)
