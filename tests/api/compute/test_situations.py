"""What people reported, with flex start at the Compute door. Those of reservations are in
`test_calendar_situations`, those of consuming them in `test_consuming`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dws.backends.simulated.faults import NO_FAULTS, Faults
from dws.engine.ports import RequestQuery
from dws.model.access import SYSTEM
from tests.api.compute.test_instances import FLEX as FLEX_VM
from tests.api.compute.test_instances import VMS, ZONE, insert
from tests.api.compute.test_resize_requests import TEMPLATES, ask, get, make_group
from tests.api.served import Served, serving

B = ZONE.replace("-a", "-b")
SLOW = Faults(slow_units=tuple(range(8)), boot_extra_s=30)
SHARED = """\
[[zones]]
name = "us-central1-a"

[[pools]]
name = "shared"
zone = "us-central1-a"
machine = "a3-highgpu-8g"
hosts = 1
shared = true
"""


WHOLE = """\
[[zones]]
name = "us-central1-a"

[[pools]]
name = "a3"
zone = "us-central1-a"
machine = "a3-highgpu-8g"
hosts = 4
overheads = { setup = "2m" }
"""


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Served]:
    """A fleet whose machines come up half a minute after they were started."""
    with serving(tmp_path, fleet=WHOLE) as served:
        served.engine._backends["simulated"].faults = SLOW
        yield served


def nothing_is_held(served: Served) -> bool:
    """Whether the whole fleet is free again, by asking for it."""
    asked = served.submit("whole", alternatives=[{"accelerators": "h100:32", "duration": "1h"}])
    return bool(served.get(asked["name"])["state"] in ("PROVISIONING", "ACTIVE"))


@pytest.mark.parametrize("act", ["group", "cancel"])
def test_a03_what_is_given_up_while_it_comes_up_leaves_nothing(slow: Served, act: str) -> None:
    """Its machines would be held, and paid for, by what nobody can see; or its record say it still comes."""
    group = make_group(slow)
    ask(slow, group, resizeBy=4)
    slow.advance("5s")
    assert get(slow, f"{group}/resizeRequests/r1")["state"] == "ACCEPTED"
    (request,) = slow.owner.get("/dws/v1/projects/research/requests").json()["items"]
    assert request["state"] == "PROVISIONING"
    done = slow.owner.delete(group) if act == "group" else slow.owner.post(f"{group}/resizeRequests/r1/cancel")
    assert (done.json()["status"], "error" in done.json()) == ("DONE", False)
    slow.advance("5m")
    if act == "cancel":
        assert get(slow, f"{group}/resizeRequests/r1")["state"] == "CANCELLED"
        assert get(slow, group)["targetSize"] == 0
    assert slow.owner.get(VMS).json()["items"] == []
    assert nothing_is_held(slow)


def test_a03_an_instance_deleted_while_it_comes_up_ends_its_creation(slow: Served) -> None:
    """A client that waits for its creation would wait for ever."""
    made = insert(slow, "v1", FLEX_VM).json()
    slow.advance("5s")
    assert get(slow, f"{ZONE}/operations/{made['name']}")["status"] == "RUNNING"
    gone = slow.owner.delete(f"{VMS}/v1").json()
    assert (gone["status"], "error" in gone) == ("DONE", False)
    ended = get(slow, f"{ZONE}/operations/{made['name']}")
    assert (ended["status"], ended["error"]["errors"][0]["code"]) == ("DONE", "OPERATION_CANCELED_BY_USER")
    slow.advance("5m")
    assert slow.owner.get(f"{VMS}/v1").status_code == 404
    assert nothing_is_held(slow)


Thing = dict[str, Any]
FILTERS: list[tuple[str, Callable[[Thing], bool]]] = [
    ("status = RUNNING", lambda t: t["status"] == "RUNNING"),
    ("status != RUNNING", lambda t: t["status"] != "RUNNING"),
    ("(status eq PENDING)", lambda t: t["status"] == "PENDING"),
    (
        "labels.team = a AND (status = PENDING OR name = v0*)",
        lambda t: (
            t["labels"]["team"] == "a" and (t["status"] == "PENDING" or t["name"].startswith("v0"))
        ),
    ),
    ("NOT labels.team = a", lambda t: t["labels"]["team"] != "a"),
    ('name eq "v1.*"', lambda t: t["name"].startswith("v1")),
    ("zone eq .*/us-central1-b", lambda t: t["zone"].endswith("-b")),
    ("labels.owner:*", lambda t: "owner" in t["labels"]),
    ("colour = red", lambda t: False),
]


@pytest.fixture(scope="module")
def thirty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Thirty instances of two teams in two zones, some there, others waiting."""
    with serving(tmp_path_factory.mktemp("thirty")) as served:
        wait = {"params": {"requestValidForDuration": {"seconds": 7_200}}}
        for number in range(30):
            zone, machine = (("us-central1-a", "a3-highgpu-8g"), ("us-central1-b", "e2-medium"))[number % 2]
            labels = {"team": "ab"[number % 3 % 2]} | ({"owner": "x"} if number % 5 == 0 else {})
            told = served.owner.post(
                f"/compute/v1/projects/research/zones/{zone}/instances",
                json={"name": f"v{number:02}", "machineType": machine, "labels": labels, "scheduling": FLEX_VM}
                | wait,
            )
            assert told.status_code == 200, told.text
        served.advance("1m")
        yield served


