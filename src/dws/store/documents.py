"""Doors' documents in memory, by id, by place and by what they stand for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict

from dws.engine.ports import DocumentQuery
from dws.model.document import UNLESS_DELIVERED, WITH_REQUEST, WITH_RESERVATION, Document
from dws.model.request import CapacityRequest

Place = tuple[str, str, str]


class DocumentRegister:
    """Every document kept; each change is `exchange(old, new)`, whose undo is the same turned round."""

    def __init__(self) -> None:
        self._rows: dict[int, Document] = {}
        self._names: defaultdict[tuple[str, str], dict[Place, int]] = defaultdict(dict)
        self._order: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
        self._of_request: defaultdict[int, dict[int, None]] = defaultdict(dict)
        self._of_reservation: defaultdict[int, dict[int, None]] = defaultdict(dict)

    def get(self, document_id: int) -> Document | None:
        """The document of that id, None when there is none."""
        return self._rows.get(document_id)

    def named(self, kind: str, project: str, scope: str, name: str, parent: str) -> Document | None:
        """The document at that place, None when there is none."""
        found = self._names[kind, project].get((scope, parent, name))
        return self._rows[found] if found is not None else None

    def largest_id(self) -> int:
        """The largest id kept, 0 when there is none."""
        return max(self._rows, default=0)

    def exchange(self, old: Document | None, new: Document | None) -> None:
        """Put `new` where `old` was."""
        if old is not None:
            drawer, place = (old.kind, old.project), (old.scope, old.parent, old.name)
            del self._rows[old.id]
            del self._names[drawer][place]
            del self._of_request[old.request][old.id]
            del self._of_reservation[old.reservation][old.id]
            order = self._order[drawer]
            del order[bisect_left(order, place)]
        if new is not None:
            drawer, place = (new.kind, new.project), (new.scope, new.parent, new.name)
            self._rows[new.id] = new
            self._names[drawer][place] = new.id
            self._of_request[new.request][new.id] = None
            self._of_reservation[new.reservation][new.id] = None
            insort(self._order[drawer], place)

    def select(self, query: DocumentQuery) -> list[Document]:
        """At most `query.limit` documents, by scope, parent and name."""
        if query.request:
            rows = [self._rows[i] for i in self._of_request.get(query.request, ())]
        elif query.reservation:
            rows = [self._rows[i] for i in self._of_reservation.get(query.reservation, ())]
        elif query.project:
            rows = self._drawer((query.kind, query.project), query)
        else:
            drawers = [drawer for drawer in self._order if drawer[0] == query.kind]
            rows = [r for drawer in drawers for r in self._drawer(drawer, query)]
        found = [r for r in rows if _matches(r, query)]
        found.sort(key=_place)
        return found[: max(0, query.limit)]

    def _drawer(self, drawer: tuple[str, str], query: DocumentQuery) -> list[Document]:
        order, names = self._order[drawer], self._names[drawer]
        start = bisect_right(order, query.after) if query.after is not None else 0
        return [self._rows[names[place]] for place in order[start:]]

    def ended_before(self, instant: int) -> list[Document]:
        """Those that ended before `instant`."""
        return [d for d in self._rows.values() if 0 < d.ended_at < instant]

    def stand_for(self, request: CapacityRequest) -> bool:
        """Whether one stands for a request that is over, and is not over itself."""
        rows = (self._rows[i] for i in self._of_request.get(request.id, ()))
        return any(
            d.ended_at == 0 or (d.ended_at == UNLESS_DELIVERED and request.was_delivered) for d in rows
        )

    def over_with(self, request: int) -> list[Document]:
        """Those that are over with that request, for which none stands any more."""
        rows = (self._rows[i] for i in self._of_request.get(request, ()))
        return [d for d in rows if d.ended_at in (WITH_REQUEST, UNLESS_DELIVERED)]

    def over_with_reservation(self, reservation: int) -> list[Document]:
        """Those that are over with that reservation."""
        rows = (self._rows[i] for i in self._of_reservation.get(reservation, ()))
        return [d for d in rows if d.ended_at == WITH_RESERVATION]


def _place(document: Document) -> Place:
    return document.scope, document.parent, document.name


def _matches(document: Document, query: DocumentQuery) -> bool:
    return (
        document.kind == query.kind
        and query.project in ("", document.project)
        and query.scope in ("", document.scope)
        and query.parent in (None, document.parent)
        and query.request in (0, document.request)
        and query.reservation in (0, document.reservation)
        and (query.after is None or _place(document) > query.after)
    )
