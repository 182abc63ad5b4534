"""Collections of documents: their reads, zonal, regional, global and aggregated.

A `Collection` says how one document is shown; `reads` makes its methods. What is shown depends on more than
the document (on the request it stands for), so lists are filtered over what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dws.api.compute_v1 import lists
from dws.api.compute_v1.lists import ListQuery
from dws.api.compute_v1.names import ROOT, Scope, scope_of
from dws.api.filters import Dialect, Field, Kind, parse_filter
from dws.api.method import Call, Method, NoQuery
from dws.engine.ports import DocumentQuery, Reader
from dws.model.document import Document
from dws.model.errors import InvalidArgument

Called = Call[Any, Any]
Body: Final[type[dict[str, Any]]] = dict
Show = Callable[[Scope, Reader, Document], dict[str, Any] | None]
BATCH: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A kind of document: its collection's `name` in paths, its `word` (`instanceTemplate`), and how one is
    shown; None when it is over and not shown any more. `parent` is the path word of what it belongs to."""

    kind: str
    name: str
    word: str
    show: Show
    parent: str = ""


def where(call: Called) -> str:
    """The scope a call is about: `zones/Z`, `regions/R` or `global`. Raises NotFound for one that is not."""
    path, fleet, scope = call.path, call.engine.declared_fleet(call.who), scope_of(call)
    if zone := path.get("zone"):
        if fleet.zone(zone) is None:
            raise scope.not_found(f"zones/{zone}")
        return f"zones/{zone}"
    if region := path.get("region"):
        if all(z.region != region for z in fleet.zones):
            raise scope.not_found(f"regions/{region}")
        return f"regions/{region}"
    return "global"


def find(reader: Reader, call: Called, collection: Collection, name: str, parent: str = "") -> Document:
    """The document a path names. Raises NotFound in the words clients look for."""
    scope, place = scope_of(call), where(call)
    kept = reader.document_named(collection.kind, scope.project, place, name, parent)
    if kept is None or collection.show(scope, reader, kept) is None:
        raise scope.not_found(_path(collection, place, name, parent))
    return kept


def _path(collection: Collection, place: str, name: str, parent: str) -> str:
    above = f"{collection.parent}/{parent}/" if parent else ""
    return f"{place}/{above}{collection.name}/{name}"


def every(reader: Reader, query: DocumentQuery) -> Iterator[Document]:
    """All documents of a query, however many."""
    query = replace(query, limit=BATCH)
    while page := reader.documents(query):
        yield from page
        query = replace(query, after=(page[-1].scope, page[-1].parent, page[-1].name))


def shown(
    call: Called, collection: Collection, place: str, parent: str | None = None
) -> list[dict[str, Any]]:
    """Everything of a collection in a scope (empty: in all), as shown, by scope and name."""
    scope = scope_of(call)
    query = DocumentQuery(kind=collection.kind, project=scope.project, scope=place, parent=parent)
    with call.engine.reading() as reader:
        found = (collection.show(scope, reader, kept) for kept in every(reader, query))
        return [each for each in found if each is not None]


class _Dug(Mapping[str, Field[Any]]):
    """The fields of shown things: whatever name a filter has, dotted ones too."""

    def __getitem__(self, name: str) -> Field[Any]:
        def get(item: Mapping[str, Any]) -> Any:
            value = item.get(name, "")
            return value if isinstance(value, str | int | float | dict) else str(value)

        kind = Kind.MAP if name in _MAPS else Kind.TEXT
        return Field(kind, get if kind is Kind.MAP else lambda item: _word(get(item)))

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_MAPS: Final = frozenset({"labels", "scheduling", "specificReservation", "status", "deprecated"})
FIELDS: Final = _Dug()


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def page_of(call: Call[None, ListQuery], path: str, items: Sequence[dict[str, Any]]) -> tuple[list[Any], str]:
    """Those items, by name or newest first, that a page has, and the token of the next."""
    query, pages = call.query, call.context.pages
    if query.order_by not in lists.ORDERS:
        raise InvalidArgument(
            f"Invalid value for field 'orderBy': '{query.order_by}'. Lists are ordered by 'name' or "
            "'creationTimestamp desc'.",
            field="orderBy",
        )
    wanted = parse_filter(query.filter, FIELDS, Dialect.COMPUTE)
    bound = ("compute", call.project, path, query.filter, query.order_by)
    start = int(str(pages.open(query.page_token, *bound)[0])) if query.page_token else 0
    found = [item for item in items if wanted(item)]
    if query.order_by == "creationTimestamp desc":
        found.sort(key=lambda item: (item.get("creationTimestamp", ""), item["id"]), reverse=True)
    size = query.max_results or lists.RESULTS_MAX
    token = pages.seal([start + size], *bound) if len(found) > start + size else ""
    return found[start : start + size], token


