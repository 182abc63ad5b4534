"""Reservations as an iCalendar feed (RFC 5545) that calendar programs subscribe to.

A reservation keeps its identifier for ever, whatever host the feed is fetched from, and its sequence number
rises with every change, so that a program moves what it shows instead of showing it twice. Cancelled
reservations stay in the feed, cancelled, for programs to take them away. Whoever may not see a reservation
sees only that so many hosts are taken. Neighbours: `dws.feeds.zone`; folding and escaping are icalendar's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from icalendar import Calendar, Event, vDuration, vText

from dws.feeds.zone import calendar_zone
from dws.model.access import Principal, Role
from dws.model.errors import InvalidArgument
from dws.model.localtime import zone_named
from dws.model.reservation import Reservation, ReservationState
from dws.model.time import Span

PRODUCT: Final = "-//OpenDWS//OpenDWS calendar//EN"
UID_SUFFIX: Final = "reservation.opendws"
REFRESH: Final = timedelta(minutes=15)
_UTC_NAMES: Final = frozenset({"", "UTC", "Etc/UTC", "Z"})
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_STATUS: Final = {
    ReservationState.PENDING_APPROVAL: "TENTATIVE",
    ReservationState.DECLINED: "CANCELLED",
    ReservationState.CANCELLED: "CANCELLED",
}


def ics(reservations: Iterable[Reservation], *, title: str, now: int, viewer: Principal) -> bytes:
    """The feed, as bytes in UTF-8, of these reservations in order of their start; `now` stamps them.

    The names and texts of reservations of projects that `viewer` may not see are left out.
    """
    shown = sorted(reservations, key=lambda one: (one.window, one.id))
    feed = Calendar()
    feed.add("VERSION", "2.0")
    feed.add("PRODID", PRODUCT)
    feed.add("CALSCALE", "GREGORIAN")
    for name in ("NAME", "X-WR-CALNAME"):  # the standard's, and the one that programs read
        feed.add(name, vText(_clean(title)))
    feed.add("REFRESH-INTERVAL", vDuration(REFRESH), parameters={"VALUE": "DURATION"})
    feed.add("X-PUBLISHED-TTL", vDuration(REFRESH))
    for name, span in _zones(shown).items():
        feed.add_component(calendar_zone(ZoneInfo(name), span))
    for one in shown:
        feed.add_component(_event(one, now=now, is_visible=may_see(viewer, one)))
    return bytes(feed.to_ical())


def may_see(viewer: Principal, one: Reservation) -> bool:
    """True when the names and texts of a reservation are for `viewer`: of a project that it belongs to."""
    if viewer.role is Role.OPERATOR or not viewer.projects:
        return True
    return any(one.hosts_max_of(project) is not None for project in viewer.projects)


def _zones(reservations: Iterable[Reservation]) -> dict[str, Span]:
    """The zones that are needed, and from when to when."""
    spans: dict[str, Span] = {}
    for one in reservations:
        if (zone := _zone_of(one)) is not None:
            known = spans.get(zone.key, one.window)
            spans[zone.key] = Span(min(known.start, one.window.start), max(known.end, one.window.end))
    return dict(sorted(spans.items()))


def _zone_of(one: Reservation) -> ZoneInfo | None:
    """The zone its owner thinks in; None for UTC, and for one that this machine no longer knows."""
    if one.time_zone in _UTC_NAMES:
        return None
    try:
        return zone_named(one.time_zone)
    except InvalidArgument:
        return None


def _event(one: Reservation, *, now: int, is_visible: bool) -> Event:
    made = Event()
    made.add("UID", f"{one.id}@{UID_SUFFIX}")
    made.add("SEQUENCE", one.sequence)
    made.add("DTSTAMP", datetime.fromtimestamp(now, UTC))
    made.add("CREATED", datetime.fromtimestamp(one.created_at, UTC))
    if one.ended_at:
        made.add("LAST-MODIFIED", datetime.fromtimestamp(one.ended_at, UTC))
    for name, moment in zip(("DTSTART", "DTEND"), _ends(one), strict=True):
        made.add(name, moment)
    made.add("STATUS", _STATUS.get(one.state, "CONFIRMED"))
    made.add("TRANSP", "TRANSPARENT")  # hosts are busy, not the reader
    made.add("LOCATION", _clean(f"{one.zone}, pool {one.pool}"))
    if is_visible:
        made.add("SUMMARY", _clean(f"{one.name} ({_hosts(one)})"))
        made.add("DESCRIPTION", _clean(_description(one)))
        made.add("CATEGORIES", [_clean(one.project), _clean(one.shape)])
    else:
        made.add("SUMMARY", "Reserved")
        made.add("DESCRIPTION", _clean(_hosts(one)))
        made.add("CATEGORIES", [_clean(one.shape)])
    return made


def _ends(one: Reservation) -> tuple[datetime, datetime]:
    """Start and end on the clocks of its zone; in UTC where that would mean another hour, because programs
    take the first of two equal times."""
    zone = _zone_of(one) or UTC
    start, end = (datetime.fromtimestamp(at, zone) for at in (one.window.start, one.window.end))
    if start.fold or end.fold:
        return start.astimezone(UTC), end.astimezone(UTC)
    return start, end


def _description(one: Reservation) -> str:
    """What its people want to know, a line each."""
    lines = [
        _clean(one.description).strip(),
        f"{_hosts(one)} for project {one.project}, booked by {one.principal}",
        f"{one.short} of {one.count} {_noun(one)} are lacking" if one.is_degraded else "",
        f"State: {one.state}",
        one.end_message,
    ]
    return "\n".join(line for line in lines if line)


def _hosts(one: Reservation) -> str:
    what = f"{one.topology} of {one.shape}" if one.topology else one.shape
    return f"{one.count} × {what}"


def _noun(one: Reservation) -> str:
    return "slices" if one.topology else "hosts"


def _clean(text: str) -> str:
    """Without what no calendar may contain: control characters and halves of characters."""
    return _UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
