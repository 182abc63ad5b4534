"""Reservations made, changed and given back through the Compute door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dws.api.compute_v1.reservations import KIND
from dws.engine.ports import DocumentQuery
from dws.planner.options import PRESETS, PolicyOptions
from tests.api.served import FLEET, Served, serving

ZONE = "/compute/v1/projects/research/zones/us-central1-a"
ALL = f"{ZONE}/reservations"
OTHER = "/compute/v1/projects/research/zones/us-central1-b/reservations"
NATIVE = "/dws/v1/projects/research/reservations"
HOUR = 3_600
INSIDE = [{"accelerators": "h100:8", "duration": "1h"}]


def body(name: str = "r1", count: Any = "2", machine: str = "a3-highgpu-8g", **more: Any) -> dict[str, Any]:
    specific = {"count": count, "instanceProperties": {"machineType": machine}}
    return {"name": name, "specificReservation": specific} | more


def make(served: Served, told: dict[str, Any] | None = None, url: str = ALL) -> httpx2.Response:
    return served.owner.post(url, json=body() if told is None else told)


def made(served: Served, **told: Any) -> dict[str, Any]:
    """A reservation, as it is shown then."""
    answer = make(served, body(**told))
    assert answer.status_code == 200, answer.text
    return seen(served, told.get("name", "r1"))


def seen(served: Served, name: str = "r1", version: str = "v1") -> dict[str, Any]:
    answer = served.owner.get(f"{ALL.replace('v1', version)}/{name}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def patch(
    served: Served, told: dict[str, Any], *paths: str, name: str = "r1", mask: str = ""
) -> httpx2.Response:
    query = [("paths", path) for path in paths] + ([("updateMask", mask)] if mask else [])
    return served.owner.patch(f"{ALL.replace('v1', 'beta')}/{name}", json=told, params=query)


def refused(answer: httpx2.Response, status: int, reason: str) -> str:
    error = answer.json()["error"]
    assert (answer.status_code, error["errors"][0]["reason"]) == (status, reason), answer.text
    return error["message"]


def native(served: Served, name: str = "r1") -> dict[str, Any]:
    return served.owner.get(f"{NATIVE}/{name}").json()


def inside(served: Served, name: str, reservation: str = "r1", **more: Any) -> dict[str, Any]:
    return served.submit(name, alternatives=INSIDE, reservation=reservation, **more)


# --- making one -------------------------------------------------------------------------------


def test_it_is_ready_in_the_first_answer_and_stays_until_it_is_given_back(fresh: Served) -> None:
    """Who reserves machines would not have them, or lose them some day."""
    operation = make(fresh, body(specificReservationRequired=True, description="mine")).json()
    assert (operation["status"], operation["operationType"]) == ("DONE", "insert")
    assert operation["targetLink"].endswith(f"{ALL}/r1")
    found = seen(fresh)
    assert (found["status"], found["specificReservationRequired"], found["description"]) == (
        "READY",
        True,
        "mine",
    )
    assert found["specificReservation"]["assuredCount"] == "2"
    assert "deleteAtTime" not in found
    assert found["shareSettings"] == {"shareType": "LOCAL"}
    fresh.advance("90d")
    assert seen(fresh) == found
    assert native(fresh)["state"] == "FULFILLED"
    assert fresh.owner.delete(f"{ALL}/r1").json()["status"] == "DONE"
    assert fresh.owner.get(f"{ALL}/r1").status_code == 404
    assert native(fresh)["state"] == "ENDED"
    fresh.submit("next", alternatives=[{"accelerators": "h100:32", "duration": "1h"}])
    assert fresh.get("next")["state"] == "ACTIVE"


@pytest.mark.parametrize("preset", ["google", "seed"])
def test_what_bounds_the_calendar_does_not_bound_it(preset: str, tmp_path: Path) -> None:
    """A plain reservation would need 87 hours of notice, or last a week."""
    with serving(tmp_path, policy=PRESETS[preset]) as served:
        assert made(served)["status"] == "READY"
        assert served.owner.post(f"{ALL}/r1/resize", json={"specificSkuCount": "3"}).status_code == 200
        assert seen(served)["specificReservation"]["count"] == "3"


@pytest.mark.parametrize(("count", "now"), [(5, 4), ("3", 2)])
def test_without_room_nothing_is_held_and_the_error_is_the_public_one(
    fresh: Served, count: int | str, now: int
) -> None:
    """A reservation of a part of what was asked for would be paid for in vain."""
    if now == 2:
        made(fresh, name="first", count=2)
    before = fresh.last_seq()
    message = refused(make(fresh, body(count=count)), 409, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    assert "The zone 'us-central1-a' does not have enough resources available" in message
    assert fresh.last_seq() == before
    assert fresh.owner.get(f"{ALL}/r1").status_code == 404
    assert make(fresh, body(count=now)).status_code == 200


def test_what_is_promised_for_later_is_kept(fresh: Served) -> None:
    """Somebody who has booked next month would stand before nothing."""
    block = {"name": "block", "machine": "a3-highgpu-8g", "count": 3, "start": "in 30d", "duration": "7d"}
    assert fresh.owner.post(NATIVE, json=block).status_code == 200
    refused(make(fresh), 409, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    assert make(fresh, body(count=1)).status_code == 200
    fresh.advance("31d")
    assert native(fresh, "block")["short"] == 0
    assert seen(fresh)["specificReservation"]["assuredCount"] == "1"


def test_it_deletes_itself_when_it_was_told_to(fresh: Served) -> None:
    """Machines would stay reserved, and be paid for, behind the day that was planned."""
    after = made(fresh, count=1, deleteAfterDuration={"seconds": HOUR})
    at = made(fresh, name="r2", count=1, deleteAtTime="2027-01-11T12:00:00+02:00")
    assert after["deleteAtTime"] == at["deleteAtTime"] == "2027-01-11T10:00:00Z"
    fresh.advance("1h")
    assert fresh.owner.get(ALL).json()["items"] == []
    assert make(fresh, body(count=4)).status_code == 200


def test_a_name_is_of_its_zone_and_used_once(fresh: Served) -> None:
    """Somebody else's reservation would be lost, or nobody could have the name in another zone."""
    made(fresh)
    refused(make(fresh), 409, "alreadyExists")
    assert make(fresh, body(count=1, machine="a2-highgpu-8g"), OTHER).status_code == 200
    both = fresh.owner.get("/compute/v1/projects/research/aggregated/reservations").json()["items"]
    found = {place: [r["name"] for r in told.get("reservations", [])] for place, told in both.items()}
    assert {place for place, names in found.items() if names == ["r1"]} == {
        "zones/us-central1-a",
        "zones/us-central1-b",
    }
    assert fresh.owner.delete(f"{OTHER}/r1").status_code == 200
    assert seen(fresh)["status"] == "READY"
    fresh.owner.delete(f"{ALL}/r1")
    assert make(fresh).status_code == 200


