"""Recorded facts: listed, or followed as they are committed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from dws.api.method import Call, Method
from dws.api.native_v1 import convert_events
from dws.api.native_v1.queries import EventQuery, FollowQuery
from dws.model.errors import InvalidArgument
from dws.wire import native_v1 as wire

HEARTBEAT_S: Final = 15.0
AT_ONCE: Final = 500


def read(call: Call[None, EventQuery]) -> wire.EventList:
    """Facts behind a number; `lastSeq` is where to go on."""
    query = call.query
    _check(query)
    reached = call.engine.last_seq()
    found = call.engine.events(
        call.who,
        after=query.after,
        limit=query.limit,
        project=query.project,
        name=query.name,
        reservation=query.reservation,
        newest_first=query.newest_first,
    )
    last = max((event.seq for event in found), default=max(reached, query.after))
    return wire.EventList(items=[convert_events.event(event) for event in found], last_seq=last)


async def follow(call: Call[None, FollowQuery]) -> AsyncIterator[bytes]:
    """Facts as server-sent events, each with its number as id, until the caller or the server goes."""
    context, query = call.context, call.query
    _check(query)
    after = _begin(call)
    while True:
        reached = context.engine.last_seq()
        found = await context.workers.run(_next, call, after)
        if found:
            after = found[-1].seq
            yield b"".join(map(_sent, found))
            continue
        after = max(after, reached)
        yield b": so far until %d\n\n" % after
        if context.bell.closing:
            return
        await context.bell.wait(after, HEARTBEAT_S)


def _begin(call: Call[None, FollowQuery]) -> int:
    """Where a broken stream stopped, else where the caller says, else now."""
    if call.last_event_id:
        if not call.last_event_id.isascii() or not call.last_event_id[:20].isdecimal():
            raise InvalidArgument(
                f"Last-Event-ID: '{call.last_event_id[:40]}' is not a sequence number", field="Last-Event-ID"
            )
        return int(call.last_event_id[:20])
    return call.engine.last_seq() if call.query.after is None else call.query.after


def _next(call: Call[None, FollowQuery], after: int) -> list[wire.Event]:
    query = call.query
    found = call.engine.events(
        call.who,
        after=after,
        limit=AT_ONCE,
        project=query.project,
        name=query.name,
        reservation=query.reservation,
    )
    return [convert_events.event(event) for event in found]


def _sent(event: wire.Event) -> bytes:
    return b"id: %d\ndata: %b\n\n" % (event.seq, msgspec.json.encode(event))


def _check(query: EventQuery | FollowQuery) -> None:
    if query.name and query.reservation:
        raise InvalidArgument("reservation: give either this or 'name'", field="reservation")
    if (query.name or query.reservation) and not query.project:
        given = "name" if query.name else "reservation"
        raise InvalidArgument(f"project: is needed with '{given}'", field="project", reason="missingField")


METHODS: Final = (
    Method(
        id="dws.events.list",
        verb="GET",
        path="/dws/v1/events",
        summary="Recorded facts behind a sequence number; with name or reservation those of one.",
        query=EventQuery,
        response=wire.EventList,
        handler=read,
    ),
    Method(
        id="dws.events.follow",
        verb="GET",
        path="/dws/v1/events:follow",
        summary="Facts as they are recorded, as server-sent events; Last-Event-ID takes a broken one up.",
        query=FollowQuery,
        response=wire.Event,
        streams=True,
        handler=follow,
    ),
)
