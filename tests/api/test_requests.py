"""A request's life over HTTP: submitted once however often it is sent, read back, amended, ended, put away."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api.served import FLEET, REQUESTS, SLICE, Served

ALL = {"accelerators": "h100:32", "duration": "4h"}


def post(served: Served, path: str, body: Any = None, **query: Any) -> Any:
    return served.owner.post(path, json=body, params=query)


def test_a01_five_copies_of_one_submission_are_one_request(fresh: Served) -> None:
    """O-A01: a client that repeats a call after a broken connection would pay twice."""
    body = {"alternatives": [SLICE], "name": "train-a"}
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: post(fresh, REQUESTS, body, requestId="r-1"), range(5)))
    assert {a.status_code for a in answers} == {200}
    assert len({a.json()["items"][0]["id"] for a in answers}) == 1
    assert len(fresh.owner.get(REQUESTS).json()["items"]) == 1
    before = fresh.last_seq()
    headers = {"idempotency-key": "r-1"}
    again = fresh.owner.post(REQUESTS, json=body, headers=headers)
    assert again.json()["items"][0]["id"] == answers[0].json()["items"][0]["id"]
    assert fresh.last_seq() == before


def test_a01_one_request_id_with_another_body_is_refused(fresh: Served) -> None:
    """O-A01: the answer to another call would be taken for this one's."""
    post(fresh, REQUESTS, {"alternatives": [SLICE], "name": "a"}, requestId="r-1")
    answer = post(fresh, REQUESTS, {"alternatives": [SLICE], "name": "b"}, requestId="r-1")
    assert answer.status_code == 409
    assert answer.json()["error"]["reason"] == "requestIdReused"
    for call_id in ("x" * 129, "a\nb"):
        answer = post(fresh, REQUESTS, {"alternatives": [SLICE]}, requestId=call_id)
        assert answer.json()["error"]["field"] == "requestId"


def test_a02_a_name_that_is_taken_is_refused(fresh: Served) -> None:
    """O-A02: the first request would lose its place, or the second silently be the first."""
    first = fresh.submit("train-a")
    answer = post(fresh, REQUESTS, {"alternatives": [SLICE], "name": "train-a"})
    error = answer.json()["error"]
    assert (answer.status_code, error["reason"], error["field"]) == (409, "alreadyExists", "name")
    assert "projects/research/requests/train-a" in error["message"]
    assert fresh.get("train-a")["id"] == first["id"]


def test_a04_a_name_is_free_once_its_record_is_put_away(fresh: Served) -> None:
    """O-A04: history and cost of an old request would be the new one's."""
    first = fresh.submit("train-a")
    fresh.advance("5h")
    assert fresh.get("train-a")["cost"] == "268.80"
    assert fresh.owner.delete(f"{REQUESTS}/train-a").json() == {}
    assert fresh.owner.get(f"{REQUESTS}/train-a").status_code == 404
    second = fresh.submit("train-a")
    assert second["id"] != first["id"]
    assert fresh.get("train-a")["cost"] == "0.00"
    query = {"project": "research", "name": "train-a"}
    told = fresh.owner.get("/dws/v1/events", params=query).json()["items"]
    assert {e["subject"] for e in told} == {second["id"]}


def test_a05_what_has_ended_cannot_be_cancelled_but_put_away(fresh: Served) -> None:
    """O-A05: a cancel after the end would look as if it had worked."""
    fresh.submit("train-a")
    fresh.advance("5h")
    answer = post(fresh, f"{REQUESTS}/train-a:cancel")
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "FAILED_PRECONDITION"
    assert "COMPLETED" in answer.json()["error"]["message"]
    assert fresh.owner.delete(f"{REQUESTS}/train-a").status_code == 200
    assert fresh.owner.delete(f"{REQUESTS}/train-a").status_code == 404


def test_a07_an_amendment_keeps_what_was_not_sent(fresh: Served) -> None:
    """O-A07: changing one thing would clear another."""
    fresh.submit("holds", alternatives=[ALL])
    fresh.submit(
        "train-a",
        alternatives=[SLICE, SLICE | {"duration": "2h"}],
        labels={"team": "a"},
        notBefore="2027-01-11T10:00:00Z",
        notAfter="2027-01-12T10:00:00Z",
        onHostLoss="requeue",
        workload={"command": ["true"]},
    )
    before = fresh.get("train-a")
    answer = fresh.owner.patch(f"{REQUESTS}/train-a", json={"priority": 7})
    assert answer.status_code == 200, answer.text
    after = fresh.get("train-a")
    kept = ("alternatives", "labels", "notBefore", "notAfter", "onHostLoss", "workload", "submittedAt")
    assert {k: after[k] for k in kept} == {k: before[k] for k in kept}
    assert after["priority"] == 7
    fresh.owner.patch(f"{REQUESTS}/train-a", json={"notBefore": "", "alternatives": [SLICE]})
    last = fresh.get("train-a")
    assert (last["notBefore"], last["notAfter"]) == ("", before["notAfter"])
    assert len(last["alternatives"]) == 1
    assert last["labels"] == {"team": "a"}
    answer = fresh.owner.patch(f"{REQUESTS}/train-a", json={"state": "ACTIVE"})
    assert answer.json()["error"]["field"] == "state"
    answer = fresh.owner.patch(f"{REQUESTS}/train-a", json={"priority": 10**30})
    assert answer.json()["error"]["field"] == "priority"


