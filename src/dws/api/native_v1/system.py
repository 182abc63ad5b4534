"""The scheduler itself: its clock, the ledger's check, usage, a backup."""

from __future__ import annotations

from typing import Final

from dws.api.dispatch import need_token
from dws.api.method import Call, Method, NoQuery
from dws.api.native_v1 import convert
from dws.api.native_v1.queries import UsageQuery
from dws.model.access import Role
from dws.model.errors import InvalidArgument
from dws.model.time import DAY
from dws.wire import native_v1 as wire
from dws.wire.timefmt import format_instant

ADVANCE_MAX_S: Final = 366 * DAY


def clock(call: Call[None, NoQuery]) -> wire.Clock:
    """Domain time."""
    return _clock(call.engine.now(), virtual=call.engine.is_virtual)


def advance(call: Call[wire.AdvanceRequest, NoQuery]) -> wire.Clock:
    """Let a virtual clock run on."""
    seconds = convert.duration(call.body.by, "by")
    if seconds > ADVANCE_MAX_S:
        raise InvalidArgument("by: at most 366d at once", field="by")
    now = call.engine.advance(call.who, seconds)
    return _clock(now, virtual=True)


def _clock(now: int, *, virtual: bool) -> wire.Clock:
    return wire.Clock(now=format_instant(now), epoch=now, virtual=virtual)


def usage(call: Call[None, UsageQuery]) -> wire.Usage:
    """Use over a span of time."""
    start = convert.instant(call.query.start, "start", 0)
    end = convert.instant(call.query.end, "end", call.engine.now())
    if end < start:
        raise InvalidArgument("end: lies before the start", field="end")
    lines = call.engine.usage(call.who, start=start, end=end, project=call.query.project)
    return wire.Usage(
        start=format_instant(start),
        end=format_instant(end),
        currency=call.engine.declared_fleet(call.who).currency,
        lines=[convert.usage_line(line) for line in lines],
    )


def verify(call: Call[None, NoQuery]) -> wire.Verification:
    """The ledger checked against itself."""
    told = call.engine.verify(call.who)
    return wire.Verification(
        bookings=told.bookings, requests=told.requests, events=told.events, faults=list(told.faults)
    )


def backup(call: Call[wire.BackupRequest, NoQuery]) -> None:
    """Writes a file as the server's user, so whoever asks must have shown a token."""
    need_token(call.who, "a backup")
    call.engine.backup(call.who, call.body.path)


METHODS: Final = (
    Method(
        id="dws.clock.get",
        verb="GET",
        path="/dws/v1/clock",
        summary="The time this server goes by.",
        response=wire.Clock,
        handler=clock,
    ),
    Method(
        id="dws.clock.advance",
        verb="POST",
        path="/dws/v1/clock:advance",
        summary="Let a virtual clock run on; answers when everything due has happened.",
        role=Role.OPERATOR,
        request=wire.AdvanceRequest,
        response=wire.Clock,
        handler=advance,
    ),
    Method(
        id="dws.usage",
        verb="GET",
        path="/dws/v1/usage",
        summary="Who used what over [start, end), running work included until now.",
        query=UsageQuery,
        response=wire.Usage,
        handler=usage,
    ),
    Method(
        id="dws.ledger.verify",
        verb="GET",
        path="/dws/v1/ledger:verify",
        summary="Check the ledger against itself; no faults is good.",
        response=wire.Verification,
        handler=verify,
    ),
    Method(
        id="dws.backup",
        verb="POST",
        path="/dws/v1/backup",
        summary="Write a consistent copy of the store to a path on the server's machine.",
        role=Role.OPERATOR,
        request=wire.BackupRequest,
        handler=backup,
    ),
)
