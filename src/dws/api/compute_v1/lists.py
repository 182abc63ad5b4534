"""Compute's lists: filtered, by name, in pages; of one collection or aggregated over scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from dws.api.compute_v1 import wire
from dws.api.compute_v1.names import scope_of
from dws.api.matching import matcher
from dws.api.method import Call, Query
from dws.model.errors import InvalidArgument

RESULTS_MAX: Final = 500
ORDERS: Final = ("", "name", "creationTimestamp desc")


class ListQuery(Query):
    """What the lists understand; `alt`, `prettyPrint` and the like are accepted and change nothing."""

    filter: Annotated[str, Meta(description="Compute's filter grammar, old or new.")] = ""
    max_results: Annotated[int, Meta(ge=0, le=RESULTS_MAX, description="At most so many.")] = RESULTS_MAX
    order_by: Annotated[str, Meta(description="`name` or `creationTimestamp desc`.")] = ""
    page_token: Annotated[str, Meta(description="`nextPageToken` of the page before.")] = ""
    include_all_scopes: Annotated[bool, Meta(description="Also scopes that never have any.")] = False


def page(
    call: Call[None, ListQuery], path: str, *, kind: str, items: Sequence[wire.Resource]
) -> wire.ResourceList:
    """A page of one collection."""
    scope = scope_of(call)
    found, token = _page(call, path, [("", item) for item in items])
    return wire.ResourceList(
        kind=f"compute#{kind}List",
        id=f"projects/{scope.project}/{path}",
        self_link=scope.link(path),
        items=[item for _, item in found],
        next_page_token=token,
    )


def aggregated(
    call: Call[None, ListQuery],
    collection: str,
    *,
    kind: str,
    by_scope: Mapping[str, Sequence[wire.Resource]],
) -> wire.AggregatedList:
    """A page over scopes; a scope with nothing on it says so."""
    scope, path = scope_of(call), f"aggregated/{collection}"
    everything = [(where, item) for where, items in by_scope.items() for item in items]
    found, token = _page(call, path, everything)
    items: dict[str, dict[str, Any]] = {where: {"warning": nothing_in(where)} for where in by_scope}
    for where, item in found:
        items[where].pop("warning", None)
        items[where].setdefault(collection, []).append(item)
    return wire.AggregatedList(
        kind=f"compute#{kind}AggregatedList",
        id=f"projects/{scope.project}/{path}",
        self_link=scope.link(path),
        items=items,
        next_page_token=token,
    )


def _page(
    call: Call[None, ListQuery], path: str, items: list[tuple[str, wire.Resource]]
) -> tuple[list[tuple[str, wire.Resource]], str]:
    """Those items, ordered by scope and name, that a page has, and the token of the next."""
    query, pages, bound = call.query, call.context.pages, bound_to(call, path)
    wanted = matcher(query.filter)
    reached = tuple(pages.open(query.page_token, *bound)) if query.page_token else ("", "")
    found = sorted(
        (
            pair
            for pair in items
            if (pair[0], pair[1].name) > reached and wanted(msgspec.to_builtins(pair[1]))
        ),
        key=lambda pair: (pair[0], pair[1].name),
    )
    size = query.max_results or RESULTS_MAX
    token = ""
    if len(found) > size:
        token = pages.seal([found[size - 1][0], found[size - 1][1].name], *bound)
    return found[:size], token


def bound_to(call: Call[None, ListQuery], path: str) -> tuple[str, ...]:
    """What a page token of a list is good for. Raises InvalidArgument for an order no list has."""
    query = call.query
    if query.order_by not in ORDERS:
        raise InvalidArgument(
            f"Invalid value for field 'orderBy': '{query.order_by}'. Lists are ordered by 'name' or "
            "'creationTimestamp desc'.",
            field="orderBy",
        )
    return ("compute", call.project, path, query.filter, query.order_by)


def nothing_in(where: str) -> wire.Warning:
    """Why a scope has nothing on a page."""
    return wire.Warning(
        code="NO_RESULTS_ON_PAGE",
        message=f"There are no results for scope '{where}' on this page.",
        data=[wire.Datum(key="scope", value=where)],
    )
