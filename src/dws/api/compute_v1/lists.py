"""Compute's lists: filtered, by name, in pages; of one collection or aggregated over scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from dws.api.compute_v1 import wire
from dws.api.compute_v1.names import scope_of
from dws.api.filters import Dialect, Field, Fields, Kind, parse_filter
from dws.api.method import Call, Query
from dws.model.errors import InvalidArgument

RESULTS_MAX: Final = 500
ORDERS: Final = ("", "name", "creationTimestamp desc")


class ListQuery(Query):
    """What the lists understand; `fields`, `alt`, `prettyPrint` and the like are accepted and change
    nothing."""

    filter: Annotated[str, Meta(description="Compute's filter grammar, old or new.")] = ""
    max_results: Annotated[int, Meta(ge=0, le=RESULTS_MAX, description="At most so many.")] = RESULTS_MAX
    order_by: Annotated[str, Meta(description="`name` or `creationTimestamp desc`.")] = ""
    page_token: Annotated[str, Meta(description="`nextPageToken` of the page before.")] = ""
    include_all_scopes: Annotated[bool, Meta(description="Also scopes that never have any.")] = False


def _plain(name: str, kind: Kind = Kind.TEXT) -> Field[Any]:
    attribute = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
    return Field(kind, lambda item: getattr(item, attribute))


_COMMON: Final = {name: _plain(name) for name in ("id", "kind", "name", "description", "selfLink")}
ZONE_FIELDS: Final[Fields[Any]] = _COMMON | {"region": _plain("region"), "status": _plain("status")}
REGION_FIELDS: Final[Fields[Any]] = _COMMON | {"status": _plain("status")}
MACHINE_FIELDS: Final[Fields[Any]] = _COMMON | {
    "zone": _plain("zone"),
    "guestCpus": _plain("guestCpus", Kind.NUMBER),
    "memoryMb": _plain("memoryMb", Kind.NUMBER),
    "isSharedCpu": Field(Kind.TEXT, lambda m: str(m.is_shared_cpu).lower()),
}
ACCELERATOR_FIELDS: Final[Fields[Any]] = _COMMON | {
    "zone": _plain("zone"),
    "maximumCardsPerInstance": _plain("maximumCardsPerInstance", Kind.NUMBER),
}


def page(
    call: Call[None, ListQuery], path: str, *, kind: str, items: Sequence[Any], fields: Fields[Any]
) -> wire.ResourceList:
    """A page of one collection."""
    scope = scope_of(call)
    found, token = _page(call, path, [("", item) for item in items], fields)
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
    by_scope: Mapping[str, Sequence[Any]],
    fields: Fields[Any],
) -> wire.AggregatedList:
    """A page over scopes; a scope with nothing on it says so."""
    scope, path = scope_of(call), f"aggregated/{collection}"
    everything = [(where, item) for where, items in by_scope.items() for item in items]
    found, token = _page(call, path, everything, fields)
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
    call: Call[None, ListQuery], path: str, items: list[tuple[str, Any]], fields: Fields[Any]
) -> tuple[list[tuple[str, Any]], str]:
    """Those items, ordered by scope and name, that a page has, and the token of the next."""
    query, pages = call.query, call.context.pages
    if query.order_by not in ORDERS:
        raise InvalidArgument(
            f"Invalid value for field 'orderBy': '{query.order_by}'. Lists are ordered by 'name' or "
            "'creationTimestamp desc'.",
            field="orderBy",
        )
    wanted = parse_filter(query.filter, fields, Dialect.COMPUTE)
    bound = ("compute", call.project, path, query.filter, query.order_by)
    reached = [str(part) for part in pages.open(query.page_token, *bound)] if query.page_token else ["", ""]
    found = sorted(
        (pair for pair in items if wanted(pair[1]) and [pair[0], pair[1].name] > reached),
        key=lambda pair: (pair[0], pair[1].name),
    )
    size = query.max_results or RESULTS_MAX
    token = ""
    if len(found) > size:
        token = pages.seal([found[size - 1][0], found[size - 1][1].name], *bound)
    return found[:size], token


def nothing_in(where: str) -> wire.Warning:
    """Why a scope has nothing on a page."""
    return wire.Warning(
        code="NO_RESULTS_ON_PAGE",
        message=f"There are no results for scope '{where}' on this page.",
        data=[wire.Datum(key="scope", value=where)],
    )
