"""The iCalendar feed, read by three programs' parsers: icalendar, vobject and ics."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import ics as ics_program
import pytest
import vobject
from hypothesis import given, settings
from hypothesis import strategies as st
from icalendar import Calendar

from dws.feeds.calendar import ics, may_see
from dws.feeds.zone import calendar_zone
from dws.model.access import SYSTEM, Principal, Role
from dws.model.names import ReservationId
from dws.model.reservation import Reservation, ReservationState, Share, Terms
from dws.model.time import DAY, HOUR, Span

NOW = 1_798_790_400  # 2027-01-01T08:00:00Z
BERLIN = ZoneInfo("Europe/Berlin")
MEMBER = Principal(name="ada", projects=("vision",))
STRANGER = Principal(name="eve", projects=("other",))


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def a_reservation(**changes: object) -> Reservation:
    """Eight hosts for Monday, 11 January 2027, 09:00 to 17:00 in Berlin."""
    made = Reservation(
        id=ReservationId(7_544_000_123),
        name="secret-launch",
        project="vision",
        principal="ada",
        state=ReservationState.APPROVED,
        window=Span(at("2027-01-11T09:00+01:00"), at("2027-01-11T17:00+01:00")),
        pool="h100",
        zone="us-central1-a",
        shape="a3-highgpu-8g",
        count=8,
        created_at=NOW - DAY,
        time_zone="Europe/Berlin",
        description="Private: the big run",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def feed(*reservations: Reservation, viewer: Principal = SYSTEM, now: int = NOW) -> bytes:
    return ics(reservations, title="Fleet", now=now, viewer=viewer)


def event(*reservations: Reservation, viewer: Principal = SYSTEM):
    """The first event, as icalendar reads it."""
    return Calendar.from_ical(feed(*reservations, viewer=viewer)).walk("VEVENT")[0]


def test_i07_a_moved_then_cancelled_reservation_keeps_its_identity() -> None:
    """A subscriber's calendar would show it twice, or for ever."""
    before = a_reservation()
    moved = replace(before, window=before.window.shifted(DAY), sequence=1)
    gone = replace(moved, state=ReservationState.CANCELLED, sequence=2)
    seen = [event(each) for each in (before, moved, gone)]
    assert {one["UID"] for one in seen} == {"7544000123@reservation.opendws"}
    assert [one["SEQUENCE"] for one in seen] == [0, 1, 2]
    assert [one["STATUS"] for one in seen] == ["CONFIRMED", "CONFIRMED", "CANCELLED"]
    assert seen[1].start.isoformat() == "2027-01-12T09:00:00+01:00"
    assert [one.start.tzinfo.key for one in seen] == ["Europe/Berlin"] * 3


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (
            state,
            {"PENDING_APPROVAL": "TENTATIVE", "DECLINED": "CANCELLED", "CANCELLED": "CANCELLED"}.get(
                state, "CONFIRMED"
            ),
        )
        for state in ReservationState
    ],
)
def test_every_state_has_a_status(state: ReservationState, status: str) -> None:
    """What is not yet approved would look certain, or what was declined would stay."""
    assert event(a_reservation(state=state))["STATUS"] == status


def test_i07_strangers_see_only_that_hosts_are_taken() -> None:
    """A public feed would tell who works on what."""
    text = feed(
        a_reservation(end_message="secret end", labels={"k": "secret-label"}), viewer=STRANGER
    ).decode()
    for private in ("secret", "vision", "ada", "Private"):
        assert private not in text
    one = event(a_reservation(), viewer=STRANGER)
    assert one["SUMMARY"] == "Reserved"
    assert one["DESCRIPTION"] == "8 × a3-highgpu-8g"
    assert one["UID"] == event(a_reservation())["UID"]


