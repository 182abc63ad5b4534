"""What a client can ask about reservations, series, maintenance and the calendar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote as quoted

from dws.wire import native_v1 as wire

if TYPE_CHECKING:
    from dws.client.transport import Transport

T = TypeVar("T")
ROOT: Final = "/dws/v1"
PAGE_SIZE: Final = 500


class CalendarCalls:
    """The part of `Client` that is about the calendar."""

    project: str
    _transport: Transport

    # --- reservations -------------------------------------------------------------------------

    def reserve(
        self, ask: wire.ReserveBody, *, project: str | None = None, request_id: str | None = None
    ) -> wire.Reserved:
        """Book capacity ahead, or with `dry_run` say how it would be. Raises NoRoom with the nearest windows
        that would fit in its `details`."""
        path = self._calendar(project, "reservations")
        return self._transport.call("POST", path, wire.Reserved, body=ask, request_id=request_id)

    def reservation(self, name: str, *, project: str | None = None) -> wire.Reservation:
        """One reservation, with its hosts and what runs and waits in it."""
        path = self._calendar(project, "reservations", name)
        return self._transport.call("GET", path, wire.Reservation)

    def reservations(
        self, *, state: str = "", newest_first: bool = False, project: str | None = None
    ) -> Iterator[wire.Reservation]:
        """Every reservation, over all pages; project `-` is all the caller may see."""
        query: dict[str, Any] = {
            "state": state,
            "pageSize": PAGE_SIZE,
            "newestFirst": newest_first or "",
        }
        while True:
            path = self._calendar(project, "reservations")
            page = self._transport.call("GET", path, wire.ReservationList, query=query)
            yield from page.items
            if not page.next_page_token:
                return
            query["pageToken"] = page.next_page_token

    def amend_reservation(
        self, name: str, change: wire.AmendReservationBody, *, project: str | None = None
    ) -> wire.Reserved:
        """Change a reservation in one step; what is left out stays."""
        path = self._calendar(project, "reservations", name)
        return self._transport.call("PATCH", path, wire.Reserved, body=change)

    def approve(self, name: str, *, project: str | None = None) -> wire.Reservation:
        """Say yes to a reservation that waits for approval."""
        return self._act(project, "reservations", name, "approve", wire.Reservation)

    def decline(self, name: str, *, reason: str = "", project: str | None = None) -> wire.Reservation:
        """Say no to a reservation that waits for approval."""
        body = wire.DeclineBody(reason=reason)
        return self._act(project, "reservations", name, "decline", wire.Reservation, body)

    def cancel_reservation(
        self, name: str, *, force: bool = False, project: str | None = None
    ) -> wire.Reservation:
        """Stop wanting a reservation that has not started."""
        body = wire.CancelBody(force=force)
        return self._act(project, "reservations", name, "cancel", wire.Reservation, body)

    def release_reservation(self, name: str, *, project: str | None = None) -> wire.Reservation:
        """Give an open reservation back early."""
        return self._act(project, "reservations", name, "release", wire.Reservation)

    def delete_reservation(self, name: str, *, project: str | None = None) -> None:
        """Put the record of a reservation that is over away."""
        path = self._calendar(project, "reservations", name)
        self._transport.call("DELETE", path, dict[str, object])

    # --- the calendar -------------------------------------------------------------------------

    def advise(self, ask: wire.AdviseBody, *, project: str | None = None) -> wire.Advice:
        """Windows that could be booked now, best first. Holds nothing."""
        path = f"{ROOT}/projects/{quoted(project or self.project, safe='')}:advise"
        return self._transport.call("POST", path, wire.Advice, body=ask)

    def calendar(
        self, *, start: str = "", end: str = "", zone: str = "", pool: str = ""
    ) -> wire.CalendarView:
        """What is booked and what is free, pool by pool."""
        query = {"start": start, "end": end, "zone": zone, "pool": pool}
        return self._transport.call("GET", f"{ROOT}/calendar", wire.CalendarView, query=query)

    def feed(self, *, project: str = "") -> str:
        """The iCalendar feed of a project, or of the whole fleet."""
        path = f"{ROOT}/calendar.ics"
        if project:
            path = f"{ROOT}/projects/{quoted(project, safe='')}/calendar.ics"
        return self._transport.text(path)

    # --- series -------------------------------------------------------------------------------

    def repeat(self, ask: wire.RepeatBody, *, project: str | None = None) -> wire.Series:
        """Book the same again and again."""
        path = self._calendar(project, "series")
        return self._transport.call("POST", path, wire.Series, body=ask)

    def series(self, name: str, *, project: str | None = None) -> wire.Series:
        """One series with its next occurrences."""
        return self._transport.call("GET", self._calendar(project, "series", name), wire.Series)

    def all_series(self, *, project: str | None = None) -> list[wire.Series]:
        """Every series of a project."""
        return self._transport.call("GET", self._calendar(project, "series"), wire.SeriesList).items

    def amend_series(
        self, name: str, change: wire.AmendSeriesBody, *, project: str | None = None
    ) -> wire.Series:
        """Change a series from now on."""
        path = self._calendar(project, "series", name)
        return self._transport.call("PATCH", path, wire.Series, body=change)

    def leave_out(self, name: str, day: str, *, project: str | None = None) -> wire.Series:
        """Cancel the occurrence of one day."""
        body = wire.LeaveOutBody(day=day)
        return self._act(project, "series", name, "leaveOut", wire.Series, body)

    def cancel_series(self, name: str, *, project: str | None = None) -> wire.Series:
        """End a series and cancel what of it has not started."""
        return self._act(project, "series", name, "cancel", wire.Series)

    # --- maintenance --------------------------------------------------------------------------

    def plan_maintenance(self, ask: wire.MaintenanceBody) -> wire.MaintenanceAnswer:
        """Take hosts out of service over a window; without `confirm` only say whom it touches."""
        return self._transport.call("POST", f"{ROOT}/maintenance", wire.MaintenanceAnswer, body=ask)

    def maintenance(self) -> list[wire.Maintenance]:
        """Every maintenance window that is not over."""
        return self._transport.call("GET", f"{ROOT}/maintenance", wire.MaintenanceList).items

    def cancel_maintenance(self, name: str) -> None:
        """Cancel a window, or end it before its time."""
        path = f"{ROOT}/maintenance/{quoted(name, safe='')}"
        self._transport.call("DELETE", path, dict[str, object])

    def _calendar(self, project: str | None, noun: str, *names: str) -> str:
        parts: Sequence[str] = (project or self.project, noun, *names)
        return f"{ROOT}/projects/" + "/".join(quoted(part, safe="") for part in parts)

    def _act(
        self,
        project: str | None,
        noun: str,
        name: str,
        verb: str,
        answer: type[T],
        body: wire.Wire | None = None,
    ) -> T:
        path = f"{self._calendar(project, noun, name)}:{verb}"
        return self._transport.call("POST", path, answer, body=body)