def test_the_same_request_id_makes_one(fresh: Served) -> None:
    """A call that is repeated after a broken connection would be refused, or hold twice as much."""
    answers = [
        fresh.owner.post(ALL, json=body(), params={"requestId": "3f2c9fd0-0000-4000-8000-000000000001"})
        for _ in range(2)
    ]
    assert answers[0].json() == answers[1].json()
    assert len(fresh.owner.get(ALL).json()["items"]) == 1


def test_machines_may_be_said_by_a_template(fresh: Served) -> None:
    """Who keeps the machine in a template would have to say it twice."""
    template = {"name": "t1", "properties": {"machineType": "a3-highgpu-8g"}}
    fresh.owner.post("/compute/v1/projects/research/global/instanceTemplates", json=template)
    told = {"count": 1, "sourceInstanceTemplate": "projects/research/global/instanceTemplates/t1"}
    assert make(fresh, {"name": "r1", "specificReservation": told}).status_code == 200
    assert seen(fresh)["specificReservation"]["instanceProperties"] == {"machineType": "a3-highgpu-8g"}


@pytest.mark.parametrize(
    ("told", "reason", "words"),
    [
        (body(name="R1"), "invalid", "resource.name"),
        ({"specificReservation": {"count": 1}}, "invalid", "resource.name"),
        ({"name": "r1"}, "required", "resource.specificReservation"),
        (body(count=None), "required", "resource.specificReservation.count"),
        (body(count=0), "invalid", "resource.specificReservation.count"),
        (body(machine=""), "required", "specificReservation.instanceProperties.machineType"),
        (
            body(machine="zones/us-central1-a/machineTypes/a2-highgpu-8g"),
            "invalid",
            "'a2-highgpu-8g' does not exist",
        ),
        (body(zone="us-central1-b"), "invalid", "resource.zone"),
        (body(deleteAtTime="2027-01-11T09:00:00Z"), "invalid", "It must lie behind now"),
        (body(deleteAtTime="tomorrow"), "invalid", "resource.deleteAtTime"),
        (
            body(deleteAtTime="2027-02-11T09:00:00Z", deleteAfterDuration={"seconds": 60}),
            "invalid",
            "not both",
        ),
        (body(deleteAfterDuration={"seconds": 0}), "invalid", "resource.deleteAfterDuration"),
        (body(deleteAfterDuration={"seconds": 10 * 366 * 86_400}), "invalid", "deleteAfterDuration"),
        (body(shareSettings={"shareType": "ORGANIZATION"}), "invalid", "resource.shareSettings.shareType"),
        (body(description="x" * 2_049), "invalid", "description"),
        (
            {
                "name": "r1",
                "aggregateReservation": {
                    "vmFamily": "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT5P",
                    "reservedResources": [{"accelerator": {"acceleratorCount": 8}}],
                },
            },
            "invalid",
            "No pool in zone 'us-central1-a' has TPUs of that family",
        ),
    ],
)
def test_a_wrong_body_is_refused_by_its_field(
    fresh: Served, told: dict[str, Any], reason: str, words: str
) -> None:
    """Something else would be reserved than was meant."""
    before = fresh.last_seq()
    assert words in refused(make(fresh, told), 400, reason)
    assert fresh.last_seq() == before


