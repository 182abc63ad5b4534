"""`Engine`: the object every face is given. One method for each thing a caller can ask."""

from __future__ import annotations

from collections.abc import Iterator

from dws.engine.answers import (
    Extended,
    FleetChange,
    FleetView,
    Health,
    HostChange,
    RequestPage,
    RequestView,
    UsageLine,
    Verification,
)
from dws.engine.commands import Amend, ChangeHosts, Extend, Release, Submit
from dws.engine.ports import RequestQuery
from dws.model.access import Principal
from dws.model.demand import Demand
from dws.model.events import Event
from dws.model.topology import Fleet
from dws.planner.plan import Quote


class Engine:
    """Synchronous and thread-safe. Every method takes the caller; raises `dws.model.errors`.

    Reads change nothing. Writes return after they are durable. `name` arguments accept a request's
    name (the newest of that name) or its id in decimal.
    """

    def now(self) -> int: ...
    # requests
    def submit(self, who: Principal, command: Submit) -> tuple[RequestView, ...]: ...
    def amend(self, who: Principal, command: Amend) -> RequestView: ...
    def cancel(self, who: Principal, project: str, name: str, call_id: str = "") -> RequestView: ...
    def release(self, who: Principal, command: Release) -> RequestView: ...
    def extend(self, who: Principal, command: Extend) -> Extended: ...
    def delete(self, who: Principal, project: str, name: str) -> None: ...
    def get(self, who: Principal, project: str, name: str) -> RequestView: ...
    def list(self, who: Principal, query: RequestQuery) -> RequestPage: ...
    def queue(self, who: Principal) -> tuple[RequestView, ...]:
        """Every waiting request in line order, each with its forecast."""
    def quote(self, who: Principal, project: str, demand: Demand, priority: int = 0) -> Quote: ...
    def read_log(self, who: Principal, project: str, name: str, rank: int, offset: int, limit: int) -> tuple[bytes, int, bool]:
        """Output bytes, the next offset, and whether no more will ever come."""
    # fleet
    def fleet(self, who: Principal) -> FleetView: ...
    def declared_fleet(self, who: Principal) -> Fleet: ...
    def apply_fleet(self, who: Principal, fleet: Fleet, *, confirm: bool) -> FleetChange: ...
    def change_hosts(self, who: Principal, command: ChangeHosts) -> HostChange: ...
    # story
    def events(self, who: Principal, *, after: int = 0, limit: int = 500, project: str = "", name: str = "", newest_first: bool = False) -> list[Event]: ...
    def wait_for_events(self, after: int, timeout_s: float) -> bool:
        """Block until an event with seq > after is committed, or the process-time timeout."""
    def usage(self, who: Principal, *, start: int, end: int, project: str = "") -> tuple[UsageLine, ...]: ...
    def verify(self, who: Principal) -> Verification: ...
    def backup(self, who: Principal, path: str) -> None: ...
    def health(self) -> Health: ...
    # clock (virtual only; raises FailedPrecondition on a real clock)
    def advance(self, who: Principal, seconds: int) -> int:
        """Step through everything due in that time and return the new now."""
