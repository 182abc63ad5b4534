"""`Client`: one method for each thing the native API answers, returning its structs.

    client = dws.Client()
    wish = dws.Alternative(accelerators="h100:16", duration="4h")
    request = client.submit(wish, command=["python", "train.py"])
    done = client.wait(request.name)

Synchronous. Raises the classes of `dws.model.errors` with the server's reason, field and message, and
`NoServer` when nobody answers. `project` on a call overrides the client's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote as quoted

import msgspec

from dws.client import whereabouts
from dws.client.calendar import CalendarCalls
from dws.client.transport import NoServer, Transport, server_sent
from dws.wire import native_v1 as wire

if TYPE_CHECKING:
    import httpx2

ROOT: Final = "/dws/v1"
ENDED: Final = frozenset({"COMPLETED", "CANCELLED", "FAILED", "EXPIRED"})
STARTED: Final = ENDED | {"ACTIVE", "ENDING"}
POLL_FIRST_S: Final = 0.1
POLL_LAST_S: Final = 1.0
PAGE_SIZE: Final = 500
LOG_CHUNK_BYTES: Final = 65_536


class Client(CalendarCalls):
    """A connection to a server.

    Finds address and token by itself when they are not given (see `dws.client.whereabouts`).
    `timeout` is seconds a call may take. Use it in a `with` block, or call `close`.
    """

    def __init__(
        self,
        address: str | None = None,
        token: str | None = None,
        project: str | None = None,
        *,
        timeout: float = 30.0,
        transport: httpx2.BaseTransport | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.project = whereabouts.find_project(project)
        self._pause = pause
        self._transport = Transport(
            address=whereabouts.find_address(address),
            token=whereabouts.find_token(token),
            timeout_s=timeout,
            inner=transport,
            pause=pause,
        )

    @property
    def address(self) -> str:
        """The server's URL."""
        return self._transport.address

    def close(self) -> None:
        """Close every connection."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- asking -------------------------------------------------------------------------------

    def submit(
        self,
        *alternatives: wire.Alternative,
        command: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        directory: str | None = None,
        name: str = "",
        wait: str | int | None = None,
        not_before: str = "",
        not_after: str = "",
        priority: int = 0,
        labels: dict[str, str] | None = None,
        on_host_loss: str = "",
        reservation: str = "",
        project: str | None = None,
    ) -> wire.Request:
        """Ask for capacity, alternatives in order of preference; with a command it is run there.

        `directory` is where the command runs, the current one by default. Without a command the
        instances are held until released.
        """
        workload = None
        if command:
            workload = wire.Workload(
                command=list(command),
                environment=environment or {},
                directory=directory or str(Path.cwd()),
            )
        ask = wire.SubmitRequest(
            alternatives=list(alternatives),
            name=name,
            wait=wait,
            not_before=not_before,
            not_after=not_after,
            priority=priority,
            labels=labels or {},
            workload=workload,
            on_host_loss=on_host_loss,
            reservation=reservation,
        )
        return self.submit_all(ask, project=project)[0]

    def submit_all(
        self, ask: wire.SubmitRequest, *, project: str | None = None, request_id: str | None = None
    ) -> list[wire.Request]:
        """Ask for capacity with everything the API knows; an array gives several requests."""
        path = self._requests(project)
        answer = self._transport.call("POST", path, wire.RequestList, body=ask, request_id=request_id)
        return answer.items

    def run(
        self,
        *alternatives: wire.Alternative,
        command: Sequence[str],
        show: Callable[[int, str], None] | None = None,
        **how: Any,
    ) -> wire.Request:
        """Submit, wait until it ended, and give the ended request; `how` is as for `submit`.

        `show`, when given, is called with the rank and the text of everything the instances print.
        """
        request = self.submit(*alternatives, command=command, **how)
        project = how.get("project")
        if show is not None:
            self.wait(request.name, until="started", project=project)
            for rank, text in self.follow_all_logs(request.name, project=project):
                show(rank, text)
        return self.wait(request.name, project=project)

    def quote(
        self,
        *alternatives: wire.Alternative,
        not_before: str = "",
        not_after: str = "",
        priority: int = 0,
        reservation: str = "",
        project: str | None = None,
    ) -> wire.Quote:
        """When, until when and for how much, without asking. Holds nothing."""
        ask = wire.QuoteRequest(
            alternatives=list(alternatives),
            not_before=not_before,
            not_after=not_after,
            priority=priority,
            reservation=reservation,
        )
        path = f"{ROOT}/projects/{quoted(project or self.project, safe='')}:quote"
        return self._transport.call("POST", path, wire.Quote, body=ask)

    # --- one request --------------------------------------------------------------------------

    def get(self, name: str, *, project: str | None = None) -> wire.Request:
        """One request, with its forecast while it waits and its cost so far."""
        return self._transport.call("GET", self._requests(project, name), wire.Request)

    def amend(self, name: str, change: wire.AmendRequest, *, project: str | None = None) -> wire.Request:
        """Change a waiting request; it keeps its age in the queue."""
        return self._transport.call("PATCH", self._requests(project, name), wire.Request, body=change)

    def cancel(self, name: str, *, project: str | None = None) -> wire.Request:
        """Stop wanting a request that waits or is being provisioned."""
        return self._transport.call("POST", self._requests(project, name, "cancel"), wire.Request)

    def release(self, name: str, *, ranks: Sequence[int] = (), project: str | None = None) -> wire.Request:
        """Give back what a request holds, whole or by instance."""
        body = wire.ReleaseRequest(ranks=list(ranks))
        return self._transport.call("POST", self._requests(project, name, "release"), wire.Request, body=body)

    def extend(
        self,
        name: str,
        by: str | int,
        *,
        at_most: bool = False,
        dry_run: bool = False,
        project: str | None = None,
    ) -> wire.ExtendAnswer:
        """Run longer if that breaks no promise; with `at_most` as long as is possible up to `by`."""
        body = wire.ExtendRequest(by=by, at_most=at_most, dry_run=dry_run)
        path = self._requests(project, name, "extend")
        return self._transport.call("POST", path, wire.ExtendAnswer, body=body)

    def delete(self, name: str, *, project: str | None = None) -> None:
        """Put a finished request's record away; its name is free then."""
        self._transport.call("DELETE", self._requests(project, name), dict[str, object])

    def wait(
        self,
        name: str,
        *,
        until: Literal["started", "ended"] = "ended",
        timeout: float | None = None,
        project: str | None = None,
    ) -> wire.Request:
        """Wait until a request started or ended and give it as it is then.

        A server that is away for a while is waited for. Raises TimeoutError after `timeout` seconds of
        waiting.
        """
        states = STARTED if until == "started" else ENDED
        deadline = None if timeout is None else time.monotonic() + timeout
        for request in self.watch(name, project=project):
            if request.state in states:
                return request
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"request '{name}' is still {request.state} after {timeout:g} s")
        raise AssertionError("a watch ends with its reader")

    def watch(self, name: str, *, project: str | None = None) -> Iterator[wire.Request]:
        """The request again and again, at first every tenth of a second, later every second, for ever."""
        pause_s, seen = POLL_FIRST_S, False
        while True:
            try:
                request = self.get(name, project=project)
            except NoServer:
                if not seen:
                    raise
            else:
                seen = True
                yield request
            self._pause(pause_s)
            pause_s = min(POLL_LAST_S, pause_s * 1.5)

    # --- many requests ------------------------------------------------------------------------

    def page(
        self,
        *,
        filter: str = "",
        order_by: str = "",
        page_size: int = PAGE_SIZE,
        page_token: str = "",
        project: str | None = None,
    ) -> wire.RequestList:
        """One page of requests; `next_page_token` continues."""
        query = {
            "filter": filter,
            "orderBy": order_by,
            "pageSize": page_size,
            "pageToken": page_token,
        }
        return self._transport.call("GET", self._requests(project), wire.RequestList, query=query)

    def requests(
        self, *, filter: str = "", order_by: str = "", project: str | None = None
    ) -> Iterator[wire.Request]:
        """Every request, over all pages."""
        token = ""
        while True:
            page = self.page(filter=filter, order_by=order_by, page_token=token, project=project)
            yield from page.items
            token = page.next_page_token
            if not token:
                return

    def queue(self) -> wire.RequestList:
        """Everything waiting that the caller may see, in line order, with forecasts."""
        return self._transport.call("GET", f"{ROOT}/queue", wire.RequestList)

    # --- what programs print ------------------------------------------------------------------

    def logs(
        self,
        name: str,
        *,
        rank: int = 0,
        offset: int = 0,
        limit: int = LOG_CHUNK_BYTES,
        project: str | None = None,
    ) -> wire.LogChunk:
        """Output of one instance from a byte offset; the chunk's `offset` is where the next begins."""
        query = {"rank": rank, "offset": offset, "limit": limit}
        return self._transport.call("GET", self._requests(project, name, "logs"), wire.LogChunk, query=query)

    def follow_logs(
        self, name: str, *, rank: int = 0, offset: int = 0, project: str | None = None
    ) -> Iterator[str]:
        """What one instance prints, as it prints it, until it will print no more."""
        path = self._requests(project, name, "followLogs")
        while True:
            try:
                with self._transport.stream(path, {"rank": rank, "offset": offset}) as lines:
                    for sent in server_sent(lines):
                        chunk = msgspec.json.decode(sent["data"], type=wire.LogChunk)
                        offset = chunk.offset
                        if chunk.text:
                            yield chunk.text
                        if chunk.complete:
                            return
            except NoServer:
                self._transport.reachable_or_raise()
            self._pause(POLL_LAST_S)

    def follow_all_logs(self, name: str, *, project: str | None = None) -> Iterator[tuple[int, str]]:
        """(rank, text) of what all instances print, until none will print more.

        Reads the instances in turn, so that no line waits for another's. A new attempt, after a lost
        host, is read from its beginning.
        """
        offsets: dict[int, int] = {}
        done: set[int] = set()
        attempt, pause_s = 0, POLL_FIRST_S
        while True:
            request = self.get(name, project=project)
            if request.grant is not None and request.grant.attempt != attempt:
                attempt, offsets, done = request.grant.attempt, {}, set()
            ranks = [i.rank for i in request.grant.instances] if request.grant else []
            spoke = False
            for rank in ranks:
                if rank in done:
                    continue
                chunk = self.logs(name, rank=rank, offset=offsets.get(rank, 0), project=project)
                offsets[rank] = chunk.offset
                if chunk.text:
                    spoke = True
                    yield rank, chunk.text
                elif chunk.complete:
                    done.add(rank)
            if request.state in ENDED and done.issuperset(ranks):
                return
            pause_s = POLL_FIRST_S if spoke else min(POLL_LAST_S, pause_s * 1.5)
            self._pause(pause_s)

    # --- the fleet ----------------------------------------------------------------------------

    def fleet(self) -> wire.Fleet:
        """The fleet as it stands."""
        return self._transport.call("GET", f"{ROOT}/fleet", wire.Fleet)

    def apply_fleet(self, toml: str, *, confirm: bool = False) -> wire.ApplyFleetAnswer:
        """Declare the fleet anew from the text of a fleet file; without `confirm` only say what changes."""
        body = wire.ApplyFleetRequest(toml=toml, confirm=confirm)
        return self._transport.call("POST", f"{ROOT}/fleet:apply", wire.ApplyFleetAnswer, body=body)

    def defrag(self, wanted: wire.Alternative) -> wire.DefragAnswer:
        """Whose work would have to end or move to make room for a shape. Changes nothing."""
        body = wire.DefragRequest(wanted=wanted)
        return self._transport.call("POST", f"{ROOT}/fleet:defrag", wire.DefragAnswer, body=body)

    def change_hosts(
        self,
        hosts: Sequence[str],
        state: Literal["READY", "DRAINING", "DOWN"],
        *,
        reason: str = "",
        until: str = "",
        confirm: bool = False,
    ) -> wire.ChangeHostsAnswer:
        """Drain, fail or repair hosts; without `confirm` only say whom it affects."""
        body = wire.ChangeHostsRequest(
            hosts=list(hosts), state=state, reason=reason, until=until, confirm=confirm
        )
        path = f"{ROOT}/fleet:changeHosts"
        return self._transport.call("POST", path, wire.ChangeHostsAnswer, body=body)

    # --- the story ----------------------------------------------------------------------------

    def events(
        self,
        *,
        after: int = 0,
        limit: int = PAGE_SIZE,
        project: str = "",
        name: str = "",
        reservation: str = "",
        newest_first: bool = False,
    ) -> wire.EventList:
        """Recorded facts behind sequence number `after`; with `name` those of one request, with
        `reservation` those of one reservation."""
        query = {
            "after": after,
            "limit": limit,
            "project": project,
            "name": name,
            "reservation": reservation,
            "newestFirst": newest_first or "",
        }
        return self._transport.call("GET", f"{ROOT}/events", wire.EventList, query=query)

    def follow_events(
        self, *, after: int | None = None, project: str = "", name: str = "", reservation: str = ""
    ) -> Iterator[wire.Event]:
        """Facts as they are recorded, for ever; a broken connection is taken up where it broke.

        `after` None begins with what happens from now on.
        """
        path = f"{ROOT}/events:follow"
        while True:
            query = {"after": after, "project": project, "name": name, "reservation": reservation}
            try:
                with self._transport.stream(path, query) as lines:
                    for sent in server_sent(lines):
                        event = msgspec.json.decode(sent["data"], type=wire.Event)
                        after = event.seq
                        yield event
            except NoServer:
                self._transport.reachable_or_raise()
            self._pause(POLL_LAST_S)

    def usage(self, *, start: str = "", end: str = "", project: str = "") -> wire.Usage:
        """Use over [start, end), RFC 3339; running work is included until now."""
        query = {"start": start, "end": end, "project": project}
        return self._transport.call("GET", f"{ROOT}/usage", wire.Usage, query=query)

    def verify_ledger(self) -> wire.Verification:
        """The ledger checked against itself."""
        return self._transport.call("GET", f"{ROOT}/ledger:verify", wire.Verification)

    def backup(self, path: str) -> None:
        """Write a consistent copy of the store to a path on the server's machine."""
        body = wire.BackupRequest(path=path)
        self._transport.call("POST", f"{ROOT}/backup", dict[str, object], body=body, once=True)

    # --- time ---------------------------------------------------------------------------------

    def clock(self) -> wire.Clock:
        """The server's time."""
        return self._transport.call("GET", f"{ROOT}/clock", wire.Clock)

    def advance(self, by: str | int) -> wire.Clock:
        """Let a virtual clock run on by that much; returns when everything due happened."""
        body = wire.AdvanceRequest(by=by)
        return self._transport.call("POST", f"{ROOT}/clock:advance", wire.Clock, body=body, once=True)

    def _requests(self, project: str | None, name: str = "", verb: str = "") -> str:
        path = f"{ROOT}/projects/{quoted(project or self.project, safe='')}/requests"
        if name:
            path += f"/{quoted(name, safe='')}"
        return f"{path}:{verb}" if verb else path
