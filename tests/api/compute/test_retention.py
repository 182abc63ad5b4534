"""What is over is forgotten when the owner's policy says so, through HTTP: 14 days under `google`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dws.planner.options import PRESETS
from tests.api.compute.test_future_reservations import ALL as BLOCKS
from tests.api.compute.test_future_reservations import announced, window
from tests.api.compute.test_instances import FLEX as FLEX_VM
from tests.api.compute.test_instances import VMS, insert
from tests.api.compute.test_resize_requests import TEMPLATES, ZONE, ask, get, make_group
from tests.api.served import Served, serving

DAY = 86_400


@pytest.fixture
def google(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path, policy=PRESETS["google"]) as server:
        yield server


def names(served: Served, path: str) -> set[str]:
    """The names of a list's items."""
    return {each["name"] for each in get(served, path)["items"]}


def rows(served: Served, word: str) -> list[Any]:
    """The documents of a kind that the store still holds."""
    kept = served.system.store.tables.documents._rows.values()
    return [d for d in kept if d.kind == f"compute.{word}"]


def test_operations_are_forgotten_after_14_days(google: Served) -> None:
    """Lists of operations would grow for ever; or one be gone while somebody still asks for it."""
    done = google.owner.post(TEMPLATES, json={"name": "t", "properties": {"machineType": "m"}}).json()
    path = f"/compute/v1/projects/research/global/operations/{done['name']}"
    google.advance("14d")
    assert get(google, path)["status"] == "DONE"
    google.advance("2d")
    assert google.owner.get(path).status_code == 404
    assert get(google, path.rpartition("/")[0])["items"] == []
    assert names(google, TEMPLATES) == {"t"}  # what it made is not over


def test_an_operation_is_not_forgotten_while_it_runs(fresh: Served) -> None:
    """A client that waits for its instance would hear that it never asked for one."""
    for number in range(4):
        insert(fresh, f"holds-{number}")
    wait = {"requestValidForDuration": {"seconds": 50 * DAY}}
    done = insert(fresh, "v1", FLEX_VM, params=wait).json()
    fresh.advance("35d")  # longer than the default policy keeps what is over
    assert get(fresh, f"{ZONE}/operations/{done['name']}")["status"] == "RUNNING"
    fresh.owner.delete(f"{VMS}/holds-0")
    fresh.advance("10m")
    assert get(fresh, f"{ZONE}/operations/{done['name']}")["status"] == "DONE"
    fresh.advance("35d")
    assert fresh.owner.get(f"{ZONE}/operations/{done['name']}").status_code == 404


def test_an_instance_that_is_over_is_forgotten_and_one_that_is_stopped_is_not(google: Served) -> None:
    """The store would grow with every instance there ever was; or a stopped one be lost."""
    insert(google, "gone", FLEX_VM)
    insert(google, "stays", FLEX_VM | {"instanceTerminationAction": "STOP"})
    insert(google, "runs")
    for number in range(3):
        insert(google, f"failed-{number}")  # there is room for one of them
    google.advance("2h")
    assert names(google, VMS) == {"stays", "runs", "failed-0"}
    google.owner.delete(f"{VMS}/failed-0")
    assert len(rows(google, "instance")) == 5
    google.advance("20d")
    assert names(google, VMS) == {"stays", "runs"}
    assert {d.name for d in rows(google, "instance")} == {"stays", "runs"}
    stopped = google.owner.get(f"{VMS}/stays").json()
    assert (stopped["status"], stopped["lastStopTimestamp"]) == ("TERMINATED", "2027-01-11T10:00:00Z")
    assert google.owner.post(f"{VMS}/stays/start").status_code == 200
    google.advance("10m")
    assert google.owner.get(f"{VMS}/stays").json()["status"] == "RUNNING"


def test_resize_requests_are_forgotten_and_their_group_stays(google: Served) -> None:
    """A group would carry every wish there ever was; or be forgotten itself."""
    group = make_group(google)
    ask(google, group, "done", resizeBy=1)
    ask(google, group, "given-up", resizeBy=40)
    ask(google, group, "waits", resizeBy=40)
    google.owner.post(f"{group}/resizeRequests/given-up/cancel")
    google.advance("3h")  # the run is over
    ask(google, group, "waits-too", resizeBy=40)
    assert len(rows(google, "groupRequest")) == 2  # what nothing is left of is not read with the group any more
    google.owner.post(f"{group}/resizeRequests/waits-too/cancel")
    google.owner.delete(f"{group}/resizeRequests/waits-too")
    google.advance("13d")
    assert names(google, f"{group}/resizeRequests") == {"done", "given-up", "waits"}
    google.advance("3d")
    assert names(google, f"{group}/resizeRequests") == {"waits"}
    assert {d.request for d in rows(google, "groupRequest")} == {rows(google, "resizeRequest")[0].request}
    assert google.owner.get(f"{group}/resizeRequests/done").status_code == 404
    assert get(google, group)["targetSize"] == 40
    assert ask(google, group, "done", resizeBy=1).status_code == 200  # its name is free
    google.owner.delete(group)
    google.advance("20d")
    assert rows(google, "groupRequest") == rows(google, "resizeRequest") == []


def test_blocks_that_are_over_are_forgotten_with_the_reservation_made_for_them(google: Served) -> None:
    """The calendar's door would list every block there ever was."""
    body = announced(timeWindow=window(4 * DAY, 2 * DAY))
    body |= {"reservationMode": "CALENDAR", "planningStatus": "SUBMITTED"}
    told = google.owner.post(BLOCKS, json=body)
    assert told.status_code == 200, told.text
    google.owner.post(BLOCKS, json=announced("draft"))
    google.advance("7d")
    assert get(google, f"{BLOCKS}/block")["status"]["procurementStatus"] == "FULFILLED"
    google.advance("12d")
    assert names(google, BLOCKS) == {"block", "draft"}
    google.advance("4d")
    assert names(google, BLOCKS) == {"draft"}
    assert [d.name for d in rows(google, "futureReservation")] == ["draft"]
    assert rows(google, "reservation") == []
    assert google.owner.get(f"{BLOCKS}/block").status_code == 404