def test_a_zone_that_is_not_is_not_found(fresh: Served) -> None:
    """A misspelt zone would look like a full one."""
    refused(make(fresh, url=ALL.replace("us-central1-a", "mars-1-a")), 404, "notFound")


def test_the_owners_policy_may_ask_for_an_end_or_an_approval(tmp_path: Path) -> None:
    """Hosts would be gone for good on a fleet whose owner does not want that."""
    with serving(tmp_path, policy=PolicyOptions(open_ended=False)) as served:
        assert "say when it ends" in refused(make(served), 400, "invalid").lower()
        assert make(served, body(deleteAfterDuration={"seconds": HOUR})).status_code == 200


# --- giving it back ---------------------------------------------------------------------------


def test_one_that_is_used_stays_and_says_by_what(fresh: Served) -> None:
    """Deleting it would cut off the machines that run in it."""
    made(fresh)
    inside(fresh, "work")
    message = refused(fresh.owner.delete(f"{ALL}/r1"), 400, "resourceInUseByAnotherResource")
    assert message == (
        "The reservation resource 'projects/research/zones/us-central1-a/reservations/r1' is already being "
        "used by 'projects/research/requests/work'"
    )
    assert seen(fresh)["specificReservation"]["inUseCount"] == "1"
    fresh.owner.post("/dws/v1/projects/research/requests/work:release")
    assert fresh.owner.delete(f"{ALL}/r1").status_code == 200


