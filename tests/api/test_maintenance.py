"""Maintenance windows over HTTP: shown before they are confirmed, refused or forced, listed, cancelled."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.api.served import Served

MAINTENANCE = "/dws/v1/maintenance"
FANS = {
    "name": "fans",
    "hosts": ["a3-0001", "a3-0002"],
    "start": "2027-01-12T09:00:00Z",
    "duration": "4h",
}


def plan(served: Served, **more: Any) -> httpx2.Response:
    return served.owner.post(MAINTENANCE, json=FANS | more)


def windows(served: Served) -> list[dict[str, Any]]:
    return served.owner.get(MAINTENANCE).json()["items"]


def states(served: Served) -> dict[str, str]:
    told = served.owner.get("/dws/v1/fleet").json()
    return {h["name"]: h["state"] for pool in told["pools"] for h in pool["hosts"]}


def error(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code >= 400, answer.text
    return answer.json()["error"]


def test_a_window_is_only_shown_until_it_is_confirmed(fresh: Served) -> None:
    """Asking whom a window touches would already take hosts away."""
    before = fresh.last_seq()
    assert plan(fresh).json() == {"affected": [], "window": None}
    assert windows(fresh) == [] and fresh.last_seq() == before
    told = plan(fresh, confirm=True, reason="new fans").json()["window"]
    assert (told["name"], told["pool"], told["hosts"], told["reason"]) == (
        "fans",
        "a3",
        FANS["hosts"],
        "new fans",
    )
    assert (told["start"], told["end"], told["begun"]) == (
        "2027-01-12T09:00:00Z",
        "2027-01-12T13:00:00Z",
        False,
    )
    assert windows(fresh) == [told]


def test_whom_it_touches_is_told_and_refuses_it_unless_it_is_forced(fresh: Served) -> None:
    """H06: a promise would be broken by somebody who did not know of it."""
    book = {"name": "spring", "accelerators": "h100:32", "start": "2027-01-12T08:00:00Z", "duration": "1d"}
    fresh.owner.post("/dws/v1/projects/research/reservations", json=book)
    (touched,) = [a for a in plan(fresh).json()["affected"] if "would lack" in a["effect"]]
    assert (touched["project"], touched["name"]) == ("research", "spring")
    assert touched["effect"] == "would lack 2 hosts"
    told = error(plan(fresh, confirm=True))
    assert (told["reason"], told["field"]) == ("failedPrecondition", "hosts")
    assert {"name": "spring", "effect": "would lack 2 hosts"} in told["details"]["affected"]
    assert windows(fresh) == []
    assert plan(fresh, confirm=True, force=True).json()["window"]["name"] == "fans"
    one = fresh.owner.get("/dws/v1/projects/research/reservations/spring").json()
    assert one["short"] == 2, "it is said openly"


def test_hosts_go_down_and_come_back_and_an_early_end_brings_them_back(fresh: Served) -> None:
    """Hosts would be used while somebody works at them, or stay down after."""
    plan(fresh, confirm=True)
    plan(fresh, confirm=True, name="discs", hosts=["a3-0003"], duration="1d")
    fresh.advance("25h")
    down = {h for h, state in states(fresh).items() if state == "DOWN"}
    assert down == {"a3-0001", "a3-0002", "a3-0003"}
    assert [w["begun"] for w in windows(fresh)] == [True, True]
    fresh.advance("4h")
    assert [w["name"] for w in windows(fresh)] == ["discs"]
    assert fresh.owner.delete(f"{MAINTENANCE}/discs").status_code == 200
    assert "DOWN" not in states(fresh).values() and windows(fresh) == []
    assert fresh.owner.delete(f"{MAINTENANCE}/discs").status_code == 404


def test_times_may_be_local_or_relative(fresh: Served) -> None:
    """An operator in Berlin would have to count in UTC."""
    local = {
        "start": "2027-01-12 09:00",
        "end": "2027-01-12 11:00",
        "duration": "",
        "timeZone": "Europe/Berlin",
    }
    told = plan(fresh, confirm=True, **local).json()["window"]
    assert (told["start"], told["end"]) == ("2027-01-12T08:00:00Z", "2027-01-12T10:00:00Z")
    told = plan(fresh, confirm=True, name="later", start="in 2h").json()["window"]
    assert told["start"] == "2027-01-11T11:00:00Z"


@pytest.mark.parametrize(
    ("change", "field", "told"),
    [
        ({"hosts": []}, "hosts", "name at least one"),
        ({"hosts": ["a3-0001", "cpu-0001"]}, "hosts", "several pools"),
        ({"hosts": ["nothing"]}, None, "nothing"),
        ({"start": "2027-01-10T09:00:00Z"}, "start", "in the past"),
        ({"start": "soon"}, "start", "soon"),
        ({"duration": ""}, "duration", "'end'"),
        ({"end": "2027-01-13T09:00:00Z"}, "duration", "'end'"),
        ({"end": "2027-01-12T09:00:00Z", "duration": ""}, "end", "after the start"),
        ({"name": "Fans!"}, "name", "Fans!"),
        ({"timeZone": "Mars/Base", "start": "2027-01-12 09:00"}, "timeZone", "Mars/Base"),
    ],
)
def test_what_is_wrong_is_named(served: Served, change: dict[str, Any], field: str | None, told: str) -> None:
    """An operator would have to guess what was not understood."""
    answer = error(plan(served, confirm=True, **change))
    assert answer.get("field") == field, answer
    assert told in answer["message"]


def test_a_name_is_used_once(fresh: Served) -> None:
    """Cancelling one window would cancel another."""
    plan(fresh, confirm=True)
    again = error(plan(fresh, hosts=["a3-0003"]))
    assert (again["status"], again["field"]) == (409, "name")
