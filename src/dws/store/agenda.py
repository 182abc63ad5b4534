"""Work items in memory, in the order they fall due.

A dictionary holds the items; a heap holds (due_at, kind, subject, tag) of every item there ever was.
An entry of the heap whose item is gone or moved is stale: it is skipped, dropped when it reaches the
top, and swept out when the stale ones outnumber the others. So scheduling costs O(log n), asking what
is due costs what is due, and nothing is copied.
"""

from __future__ import annotations

import heapq
from typing import Final

from dws.model.work import WorkItem

Key = tuple[str, int, str]
Entry = tuple[int, str, int, str]
STALE_SPARED: Final = 64


class Agenda:
    """Items by key, by subject and by due time."""

    def __init__(self) -> None:
        self._items: dict[Key, WorkItem] = {}
        self._keys: dict[int, dict[Key, None]] = {}
        self._heap: list[Entry] = []

    def get(self, key: Key) -> WorkItem | None:
        """The item of that key, None when there is none."""
        return self._items.get(key)

    def put(self, item: WorkItem) -> WorkItem | None:
        """Insert or replace; returns what was there."""
        key = item.key
        old = self._items.get(key)
        self._items[key] = item
        if old is None:
            self._keys.setdefault(item.subject, {})[key] = None
        if old is None or old.due_at != item.due_at:
            heapq.heappush(self._heap, (item.due_at, *key))
            if len(self._heap) > 2 * len(self._items) + STALE_SPARED:
                self._sweep()
        return old

    def remove(self, key: Key) -> None:
        """Forget the item of that key, which must exist."""
        item = self._items.pop(key)
        keys = self._keys[item.subject]
        del keys[key]
        if not keys:
            del self._keys[item.subject]

    def of(self, subject: int) -> list[WorkItem]:
        """Every item of a subject, in due order."""
        return sorted((self._items[k] for k in self._keys.get(subject, ())), key=_entry)

    def all(self) -> list[WorkItem]:
        """Every item, in no particular order."""
        return list(self._items.values())

    def due(self, now: int) -> list[WorkItem]:
        """Every item due at or before `now`, in (due_at, kind, subject, tag) order."""
        first = self.next_due()
        if first is None or first > now:
            return []
        heap, found, stack = self._heap, set[Entry](), [0]
        while stack:
            at = stack.pop()
            if at < len(heap) and heap[at][0] <= now:
                if self._is_current(heap[at]):
                    found.add(heap[at])
                stack += (2 * at + 1, 2 * at + 2)
        return [self._items[entry[1:]] for entry in sorted(found)]

    def next_due(self) -> int | None:
        """The earliest due time of any item, None when there is none."""
        heap = self._heap
        while heap:
            due_at = heap[0][0]
            item = self._items.get(heap[0][1:])
            if item is not None and item.due_at == due_at:
                return due_at
            heapq.heappop(heap)
        return None

    def _is_current(self, entry: Entry) -> bool:
        item = self._items.get(entry[1:])
        return item is not None and item.due_at == entry[0]

    def _sweep(self) -> None:
        self._heap = [_entry(item) for item in self._items.values()]
        heapq.heapify(self._heap)


def _entry(item: WorkItem) -> Entry:
    return (item.due_at, *item.key)
