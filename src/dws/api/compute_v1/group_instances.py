"""The instances of a group, one by one: listed, made by name in bulk mode, given back."""

from __future__ import annotations

from typing import Any, Final

from dws.api.compute_v1 import documents, group_members, group_size, groups, limits, operations, vm
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.forms import Form, anything, boolean, invalid, many, required, text, words
from dws.api.compute_v1.group_members import COMING, Member
from dws.api.compute_v1.lists import ListQuery
from dws.api.compute_v1.names import ROOT, Scope, check_resource_name, last, scope_of
from dws.api.compute_v1.shortages import shortage
from dws.api.method import Call, Method
from dws.engine.write import Write
from dws.model.errors import FailedPrecondition
from dws.wire.timefmt import format_instant

DELETE_FORM: Final = Form({"instances": many(text), "skipInstancesOnValidationError": boolean})
CREATE_FORM: Final = Form(
    {
        "instances": many(
            Form({"name": text, "preservedState": anything}, ignored=frozenset({"fingerprint", "status"}))
        )
    }
)
LIST_FORM: Final = Form({"instanceState": words("ALL", "RUNNING"), "portName": anything})


def list_managed(call: Call[None, ListQuery]) -> dict[str, Any]:
    """What a group has and is to have, also what is only asked for."""
    scope = scope_of(call)
    with call.engine.reading() as reader:
        group = groups.find(reader, call)
        there = group_members.members(reader, group)
    path = f"{group_members.path_of(group)}/listManagedInstances"
    found, token = documents.page_of(call, path, [_managed(scope, m) for m in there])
    return {"managedInstances": found} | ({"nextPageToken": token} if token else {})


def _managed(scope: Scope, member: Member) -> dict[str, Any]:
    kept = member.kept
    action = "CREATING" if member.status in COMING else "DELETING" if member.status == "STOPPING" else "NONE"
    found = {
        "id": str(kept.id),
        "name": kept.name,
        "instance": scope.link(vm.path_of(kept, member.request)),
        "currentAction": action,
        "version": {"instanceTemplate": scope.link(kept.body["template"])},
    }
    return found | ({} if member.status == "PENDING" else {"instanceStatus": member.status})


def list_there(call: Called) -> dict[str, Any]:
    """The instances that are there."""
    scope, state = scope_of(call), LIST_FORM.read(call.body).get("instanceState", "ALL")
    with call.engine.reading() as reader:
        group = documents.find(reader, call, groups.SETS, call.path["instanceGroup"])
        there = group_members.members(reader, group)
    items = [
        {"instance": scope.link(vm.path_of(m.kept, m.request)), "status": m.status}
        for m in there
        if m.status != "PENDING" and state in ("ALL", m.status)
    ]
    path = f"{group.scope}/instanceGroups/{group.name}/listInstances"
    found, token = documents.page_of(call, path, items)
    region = group.scope.startswith("regions/")
    answer = {
        "kind": f"compute#{'regionInstanceGroups' if region else 'instanceGroups'}ListInstances",
        "id": f"projects/{scope.project}/{path}",
        "selfLink": scope.link(path),
        "items": found,
    }
    return answer | ({"nextPageToken": token} if token else {})


def list_errors(call: Call[None, ListQuery]) -> dict[str, Any]:
    """Why what a group waits for is not there."""
    scope, forecast = scope_of(call), call.engine.forecast()
    with call.engine.reading() as reader:
        group = groups.find(reader, call)
        there = group_members.members(reader, group)
    items = []
    for member in there:
        told = forecast.get(member.kept.request)
        if member.status == "PENDING" and member.request is not None and told is not None:
            error = shortage(member.request, told)
            items.append(_error(scope, member, error, format_instant(call.engine.now())))
    found, token = documents.page_of(call, f"{group_members.path_of(group)}/listErrors", items)
    return {"items": found} | ({"nextPageToken": token} if token else {})


