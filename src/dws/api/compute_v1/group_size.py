"""How large an instance group is to be: what may change it, and what that asks for or gives back."""

from __future__ import annotations

from collections.abc import Sequence

from dws.api.compute_v1 import documents, group_members, limits, templates, vm
from dws.api.compute_v1.documents import Called
from dws.api.compute_v1.forms import invalid
from dws.api.compute_v1.group_members import COMING, RESIZE_REQUEST, Member
from dws.engine.ports import DocumentQuery, Reader
from dws.engine.write import Write
from dws.model.document import Document
from dws.model.errors import FailedPrecondition, InvalidArgument
from dws.model.request import RequestState


def is_bulk(group: Document) -> bool:
    """Whether a group's size is asked for all at once."""
    return bool(group.body.get("targetSizePolicy", {}).get("mode") == "BULK")


def model(reader: Reader, group: Document) -> str:
    """The provisioning model of a group's template."""
    template = templates.look_up(reader, group.project, group.body["instanceTemplate"])
    properties = template.body["properties"] if template is not None else {}
    return str(properties.get("scheduling", {}).get("provisioningModel", "STANDARD"))


def resize_requests_of(group: Document) -> DocumentQuery:
    """All resize requests of a group."""
    return DocumentQuery(kind=RESIZE_REQUEST, project=group.project, scope=group.scope, parent=group.name)


def check_takes_resize_requests(w: Write, group: Document, count: int) -> None:
    """Raises InvalidArgument when a group cannot grow by a resize request of that size, QuotaExceeded when
    too many of its project's wait."""
    if is_bulk(group):
        raise InvalidArgument(
            "Resize requests are not supported in a group whose target size policy mode is BULK.",
            field="resource.name",
        )
    if model(w.tx, group) == "SPOT":
        raise InvalidArgument(
            "Resize requests are not supported with provisioning model SPOT.", field="resource.name"
        )
    limits.check_size(w.policy, group_members.target_size(group_members.members(w.tx, group)) + count)
    limits.check_open_resize_requests(w, group)


def check_sized_by_hand(reader: Reader, group: Document) -> None:
    """Raises FailedPrecondition while a resize request waits: its instances are counted already."""
    for kept in documents.every(reader, resize_requests_of(group)):
        request = reader.request(kept.request)
        if request is not None and (request.state.is_waiting or request.state is RequestState.PROVISIONING):
            raise FailedPrecondition(
                f"The size of group '{group.name}' cannot be changed while resize request '{kept.name}' is "
                "ACCEPTED; cancel it first.",
                reason="resourceNotReady",
            )


def check_grows_one_by_one(reader: Reader, group: Document) -> None:
    """Raises InvalidArgument for a flex start group that is not in bulk mode."""
    if model(reader, group) == "FLEX_START":
        raise InvalidArgument(
            "Invalid value for field 'resource.targetSize'. A group with provisioning model FLEX_START grows "
            "by resize requests only; its targetSize must be 0 when it is created.",
            field="resource.targetSize",
            reason="invalid",
        )


def set_size(w: Write, call: Called, group: Document, size: int) -> None:
    """Ask for what a group lacks, or give back what it has too much. Raises InvalidArgument and
    FailedPrecondition."""
    if size < 0:
        raise invalid("targetSize", size)
    limits.check_size(w.policy, size)
    there = [m for m in group_members.members(w.tx, group) if m.status != "STOPPING"]
    if size == len(there):
        return
    if is_bulk(group):
        _set_bulk_size(w, call, group, there, size)
        return
    check_sized_by_hand(w.tx, group)
    if size < len(there):
        vm.let_go(w, call.who, [m.kept for m in _least_wanted(there)[: len(there) - size]])
        return
    check_grows_one_by_one(w.tx, group)
    for _ in range(size - len(there)):
        group_members.ask(w, call, group, count=1, may_stay=True)


def _set_bulk_size(w: Write, call: Called, group: Document, there: Sequence[Member], size: int) -> None:
    """All at once: from nothing to a size, and to less."""
    if not there:
        group_members.ask(w, call, group, count=size, may_stay=True)
        return
    if size and (size > len(there) or any(m.status in COMING for m in there)):
        raise FailedPrecondition(
            f"The size of group '{group.name}' is {len(there)}. In mode BULK it can be set to 0 at any time, "
            "to less when no bulk operation is in progress, and to more only from 0.",
            reason="resourceNotReady",
        )
    vm.let_go(w, call.who, [m.kept for m in _least_wanted(there)[: len(there) - size]])


def _least_wanted(there: Sequence[Member]) -> list[Member]:
    """What goes first: what does not run, then the youngest."""
    return sorted(there, key=lambda m: (m.status == "RUNNING", -m.kept.created_at, -m.kept.id))