def listed(
    call: Call[None, ListQuery], word: str, path: str, items: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """A page of one collection."""
    scope = scope_of(call)
    found, token = page_of(call, path, items)
    answer = {
        "kind": f"compute#{word}List",
        "id": f"projects/{scope.project}/{path}",
        "items": found,
        "selfLink": scope.link(path),
    }
    return answer | ({"nextPageToken": token} if token else {})


def aggregated(
    call: Call[None, ListQuery], word: str, collection: str, items: Sequence[tuple[str, dict[str, Any]]]
) -> dict[str, Any]:
    """A page over scopes."""
    scope, path = scope_of(call), f"aggregated/{collection}"
    place_of = {id(item): place for place, item in items}
    found, token = page_of(call, path, [item for _, item in items])
    fleet = call.engine.declared_fleet(call.who)
    places = {f"zones/{z.name}" for z in fleet.zones}
    if call.query.include_all_scopes:
        places |= {f"regions/{z.region}" for z in fleet.zones} | {"global"}
    by_scope: dict[str, dict[str, Any]] = {}
    for item in found:
        by_scope.setdefault(place_of[id(item)], {}).setdefault(collection, []).append(item)
    empty = {place: {"warning": lists.nothing_in(place)} for place in sorted(places - set(by_scope))}
    answer = {
        "kind": f"compute#{word}AggregatedList",
        "id": f"projects/{scope.project}/{path}",
        "items": dict(sorted((by_scope | empty).items())),
        "selfLink": scope.link(path),
    }
    return answer | ({"nextPageToken": token} if token else {})


def reads(
    collection: Collection, get: Callable[[Called], Any], *, scopes: Sequence[str], aggregate: bool = True
) -> tuple[Method, ...]:
    """List and get in each of `scopes` (path templates), and the aggregated list."""
    name, word = collection.name, collection.word

    def list_them(call: Called) -> dict[str, Any]:
        place, parent = where(call), call.path.get("parent", "")
        above = f"{collection.parent}/{parent}/" if parent else ""
        items = shown(call, collection, place, parent if collection.parent else None)
        return listed(call, word, f"{place}/{above}{name}", items)

    def aggregate_them(call: Called) -> dict[str, Any]:
        scope = scope_of(call)
        query = DocumentQuery(kind=collection.kind, project=scope.project)
        with call.engine.reading() as reader:
            pairs = ((kept.scope, collection.show(scope, reader, kept)) for kept in every(reader, query))
            items = [(place, item) for place, item in pairs if item is not None]
        return aggregated(call, word, name, items)

    made = []
    for place in scopes:
        prefix = "" if place.startswith("zones") else "region" if place.startswith("regions") else "global"
        title = f"{prefix}{name[0].upper()}{name[1:]}" if prefix else name
        above = f"{collection.parent}/{{parent}}/" if collection.parent else ""
        at = f"{place}/{above}{name}"
        made.append(read(f"{title}.list", at, f"The {name} of a {place.partition('/')[0]}.", list_them))
        made.append(read(f"{title}.get", f"{at}/{{{word}}}", f"One of the {name}.", get))
    if aggregate and not collection.parent:
        made.append(read(f"{name}.aggregatedList", f"aggregated/{name}", f"All {name}.", aggregate_them))
    return tuple(made)


def read(name: str, path: str, summary: str, handler: Callable[..., Any]) -> Method:
    """A method that reads."""
    return Method(
        id=f"compute.{name}",
        verb="GET",
        path=f"{ROOT}/{path}",
        summary=summary,
        query=ListQuery if name.lower().endswith("list") else NoQuery,
        lenient=True,
        handler=handler,
    )