@pytest.mark.parametrize(
    ("viewer", "sees"),
    [
        (MEMBER, True),
        (Principal(name="partner", projects=("other", "partner")), True),
        (Principal(name="root", role=Role.OPERATOR, projects=("x",)), True),
        (Principal(name="anywhere"), True),
        (STRANGER, False),
    ],
)
def test_members_of_the_owning_and_shared_projects_see_everything(viewer: Principal, sees: bool) -> None:
    """A partner could not tell whose hosts they may use, or a stranger could."""
    one = a_reservation(terms=Terms(shares=(Share(project="partner", hosts_max=2),)))
    assert may_see(viewer, one) is sees
    assert ("secret-launch" in feed(one, viewer=viewer).decode()) is sees


def test_what_people_need_is_in_the_event() -> None:
    """A calendar entry would not say what is reserved, where and for whom."""
    one = event(a_reservation(short=2), viewer=MEMBER)
    assert one["SUMMARY"] == "secret-launch (8 × a3-highgpu-8g)"
    assert one["LOCATION"] == "us-central1-a, pool h100"
    assert one.categories == ["vision", "a3-highgpu-8g"]
    assert "Private: the big run\n8 × a3-highgpu-8g for project vision, booked by ada" in one["DESCRIPTION"]
    assert "2 of 8 hosts are lacking" in one["DESCRIPTION"]
    assert one["DTSTAMP"].dt == datetime.fromtimestamp(NOW, UTC)
    assert one["CREATED"].dt == datetime.fromtimestamp(NOW - DAY, UTC)
    slices = event(a_reservation(short=2, shape="ct5lp-hightpu-4t", topology="4x8"), viewer=MEMBER)
    assert slices["SUMMARY"] == "secret-launch (8 × 4x8 of ct5lp-hightpu-4t)"
    assert "2 of 8 slices are lacking" in slices["DESCRIPTION"]


def test_the_feed_says_when_it_was_last_changed_where_that_is_known() -> None:
    """Programs that go by it would keep showing what is over."""
    assert "LAST-MODIFIED" not in event(a_reservation())
    ended = event(a_reservation(state=ReservationState.ENDED, ended_at=NOW))
    assert ended["LAST-MODIFIED"].dt == datetime.fromtimestamp(NOW, UTC)


def test_without_a_zone_times_are_utc() -> None:
    """A reservation of somebody without a zone would float with the reader's clock."""
    for zone in ("", "UTC", "Moon/Base"):
        text = feed(a_reservation(time_zone=zone)).decode()
        assert "DTSTART:20270111T080000Z" in text
        assert "VTIMEZONE" not in text


def test_e11_lessons_stay_at_nine_in_every_program() -> None:
    """Half the lessons of a course would be shown an hour away."""
    days = [
        "2027-03-22T09:00+01:00",
        "2027-03-29T09:00+02:00",
        "2027-10-25T09:00+02:00",
        "2027-11-08T09:00+01:00",
    ]
    lessons = [
        a_reservation(id=ReservationId(n), window=Span(at(day), at(day) + 2 * HOUR))
        for n, day in enumerate(days)
    ]
    text = feed(*lessons).decode()
    assert text.count("DTSTART;TZID=Europe/Berlin:") == 4
    assert text.count("BEGIN:VTIMEZONE") == 1
    expected = [datetime.fromisoformat(day) for day in days]
    assert [one.start for one in Calendar.from_ical(text).walk("VEVENT")] == expected
    assert [one.dtstart.value for one in vobject.readOne(text).vevent_list] == expected
    assert [one.begin.datetime for one in sorted(ics_program.Calendar(text).events)] == expected


def test_e19_year_edges_leap_days_and_doubled_hours_are_the_same_instants() -> None:
    """The calendar, the feed and the API would disagree by a day or an hour."""
    windows = [
        Span(at("2028-02-28T12:00+01:00"), at("2028-03-02T12:00+01:00")),
        Span(at("2027-12-31T23:00+01:00"), at("2028-01-01T00:30+01:00")),
        Span(at("2027-10-31T02:30+02:00"), at("2027-10-31T04:00+01:00")),
        Span(at("2027-10-31T02:30+01:00"), at("2027-10-31T04:00+01:00")),  # the second 02:30
        Span(at("2027-10-30T20:00+02:00"), at("2027-10-31T02:59:59+01:00")),
        Span(at("2027-03-28T03:00+02:00"), at("2027-03-28T03:00:01+02:00")),
    ]
    for window in windows:
        text = feed(a_reservation(window=window)).decode()
        one = Calendar.from_ical(text).walk("VEVENT")[0]
        assert (one.start.timestamp(), one.end.timestamp()) == (window.start, window.end)
        other = vobject.readOne(text).vevent
        assert (other.dtstart.value.timestamp(), other.dtend.value.timestamp()) == (window.start, window.end)
        (third,) = ics_program.Calendar(text).events
        assert (third.begin.timestamp(), third.end.timestamp()) == (window.start, window.end)


