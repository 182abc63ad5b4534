"""Collections of documents: their reads, zonal, regional, global and aggregated.

A `Collection` says how one document is shown; `reads` makes its methods. What is shown depends on more than
the document (on the request it stands for), so lists are filtered over what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import merge
from operator import attrgetter
from typing import Any, Final, cast

from dws.api.compute_v1 import lists
from dws.api.compute_v1.lists import ListQuery
from dws.api.compute_v1.names import ROOT, Scope, last, scope_of
from dws.api.matching import matcher
from dws.api.method import Call, Method, NoQuery, Query
from dws.api.pages import Position
from dws.engine.ports import DocumentQuery, Reader
from dws.engine.write import Write
from dws.model.access import Role
from dws.model.document import Document
from dws.model.names import DocumentId

Called = Call[Any, Any]
Body: Final[type[dict[str, Any]]] = dict
Show = Callable[[Scope, Reader, Document], dict[str, Any] | None]
BATCH: Final = 500
NEWEST_FIRST: Final = "creationTimestamp desc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A kind of document: its collection's `name` in paths, its `word` (`instanceTemplate`), and how one is
    shown; None when it is over and not shown any more. `parent` is the path word of what it belongs to.

    The methods of its first scope go by its name alone, those of others by the scope's word and it; all of
    them do when it is `prefixed`. Of one `in_regions` some may be kept in a region and shown in its zones.
    `unkept` are things that no document is kept for, as the documents they would be.
    """

    kind: str
    name: str
    word: str
    show: Show
    parent: str = ""
    prefixed: bool = False
    in_regions: bool = False
    unkept: Callable[[Reader, DocumentQuery], Sequence[Document]] | None = None


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
    if kept is None:
        raise scope.not_found(_path(collection, place, name, parent))
    return kept


def keep(
    w: Write,
    kind: str,
    project: str,
    place: str,
    name: str,
    body: dict[str, Any],
    *,
    parent: str = "",
    request: int = 0,
    rank: int = 0,
    reservation: int = 0,
    ended_at: int = 0,
) -> Document:
    """Keep a new document. Raises AlreadyExists."""
    kept = Document(
        id=DocumentId(w.ids.next(w.now)),
        kind=kind,
        project=project,
        scope=place,
        parent=parent,
        name=name,
        created_at=w.now,
        body=body,
        request=request,
        rank=rank,
        reservation=reservation,
        ended_at=ended_at,
    )
    w.tx.put_document(kept)
    return kept


def _path(collection: Collection, place: str, name: str, parent: str) -> str:
    above = f"{collection.parent}/{parent}/" if parent else ""
    return f"{place}/{above}{collection.name}/{name}"


def every(reader: Reader, query: DocumentQuery, batch: int = BATCH) -> Iterator[Document]:
    """All documents of a query, however many; read so many at a time."""
    query = replace(query, limit=batch)
    while some := reader.documents(query):
        yield from some
        if len(some) < batch:
            return
        query = replace(query, after=(some[-1].scope, some[-1].parent, some[-1].name))


def page_of(call: Call[None, ListQuery], path: str, items: Sequence[dict[str, Any]]) -> tuple[list[Any], str]:
    """Those items, in their order or newest first, that a page has, and the token of the next."""
    query, pages, bound = call.query, call.context.pages, lists.bound_to(call, path)
    wanted = matcher(query.filter)
    start = int(str(pages.open(query.page_token, *bound)[0])) if query.page_token else 0
    found = [item for item in items if wanted(item)]
    if query.order_by == NEWEST_FIRST:
        found.sort(key=lambda item: (item.get("creationTimestamp", ""), item.get("id", "")), reverse=True)
    size = query.max_results or lists.RESULTS_MAX
    token = pages.seal([start + size], *bound) if len(found) > start + size else ""
    return found[start : start + size], token


class _Once:
    """A reader that reads each request and reservation once: hundreds of documents may stand for one."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.request = cache(reader.request)
        self.reservation = cache(reader.reservation)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


def page(
    call: Call[None, ListQuery], collection: Collection, path: str, place: str = "", parent: str | None = None
) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """A page of a collection's documents in a scope (empty: in all), each with its scope, and the token of
    the next. Reads and shows no more of them than the page needs, and what its filter passes over."""
    query, pages, bound = call.query, call.context.pages, lists.bound_to(call, path)
    reached = tuple(pages.open(query.page_token, *bound)) if query.page_token else None
    scope, wanted, size = scope_of(call), matcher(query.filter), query.max_results or lists.RESULTS_MAX
    asked = DocumentQuery(kind=collection.kind, project=scope.project, scope=place, parent=parent)
    region = region_around(call, place) if collection.in_regions else ""
    everywhere = [replace(asked, scope=region), asked] if region else [asked]
    found: list[tuple[str, dict[str, Any]]] = []
    last_position: Position = []
    with call.engine.reading() as stored:
        reader = cast("Reader", _Once(stored))
        for kept, position in _in_order(reader, collection, everywhere, query.order_by, reached, size + 1):
            item = collection.show(scope, reader, kept)
            if item is None or not wanted(item):
                continue
            shown_in = kept.scope
            if collection.in_regions and "zone" in item:
                shown_in = f"zones/{last(item['zone'])}"
            if place not in ("", shown_in):
                continue
            if len(found) == size:
                return found, pages.seal(last_position, *bound)
            found.append((shown_in, item))
            last_position = position
    return found, ""


def region_around(call: Called, place: str) -> str:
    """The scope of the region that a zone's scope is in; empty for any other scope."""
    where, _, name = place.partition("/")
    zone = call.engine.declared_fleet(call.who).zone(name) if where == "zones" else None
    return f"regions/{zone.region}" if zone is not None else ""


