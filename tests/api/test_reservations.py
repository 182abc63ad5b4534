"""Reservations over HTTP: booked, refused with what would fit, changed, used, given back, followed, subscribed to."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import httpx2
import pytest
from icalendar import Calendar

from dws.api.native_v1 import convert_reservations
from tests.api.served import MONDAY_9, REQUESTS, Served, serving

RESERVATIONS = "/dws/v1/projects/research/reservations"
WEEK = {"accelerators": "h100:16", "start": "2027-01-12T09:00:00Z", "duration": "7d"}


def post(served: Served, path: str, body: Any = None, **query: Any) -> httpx2.Response:
    return served.owner.post(path, json=body, params=query)


def book(served: Served, name: str, **more: Any) -> dict[str, Any]:
    """Book, and give the whole answer."""
    answer = post(served, RESERVATIONS, WEEK | {"name": name} | more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def error(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code >= 400, answer.text
    return answer.json()["error"]


def test_a_reservation_is_told_in_full(fresh: Served) -> None:
    """A client could not show what was booked, where, for how much and under which rules."""
    told = book(fresh, "block-a", timeZone="Europe/Berlin", shares=[{"project": "vision", "hostsMax": 1}])
    kept = told["reservation"]
    assert (kept["state"], kept["pool"], kept["machine"], kept["count"]) == (
        "APPROVED", "a3", "a3-highgpu-8g", 2,
    )  # fmt: skip
    assert (kept["start"], kept["end"]) == ("2027-01-12T09:00:00Z", "2027-01-19T09:00:00Z")
    assert (kept["durationS"], kept["timeZone"]) == (604_800, "Europe/Berlin")
    assert kept["shares"] == [{"project": "vision", "hostsMax": 1}]
    assert kept["cost"] == "11289.60"
    assert kept["lockAt"] == "2027-01-12T08:45:00Z"
    assert told["now"] == "2027-01-11T09:00:00Z"
    messages = {rule["code"]: rule["message"] for rule in told["rules"]}
    assert messages["RULE_CANCEL"] == "it can be cancelled at no cost until Tue 12 Jan 08:45 UTC"
    assert messages["RULE_END"] == "what still runs in it at Tue 19 Jan 09:00 UTC is deleted"
    again = fresh.owner.get(f"{RESERVATIONS}/block-a").json()
    assert again["id"] == kept["id"]
    assert fresh.owner.get(f"{RESERVATIONS}/{kept['id']}").json()["name"] == "block-a"


def test_one_from_now_on_is_open_and_has_no_end(fresh: Served) -> None:
    """Who wants machines for good would have to think of an end, and be told a cost nobody will pay."""
    wish = {"name": "lab", "accelerators": "h100:16", "onDemand": True}
    told = post(fresh, RESERVATIONS, wish).json()
    kept = told["reservation"]
    assert (kept["start"], kept["end"], kept["durationS"], kept["cost"]) == ("2027-01-11T09:00:00Z", "", 0, "")
    assert kept["onDemand"] is True
    assert [rule["message"] for rule in told["rules"]] == ["it can be changed and given back at any time"]
    assert fresh.owner.get(f"{RESERVATIONS}/lab").json()["state"] == "FULFILLED"
    ended = post(fresh, RESERVATIONS, wish | {"name": "short", "accelerators": "h100:8", "duration": "30s"})
    assert ended.json()["reservation"]["end"] == "2027-01-11T09:00:30Z"
    for wrong, field in (({"start": "in 5m"}, "start"), ({"onDemand": False}, "duration")):
        assert error(post(fresh, RESERVATIONS, wish | {"name": "x"} | wrong))["field"] == field
    missing = error(post(fresh, RESERVATIONS, {"name": "x", "accelerators": "h100:8", "duration": "1h"}))
    assert (missing["field"], missing["reason"]) == ("start", "missingField")


def test_a_dry_run_books_nothing(fresh: Served) -> None:
    """Asking how it would be would take the capacity."""
    before = fresh.last_seq()
    assert book(fresh, "block-a", dryRun=True)["dryRun"]
    assert fresh.last_seq() == before
    assert fresh.owner.get(RESERVATIONS).json()["items"] == []


def test_the_same_booking_sent_again_is_one_booking(fresh: Served) -> None:
    """A client that repeats a call after a broken connection would book twice."""
    body = WEEK | {"name": "block-a"}
    ids = {post(fresh, RESERVATIONS, body, requestId="r-1").json()["reservation"]["id"] for _ in range(3)}
    assert len(ids) == 1


def test_e02_no_room_names_what_clashes_and_the_nearest_windows(fresh: Served) -> None:
    """O-E02: "nodes busy" would leave the user to try one time after another."""
    book(fresh, "block-a", accelerators="h100:32")
    answer = post(fresh, RESERVATIONS, WEEK | {"name": "b", "start": "2027-01-19T08:59:59Z"})
    told = error(answer)
    assert (answer.status_code, told["reason"], told["field"]) == (409, "noRoom", "start")
    assert "2027" in told["message"]
    assert str(MONDAY_9)[:5] not in told["message"], "an instant is told as a number"
    nearest = told["details"]["nearest"]
    assert "2027-01-19T09:00:00Z" in {each["start"] for each in nearest}
    for each in nearest:
        again = post(
            fresh,
            RESERVATIONS,
            {"name": "again", "machine": each["machine"], "count": each["count"], "start": each["start"]}
            | {"duration": each["durationS"], "locations": [each["zone"]], "dryRun": True},
        )
        assert again.status_code == 200, "what is offered can be booked unchanged"


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"start": "2027-05-03 09:00"}, "start", "offset"),
        ({"start": "2027-03-28 02:30", "timeZone": "Europe/Berlin"}, "start", "does not exist"),
        ({"start": "2027-10-31 02:30", "timeZone": "Europe/Berlin"}, "start", "twice"),
        ({"start": "2027-01-12T09:00:60Z"}, "start", "second 60"),
        ({"start": "2027-01-11T08:00:00Z"}, "start", "in the past"),
        ({"start": "in 57d"}, "start", "56 days"),
        ({"timeZone": "Europe/Atlantis"}, "timeZone", "IANA|not a time zone"),
        ({"duration": ""}, "duration", "end"),
        ({"end": "2027-01-13T09:00:00Z"}, "duration", "either"),
        ({"duration": "0s"}, "duration", "at least 1 s"),
        ({"duration": "", "end": "2027-01-12T09:00:00Z"}, "end", "after the start"),
        ({"duration": "91d"}, "duration", "90 days"),
        ({"atEnd": "explode"}, "atEnd", "stop"),
        ({"shares": [{"project": "a"}, {"project": "a"}]}, "shares", "twice"),
        ({"name": "Block A"}, "name", "lowercase|letters"),
    ],
)
def test_e04_what_is_wrong_is_named(served: Served, change: dict[str, Any], field: str, says: str) -> None:
    """O-E04: a start without a zone would be booked on the wrong day; E03, E05, E19 alike."""
    told = error(post(served, RESERVATIONS, WEEK | {"name": "wrong"} | change))
    assert told["field"] == field, told
    assert any(word in told["message"] for word in says.split("|")), told["message"]
    assert served.owner.get(RESERVATIONS).json()["items"] == []


def test_e06_relative_starts_are_the_servers_and_a_wrong_clock_is_told(fresh: Served) -> None:
    """O-E06: a laptop ten minutes fast would book at the wrong time and nobody would notice."""
    told = book(fresh, "soon", start="in 5m", duration="1h")
    assert told["reservation"]["start"] == "2027-01-11T09:05:00Z"
    ends = book(fresh, "ends", start="in 2h", duration="", end="2027-01-11T12:00:00Z")
    assert ends["reservation"]["durationS"] == 3_600
    assert ends["warnings"] == []
    assert convert_reservations.skew("2027-01-11T09:00:30Z", MONDAY_9, virtual=False) == []
    (warning,) = convert_reservations.skew("2027-01-11T09:10:00Z", MONDAY_9, virtual=False)
    assert warning.startswith("your clock is 10m ahead of the server's")
    assert "behind" in convert_reservations.skew("2027-01-11T08:59:29Z", MONDAY_9, virtual=False)[0]
    assert convert_reservations.skew("2027-01-11T09:10:00Z", MONDAY_9, virtual=True) == []
    answer = post(fresh, RESERVATIONS, WEEK | {"name": "odd", "clientTime": "noon"})
    assert error(answer)["field"] == "clientTime"


def test_a_part_is_changed_and_the_rest_stays(fresh: Served) -> None:
    """F07: an update of the text would drop the share list, or move the window."""
    book(fresh, "block-a", shares=[{"project": "vision"}], requestHostsMax=1)
    path = f"{RESERVATIONS}/block-a"
    told = fresh.owner.patch(path, json={"description": "the spring run"}).json()["reservation"]
    assert told["shares"] == [{"project": "vision"}]
    assert (told["requestHostsMax"], told["start"]) == (1, "2027-01-12T09:00:00Z")
    told = fresh.owner.patch(path, json={"start": "2027-01-13T09:00:00Z"}).json()["reservation"]
    assert (told["start"], told["end"]) == ("2027-01-13T09:00:00Z", "2027-01-20T09:00:00Z")
    told = fresh.owner.patch(path, json={"duration": "8d", "count": 4, "shares": []}).json()["reservation"]
    assert (told["end"], told["count"], told["shares"]) == ("2027-01-21T09:00:00Z", 4, [])
    assert (told["requestHostsMax"], told["description"]) == (1, "the spring run")
    renamed = fresh.owner.patch(path, json={"name": "block-b"}).json()["reservation"]
    assert renamed["sequence"] > 0
    assert fresh.owner.get(f"{RESERVATIONS}/block-b").json()["id"] == renamed["id"]
    refused = error(fresh.owner.patch(f"{RESERVATIONS}/block-b", json={"count": 5}))
    assert refused["reason"] == "noRoom"
    assert fresh.owner.get(f"{RESERVATIONS}/block-b").json()["count"] == 4


def test_e13_behind_the_lock_a_change_is_refused_with_the_time(fresh: Served) -> None:
    """O-E13: the owner would not learn since when, or by which rule."""
    book(fresh, "block-a", start="2027-01-11T09:10:00Z", duration="1h")
    fresh.advance("1s")
    answer = fresh.owner.patch(f"{RESERVATIONS}/block-a", json={"start": "2027-01-12T09:10:00Z"})
    assert answer.status_code == 400
    told = error(answer)
    assert told["reason"] == "reservationLocked"
    assert "2027-01-11 09:00:00 UTC" in told["message"]
    assert "15 minutes" in told["message"]


def test_it_is_cancelled_deleted_and_released(fresh: Served) -> None:
    """What is not wanted any more would stay on the calendar."""
    book(fresh, "block-a")
    assert error(post(fresh, f"{RESERVATIONS}/block-a:release"))["code"] == "FAILED_PRECONDITION"
    assert post(fresh, f"{RESERVATIONS}/block-a:cancel").json()["state"] == "CANCELLED"
    assert fresh.owner.delete(f"{RESERVATIONS}/block-a").json() == {}
    assert fresh.owner.get(f"{RESERVATIONS}/block-a").status_code == 404
    book(fresh, "block-a", start="in 0s", duration="1h")
    fresh.advance("1m")
    assert error(post(fresh, f"{RESERVATIONS}/block-a:cancel"))["reason"] == "reservationStarted"
    assert post(fresh, f"{RESERVATIONS}/block-a:release").json()["state"] in ("ENDING", "ENDED")


def test_work_runs_inside_until_the_end(fresh: Served) -> None:
    """Whoever names a reservation would have to reckon how long is left, or be told nothing of its end."""
    book(fresh, "block-a", duration="2h", start="in 1h")
    wish = {"alternatives": [{"accelerators": "h100:8"}], "reservation": "block-a"}
    quote = post(fresh, "/dws/v1/projects/research:quote", wish).json()
    assert (quote["asked"]["start"], quote["asked"]["pool"]) == ("2027-01-11T10:00:00Z", "a3")
    told = post(fresh, REQUESTS, wish | {"name": "inside"}).json()["items"][0]
    assert "duration" not in told["alternatives"][0]
    waiting = fresh.get("inside")
    assert (waiting["reservation"], waiting["state"]) == ("research/block-a", "BOOKED")
    assert waiting["reservationEnd"] == "2027-01-11T12:00:00Z"
    fresh.advance("70m")
    running = fresh.get("inside")
    assert (running["state"], running["reservation"]) == ("ACTIVE", "research/block-a")
    assert running["grant"]["endsAt"] <= "2027-01-11T12:00:00Z"
    kept = fresh.owner.get(f"{RESERVATIONS}/block-a").json()
    assert (kept["state"], kept["inUse"], kept["count"], len(kept["hosts"])) == ("FULFILLED", 1, 2, 2)
    assert [each["name"] for each in kept["inside"]] == ["inside"]
    fresh.advance("2h")
    assert fresh.get("inside")["state"] == "COMPLETED"
    assert fresh.owner.get(f"{RESERVATIONS}/block-a").json()["state"] == "ENDED"


def test_without_a_reservation_of_a_name_the_duration_is_needed(served: Served) -> None:
    """A run without an end would hold its hosts for ever."""
    for reservation in ("", "any"):
        body = {"alternatives": [{"accelerators": "h100:8"}], "reservation": reservation}
        told = error(post(served, REQUESTS, body))
        assert told["field"] == "alternatives[0].duration"


def test_any_takes_what_is_open_to_it_and_else_general_capacity(fresh: Served) -> None:
    """Open reservations would stand empty while their project waits."""
    book(fresh, "block-a", start="in 0s", duration="5h", specificOnly=False)
    fresh.advance("5m")
    wish = {"alternatives": [{"accelerators": "h100:16", "duration": "1h"}], "reservation": "any"}
    for name in ("first", "second"):
        post(fresh, REQUESTS, wish | {"name": name})
    fresh.advance("5m")
    assert fresh.get("first")["reservation"] == "research/block-a"
    assert fresh.get("second")["state"] == "ACTIVE"
    assert fresh.owner.get(f"{RESERVATIONS}/block-a").json()["inUse"] == 2


def test_lists_are_paged_and_by_state(fresh: Served) -> None:
    """A client would see only the first ones."""
    for index in range(3):
        book(fresh, f"block-{index}", start=f"in {index + 1}d", duration="1h")
    post(fresh, f"{RESERVATIONS}/block-1:cancel")
    first = fresh.owner.get(RESERVATIONS, params={"pageSize": 2}).json()
    token = first["nextPageToken"]
    rest = fresh.owner.get(RESERVATIONS, params={"pageSize": 2, "pageToken": token}).json()
    assert [r["name"] for r in (*first["items"], *rest["items"])] == ["block-0", "block-1", "block-2"]
    assert rest["nextPageToken"] == ""
    open_ones = fresh.owner.get("/dws/v1/projects/-/reservations", params={"state": "APPROVED"}).json()
    assert [r["name"] for r in open_ones["items"]] == ["block-0", "block-2"]
    assert error(fresh.owner.get(RESERVATIONS, params={"state": "OPEN"}))["field"] == "state"


def test_e18_advice_can_be_booked_unchanged(fresh: Served) -> None:
    """O-E18: what was offered would be refused when it is booked."""
    book(fresh, "block-a", start="in 0s", duration="2d", accelerators="h100:32")
    ask = {"accelerators": "h100:16", "duration": "6h", "startTo": "in 10d", "within": "block"}
    told = post(fresh, "/dws/v1/projects/research:advise", ask).json()
    assert told["hold"] is False
    assert told["options"][0]["start"] >= "2027-01-13T09:00:00Z"
    for number, each in enumerate(told["options"]):
        body = {"machine": each["machine"], "count": each["count"], "within": each["within"]}
        body |= {"start": each["start"], "duration": each["durationS"], "locations": [each["zone"]]}
        answer = post(fresh, RESERVATIONS, body | {"name": f"offered-{number}", "dryRun": True})
        assert answer.status_code == 200, answer.text
    best = told["options"][0]
    assert book(fresh, "taken", start=best["start"], duration="6h", accelerators="h100:32")


def test_the_calendar_is_told(fresh: Served) -> None:
    """Nobody could see what is booked, or what is free."""
    book(fresh, "block-a")
    told = fresh.owner.get("/dws/v1/calendar", params={"end": "in 30d", "zone": "us-central1-a"}).json()
    assert [pool["pool"] for pool in told["pools"]] == ["a3"]
    assert [(bar["name"], bar["count"], bar["kind"]) for bar in told["pools"][0]["bars"]] == [
        ("block-a", 2, "RESERVATION")
    ]
    assert [step["hosts"] for step in told["pools"][0]["free"]] == [4, 2, 4]
    assert len(fresh.owner.get("/dws/v1/calendar").json()["pools"]) == 3
    both = {"zone": "us-central1-b", "pool": "cpu,a3"}
    assert [p["pool"] for p in fresh.owner.get("/dws/v1/calendar", params=both).json()["pools"]] == ["cpu"]
    for query, field in [({"zone": "mars"}, "zone"), ({"pool": "mars"}, "pool"), ({"end": "in 400d"}, "end")]:
        assert error(fresh.owner.get("/dws/v1/calendar", params=query))["field"] == field


def test_facts_about_a_reservation_are_listed_by_its_name(fresh: Served) -> None:
    """The story of a reservation could not be read."""
    book(fresh, "block-a", timeZone="Europe/Berlin")
    fresh.owner.patch(f"{RESERVATIONS}/block-a", json={"count": 4})
    query = {"project": "research", "reservation": "block-a"}
    told = fresh.owner.get("/dws/v1/events", params=query).json()["items"]
    assert [e["kind"] for e in told] == ["ReservationAsked", "ReservationAmended"]
    assert told[0]["data"]["reservation"]["name"] == "block-a"
    assert told[1]["data"]["count"] == 4
    assert told[1]["data"]["start"] == "2027-01-12T09:00:00Z"
    assert error(fresh.owner.get("/dws/v1/events", params={"reservation": "block-a"}))["field"] == "project"


def test_i07_a_feed_follows_a_move_and_a_cancellation(fresh: Served) -> None:
    """O-I07: a subscriber would see the old time beside the new one, or for ever what was cancelled."""
    book(fresh, "block-a", timeZone="Europe/Berlin", description="the spring run")
    before = feed(fresh.owner.get("/dws/v1/projects/research/calendar.ics"))
    fresh.owner.patch(f"{RESERVATIONS}/block-a", json={"start": "2027-01-13T09:00:00Z"})
    moved = feed(fresh.owner.get("/dws/v1/projects/research/calendar.ics"))
    assert moved["UID"] == before["UID"]
    assert moved["SEQUENCE"] > before["SEQUENCE"]
    assert moved["DTSTART"].params["TZID"] == "Europe/Berlin"
    assert moved["DTSTART"].dt.hour == 10
    post(fresh, f"{RESERVATIONS}/block-a:cancel")
    gone = feed(fresh.owner.get("/dws/v1/calendar.ics"))
    assert (gone["UID"], gone["STATUS"]) == (before["UID"], "CANCELLED")
    fresh.advance("60d")
    assert b"BEGIN:VEVENT" not in fresh.owner.get("/dws/v1/calendar.ics").content


def feed(answer: httpx2.Response) -> Any:
    """The one event of a feed."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    (event,) = Calendar.from_ical(answer.content).walk("VEVENT")
    return event


def test_strangers_see_when_and_how_much(tmp_path: Path) -> None:
    """A feed of the fleet would tell everybody what others work on, or nothing at all."""
    token = "of-eve"
    digest = hashlib.sha256(token.encode()).hexdigest()
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "tokens.toml").write_text(
        f'[[token]]\nname = "eve"\nprojects = ["vision"]\nsha256 = "{digest}"\n'
    )
    with serving(tmp_path) as served:
        book(served, "secret-project", description="do not tell")
        basic = b64encode(f"eve:{token}".encode()).decode()
        with httpx2.Client(base_url=served.address, headers={"authorization": f"Basic {basic}"}) as eve:
            event = feed(eve.get("/dws/v1/calendar.ics"))
            assert event["SUMMARY"] == "Reserved"
            assert eve.get("/dws/v1/projects/research/calendar.ics").status_code == 403
            person = served.owner.get(f"{RESERVATIONS}/secret-project").json()["principal"]
            hidden = eve.get(f"/dws/v1/people/{person}/calendar.ics")
            assert b"VEVENT" not in hidden.content
            assert feed(served.owner.get(f"/dws/v1/people/{person}/calendar.ics"))["SUMMARY"]
            assert eve.get(f"{RESERVATIONS}/secret-project").status_code == 403
