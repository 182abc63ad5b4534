"""What runs in a reservation through the Compute door: instances and groups that name it, or need not."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.api.compute.test_future_reservations import announced, made
from tests.api.compute.test_instances import VMS, insert
from tests.api.compute.test_resize_requests import (
    IGM,
    PROJECT,
    REGION,
    RR,
    ZONE,
    ask,
    get,
    make_group,
    managed,
)
from tests.api.served import Served

MACHINE = "a3-highgpu-8g"
DAY = 86_400
BOUND = {"provisioningModel": "RESERVATION_BOUND", "instanceTerminationAction": "DELETE"}
KEYS = ("compute.googleapis.com/reservation-name", "googleapis.com/reservation-name")


def naming(value: str = "r1", key: str = KEYS[0]) -> dict[str, Any]:
    """The affinity of what runs in one reservation only."""
    return {"consumeReservationType": "SPECIFIC_RESERVATION", "key": key, "values": [value]}


def reserve(served: Served, name: str = "r1", hosts: int = 2, project: str = "research", **more: Any) -> None:
    """Machines for fourteen days, from now unless said otherwise."""
    body = {"name": name, "machine": MACHINE, "count": hosts, "start": "in 0s", "duration": "14d"} | more
    booked = served.owner.post(f"/dws/v1/projects/{project}/reservations", json=body)
    assert booked.status_code == 200, booked.text


def vm(served: Served, name: str) -> dict[str, Any]:
    """An instance, valid as the public service describes it."""
    found: dict[str, Any] = get(served, f"{VMS}/{name}", "Instance")
    return found


def in_use(served: Served, name: str = "r1") -> int:
    """How many machines of a reservation are in use."""
    told = served.owner.get(f"/dws/v1/projects/research/reservations/{name}").json()
    return int(told.get("inUse", 0))


def inside(served: Served, name: str, value: str = "r1", **more: Any) -> httpx2.Response:
    """An instance bound to a reservation."""
    return insert(served, name, BOUND, reservationAffinity=naming(value), **more)


def error(answer: httpx2.Response) -> tuple[int, str]:
    """The status and the message of a refusal."""
    return answer.status_code, str(answer.json()["error"]["message"])


# --- instances by themselves --------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "value",
    [
        "r1",
        "projects/research/reservations/r1",
        "projects/research/zones/us-central1-a/reservations/r1",
        "https://compute.googleapis.com/compute/v1/projects/research/zones/us-central1-a/reservations/r1",
    ],
)
def test_an_instance_runs_in_the_reservation_it_names(fresh: Served, key: str, value: str) -> None:
    """It would be paid for twice; or a client that spells the reservation differently be refused."""
    reserve(fresh)
    fresh.advance("1m")
    done = insert(fresh, "v1", BOUND, reservationAffinity=naming(value, key))
    assert (done.status_code, done.json()["status"]) == (200, "DONE")
    status = vm(fresh, "v1")["resourceStatus"]
    assert status["reservationConsumptionInfo"] == {
        "consumedReservation": "projects/research/zones/us-central1-a/reservations/r1",
        "consumedReservationBlock": "projects/research/zones/us-central1-a/reservations/r1/reservationBlocks/b1",
    }
    assert status["scheduling"] == {"terminationTimestamp": "2027-01-25T09:00:00Z"}
    assert in_use(fresh) == 1


def test_the_end_is_the_earlier_of_its_run_and_its_reservation(fresh: Served) -> None:
    """It would be cut without notice; or outlive what its owner said."""
    reserve(fresh)
    fresh.advance("1m")
    for name, seconds in (("short", 3_600), ("long", 20 * DAY)):
        scheduling = BOUND | {"maxRunDuration": {"seconds": str(seconds)}}
        assert insert(fresh, name, scheduling, reservationAffinity=naming()).status_code == 200
    ends = [vm(fresh, name)["resourceStatus"]["scheduling"] for name in ("short", "long")]
    assert [end["terminationTimestamp"] for end in ends] == ["2027-01-11T10:01:00Z", "2027-01-25T09:00:00Z"]


@pytest.mark.parametrize("action", ["STOP", "DELETE"])
def test_at_the_end_instances_stop_or_go_and_hold_nothing(fresh: Served, action: str) -> None:
    """Others would not get the machines that are theirs now; or what was to stay would be gone."""
    reserve(fresh, duration="4h")
    fresh.advance("1m")
    scheduling = BOUND | {"instanceTerminationAction": action}
    for name in ("v1", "v2"):
        insert(fresh, name, scheduling, reservationAffinity=naming())
    fresh.advance("4h")
    left = fresh.owner.get(VMS).json()["items"]
    assert [each["status"] for each in left] == (["TERMINATED"] * 2 if action == "STOP" else [])
    assert fresh.submit("all", alternatives=[{"accelerators": "h100:32", "duration": "1h"}])
    fresh.advance("1m")
    assert fresh.get("all")["state"] == "ACTIVE"
    if action == "STOP":
        again = fresh.owner.post(f"{VMS}/v1/start")
        assert (again.status_code, "do not exist" in again.text) == (400, True)
        assert vm(fresh, "v1")["status"] == "TERMINATED"


def test_before_the_start_an_instance_is_refused(fresh: Served) -> None:
    """It would wait without anybody knowing; autoscalers look for these very words."""
    reserve(fresh, start="in 1h")
    before = fresh.last_seq()
    status, message = error(inside(fresh, "v1"))
    assert status == 400
    assert message == (
        "Cannot insert instance to a reservation with status: CREATING, as it requires reservation to be in "
        "READY state."
    )
    assert (fresh.last_seq(), fresh.owner.get(f"{VMS}/v1").status_code) == (before, 404)
    fresh.advance("1h")
    assert inside(fresh, "v1").status_code == 200


def test_f02_a_full_reservation_refuses_at_once_and_says_when_it_is_free(fresh: Served) -> None:
    """O-F02: it would run outside, and cost; or be told nothing."""
    reserve(fresh)
    fresh.advance("1m")
    scheduling = BOUND | {"maxRunDuration": {"seconds": "7200"}}
    for name in ("v1", "v2"):
        insert(fresh, name, scheduling, reservationAffinity=naming())
    status, message = error(inside(fresh, "v3"))
    assert status == 400
    assert message == (
        "Specified reservation 'r1' does not have available resources for the request. reservation r1 has 0 of "
        "its 2 hosts free; needs 1, free Mon 11 Jan 11:01 UTC"
    )
    assert fresh.owner.get(f"{VMS}/v3").status_code == 404
    fresh.advance("2h")
    assert inside(fresh, "v3").status_code == 200


@pytest.mark.parametrize(
    ("scheduling", "affinity", "words"),
    [
        (
            {"provisioningModel": "FLEX_START", "maxRunDuration": {"seconds": 3600}},
            naming(),
            "FLEX_START cannot consume a specific reservation: say NO_RESERVATION, or RESERVATION_BOUND",
        ),
        ({"provisioningModel": "SPOT"}, naming(), "SPOT cannot consume a specific reservation"),
        (BOUND, {}, "With provisioning model RESERVATION_BOUND it must be SPECIFIC_RESERVATION"),
        (BOUND, {"consumeReservationType": "ANY_RESERVATION"}, "it must be SPECIFIC_RESERVATION"),
        (BOUND, naming(key="compute.googleapis.com/name"), "reservationAffinity.key"),
        (BOUND, naming() | {"values": []}, "'resource.reservationAffinity.values' not specified"),
        (BOUND, naming() | {"values": ["r1", "r2"]}, "One reservation is needed"),
        (BOUND, naming("r2"), "Specified reservations [r2] do not exist"),
        (BOUND, naming("zones/us-central1-b/reservations/r1"), "do not exist"),
        ({}, naming() | {"values": ["r/1/2"]}, "One reservation is needed"),
    ],
)
def test_f06_what_cannot_be_is_refused_before_anything_is_asked(
    served: Served, scheduling: dict[str, Any], affinity: dict[str, Any], words: str
) -> None:
    """O-F06: it would wait for ever, or run as something its owner did not ask for."""
    served.owner.post("/dws/v1/projects/research/reservations", json=TOMORROW)
    before = served.last_seq()
    refused = insert(served, "w", scheduling, reservationAffinity=affinity)
    assert (refused.status_code, words in refused.text) == (400, True), refused.text
    assert served.last_seq() == before


TOMORROW = {"name": "r1", "machine": MACHINE, "count": 2, "start": "in 1d", "duration": "7d"}


@pytest.mark.parametrize(
    ("scheduling", "affinity"),
    [
        ({"provisioningModel": "FLEX_START", "maxRunDuration": {"seconds": 3600}}, naming()),
        (BOUND, {"consumeReservationType": "NO_RESERVATION"}),
    ],
)
def test_f06_a_template_that_cannot_be_is_refused(
    served: Served, scheduling: dict[str, Any], affinity: dict[str, Any]
) -> None:
    """O-F06: only the group made of it, days later, would be told."""
    properties = {"machineType": MACHINE, "scheduling": scheduling, "reservationAffinity": affinity}
    body = {"name": "wrong", "properties": properties}
    refused = served.owner.post(f"{PROJECT}/global/instanceTemplates", json=body)
    words = "resource.properties.reservationAffinity.consumeReservationType"
    assert (refused.status_code, words in refused.text) == (400, True), refused.text


def test_a_machine_of_another_kind_is_refused(fresh: Served) -> None:
    """It would wait for machines that its reservation never has."""
    where = VMS.replace("central1-a", "central1-b")
    reserve(fresh, "b1", hosts=1, machine="a2-highgpu-8g")
    body = {"name": "v1", "machineType": "e2-medium", "scheduling": BOUND, "reservationAffinity": naming("b1")}
    status, message = error(fresh.owner.post(where, json=body))
    assert (status, message) == (
        400,
        "No available resources in specified reservations 'b1': it holds a2-highgpu-8g, not e2-medium.",
    )


def test_f04_a_shared_reservation_is_named_with_its_owner(fresh: Served) -> None:
    """O-F04: whom it is shared with could not use it; or anybody could."""
    reserve(fresh, project="owner", shares=[{"project": "research", "hostsMax": 1}])
    fresh.advance("1m")
    short = error(inside(fresh, "v1"))
    assert (short[0], "projects/OWNER/reservations/NAME" in short[1]) == (400, True)
    assert inside(fresh, "v1", "projects/owner/reservations/r1").status_code == 200
    consumed = vm(fresh, "v1")["resourceStatus"]["reservationConsumptionInfo"]["consumedReservation"]
    assert consumed == "projects/owner/zones/us-central1-a/reservations/r1"
    more = error(inside(fresh, "v2", "projects/owner/reservations/r1"))
    assert more[1].startswith("Specified reservation 'r1' does not have available resources for the request.")
    body = {"name": "v1", "machineType": MACHINE, "scheduling": BOUND}
    stranger = VMS.replace("research", "stranger")
    for value in ("projects/owner/reservations/r1", "projects/owner/reservations/none"):
        affinity = naming(value)
        status, message = error(fresh.owner.post(stranger, json=body | {"reservationAffinity": affinity}))
        assert status == 403
        assert message == (
            "The reservation must exist in the same project as the instance or be shared with it; "
            f"'{value}' is not shared with project 'stranger'."
        )


@pytest.mark.parametrize("affinity", [{}, {"consumeReservationType": "ANY_RESERVATION"}])
def test_f01_any_reservation_is_used_first_and_then_the_rest_of_the_fleet(
    fresh: Served, affinity: dict[str, Any]
) -> None:
    """O-F01: what is paid for already would stand empty."""
    reserve(fresh, hosts=1, specificOnly=False)
    fresh.advance("1m")
    for name in ("v1", "v2"):
        scheduling = {"maxRunDuration": {"seconds": "3600"}}
        assert insert(fresh, name, scheduling, reservationAffinity=affinity).status_code == 200
    consumed = ["reservationConsumptionInfo" in vm(fresh, name)["resourceStatus"] for name in ("v1", "v2")]
    assert (consumed, in_use(fresh)) == ([True, False], 1)


@pytest.mark.parametrize("required", [False, True])
def test_f01_an_instance_without_an_end_uses_a_reservation_without_one(fresh: Served, required: bool) -> None:
    """O-F01: who reserves machines to be sure of them would pay for them twice, or never get them."""
    held = {"count": "1", "instanceProperties": {"machineType": MACHINE}}
    body = {"name": "mine", "specificReservation": held, "specificReservationRequired": required}
    assert fresh.owner.post(f"{ZONE}/reservations", json=body).status_code == 200
    fresh.advance("1m")
    affinity = naming("mine") if required else {}
    assert insert(fresh, "v1", reservationAffinity=affinity).status_code == 200
    second = insert(fresh, "v2", reservationAffinity=affinity)
    assert second.status_code == (400 if required else 200)
    assert in_use(fresh, "mine") == 1
    fresh.advance("60d")
    seen = vm(fresh, "v1")
    assert (seen["status"], "scheduling" in seen["resourceStatus"]) == ("RUNNING", False)
    consumed = seen["resourceStatus"]["reservationConsumptionInfo"]["consumedReservation"]
    assert consumed == "projects/research/zones/us-central1-a/reservations/mine"
    assert fresh.owner.delete(f"{VMS}/v1").status_code == 200
    fresh.advance("1m")
    assert in_use(fresh, "mine") == 0


def test_f01_a_reservation_that_must_be_named_is_not_any_reservation(fresh: Served) -> None:
    """O-F01: somebody who did not ask for it would use up what others booked."""
    reserve(fresh, hosts=1)
    fresh.advance("1m")
    insert(fresh, "v1", {"maxRunDuration": {"seconds": "3600"}})
    assert (vm(fresh, "v1")["status"], in_use(fresh)) == ("RUNNING", 0)


@pytest.mark.parametrize("model", ["STANDARD", "FLEX_START"])
def test_f03_no_reservation_means_none(fresh: Served, model: str) -> None:
    """O-F03: who keeps out of reservations would use them up all the same."""
    reserve(fresh, hosts=1, specificOnly=False)
    fresh.submit("rest", alternatives=[{"accelerators": "h100:24", "duration": "4h"}])
    fresh.advance("1m")
    scheduling = {"provisioningModel": model, "maxRunDuration": {"seconds": 3600}}
    affinity = {"consumeReservationType": "NO_RESERVATION"}
    insert(fresh, "v1", scheduling, reservationAffinity=affinity)
    assert in_use(fresh) == 0
    assert fresh.owner.get(f"{VMS}/v1").json().get("status") in (None, "PENDING")


@pytest.mark.parametrize("least", [2, 3])
def test_a_bulk_insert_has_its_instances_in_the_reservation_or_is_refused(fresh: Served, least: int) -> None:
    """They would run outside, or some of them wait while others are paid for."""
    reserve(fresh)
    fresh.advance("1m")
    body = {
        "count": "3",
        "minCount": str(least),
        "namePattern": "b-#",
        "instanceProperties": {
            "machineType": MACHINE,
            "scheduling": BOUND,
            "reservationAffinity": naming(),
        },
    }
    done = fresh.owner.post(f"{VMS}/bulkInsert", json=body)
    if least == 3:
        assert error(done)[1].startswith("Specified reservation 'r1' does not have available resources")
    fresh.advance("1m")
    there = get(fresh, VMS)["items"]
    assert (done.status_code, len(there), in_use(fresh)) == ((200, 2, 2) if least == 2 else (400, 0, 0)), done.text


# --- groups -------------------------------------------------------------------------------------

PROPERTIES = {"machineType": MACHINE, "scheduling": BOUND, "reservationAffinity": naming()}


def test_e17_resize_requests_bound_to_a_reservation_wait_and_start_with_it(fresh: Served) -> None:
    """O-E17: they would run outside, or one by one, or only when somebody asks again."""
    reserve(fresh, start="in 20h", duration="7d")
    group = make_group(fresh, properties=PROPERTIES)
    assert ask(fresh, group).status_code == 200
    fresh.advance("19h")
    found = get(fresh, f"{group}/resizeRequests/r1", RR)
    (told,) = found["status"]["lastAttempt"]["error"]["errors"]
    assert (found["state"], told["code"]) == ("ACCEPTED", "RESERVATION_NOT_READY")
    assert "it requires reservation to be in READY state. " in told["message"]
    assert "waits for reservation r1, which opens Tue 12 Jan 05:00 UTC" in told["message"]
    facts = told["errorDetails"][0]["errorInfo"]["metadatas"]
    assert facts["estimatedAvailabilityTime"] == "2027-01-12T05:00:00Z"
    fresh.advance("1h")
    fresh.advance("1m")
    assert get(fresh, f"{group}/resizeRequests/r1", RR)["state"] == "SUCCEEDED"
    there = get(fresh, f"{ZONE}/instances")["items"]
    starts = {each["lastStartTimestamp"] for each in there}
    assert (len(there), len(starts), min(starts) >= "2027-01-12T05:00:00Z", in_use(fresh)) == (2, 1, True, 2)
    assert get(fresh, group, IGM)["targetSize"] == 2
    fresh.advance("7d")
    assert (managed(fresh, group), get(fresh, group, IGM)["targetSize"]) == ([], 0)


def test_a_resize_request_waits_while_its_reservation_is_full(fresh: Served) -> None:
    """It would be refused, and somebody have to ask again and again."""
    reserve(fresh)
    fresh.advance("1m")
    scheduling = BOUND | {"maxRunDuration": {"seconds": "7200"}}
    insert(fresh, "v1", scheduling, reservationAffinity=naming())
    group = make_group(fresh, properties=PROPERTIES)
    ask(fresh, group)
    (told,) = get(fresh, f"{group}/resizeRequests/r1", RR)["status"]["lastAttempt"]["error"]["errors"]
    assert told["code"] == "RESERVATION_CAPACITY_EXCEEDED"
    assert told["message"].startswith(
        "Specified reservation 'r1' does not have available resources for the request. "
    )
    assert get(fresh, f"{group}/listErrors")["items"][0]["error"]["code"] == "RESERVATION_CAPACITY_EXCEEDED"
    fresh.advance("2h")
    fresh.advance("1m")
    assert (get(fresh, f"{group}/resizeRequests/r1", RR)["state"], in_use(fresh)) == ("SUCCEEDED", 2)


def test_a_full_reservation_without_an_end_is_told_of_none(fresh: Served) -> None:
    """Who asks what is wrong would read of an end, in ten years, that nobody set."""
    specific = {"count": "1", "instanceProperties": {"machineType": "a3-highgpu-8g"}}
    body = {"name": "r1", "specificReservation": specific, "specificReservationRequired": True}
    assert fresh.owner.post(f"{ZONE}/reservations", json=body).status_code == 200
    insert(fresh, "v1", reservationAffinity=naming())
    status, message = error(insert(fresh, "v2", reservationAffinity=naming()))
    assert status == 400
    assert message.endswith("reservation r1 has 0 of its 1 hosts free, and not enough for as long")


def test_e17_a_resize_request_whose_reservation_ends_is_told(fresh: Served) -> None:
    """O-E17: it would be ACCEPTED for ever."""
    reserve(fresh, duration="4h")
    fresh.advance("1m")
    inside(fresh, "v1")
    group = make_group(fresh, properties=PROPERTIES)
    ask(fresh, group)
    fresh.advance("4h")
    found = get(fresh, f"{group}/resizeRequests/r1", RR)
    (told,) = found["status"]["error"]["errors"]
    assert (found["state"], told["code"]) == ("FAILED", "RESERVATION_NOT_FOUND")
    assert get(fresh, group, IGM)["targetSize"] == 0


@pytest.mark.parametrize("where", [ZONE, REGION])
def test_a_resize_request_says_how_long_its_instances_run_or_they_run_to_the_end(
    fresh: Served, where: str
) -> None:
    """Instances would end early, or hold what somebody else waits for in the same reservation."""
    reserve(fresh)
    fresh.advance("1m")
    group = make_group(fresh, where, PROPERTIES)
    ask(fresh, group, "short", resizeBy=1, requestedRunDuration={"seconds": "7200"})
    ask(fresh, group, "whole", resizeBy=1)
    fresh.advance("1m")
    ends = [
        each["resourceStatus"]["scheduling"]["terminationTimestamp"]
        for each in get(fresh, f"{ZONE}/instances")["items"]
    ]
    assert sorted(ends) == ["2027-01-11T11:01:00Z", "2027-01-25T09:00:00Z"]


@pytest.mark.parametrize("action", ["STOP", "DELETE"])
def test_instances_of_a_group_stop_or_go_with_their_reservation(fresh: Served, action: str) -> None:
    """A group would go on holding machines; or what was to be kept be gone."""
    reserve(fresh, duration="4h")
    scheduling = BOUND | {"instanceTerminationAction": action}
    group = make_group(fresh, properties=PROPERTIES | {"scheduling": scheduling}, targetSize=2)
    fresh.advance("1m")
    assert in_use(fresh) == 2
    fresh.advance("4h")
    left = [each["instanceStatus"] for each in managed(fresh, group)]
    assert left == (["TERMINATED"] * 2 if action == "STOP" else [])
    assert get(fresh, group, IGM)["targetSize"] == len(left)
    fresh.submit("all", alternatives=[{"accelerators": "h100:32", "duration": "1h"}])
    fresh.advance("1m")
    assert fresh.get("all")["state"] == "ACTIVE"


@pytest.mark.parametrize("mode", ["INDIVIDUAL", "BULK"])
def test_a_group_has_its_size_from_its_reservation(fresh: Served, mode: str) -> None:
    """Its instances would run outside what is paid for; those of mode BULK one by one."""
    reserve(fresh, start="in 1h")
    group = make_group(fresh, properties=PROPERTIES, targetSizePolicy={"mode": mode})
    assert fresh.owner.post(f"{group}/resize?size=2").status_code == 200
    fresh.advance("30m")
    assert {each["currentAction"] for each in managed(fresh, group)} == {"CREATING"}
    fresh.advance("31m")
    assert ([each["instanceStatus"] for each in managed(fresh, group)], in_use(fresh)) == (["RUNNING"] * 2, 2)
    assert fresh.owner.post(f"{group}/resize?size=0").status_code == 200
    fresh.advance("1m")
    body = {"instances": [{"name": "own-1"}, {"name": "own-2"}]}
    assert fresh.owner.post(f"{group}/createInstances", json=body).status_code == 200
    fresh.advance("1m")
    assert (sorted(each["name"] for each in managed(fresh, group)), in_use(fresh)) == (["own-1", "own-2"], 2)


def test_a_block_goes_by_the_name_of_its_reservation(fresh: Served) -> None:
    """Work would name what was booked as its client shows it, and be told that there is no such thing."""
    made(fresh, announced(reservationName="course"))
    fresh.advance("1d")
    fresh.advance("1m")
    assert "do not exist" in error(inside(fresh, "v1", "block"))[1]
    assert inside(fresh, "v1", "course").status_code == 200
    consumed = vm(fresh, "v1")["resourceStatus"]["reservationConsumptionInfo"]["consumedReservation"]
    assert consumed == "projects/research/zones/us-central1-a/reservations/course"


B2 = "projects/research/reservations/r1/reservationBlocks/b2"


def test_a_block_path_places_inside_that_block(fresh: Served) -> None:
    """Instances that are to stand together would be spread over the reservation, and nobody told."""
    reserve(fresh, hosts=4)
    fresh.advance("1m")
    for name in ("v1", "v2"):
        assert inside(fresh, name, B2).status_code == 200
        consumed = vm(fresh, name)["resourceStatus"]["reservationConsumptionInfo"]
        assert consumed["consumedReservationBlock"].endswith("reservations/r1/reservationBlocks/b2")
    status, message = error(inside(fresh, "v3", B2))
    assert (status, "'r1' does not have available resources" in message) == (400, True)
    group = make_group(fresh, properties=PROPERTIES | {"reservationAffinity": naming(B2)})
    ask(fresh, group)
    assert get(fresh, f"{group}/resizeRequests/r1", RR)["state"] == "ACCEPTED"
    assert inside(fresh, "v4").status_code == 200
    for name in ("v1", "v2"):
        fresh.owner.delete(f"{VMS}/{name}")
    fresh.advance("1m")
    assert get(fresh, f"{group}/resizeRequests/r1", RR)["state"] == "SUCCEEDED"
    hosts = [each["resourceStatus"]["physicalHost"] for each in get(fresh, f"{ZONE}/instances")["items"]]
    assert sorted(host.split("/")[2] for host in hosts) == ["b1", "b2", "b2"]


@pytest.mark.parametrize(
    ("value", "hosts", "words"),
    [
        ("r1/reservationBlocks/b3", 4, "do not exist: 'r1' has no hosts there"),
        ("r1/reservationBlocks/b2", 2, "do not exist: 'r1' has no hosts there"),
        ("r1/reservationBlocks/b1/reservationSubBlocks/s1", 4, "do not exist: 'r1' has no hosts there"),
    ],
)
def test_a_block_that_is_not_there_is_refused(fresh: Served, value: str, hosts: int, words: str) -> None:
    """It would wait for ever, or stand somewhere else."""
    reserve(fresh, hosts=hosts)
    fresh.advance("1m")
    status, message = error(inside(fresh, "v1", value))
    assert (status, words in message) == (400, True), message


def test_more_than_a_block_holds_is_refused(fresh: Served) -> None:
    """It would wait for ever for what the block never has."""
    reserve(fresh, hosts=4)
    fresh.advance("1m")
    group = make_group(fresh, properties=PROPERTIES | {"reservationAffinity": naming(B2)})
    status, message = error(ask(fresh, group, resizeBy=3))
    assert status == 400
    assert message == (
        "Specified reservation 'r1' does not have available resources for the request. count: 3 hosts are more "
        "than reservation 'r1' holds in block b2"
    )
