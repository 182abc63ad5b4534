"""Work items in memory, in the order they fall due.

A dictionary holds the items, a sorted list their (due_at, kind, subject, tag). Scheduling and removing
cost a search and one move of memory, asking what is due costs what is due, and nothing is copied.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from dws.model.work import WorkItem

Key = tuple[str, int, str]
Entry = tuple[int, str, int, str]


class Agenda:
    """Items by key, by subject and by due time."""

    def __init__(self) -> None:
        self._items: dict[Key, WorkItem] = {}
        self._keys: dict[int, dict[Key, None]] = {}
        self._line: list[Entry] = []

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
        elif old.due_at == item.due_at:
            return old
        else:
            self._cross_out(old.due_at, key)
        insort(self._line, (item.due_at, *key))
        return old

    def remove(self, key: Key) -> WorkItem:
        """Forget the item of that key, which must exist, and return it."""
        item = self._items.pop(key)
        keys = self._keys[item.subject]
        del keys[key]
        if not keys:
            del self._keys[item.subject]
        self._cross_out(item.due_at, key)
        return item

    def _cross_out(self, due_at: int, key: Key) -> None:
        del self._line[bisect_left(self._line, (due_at, *key))]

    def keys(self, subject: int) -> Iterable[Key]:
        """The keys of a subject's items, in no particular order; not to be held across a change."""
        return self._keys.get(subject, ())

    def of(self, subject: int) -> list[WorkItem]:
        """Every item of a subject, in due order."""
        return sorted((self._items[k] for k in self.keys(subject)), key=_entry)

    def all(self) -> list[WorkItem]:
        """Every item, in no particular order."""
        return list(self._items.values())

    def due(self, now: int) -> list[WorkItem]:
        """Every item due at or before `now`, in (due_at, kind, subject, tag) order."""
        if not self._line or self._line[0][0] > now:
            return []
        end = bisect_left(self._line, (now + 1,))
        return [self._items[entry[1:]] for entry in self._line[:end]]

    def next_due(self) -> int | None:
        """The earliest due time of any item, None when there is none."""
        return self._line[0][0] if self._line else None


def _entry(item: WorkItem) -> Entry:
    return (item.due_at, *item.key)
