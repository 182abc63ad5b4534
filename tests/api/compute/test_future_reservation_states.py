"""How far a future reservation is, whoever moves it on: approvers, hosts that are lost, projects that look."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dws.planner.options import PolicyOptions
from tests.api.compute.test_future_reservations import ALL, MADE, announced, insert, made, message, state
from tests.api.served import Served, serving

NATIVE = "/dws/v1/projects/research/reservations"
APPROVER = PolicyOptions(reservation_approval="approver")


@pytest.fixture
def ruled(tmp_path: Path) -> Iterator[Served]:
    """A server whose blocks are approved by an operator; `anyone` shows the token of a user of one project."""
    folder = tmp_path / "state"
    folder.mkdir()
    digest = hashlib.sha256(b"user").hexdigest()
    (folder / "tokens.toml").write_text(
        f'[[token]]\nname = "user"\nrole = "user"\nsha256 = "{digest}"\nprojects = ["research"]\n'
    )
    with serving(tmp_path, policy=APPROVER) as served:
        served.anyone.headers["authorization"] = "Bearer user"
        yield served


def asked(served: Served, **more: Any) -> dict[str, Any]:
    """What a user, who is no operator, has after asking for a block."""
    told = served.anyone.post(ALL, json=announced(**more))
    assert told.status_code == 200, told.text
    return served.anyone.get(f"{ALL}/{more.get('name', 'block')}").json()


def down(served: Served, *hosts: str) -> None:
    """These hosts are out of order."""
    body = {"hosts": hosts, "state": "DOWN", "confirm": True}
    assert served.owner.post("/dws/v1/fleet:changeHosts", json=body).is_success


def test_it_waits_until_it_is_approved(ruled: Served) -> None:
    """An owner who decides on each block would find it booked, or usable, without having been asked."""
    assert asked(ruled)["status"] == {"procurementStatus": "PENDING_APPROVAL"}
    assert ruled.owner.get(f"{MADE}/block").status_code == 404
    assert ruled.owner.get(MADE).json()["items"] == []
    assert ruled.owner.post(f"{NATIVE}/block:approve").is_success
    seen = ruled.anyone.get(f"{ALL}/block").json()["status"]
    assert seen["procurementStatus"] == "APPROVED"
    assert seen["lockTime"] == "2027-01-12T08:45:00Z"
    assert seen["autoCreatedReservations"] == [f"{ruled.address}{MADE}/block"]
    assert ruled.owner.get(f"{MADE}/block").json()["status"] == "CREATING"


def test_it_may_be_declined_and_is_deleted_then(ruled: Served) -> None:
    """A block that was refused would go on being waited for."""
    asked(ruled)
    assert ruled.owner.post(f"{NATIVE}/block:decline", json={"reason": "exams"}).is_success
    assert state(ruled) == "DECLINED"
    assert "DECLINED" in message(ruled.owner.post(f"{ALL}/block/cancel"), 400, "failedPrecondition")
    assert ruled.anyone.delete(f"{ALL}/block").status_code == 200
    assert asked(ruled)["status"]["procurementStatus"] == "PENDING_APPROVAL"


def test_it_is_declined_when_nobody_approves_it(ruled: Served) -> None:
    """The machines of a block nobody decided on would be held for ever."""
    asked(ruled)
    ruled.advance("25h")
    assert state(ruled) == "DECLINED"


def test_it_may_be_cancelled_while_it_waits(ruled: Served) -> None:
    """Who changed their mind would have to wait for a decision first."""
    asked(ruled)
    assert ruled.anyone.post(f"{ALL}/block/cancel").status_code == 200
    assert state(ruled) == "CANCELLED"


def test_a_user_may_not_enlarge_what_was_approved(ruled: Served) -> None:
    """An approval of two machines would be good for four."""
    asked(ruled)
    assert ruled.owner.post(f"{NATIVE}/block:approve").is_success
    before = ruled.owner.get(f"{ALL}/block").json()
    body = {"specificSkuProperties": {"totalCount": "3"}}
    mask = {"updateMask": "specificSkuProperties.totalCount"}
    told = ruled.anyone.patch(f"{ALL}/block", json=body, params=mask)
    assert "approved by an operator" in message(told, 403, "forbidden")
    assert ruled.owner.get(f"{ALL}/block").json() == before


def test_e09_what_is_lacking_at_the_start_is_said(fresh: Served) -> None:
    """A block without all its machines would be called fulfilled."""
    made(fresh, announced(specificSkuProperties=announced()["specificSkuProperties"] | {"totalCount": "4"}))
    down(fresh, "a3-0001")
    fresh.advance("1d")
    seen = fresh.owner.get(f"{ALL}/block").json()["status"]
    assert (seen["procurementStatus"], seen["fulfilledCount"]) == ("PROVISIONING", "3")
    fresh.advance("14d")
    assert state(fresh) == "FAILED_PARTIALLY_FULFILLED"


def test_a_block_that_never_had_a_machine_failed(fresh: Served) -> None:
    """Nothing was delivered, and the record would say that it was."""
    made(fresh, announced())
    down(fresh, "a3-0001", "a3-0002", "a3-0003", "a3-0004")
    fresh.advance("1d")
    seen = fresh.owner.get(f"{ALL}/block").json()["status"]
    assert (seen["procurementStatus"], seen["fulfilledCount"]) == ("PROVISIONING", "0")
    fresh.advance("15d")
    assert state(fresh) == "FAILED"


def test_e09_it_is_fulfilled_as_soon_as_the_last_host_is_back(fresh: Served) -> None:
    """A repaired host would not count."""
    made(fresh, announced(specificSkuProperties=announced()["specificSkuProperties"] | {"totalCount": "4"}))
    down(fresh, "a3-0001")
    fresh.advance("1d")
    body = {"hosts": ["a3-0001"], "state": "READY", "confirm": True}
    assert fresh.owner.post("/dws/v1/fleet:changeHosts", json=body).is_success
    fresh.advance("1m")
    assert state(fresh) == "FULFILLED"


def test_only_the_project_that_owns_it_sees_and_changes_it(ruled: Served) -> None:
    """A project it is shared with could cancel it, and a stranger read it."""
    asked(ruled, shareSettings={"shareType": "SPECIFIC_PROJECTS", "projectMap": {"partner": {}}})
    theirs = f"{ALL.replace('research', 'partner')}/block"
    assert "was not found" in message(ruled.owner.post(f"{theirs}/cancel"), 404, "notFound")
    message(ruled.owner.delete(theirs), 404, "notFound")
    message(ruled.owner.get(theirs), 404, "notFound")
    refused: list[httpx2.Response] = [ruled.anyone.get(theirs), ruled.anyone.delete(theirs)]
    assert [told.status_code for told in refused] == [403, 403]
    assert state(ruled) == "PENDING_APPROVAL"


def test_changes_made_elsewhere_are_seen_here(fresh: Served) -> None:
    """The command line would move a block, and gcloud go on showing where it was."""
    made(fresh, announced())
    body = {"count": 3, "start": "2027-01-13T09:00:00Z", "end": "2027-01-20T09:00:00Z"}
    told = fresh.owner.patch(f"{NATIVE}/block", json=body)
    assert told.is_success, told.text
    seen = fresh.owner.get(f"{ALL}/block").json()
    assert seen["specificSkuProperties"]["totalCount"] == "3"
    assert seen["timeWindow"] == {"startTime": "2027-01-13T09:00:00Z", "endTime": "2027-01-20T09:00:00Z"}
    assert fresh.owner.post(f"{NATIVE}/block:cancel").is_success
    assert state(fresh) == "CANCELLED"


def test_a01_a_request_id_books_once(fresh: Served) -> None:
    """A client that asks again after a lost answer would have two blocks, or be told that one is there."""
    once = {"requestId": "11111111-1111-4111-8111-111111111111"}
    first = fresh.owner.post(ALL, json=announced(), params=once)
    again = fresh.owner.post(ALL, json=announced(), params=once)
    assert first.json() == again.json()
    assert len(fresh.owner.get(MADE).json()["items"]) == 1
    assert insert(fresh, announced()).status_code == 409