def test_the_one_of_a_block_stays_to_its_end(fresh: Served) -> None:
    """A block that is paid for to its end would be gone by a slip."""
    block = {
        "name": "block",
        "reservationMode": "CALENDAR",
        "planningStatus": "SUBMITTED",
        "autoDeleteAutoCreatedReservations": True,
        "specificReservationRequired": True,
        "timeWindow": {"startTime": "2027-01-11T10:00:00Z", "endTime": "2027-01-12T10:00:00Z"},
        "specificSkuProperties": {"totalCount": 1, "instanceProperties": {"machineType": "a3-highgpu-8g"}},
    }
    assert fresh.owner.post(f"{ZONE}/futureReservations", json=block).status_code == 200
    message = refused(fresh.owner.delete(f"{ALL}/block"), 400, "resourceInUseByAnotherResource")
    assert "before its end, 2027-01-12T10:00:00Z" in message
    resized = fresh.owner.post(f"{ALL}/block/resize", json={"specificSkuCount": 2})
    assert "'specificReservation' is as that one has it" in refused(resized, 400, "failedPrecondition")
    assert patch(fresh, {"enableEmergentMaintenance": True}, name="block").status_code == 200
    assert seen(fresh, "block")["enableEmergentMaintenance"] is True


# --- changing it ------------------------------------------------------------------------------