def test_a10_names_have_63_characters_and_elements_of_arrays_their_own(fresh: Served) -> None:
    """O-A10: two long names would share a child's name."""
    stems = ["a" * 62 + last for last in "xy"]
    names = []
    for stem in stems:
        body = {"alternatives": [SLICE], "name": stem, "array": 3}
        names += [r["name"] for r in post(fresh, REQUESTS, body).json()["items"]]
    assert len(set(names)) == 6
    assert max(map(len, names)) <= 63
    assert "at most 63" in post(fresh, REQUESTS, {"alternatives": [SLICE], "name": "a" * 64}).text


def test_checking_only_changes_nothing(fresh: Served) -> None:
    """`dws submit --dry-run` would submit."""
    before = fresh.last_seq()
    answer = post(fresh, REQUESTS, {"alternatives": [SLICE]}, validateOnly="true")
    assert answer.json() == {"items": [], "nextPageToken": ""}
    answer = post(
        fresh, REQUESTS, {"alternatives": [SLICE | {"accelerators": "h100:40"}]}, validateOnly="true"
    )
    assert answer.json()["error"]["reason"] == "neverFits"
    assert fresh.last_seq() == before


def test_l01_fifty_quotes_change_nothing_and_tell_the_start(fresh: Served) -> None:
    """O-L01: people would submit dummy work to learn when it would start."""
    fresh.submit("holds", alternatives=[ALL])
    before = fresh.last_seq(), fresh.engine.health()
    quotes = [post(fresh, "/dws/v1/projects/research:quote", {"alternatives": [SLICE]}) for _ in range(50)]
    assert len({q.text for q in quotes}) == 1
    assert (fresh.last_seq(), fresh.engine.health()) == before
    told = quotes[0].json()
    assert told["hold"] is False
    assert (told["asked"]["start"], told["asked"]["cost"]) == ("2027-01-11T13:00:00Z", "268.80")
    fresh.submit("train-a")
    assert fresh.get("train-a")["forecast"]["expectedStart"] == told["asked"]["start"]


def test_l02_the_queue_tells_everyone_when_or_why_not(fresh: Served) -> None:
    """O-L02: some waiting request would have neither a start nor a reason."""
    fresh.submit("holds", alternatives=[ALL])
    for n in range(5):
        fresh.submit(f"w-{n}")
    items = fresh.owner.get("/dws/v1/queue").json()["items"]
    assert [r["name"] for r in items] == [f"w-{n}" for n in range(5)]
    assert [r["forecast"]["place"] for r in items] == [1, 2, 3, 4, 5]
    for request in items:
        assert request["forecast"]["reason"]["message"]
        assert "{" not in request["forecast"]["reason"]["message"]


def test_l04_waiting_is_not_running(fresh: Served) -> None:
    """O-L04: a request that waits would look started."""
    fresh.submit("holds", alternatives=[ALL])
    waiting = fresh.submit("train-a")
    assert waiting["state"] in ("PENDING", "BOOKED")
    assert fresh.get("train-a")["grant"] is None


def test_a_run_is_released_extended_and_paid_for(fresh: Served) -> None:
    """The verbs on a running request would not reach the engine, or answer something else."""
    fresh.submit("train-a")
    assert fresh.get("train-a")["state"] == "ACTIVE"
    told = post(fresh, f"{REQUESTS}/train-a:extend", {"by": "1h", "dryRun": True}).json()
    assert (told["askedS"], told["longestS"], told["appliedS"]) == (3600, 3600, 0)
    told = post(fresh, f"{REQUESTS}/train-a:extend", {"by": 3600}).json()
    assert (told["appliedS"], told["request"]["grant"]["endsAt"]) == (3600, "2027-01-11T14:00:00Z")
    fresh.advance("1h")
    assert post(fresh, f"{REQUESTS}/train-a:release", {"ranks": [9]}).json()["error"]["field"] == "ranks"
    assert post(fresh, f"{REQUESTS}/train-a:release").status_code == 200
    assert fresh.get("train-a")["endReason"] == "RELEASED"
    (line,) = fresh.owner.get("/dws/v1/usage").json()["lines"]
    assert (line["seconds"], line["acceleratorS"], line["cost"]) == (7200, 57600, "67.20")
    assert fresh.owner.get("/dws/v1/ledger:verify").json()["faults"] == []


