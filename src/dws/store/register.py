"""Reservations in memory, by id, by name and by state, and their series, by id and by name.

Every change is `exchange(old, new)`, whose undo is the same call with the two turned round.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict

from dws.engine.ports import ReservationQuery
from dws.model.reservation import Reservation, ReservationState
from dws.model.series import Series


class Register:
    """Every reservation kept."""

    def __init__(self) -> None:
        self._rows: dict[int, Reservation] = {}
        self._by_state: defaultdict[ReservationState, dict[int, None]] = defaultdict(dict)
        self._names: defaultdict[tuple[str, str], list[int]] = defaultdict(list)

    def get(self, reservation_id: int) -> Reservation | None:
        """The reservation of that id, None when there is none."""
        return self._rows.get(reservation_id)

    def named(self, project: str, name: str) -> Reservation | None:
        """The newest of that name that is not deleted, None when there is none."""
        ids = self._names.get((project, name))
        return self._rows[ids[-1]] if ids else None

    def largest_id(self) -> int:
        """The largest id kept, 0 when there is none."""
        return max(self._rows, default=0)

    def exchange(self, old: Reservation | None, new: Reservation | None) -> None:
        """Put `new` where `old` was."""
        if old is not None:
            del self._rows[old.id]
            del self._by_state[old.state][old.id]
            if not old.deleted:
                ids = self._names[old.project, old.name]
                del ids[bisect_left(ids, old.id)]
        if new is not None:
            self._rows[new.id] = new
            self._by_state[new.state][new.id] = None
            if not new.deleted:
                insort(self._names[new.project, new.name], new.id)

    def select(self, query: ReservationQuery) -> list[Reservation]:
        """At most `query.limit` reservations in id order."""
        states = set(query.states or self._by_state)
        ids = sorted((i for s in states for i in self._by_state.get(s, ())), reverse=query.newest_first)
        found: list[Reservation] = []
        for reservation in (self._rows[i] for i in ids):
            if len(found) >= query.limit:
                break
            if _is_behind(reservation, query) and _matches(reservation, query):
                found.append(reservation)
        return found

    def ended_before(self, instant: int) -> list[Reservation]:
        """Terminal ones that ended before `instant`."""
        over = (self._rows[i] for state, ids in self._by_state.items() if state.is_terminal for i in ids)
        return [r for r in over if 0 < r.ended_at < instant]


def _is_behind(reservation: Reservation, query: ReservationQuery) -> bool:
    if query.after is None:
        return True
    return reservation.id < query.after if query.newest_first else reservation.id > query.after


def _matches(reservation: Reservation, query: ReservationQuery) -> bool:
    return (
        (query.include_deleted or not reservation.deleted)
        and query.project in ("", reservation.project)
        and (not query.projects or reservation.project in query.projects)
        and query.series in ("", reservation.series)
        and (not query.ends_after or reservation.window.end > query.ends_after)
    )


class SeriesRegister:
    """Every series kept."""

    def __init__(self) -> None:
        self._rows: dict[int, Series] = {}
        self._names: defaultdict[tuple[str, str], list[int]] = defaultdict(list)

    def get(self, series_id: int) -> Series | None:
        """The series of that id, None when there is none."""
        return self._rows.get(series_id)

    def named(self, project: str, name: str) -> Series | None:
        """The newest of that name, None when there is none."""
        ids = self._names.get((project, name))
        return self._rows[ids[-1]] if ids else None

    def largest_id(self) -> int:
        """The largest id kept, 0 when there is none."""
        return max(self._rows, default=0)

    def exchange(self, old: Series | None, new: Series | None) -> None:
        """Put `new` where `old` was."""
        if old is not None:
            del self._rows[old.id]
            ids = self._names[old.project, old.name]
            del ids[bisect_left(ids, old.id)]
        if new is not None:
            self._rows[new.id] = new
            insort(self._names[new.project, new.name], new.id)

    def select(self, project: str) -> list[Series]:
        """Those of a project, or all for an empty one, by id."""
        return [s for _, s in sorted(self._rows.items()) if project in ("", s.project)]

    def ended_before(self, instant: int) -> list[Series]:
        """Those that ended before `instant`."""
        return [s for s in self._rows.values() if 0 < s.ended_at < instant]