def test_it_grows_and_shrinks_as_far_as_there_is_room_and_it_is_not_used(fresh: Served) -> None:
    """Half of a growth would be held, or the machine under a run be given away."""
    made(fresh)
    inside(fresh, "work")
    resized = fresh.owner.post(f"{ALL}/r1/resize", json={"specificSkuCount": "4"}).json()
    assert (resized["operationType"], resized["status"]) == ("resize", "DONE")
    assert seen(fresh)["specificReservation"]["count"] == "4"
    more = fresh.owner.post(f"{ALL}/r1/resize", json={"specificSkuCount": 5})
    refused(more, 409, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    assert fresh.owner.post(f"{ALL}/r1/resize", json={"specific_sku_count": 1}).status_code == 200
    for wrong, reason in (({"specificSkuCount": 0}, "invalid"), ({}, "required")):
        refused(fresh.owner.post(f"{ALL}/r1/resize", json=wrong), 400, reason)
    found = seen(fresh)["specificReservation"]
    assert (found["count"], found["inUseCount"]) == ("1", "1")
    inside(fresh, "second", wait="5m")
    assert fresh.get("second")["state"] != "ACTIVE"


def test_e12_what_cannot_grow_keeps_what_it_has(fresh: Served) -> None:
    """O-E12: a reservation would be lost, or made anew, by asking for more than there is."""
    before = made(fresh)
    fresh.submit("rest", alternatives=[{"accelerators": "h100:8", "duration": "2h"}])
    fresh.submit("rest-too", alternatives=[{"accelerators": "h100:8", "duration": "2h"}])
    said = fresh.last_seq()
    answer = fresh.owner.post(f"{ALL}/r1/resize", json={"specificSkuCount": "4"})
    message = refused(answer, 409, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    assert "0 more" in message
    assert (seen(fresh), fresh.last_seq()) == (before, said)
    fresh.advance("2h")
    assert fresh.owner.post(f"{ALL}/r1/resize", json={"specificSkuCount": "4"}).status_code == 200
    assert seen(fresh)["id"] == before["id"]


def test_e16_given_back_the_next_in_line_starts_at_once(fresh: Served) -> None:
    """O-E16: machines that nobody needs any more would stand idle beside those who wait."""
    made(fresh, count=4)
    fresh.submit("waits")
    assert fresh.get("waits")["state"] != "ACTIVE"
    assert fresh.owner.delete(f"{ALL}/r1").status_code == 200
    assert fresh.get("waits")["state"] == "ACTIVE"


def test_the_record_of_one_that_is_over_is_forgotten(fresh: Served) -> None:
    """The names of everything that ever was would fill the store."""
    made(fresh, deleteAfterDuration={"seconds": HOUR})
    kept = fresh.engine.policy.retention_s
    for days, there in ((2, 1), (kept // 86_400 + 2, 0)):
        fresh.advance(f"{days}d")
        with fresh.engine.reading() as reader:
            found = reader.documents(DocumentQuery(kind=KIND, project="research"))
        assert len(found) == there


def test_projects_share_it_in_both_shapes_and_no_longer(fresh: Served) -> None:
    """Those it is shared with would stand before a closed door, or strangers get in."""
    named = {"partner": {"projectId": "partner"}}
    made(fresh, shareSettings={"shareType": "SPECIFIC_PROJECTS", "projectMap": named})
    assert seen(fresh)["shareSettings"]["projectMap"] == named
    assert seen(fresh, version="beta")["shareSettings"]["projects"] == ["partner"]
    more = {"shareSettings": {"shareType": "SPECIFIC_PROJECTS", "projectMap": {"lab": {"projectId": "lab"}}}}
    assert patch(fresh, more, "shareSettings.projectMap.lab").status_code == 200
    assert sorted(seen(fresh)["shareSettings"]["projectMap"]) == ["lab", "partner"]
    listed = {"shareSettings": {"shareType": "SPECIFIC_PROJECTS", "projects": ["lab", "ops"]}}
    assert patch(fresh, listed, "shareSettings.projects").status_code == 200
    assert sorted(seen(fresh)["shareSettings"]["projectMap"]) == ["lab", "ops"]
    number = fresh.owner.get("/compute/v1/projects/lab").json()["id"]
    gone = {"shareSettings": {"shareType": "SPECIFIC_PROJECTS"}}
    assert patch(fresh, gone, f"shareSettings.projectMap.{number}").status_code == 200
    assert seen(fresh, version="alpha")["shareSettings"]["projects"] == ["ops"]
    message = refused(patch(fresh, gone, f"shareSettings.projectMap.{number}"), 400, "invalid")
    assert "not shared with a project of that number" in message
    assert (
        patch(fresh, {"shareSettings": {"shareType": "LOCAL"}}, "shareSettings.shareType").status_code == 200
    )
    assert seen(fresh)["shareSettings"] == {"shareType": "LOCAL"}
    assert [share["project"] for share in native(fresh)["shares"]] == []


def test_f07_share_settings_survive_other_changes_and_a_project_that_leaves_keeps_what_runs(
    fresh: Served,
) -> None:
    """A change of the description would close it to the others, or a project that leaves be cut off."""
    made(fresh, shareSettings={"projectMap": {"p2": {"projectId": "p2"}, "p3": {"projectId": "p3"}}})
    there = "/dws/v1/projects/p3/requests"
    wish = {"alternatives": INSIDE, "reservation": "research/r1"}
    assert fresh.owner.post(there, json=wish | {"name": "mine"}).status_code == 200
    before = seen(fresh)["shareSettings"]
    assert patch(fresh, {"description": "for the course"}, mask="description").status_code == 200
    assert (seen(fresh)["shareSettings"], seen(fresh)["description"]) == (before, "for the course")
    assert patch(fresh, {}, "shareSettings.projectMap.p3").status_code == 200
    assert list(seen(fresh)["shareSettings"]["projectMap"]) == ["p2"]
    assert fresh.owner.get(f"{there}/mine").json()["state"] == "ACTIVE"
    assert fresh.owner.post(there, json=wish | {"name": "late"}).status_code == 403


def test_its_end_is_set_moved_and_taken_away(fresh: Served) -> None:
    """Machines would be given back too early, or never."""
    made(fresh)
    assert patch(fresh, {"deleteAtTime": "2027-01-11T12:00:00Z"}, "deleteAtTime").status_code == 200
    assert seen(fresh)["deleteAtTime"] == "2027-01-11T12:00:00Z"
    fresh.advance("30m")
    assert (
        patch(fresh, {"deleteAfterDuration": {"seconds": "3600"}}, "deleteAfterDuration").status_code == 200
    )
    assert seen(fresh)["deleteAtTime"] == "2027-01-11T10:00:00Z"
    past = patch(fresh, {"deleteAfterDuration": {"seconds": 60}}, "deleteAfterDuration")
    assert "made 30 minutes ago" in refused(past, 400, "invalid")
    assert patch(fresh, {}, "deleteAtTime").status_code == 200
    assert "deleteAtTime" not in seen(fresh)
    fresh.advance("90d")
    assert seen(fresh)["status"] == "READY"


def test_only_what_may_change_changes_and_what_is_sent_back_as_it_is_harms_nothing(fresh: Served) -> None:
    """A program that reads, changes one thing and sends all of it back would be refused, or change more."""
    made(fresh)
    whole = seen(fresh, version="beta") | {"enableEmergentMaintenance": True}
    assert patch(fresh, whole).status_code == 200
    found = seen(fresh, version="beta")
    assert found == whole
    grown = body(count="3")
    assert patch(fresh, grown | {"description": "stray"}, "specificReservation.count").status_code == 200
    assert seen(fresh)["specificReservation"]["count"] == "3"
    assert seen(fresh)["description"] == ""
    machine = body(machine="a2-highgpu-8g")
    for told, path in (
        (machine, "specificReservation.instanceProperties.machineType"),
        ({"specificReservationRequired": True}, "specificReservationRequired"),
    ):
        assert "cannot change once" in refused(patch(fresh, told, path), 400, "invalid")
    refused(patch(fresh, {}, "specificReservation.count"), 400, "required")
    assert "no field 'zones'" in refused(patch(fresh, {}, "zones"), 400, "invalid")
    assert seen(fresh)["specificReservation"]["count"] == "3"


# --- those of other doors ---------------------------------------------------------------------


def test_one_that_dws_made_is_seen_and_can_be_changed_and_given_back(fresh: Served) -> None:
    """Machines reserved on the command line would be out of reach for gcloud."""
    made(fresh, name="zz", count=1)
    booked = {
        "machine": "a3-highgpu-8g",
        "count": 1,
        "start": "in 0s",
        "duration": "7d",
        "locations": ["us-central1-a"],
    }
    for name in ("by-hand", "zzz"):
        assert fresh.owner.post(NATIVE, json=booked | {"name": name}).status_code == 200
    ahead = booked | {"name": "ahead", "start": "in 1d", "duration": "1d"}
    assert fresh.owner.post(NATIVE, json=ahead).status_code == 200
    found = seen(fresh, "by-hand")
    assert (found["status"], found["deleteAtTime"]) == ("READY", "2027-01-18T09:00:00Z")
    assert [r["name"] for r in fresh.owner.get(ALL).json()["items"]] == ["ahead", "by-hand", "zz", "zzz"]
    first = fresh.owner.get(ALL, params={"maxResults": 2}).json()
    rest = fresh.owner.get(ALL, params={"maxResults": 2, "pageToken": first["nextPageToken"]}).json()
    assert [r["name"] for r in rest["items"]] == ["zz", "zzz"]
    newest = fresh.owner.get(ALL, params={"orderBy": "creationTimestamp desc"}).json()
    assert len(newest["items"]) == 4
    refused(make(fresh, body(name="by-hand", count=1)), 409, "alreadyExists")
    assert patch(fresh, {"schedulingType": "GROUPED"}, name="by-hand").status_code == 200
    assert seen(fresh, "by-hand")["schedulingType"] == "GROUPED"
    assert patch(fresh, {"schedulingType": "INDEPENDENT"}, name="by-hand").status_code == 200
    assert fresh.owner.delete(f"{ALL}/by-hand").status_code == 200
    assert fresh.owner.delete(f"{ALL}/ahead").status_code == 200
    assert (native(fresh, "by-hand")["state"], native(fresh, "ahead")["state"]) == ("ENDED", "CANCELLED")
    assert [r["name"] for r in fresh.owner.get(ALL).json()["items"]] == ["zz", "zzz"]


def test_one_made_here_is_used_by_dws_under_its_name(fresh: Served) -> None:
    """Machines reserved with gcloud would be out of reach for the command line."""
    made(fresh, specificReservationRequired=True)
    assert inside(fresh, "work")["state"] in ("PENDING", "PROVISIONING", "ACTIVE")
    assert fresh.get("work")["state"] == "ACTIVE"
    assert native(fresh)["inUse"] == 1


# --- other machines ---------------------------------------------------------------------------

OTHERS = """
[[pools]]
name = "v5e"
zone = "us-central1-a"
machine = "ct5lp-hightpu-4t"
topology = "4x4"

[[pools]]
name = "shared"
zone = "us-east5-a"
machine = "a3-highgpu-8g"
hosts = 1
shared = true
"""


@pytest.fixture
def others(tmp_path: Path) -> Iterator[Served]:
    """The small world with a TPU pod and a shared host."""
    with serving(tmp_path, fleet=FLEET + OTHERS) as served:
        yield served


def chips(number: int) -> dict[str, Any]:
    return {
        "name": "tpus",
        "aggregateReservation": {
            "vmFamily": "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT5LP",
            "workloadType": "BATCH",
            "reservedResources": [{"accelerator": {"acceleratorCount": number}}],
        },
    }


def test_tpus_are_reserved_by_their_chips(others: Served) -> None:
    """Who has TPUs could not keep a slice for good."""
    answer = make(others, chips(8))
    assert answer.status_code == 200, answer.text
    for version in ("v1", "beta"):
        found = seen(others, "tpus", version)
        assert "specificReservation" not in found
        told = found["aggregateReservation"]
        assert told["reservedResources"] == [{"accelerator": {"acceleratorCount": 8}}]
        assert told["inUseResources"] == [{"accelerator": {"acceleratorCount": 0}}]
    assert native(others, "tpus")["topology"] == "2x4"
    more = chips(16) | {"name": "more"}
    refused(make(others, more), 409, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    odd = chips(7) | {"name": "odd"}
    assert "resource.aggregateReservation.reservedResources" in refused(make(others, odd), 400, "invalid")
    assert others.owner.delete(f"{ALL}/tpus").status_code == 200
    assert make(others, more).status_code == 200


def test_a_machine_runs_in_reserved_chips(others: Served) -> None:
    """Who reserved chips could not use them; or a GPU machine would wait for them for ever."""
    assert make(others, chips(8)).status_code == 200
    others.advance("1m")
    for name, machine, code in (("tpu", "ct5lp-hightpu-4t", 200), ("gpu", "a3-highgpu-8g", 400)):
        body = {
            "name": name,
            "machineType": machine,
            "reservationAffinity": {
                "consumeReservationType": "SPECIFIC_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": ["tpus"],
            },
        }
        done = others.owner.post(ALL.replace("reservations", "instances"), json=body)
        assert done.status_code == code, done.text
    others.advance("1m")
    told = seen(others, "tpus", "v1")["aggregateReservation"]
    assert told["inUseResources"] == [{"accelerator": {"acceleratorCount": 4}}]


def test_parts_of_shared_hosts_are_reserved(others: Served) -> None:
    """A whole host would have to be held for one accelerator."""
    there = ALL.replace("us-central1-a", "us-east5-a")
    assert make(others, body(count=3, machine="a3-highgpu-2g"), there).status_code == 200
    found = others.owner.get(f"{there}/r1").json()["specificReservation"]
    assert (found["count"], found["instanceProperties"]) == ("3", {"machineType": "a3-highgpu-2g"})
    more = body("r2", count=3, machine="a3-highgpu-1g")
    refused(make(others, more, there), 409, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    assert make(others, body("r2", count=2, machine="a3-highgpu-1g"), there).status_code == 200
    resized = others.owner.post(f"{there}/r1/resize", json={"specificSkuCount": 1})
    assert resized.status_code == 200, resized.text
    assert make(others, body("r3", count=4, machine="a3-highgpu-1g"), there).status_code == 200
