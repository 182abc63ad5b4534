"""The calendar: windows that could be booked, what is booked, and the feeds that other programs read."""

from __future__ import annotations

from typing import Final

from dws.api.method import Call, Method, NoQuery
from dws.api.native_v1 import convert_reservations as convert
from dws.api.native_v1.queries import CalendarQuery
from dws.feeds.calendar import ics
from dws.model.errors import InvalidArgument, NotFound
from dws.model.reservation import Reservation
from dws.model.time import DAY
from dws.wire import native_v1 as wire

SHOWN_S: Final = 14 * DAY
SHOWN_MAX_S: Final = 366 * DAY
FEED_PAST_S: Final = 30 * DAY
"""How long a feed goes on telling what is over, so that programs which look seldom hear of cancellations."""
CALENDAR: Final = "text/calendar"


def advise(call: Call[wire.AdviseBody, NoQuery]) -> wire.Advice:
    """Windows that could be booked now."""
    told = call.engine.advise(call.who, convert.seek(call.project, call.body, call.engine.now()))
    return convert.advice(told, call.engine.declared_fleet(call.who).currency)


def calendar(call: Call[None, CalendarQuery]) -> wire.CalendarView:
    """What is booked over a span, as the caller may see it."""
    query, now = call.query, call.engine.now()
    start = convert.moment(query.start, "start", query.time_zone, now) if query.start else now
    end = convert.moment(query.end, "end", query.time_zone, now) if query.end else start + SHOWN_S
    if end - start > SHOWN_MAX_S:
        raise InvalidArgument("end: at most 366d are shown at once", field="end")
    fleet = call.engine.declared_fleet(call.who)
    zones, pools = _words(query.zone), _words(query.pool)
    for field, asked, known in (
        ("zone", zones, {z.name for z in fleet.zones}),
        ("pool", pools, {p.name for p in fleet.pools}),
    ):
        if unknown := sorted(asked - known):
            raise NotFound(
                f"{field}: there is no {field} '{unknown[0]}' here (there are: {', '.join(sorted(known))})",
                field=field,
            )
    if zones and pools:
        pools = frozenset(p.name for p in fleet.pools if p.name in pools and p.zone in zones)
        if not pools:
            raise InvalidArgument("pool: none of these pools is in that zone", field="pool")
        zones = frozenset()
    return convert.calendar(call.engine.calendar(call.who, start=start, end=end, pools=pools | zones))


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(",") if word.strip())


def fleet_feed(call: Call[None, NoQuery]) -> bytes:
    """Every reservation; of others' only when and how much."""
    return _feed(call, "Reservations", call.engine.booked(call.who, since=_since(call)))


def project_feed(call: Call[None, NoQuery]) -> bytes:
    """A project's reservations."""
    found = call.engine.booked(call.who, since=_since(call), project=call.project)
    return _feed(call, f"Reservations of {call.project}", found)


def person_feed(call: Call[None, NoQuery]) -> bytes:
    """The reservations somebody booked, as far as the caller may see them."""
    person = call.path["person"]
    found = call.engine.booked(call.who, since=_since(call), principal=person)
    return _feed(call, f"Reservations by {person}", found)


def _since(call: Call[None, NoQuery]) -> int:
    return max(0, call.engine.now() - FEED_PAST_S)


def _feed(call: Call[None, NoQuery], title: str, found: tuple[Reservation, ...]) -> bytes:
    return ics(found, title=title, now=call.engine.now(), viewer=call.who)


METHODS: Final = (
    Method(
        id="dws.advise",
        verb="POST",
        path="/dws/v1/projects/{project}:advise",
        summary="Windows that could be booked now, best first, and why each other zone has none. Holds "
        "nothing.",
        request=wire.AdviseBody,
        response=wire.Advice,
        handler=advise,
    ),
    Method(
        id="dws.calendar.get",
        verb="GET",
        path="/dws/v1/calendar",
        summary="What is booked over a span and what is free, pool by pool, as you may see it.",
        query=CalendarQuery,
        response=wire.CalendarView,
        handler=calendar,
    ),
    Method(
        id="dws.calendar.feed",
        verb="GET",
        path="/dws/v1/calendar.ics",
        summary="Every reservation as an iCalendar feed; of others' only when and how much.",
        media=CALENDAR,
        handler=fleet_feed,
    ),
    Method(
        id="dws.calendar.projectFeed",
        verb="GET",
        path="/dws/v1/projects/{project}/calendar.ics",
        summary="A project's reservations as an iCalendar feed.",
        media=CALENDAR,
        handler=project_feed,
    ),
    Method(
        id="dws.calendar.personFeed",
        verb="GET",
        path="/dws/v1/people/{person}/calendar.ics",
        summary="The reservations a person booked as an iCalendar feed, as far as you may see them.",
        media=CALENDAR,
        handler=person_feed,
    ),
)
