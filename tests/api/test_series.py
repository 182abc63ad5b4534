"""Series over HTTP: begun, refused, shown with what is booked and what is not yet, changed, skipped, ended."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.api.served import Served

SERIES = "/dws/v1/projects/research/series"
RESERVATIONS = "/dws/v1/projects/research/reservations"
WEEKDAYS = "weekday 20:00-06:00 Europe/Berlin from 2027-03-01 until 2027-04-02"
MONDAYS = "mon 09:00-11:00 UTC from 2027-01-18 3 times"


def begin(served: Served, name: str = "nights", **more: Any) -> dict[str, Any]:
    answer = served.owner.post(
        SERIES, json={"name": name, "accelerators": "h100:16", "every": MONDAYS} | more
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def get(served: Served, name: str = "nights") -> dict[str, Any]:
    return served.owner.get(f"{SERIES}/{name}").json()


def refused(answer: httpx2.Response, status: int, field: str | None) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error.get("field") == field, error
    return error


def full(served: Served, start: str) -> None:
    """Nothing is free for an hour."""
    body = {"name": "other", "accelerators": "h100:32", "start": start, "duration": "1h"}
    assert served.owner.post(RESERVATIONS, json=body).status_code == 200


def test_e11_a_series_is_told_occurrence_by_occurrence(fresh: Served) -> None:
    """A calendar program could not show what is booked, what comes later, and which hour the clocks move."""
    told = begin(fresh, every=f"every {WEEKDAYS}", labels={"team": "vision"}, atEnd="stop")
    assert (told["state"], told["timeZone"], told["accelerators"]) == ("ACTIVE", "Europe/Berlin", "h100:16")
    assert (told["labels"], told["atEnd"], told["createdAt"]) == (
        {"team": "vision"}, "stop", "2027-01-11T09:00:00Z",
    )  # fmt: skip
    ahead = {one["day"]: one for one in told["upcoming"]}
    assert len(ahead) == 25 and "2027-03-06" not in ahead, "weekdays alone"
    booked, later, summer = ahead["2027-03-05"], ahead["2027-03-09"], ahead["2027-03-29"]
    assert (booked["reservation"], booked["state"], booked["booksAt"]) == ("nights-20270305", "APPROVED", "")
    assert (booked["start"], booked["end"]) == ("2027-03-05T19:00:00Z", "2027-03-06T05:00:00Z")
    assert (later["reservation"], later["state"], later["missed"]) == ("", "", "")
    assert later["booksAt"] == "2027-01-12T19:00:00Z", "eight weeks before it starts"
    assert (summer["start"], summer["end"]) == ("2027-03-29T18:00:00Z", "2027-03-30T04:00:00Z")
    one = fresh.owner.get(f"{RESERVATIONS}/nights-20270305").json()
    assert (one["series"], one["timeZone"], one["atEnd"]) == ("nights", "Europe/Berlin", "stop")
    assert get(fresh) == told == fresh.owner.get(SERIES).json()["items"][0]
    assert fresh.owner.get("/dws/v1/projects/-/series").json()["items"] == [told]


def test_e11_a_day_comes_within_the_horizon(fresh: Served) -> None:
    """What was said to be booked later never would be."""
    begin(fresh, every=WEEKDAYS)
    fresh.advance("34h")
    later = next(one for one in get(fresh)["upcoming"] if one["day"] == "2027-03-09")
    assert (later["state"], later["booksAt"]) == ("APPROVED", "")


def test_an_hour_that_the_clocks_skip_or_show_twice_is_noted(fresh: Served) -> None:
    """A night that is an hour shorter, or starts at another hour, would look like a fault."""
    told = begin(fresh, every="sun 02:30-05:00 Europe/Berlin from 2027-03-21 until 2027-10-31")
    notes = {one["day"]: one["note"] for one in told["upcoming"] if one["note"]}
    assert list(notes) == ["2027-03-28", "2027-10-31"]
    assert "the clocks go forward" in notes["2027-03-28"] and "go back" in notes["2027-10-31"]


def test_it_begins_today_by_the_clocks_of_its_zone(fresh: Served) -> None:
    """A series asked for in the evening in Asia would begin on a day that is over there, or a day late."""
    fresh.advance(
        "10h"
    )  # 19:00 UTC on the 11th: 08:00 on the 12th in Auckland, 11:00 on the 11th in California
    east = begin(fresh, "east", every="day 09:00-10:00 Pacific/Auckland 2 times")
    assert [one["day"] for one in east["upcoming"]] == ["2027-01-12", "2027-01-13"]
    west = begin(fresh, "west", every="day 09:00-10:00 America/Los_Angeles 2 times")
    assert [one["day"] for one in west["upcoming"]] == ["2027-01-12", "2027-01-13"], "today's nine is over"


def test_the_days_that_do_not_fit_are_listed(fresh: Served) -> None:
    """A person would learn about one clash after another."""
    full(fresh, "2027-01-25T10:00:00Z")
    body = {"name": "nights", "accelerators": "h100:16", "every": MONDAYS}
    error = refused(fresh.owner.post(SERIES, json=body), 409, "every")
    assert error["reason"] == "noRoom"
    (missed,) = error["details"]["missed"]
    assert missed["day"] == "2027-01-25" and "needs 2 hosts" in missed["cause"]
    assert fresh.owner.get(SERIES).json()["items"] == []
    told = begin(fresh, mayMiss=True)
    gap = next(one for one in told["upcoming"] if one["day"] == "2027-01-25")
    assert "needs 2 hosts" in gap["missed"] and (gap["reservation"], gap["booksAt"]) == ("", "")
    assert [m["day"] for m in told["missed"]] == ["2027-01-25"]


@pytest.mark.parametrize(
    ("every", "told"),
    [
        ("someday 09:00-11:00 UTC 3 times", "'someday' is not a day"),
        ("mon 09:00-11:00 3 times", "name the zone"),
        ("mon 09:00-11:00 Europe/Bärlin 3 times", "not a time zone"),
        ("mon 9-11 UTC 3 times", "not a time of day"),
        ("mon 09:00-11:00 UTC", "say when it ends"),
        ("mon 09:00-11:00 UTC until 2026-12-31", "it must end between"),
        ("mon 09:00-11:00 UTC from 2026-01-01 until 2026-12-31", "no occurrence of it lies ahead"),
        ("", "too short"),
    ],
)
def test_what_is_wrong_with_the_sentence_is_said(served: Served, every: str, told: str) -> None:
    """A person would have to guess which word was not understood."""
    body = {"name": "nights", "accelerators": "h100:16", "every": every}
    assert told in refused(served.owner.post(SERIES, json=body), 400, "every")["message"]


def test_the_same_call_sent_again_is_one_series(fresh: Served) -> None:
    """A client that repeats a call after a broken connection would be told that the name is taken."""
    body = {"name": "nights", "accelerators": "h100:16", "every": MONDAYS}
    answers = [fresh.owner.post(SERIES, json=body, params={"requestId": "r-1"}) for _ in range(2)]
    assert {a.json()["id"] for a in answers} == {get(fresh)["id"]}
    refused(fresh.owner.post(SERIES, json=body), 409, "name")


def test_a_change_is_one_step_and_only_of_what_is_sent(fresh: Served) -> None:
    """Changing the size would lose the terms, or the places that were booked."""
    begin(fresh, atEnd="stop", description="class", requestRunMax="1h")
    changed = fresh.owner.patch(f"{SERIES}/nights", json={"count": 24, "shares": [{"project": "vision"}]})
    assert changed.status_code == 200, changed.text
    told = changed.json()
    assert (told["accelerators"], told["atEnd"], told["description"]) == ("h100:24", "stop", "class")
    assert [s["project"] for s in told["shares"]] == ["vision"]
    assert told["every"].startswith("mon 09:00-11:00 UTC from 2027-01-18 3 times")
    one = fresh.owner.get(f"{RESERVATIONS}/nights-20270118").json()
    assert (one["count"], one["requestRunMaxS"], one["shares"][0]["project"]) == (3, 3600, "vision")
    full(fresh, "2027-01-25T12:00:00Z")
    before = get(fresh)
    later = {"every": MONDAYS.replace("09:00-11:00", "11:00-13:00")}
    refused(fresh.owner.patch(f"{SERIES}/nights", json=later), 409, "every")
    assert get(fresh) == before
    refused(fresh.owner.patch(f"{SERIES}/nights", json={"every": "x"}), 400, "every")


def test_one_day_is_left_out_and_then_all(fresh: Served) -> None:
    """A holiday would cost the whole series, or what was ended would go on."""
    begin(fresh)
    told = fresh.owner.post(f"{SERIES}/nights:leaveOut", json={"day": "2027-01-25"}).json()
    assert [one["day"] for one in told["upcoming"]] == ["2027-01-18", "2027-02-01"]
    assert told["every"].endswith("except 2027-01-25")
    assert fresh.owner.get(f"{RESERVATIONS}/nights-20270125").json()["state"] == "CANCELLED"
    for day in ("2027-01-25", "2027-01-26", "tomorrow"):
        refused(fresh.owner.post(f"{SERIES}/nights:leaveOut", json={"day": day}), 400, "day")
    told = fresh.owner.post(f"{SERIES}/nights:cancel").json()
    assert (told["state"], told["upcoming"], told["endedAt"]) == ("CANCELLED", [], "2027-01-11T09:00:00Z")
    refused(fresh.owner.post(f"{SERIES}/nights:cancel"), 400, None)
    assert fresh.owner.get(f"{SERIES}/nothing").status_code == 404