@pytest.mark.parametrize(("text", "fits"), FILTERS, ids=[text for text, _ in FILTERS])
def test_b01_instances_are_let_through_as_a_reference_says(
    thirty: Served, text: str, fits: Callable[[Thing], bool]
) -> None:
    """A clean-up script would delete what its filter was to keep."""
    every = [i for zone in (ZONE, B) for i in thirty.owner.get(f"{zone}/instances").json()["items"]]
    assert len(every) == 30
    assert len({i["status"] for i in every}) > 1
    wanted = {i["name"] for i in every if fits(i)}
    found = {
        i["name"]
        for zone in (ZONE, B)
        for i in thirty.owner.get(f"{zone}/instances", params={"filter": text}).json()["items"]
    }
    assert found == wanted
    where = "/compute/v1/projects/research/aggregated/instances"
    scopes = thirty.owner.get(where, params={"filter": text}).json()["items"].values()
    assert {i["name"] for scope in scopes for i in scope.get("instances", [])} == wanted


@pytest.mark.parametrize("text", ["status = ", "name ~ 3", "(status = RUNNING", "status % RUNNING"])
def test_b01_what_is_no_filter_points_at_its_position(thirty: Served, text: str) -> None:
    """What is not understood would let everything through."""
    told = thirty.owner.get(VMS, params={"filter": text})
    assert (told.status_code, "position" in told.json()["error"]["message"]) == (400, True), told.text


def test_m02_what_is_gone_is_said_to_be_not_there(fresh: Served) -> None:
    """A cleaner that comes second would stop in the middle of its list."""
    group = make_group(fresh)
    ask(fresh, group, resizeBy=40)
    fresh.owner.post(f"{group}/resizeRequests/r1/cancel")
    insert(fresh, "v1")
    for path in (f"{group}/resizeRequests/r1", group, f"{TEMPLATES}/t", f"{VMS}/v1"):
        assert fresh.owner.delete(path).status_code == 200, path
        fresh.advance("5m")
        again = fresh.owner.delete(path)
        assert (again.status_code, again.json()["error"]["errors"][0]["reason"]) == (404, "notFound"), path
        assert again.json()["error"]["message"].endswith("was not found")


@pytest.mark.parametrize("state", ["ACCEPTED", "coming up", "SUCCEEDED", "over", "CANCELLED", "FAILED"])
def test_m10_a_resize_request_is_destroyed_in_every_state(slow: Served, state: str) -> None:
    """Terraform cancels what is ACCEPTED and deletes it: a destroy would fail, or leave something behind."""
    if state != "coming up":
        slow.engine._backends["simulated"].faults = NO_FAULTS
    if state == "FAILED":
        slow.engine._backends["simulated"].faults = Faults(reject="no such image")
    group = make_group(slow)
    ask(slow, group, resizeBy=40 if state in ("ACCEPTED", "CANCELLED") else 2)
    path = f"{group}/resizeRequests/r1"
    if state == "CANCELLED":
        slow.owner.post(f"{path}/cancel")
    slow.advance({"coming up": "5s", "over": "3h"}.get(state, "10m"))
    seen = get(slow, path)["state"]
    assert seen == {"coming up": "ACCEPTED", "over": "SUCCEEDED"}.get(state, state)
    if seen == "ACCEPTED":
        assert slow.owner.post(f"{path}/cancel").status_code == 200
    assert slow.owner.delete(path).status_code == 200
    assert slow.owner.get(path).status_code == 404
    assert get(slow, f"{group}/resizeRequests")["items"] == []
    assert slow.owner.delete(group).status_code == 200
    slow.engine._backends["simulated"].faults = NO_FAULTS
    slow.advance("10m")
    assert nothing_is_held(slow)


def test_m11_a_burst_of_a_hundred_small_requests_runs_eight_at_a_time(tmp_path: Path) -> None:
    """Some would be refused for coming too fast, or a failure stop the others."""
    properties = {
        "machineType": "a3-highgpu-1g",
        "scheduling": {"provisioningModel": "FLEX_START", "maxRunDuration": {"seconds": "600"}},
    }
    with serving(tmp_path, fleet=SHARED) as served:
        group = make_group(served, properties=properties)
        for number in range(100):
            told = ask(served, group, f"r{number:02}", resizeBy=1)
            assert told.status_code == 200, told.text
        for number in (7, 50):
            assert served.owner.post(f"{group}/resizeRequests/r{number:02}/cancel").is_success is (number > 7)
        running = served.owner.get(VMS, params={"filter": "status = RUNNING"}).json()["items"]
        assert len(running) == 8
        served.advance("4h")
        states = [r["state"] for r in get(served, f"{group}/resizeRequests")["items"]]
        assert (states.count("SUCCEEDED"), states.count("CANCELLED")) == (99, 1)
        assert get(served, group)["targetSize"] == 0
        assert len(served.engine.list_requests(SYSTEM, RequestQuery(limit=500)).items) == 100