def test_hosts_are_changed_only_when_confirmed(fresh: Served) -> None:
    """An operator would drain a host by asking what draining does."""
    fresh.submit("train-a", alternatives=[ALL])
    body = {"hosts": ["a3-0001"], "state": "DOWN", "until": "2027-01-11T12:00:00Z"}
    before = fresh.last_seq()
    told = post(fresh, "/dws/v1/fleet:changeHosts", body).json()
    assert (told["confirmed"], [a["name"] for a in told["affected"]]) == (False, ["train-a"])
    assert fresh.last_seq() == before
    assert post(fresh, "/dws/v1/fleet:changeHosts", body | {"confirm": True}).json()["confirmed"] is True
    pool = next(p for p in fresh.owner.get("/dws/v1/fleet").json()["pools"] if p["name"] == "a3")
    host = next(h for h in pool["hosts"] if h["name"] == "a3-0001")
    assert (host["state"], host["until"], host["domains"]) == (
        "DOWN",
        "2027-01-11T12:00:00Z",
        {"block": "b1"},
    )
    assert pool["down"] == 1
    assert post(fresh, "/dws/v1/fleet:changeHosts", body | {"hosts": ["nobody"]}).status_code in (400, 404)


def test_a_fleet_is_applied_only_when_confirmed(fresh: Served) -> None:
    """Asking what a new fleet would change would change it; a mistake in it would not be found."""
    toml = (
        '[[zones]]\nname = "z9"\n[[pools]]\nname = "new"\nzone = "z9"\nmachine = "a3-highgpu-8g"\nhosts = 1\n'
    )
    before = fresh.last_seq()
    told = post(fresh, "/dws/v1/fleet:apply", {"toml": toml}).json()
    assert not told["applied"]
    assert any(line.startswith("+ pool new") for line in told["lines"])
    assert fresh.last_seq() == before
    assert post(fresh, "/dws/v1/fleet:apply", {"toml": toml, "confirm": True}).json()["applied"]
    assert [p["name"] for p in fresh.owner.get("/dws/v1/fleet").json()["pools"]] == ["new"]
    answer = post(fresh, "/dws/v1/fleet:apply", {"toml": "[[pools]]\nname = 5\n"})
    assert answer.status_code == 400
    assert "fleet.toml:" in answer.json()["error"]["message"]


def test_a_fleet_file_is_refused_at_its_line_and_leaves_this_machine(fresh: Served) -> None:
    """A pool nobody runs would be promised; and a new fleet would take away the machine itself."""
    before = fresh.owner.get("/dws/v1/fleet").json()
    toml = (
        FLEET
        + '[[pools]]\nname = "s"\nzone = "us-east5-a"\nmachine = "e2-medium"\nhosts = 1\nbackend = "slurm"\n'
    )
    answer = post(fresh, "/dws/v1/fleet:apply", {"toml": toml, "confirm": True})
    assert answer.status_code == 400
    line = toml.rstrip().count("\n") + 1
    assert answer.json()["error"]["message"].startswith(f"fleet.toml:{line}: pools.backend: 'slurm'")
    assert fresh.owner.get("/dws/v1/fleet").json() == before
    assert post(fresh, "/dws/v1/fleet:apply", {"toml": '[[zones]]\nname = "z"\n', "confirm": True}).json()[
        "applied"
    ]
    zones = {zone["name"]: zone for zone in fresh.owner.get("/dws/v1/fleet").json()["zones"]}
    assert zones.keys() == {"z", "local"}
    assert zones["local"] == next(zone for zone in before["zones"] if zone["name"] == "local")


def test_names_with_odd_characters_are_not_found(fresh: Served) -> None:
    """An encoded slash or colon would reach another method."""
    fresh.submit("train-a")
    for name in ("train%2Da", "train-a"):
        assert fresh.owner.get(f"{REQUESTS}/{name}").status_code == 200
    for name in ("a%2Fb", "train-a%3Acancel", "..%2Ftrain-a", "%00", "train-a%20"):
        assert fresh.owner.get(f"{REQUESTS}/{name}").status_code == 404, name
        assert fresh.owner.post(f"{REQUESTS}/{name}:cancel").status_code == 404, name


@pytest.mark.parametrize("name", ["team.x", "example.com:research"])
def test_projects_may_have_dots_and_colons(fresh: Served, name: str) -> None:
    """Projects under a domain could not be used: the colon would be taken for a verb's."""
    path = f"/dws/v1/projects/{name}"
    assert post(fresh, f"{path}/requests", {"alternatives": [SLICE], "name": "a"}).status_code == 200
    assert post(fresh, f"{path}:quote", {"alternatives": [SLICE]}).status_code == 200
    assert fresh.owner.get(f"/compute/v1/projects/{name}").json()["name"] == name


def test_how_machines_stand_is_asked_for_and_told_again(served: Served) -> None:
    """A client could not ask for machines apart, or would not see that it had."""
    body = {
        "alternatives": [
            {
                "machine": "a3-highgpu-8g",
                "count": 2,
                "duration": "1h",
                "grouping": {"level": "block", "together": 2},
                "near": True,
            }
        ]
    }
    answer = served.owner.post(REQUESTS, json=body)
    assert answer.status_code == 200, answer.text
    (told,) = answer.json()["items"][0]["alternatives"]
    assert told["grouping"]["level"] == "block" and told["grouping"]["together"] == 2 and told["near"]
    body["alternatives"][0]["grouping"] = {"level": "block", "together": 3, "atMost": 2}
    refused = served.owner.post(REQUESTS, json=body)
    assert refused.status_code == 400
    assert "alternatives[0].grouping" in refused.text and "3 cannot be together" in refused.text
