"""What the owner of the fleet allows Compute's clients: how long, how many, how long they may wait."""

from __future__ import annotations

from dws.api.compute_v1.forms import invalid
from dws.api.compute_v1.group_members import RESIZE_REQUEST
from dws.engine.ports import DocumentQuery
from dws.engine.write import Write
from dws.model.document import Document
from dws.model.errors import InvalidArgument, QuotaExceeded
from dws.model.request import RequestState
from dws.model.time import length_in_words
from dws.planner.options import PolicyOptions


def check_run(policy: PolicyOptions, run_s: int | None, path: str) -> None:
    """Raises InvalidArgument when a run of `run_s` (None: not said) is shorter or longer than allowed;
    `path` is the duration's."""
    least, most = policy.run_duration_min_s, policy.run_duration_max_s
    if run_s is not None and not least <= run_s <= most:
        why = f"It must lie between {length_in_words(least)} and {length_in_words(most)}, in seconds."
        raise invalid(f"{path}.seconds", run_s, why)


def check_wait(policy: PolicyOptions, wait_s: int, path: str) -> None:
    """Raises InvalidArgument when an instance by itself may not wait so many seconds. 0 is always allowed."""
    least, most = policy.instance_wait_min_s, policy.instance_wait_max_s
    if wait_s and not least <= wait_s <= most:
        why = f"It must be 0, or between {length_in_words(least)} and {length_in_words(most)}, in seconds."
        raise invalid(f"{path}.seconds", wait_s, why)


def check_resize_by(policy: PolicyOptions, count: int) -> None:
    """Raises InvalidArgument when one resize request may not ask for so many instances."""
    if not 1 <= count <= policy.resize_by_max:
        raise invalid("resizeBy", count, f"It must lie between 1 and {policy.resize_by_max}.")


def check_size(policy: PolicyOptions, size: int) -> None:
    """Raises InvalidArgument when a group would be larger than a group may be."""
    if size > policy.group_size_max:
        raise InvalidArgument(
            f"Exceeded limit 'MAX_INSTANCES_IN_INSTANCE_GROUP': {size} instances, the limit is "
            f"{policy.group_size_max}.",
            field="resource.targetSize",
            reason="limitExceeded",
        )


def check_open_resize_requests(w: Write, group: Document) -> None:
    """Raises QuotaExceeded when a group's project has as many resize requests waiting in its region as it
    may."""
    most = w.policy.open_resize_requests_max
    if not most:
        return
    region, open_there = _region(w, group), 0
    coming = [r for r in w.books.holding.values() if r.state is RequestState.PROVISIONING]
    for request in [*w.books.waiting.values(), *coming]:
        if request.project == group.project:
            query = DocumentQuery(kind=RESIZE_REQUEST, project=group.project, request=request.id)
            open_there += sum(_region(w, kept) == region for kept in w.tx.documents(query))
    if open_there >= most:
        raise QuotaExceeded(
            f"Quota 'ACTIVE_RESIZE_REQUESTS' exceeded. Limit: {most} in region {region}.",
            reason="quotaExceeded",
        )


def _region(w: Write, kept: Document) -> str:
    """The region something is in; its zone's own name for a zone that is no more."""
    where, _, name = kept.scope.partition("/")
    zone = w.books.fleet.zone(name) if where == "zones" else None
    return zone.region if zone is not None else name