def _error(scope: Scope, member: Member, error: dict[str, Any], at: str) -> dict[str, Any]:
    return {
        "error": {"code": error["code"], "message": error["message"]},
        "instanceActionDetails": {
            "action": "CREATING",
            "instance": scope.link(vm.path_of(member.kept, member.request)),
            "version": {"instanceTemplate": scope.link(member.kept.body["template"])},
        },
        "timestamp": at,
    }


def create(call: Called) -> dict[str, Any]:
    """Ask for instances of these names, all at once."""
    body = CREATE_FORM.read(call.body)
    told = body.get("instances", [])
    names = [check_resource_name(each.get("name"), "resource.instances.name") for each in told]
    if not names:
        raise required("instances")
    if len(set(names)) != len(names):
        raise invalid("instances", names, "A name is given twice.")

    def work(w: Write) -> operations.Change:
        group = groups.find(w.tx, call)
        there = group_members.members(w.tx, group)
        limits.check_size(w.policy, len(there) + len(names))
        group_size.check_sized_by_hand(w.tx, group)
        if group_size.is_bulk(group):
            if group_members.target_size(there):
                raise FailedPrecondition(
                    f"Group '{group.name}' is not empty; in mode BULK instances are created all at once.",
                    reason="resourceNotReady",
                )
            group_members.ask(w, call, group, count=len(names), names=names, may_stay=True)
        else:
            group_size.check_grows_one_by_one(w.tx, group)
            for name in names:
                group_members.ask(w, call, group, count=1, names=[name], may_stay=True)
        return operations.Change(
            type="createInstances", target=group_members.path_of(group), target_id=group.id
        )

    return operations.run(call, documents.where(call), work)


def delete(call: Called) -> dict[str, Any]:
    """Give instances back; the group is smaller by them."""
    body = DELETE_FORM.read(call.body)
    names = {last(each) for each in body.get("instances", [])}
    if not names:
        raise required("instances")

    def work(w: Write) -> operations.Change:
        group = groups.find(w.tx, call)
        chosen = [m for m in group_members.members(w.tx, group) if m.kept.name in names]
        strangers = sorted(names - {m.kept.name for m in chosen})
        if strangers and not body.get("skipInstancesOnValidationError"):
            raise invalid("instances", strangers[0], f"It is not an instance of group '{group.name}'.")
        vm.let_go(w, call.who, [m.kept for m in chosen])
        return operations.Change(
            type="deleteInstances", target=group_members.path_of(group), target_id=group.id
        )

    return operations.run(call, documents.where(call), work)


def _methods(title: str, place: str) -> tuple[Method, ...]:
    reads = (
        ("listManagedInstances", "POST", list_managed, "What a group has and is to have."),
        ("listErrors", "GET", list_errors, "Why what a group waits for is not there."),
    )
    changes = (
        ("createInstances", create, "Ask for instances by name."),
        ("deleteInstances", delete, "Give instances of a group back."),
    )
    return (
        *(
            Method(
                id=f"compute.{title}.{name}",
                verb=verb,
                path=f"{ROOT}/{place}/{groups.ONE}/{name}",
                summary=summary,
                query=ListQuery,
                lenient=True,
                handler=handler,
            )
            for name, verb, handler, summary in reads
        ),
        *(
            documents.change(
                f"{title}.{name}", "POST", f"{place}/{groups.ONE}/{name}", summary, change, body=Body
            )
            for name, change, summary in changes
        ),
    )


METHODS: Final = (
    *_methods("instanceGroupManagers", groups.SCOPES[0]),
    *_methods("regionInstanceGroupManagers", groups.SCOPES[1]),
    *(
        Method(
            id=f"compute.{title}.listInstances",
            verb="POST",
            path=f"{ROOT}/{place}/instanceGroups/{{instanceGroup}}/listInstances",
            summary="The instances of a group that are there.",
            request=Body,
            query=ListQuery,
            lenient=True,
            handler=list_there,
        )
        for title, place in (("instanceGroups", groups.SCOPES[0]), ("regionInstanceGroups", groups.SCOPES[1]))
    ),
)