@pytest.mark.parametrize(
    "name",
    [
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Africa/Casablanca",
        "Asia/Kathmandu",
        "America/Sao_Paulo",
    ],
)
def test_the_zone_written_is_the_zone(name: str) -> None:
    """A program that knows no zones but the feed's would be an hour off around a clock change."""
    span = Span(at("2026-12-20T00:00+00:00"), at("2028-02-01T00:00+00:00"))
    told = calendar_zone(ZoneInfo(name), span)
    read = told.to_tz(lookup_tzid=False)
    settings_told = [(to_utc(one.DTSTART, one.TZOFFSETFROM), one.TZOFFSETTO) for one in told.subcomponents]
    for instant in range(span.start, span.end, HOUR // 2):
        real = datetime.fromtimestamp(instant, ZoneInfo(name))
        assert [offset for since, offset in settings_told if since <= instant][-1] == real.utcoffset()
    assert read is not None


def to_utc(local: datetime, offset) -> int:
    return int((local - offset).replace(tzinfo=UTC).timestamp())


def test_lines_are_folded_and_end_as_the_standard_wants() -> None:
    """Strict calendar programs would refuse the whole feed."""
    raw = feed(a_reservation(description="Überlänge – " * 40 + "; , \\ \n next"))
    lines = raw.split(b"\r\n")
    assert raw.endswith(b"END:VCALENDAR\r\n")
    assert b"\n" not in raw.replace(b"\r\n", b"")
    assert max(map(len, lines)) <= 75
    for line in lines:
        line.decode()  # a character is never cut in two
    required = {"VERSION:2.0", "CALSCALE:GREGORIAN", "X-WR-CALNAME:Fleet"}
    assert required <= set(raw.decode().split("\r\n"))
    assert len(re.findall(rb"^PRODID:", raw, re.MULTILINE)) == 1


def test_an_empty_feed_is_a_calendar() -> None:
    """A new subscriber would be told that the address is broken."""
    assert Calendar.from_ical(feed()).walk("VEVENT") == []
    assert ics_program.Calendar(feed().decode()).events == set()


def test_the_same_reservations_give_the_same_bytes() -> None:
    """A feed that has not changed would be fetched and shown as new."""
    one, two = a_reservation(), a_reservation(id=ReservationId(1), window=Span(NOW, NOW + HOUR))
    assert feed(one, two) == feed(two, one)


texts = st.text(alphabet=st.characters(), max_size=120)


@settings(max_examples=100, deadline=None)
@given(texts, texts)
def test_any_text_is_a_text_and_nothing_else(description: str, title: str) -> None:
    """Somebody's description could break the feed of everybody, or add events to it."""
    hostile = description + "\r\nEND:VEVENT\r\nBEGIN:VEVENT\nSUMMARY:forged"
    raw = ics([a_reservation(description=hostile)], title=title, now=NOW, viewer=SYSTEM)
    (one,) = Calendar.from_ical(raw).walk("VEVENT")
    assert one["SUMMARY"] == "secret-launch (8 × a3-highgpu-8g)"
    kept = re.sub(
        r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]",
        "",
        hostile.replace("\r\n", "\n").replace("\r", "\n"),
    )
    assert one["DESCRIPTION"].startswith(f"{kept.strip()}\n8 × ")
    assert len(vobject.readOne(raw.decode()).vevent_list) == 1