def _in_order(
    reader: Reader,
    collection: Collection,
    queries: Sequence[DocumentQuery],
    order: str,
    reached: tuple[Any, ...] | None,
    batch: int,
) -> Iterator[tuple[Document, Position]]:
    """The documents of these queries, whose scopes rise, that are behind a position, each with its own: by
    scope, parent and name, or newest first."""
    if order != NEWEST_FIRST:
        for query in queries:
            for kept in _all_of(reader, collection, replace(query, after=reached), batch):
                yield kept, [kept.scope, kept.parent, kept.name]
        return
    found = (kept for query in queries for kept in _all_of(reader, collection, query, BATCH))
    newest = sorted(found, key=lambda kept: (kept.created_at, kept.id), reverse=True)
    for kept in newest:
        if reached is None or (kept.created_at, kept.id) < reached:
            yield kept, [kept.created_at, kept.id]


def _all_of(
    reader: Reader, collection: Collection, query: DocumentQuery, batch: int
) -> Iterator[Document]:
    """The documents of a query, and what no document is kept for, by scope, parent and name."""
    found = every(reader, query, batch)
    if collection.unkept is None:
        return found
    place = attrgetter("scope", "parent", "name")
    others = [
        kept
        for kept in collection.unkept(reader, query)
        if query.scope in ("", kept.scope) and (query.after is None or place(kept) > query.after)
    ]
    return merge(found, sorted(others, key=place), key=place)


def listed(call: Call[None, ListQuery], word: str, path: str, page: tuple[list[Any], str]) -> dict[str, Any]:
    """The answer that a page of one collection is."""
    scope, (found, token) = scope_of(call), page
    answer = {
        "kind": f"compute#{word}List",
        "id": f"projects/{scope.project}/{path}",
        "items": found,
        "selfLink": scope.link(path),
    }
    return answer | ({"nextPageToken": token} if token else {})


def _by_scope(
    call: Call[None, ListQuery], word: str, collection: str, page: tuple[list[tuple[str, Any]], str]
) -> dict[str, Any]:
    scope, (found, token) = scope_of(call), page
    fleet = call.engine.declared_fleet(call.who)
    places = {f"zones/{z.name}" for z in fleet.zones}
    if call.query.include_all_scopes:
        places |= {f"regions/{z.region}" for z in fleet.zones} | {"global"}
    by_scope: dict[str, dict[str, Any]] = {}
    for place, item in found:
        by_scope.setdefault(place, {}).setdefault(collection, []).append(item)
    empty = {place: {"warning": lists.nothing_in(place)} for place in sorted(places - set(by_scope))}
    answer = {
        "kind": f"compute#{word}AggregatedList",
        "id": f"projects/{scope.project}/aggregated/{collection}",
        "items": dict(sorted((by_scope | empty).items())),
        "selfLink": scope.link(f"aggregated/{collection}"),
    }
    return answer | ({"nextPageToken": token} if token else {})


def reads(
    collection: Collection, get: Callable[[Called], Any], *, scopes: Sequence[str], aggregate: bool = True
) -> tuple[Method, ...]:
    """List and get in each of `scopes` (path templates), and the aggregated list."""
    name, word = collection.name, collection.word
    capital = name[0].upper() + name[1:]

    def list_them(call: Called) -> dict[str, Any]:
        place, parent = where(call), call.path.get("parent", "")
        above = f"{collection.parent}/{parent}/" if parent else ""
        path = f"{place}/{above}{name}"
        found, token = page(call, collection, path, place, parent if collection.parent else None)
        return listed(call, word, path, ([item for _, item in found], token))

    def aggregate_them(call: Called) -> dict[str, Any]:
        return _by_scope(call, word, name, page(call, collection, f"aggregated/{name}"))

    made = []
    for place in scopes:
        prefix = place.partition("/")[0].removesuffix("s")
        title = name if place == scopes[0] and not collection.prefixed else f"{prefix}{capital}"
        above = f"{collection.parent}/{{parent}}/" if collection.parent else ""
        at = f"{place}/{above}{name}"
        made.append(read(f"{title}.list", at, f"The {name} of a {place.partition('/')[0]}.", list_them))
        made.append(read(f"{title}.get", f"{at}/{{{word}}}", f"One of the {name}.", get))
    if aggregate and not collection.parent:
        title = f"global{capital}" if collection.prefixed else name
        made.append(read(f"{title}.aggregatedList", f"aggregated/{name}", f"All {name}.", aggregate_them))
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


def change(
    name: str,
    verb: str,
    path: str,
    summary: str,
    handler: Callable[..., Any],
    *,
    body: type[dict[str, Any]] | None = None,
    query: type[Query] = NoQuery,
) -> Method:
    """A method that changes something; with a `body` that its handler reads by a form."""
    return Method(
        id=f"compute.{name}",
        verb=verb,
        path=f"{ROOT}/{path}",
        summary=summary,
        role=Role.USER,
        request=body,
        query=query,
        lenient=True,
        handler=handler,
    )
