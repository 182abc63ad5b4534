"""What programs print: a chunk at a time, or as it is printed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from dws.api.method import Call, Method
from dws.api.native_v1.queries import FollowLogQuery, LogQuery
from dws.wire import native_v1 as wire

CHUNK_BYTES: Final = 65_536
POLL_FIRST_S: Final = 0.1
POLL_LAST_S: Final = 1.0
HEARTBEAT_S: Final = 15.0
CHARACTER_MAX_BYTES: Final = 4


def read(call: Call[None, LogQuery]) -> wire.LogChunk:
    """Output of one instance from an offset."""
    return chunk(call, call.query.rank, call.query.offset, call.query.limit)


def chunk(
    call: Call[None, LogQuery] | Call[None, FollowLogQuery], rank: int, offset: int, limit: int
) -> wire.LogChunk:
    """Whole characters only: the bytes of one that is not complete yet are left for the next chunk."""
    name = call.path["name"]
    data, after, complete = call.engine.read_log(call.who, call.project, name, rank, offset, limit)
    text, used = whole_characters(data)
    if data and not used and call.engine.get(call.who, call.project, name).request.state.is_terminal:
        text, used = data.decode(errors="replace"), len(data)
    return wire.LogChunk(text=text, offset=after - len(data) + used, complete=complete)


def whole_characters(data: bytes) -> tuple[str, int]:
    """The text of bytes up to the last complete character, and how many bytes that took."""
    for back in range(1, min(CHARACTER_MAX_BYTES, len(data) + 1)):
        lead = data[-back]
        if lead & 0xC0 == 0x80:
            continue
        size = 2 if lead & 0xE0 == 0xC0 else 3 if lead & 0xF0 == 0xE0 else 4 if lead & 0xF8 == 0xF0 else 1
        if size > back:
            data = data[:-back]
        break
    return data.decode(errors="replace"), len(data)


async def follow(call: Call[None, FollowLogQuery]) -> AsyncIterator[bytes]:
    """Chunks as server-sent events, the last one complete."""
    rank, offset = call.query.rank, call.query.offset
    pause_s, quiet_s = POLL_FIRST_S, 0.0
    yield b": what it prints\n\n"
    while not call.context.bell.closing:
        told = await call.context.workers.run(chunk, call, rank, offset, CHUNK_BYTES)
        offset = told.offset
        if told.text or told.complete:
            yield b"id: %d\ndata: %b\n\n" % (offset, msgspec.json.encode(told))
            pause_s, quiet_s = POLL_FIRST_S, 0.0
        elif quiet_s >= HEARTBEAT_S:
            yield b": nothing new\n\n"
            quiet_s = 0.0
        if told.complete:
            return
        if not told.text:
            await asyncio.sleep(pause_s)
            quiet_s += pause_s
            pause_s = min(POLL_LAST_S, pause_s * 1.5)


METHODS: Final = (
    Method(
        id="dws.requests.logs",
        verb="GET",
        path="/dws/v1/projects/{project}/requests/{name}:logs",
        summary="What one instance printed, from a byte offset.",
        query=LogQuery,
        response=wire.LogChunk,
        handler=read,
    ),
    Method(
        id="dws.requests.followLogs",
        verb="GET",
        path="/dws/v1/projects/{project}/requests/{name}:followLogs",
        summary="What one instance prints, as server-sent events, until no more will come.",
        query=FollowLogQuery,
        response=wire.LogChunk,
        streams=True,
        handler=follow,
    ),
)
