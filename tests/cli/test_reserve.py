"""What `dws reserve`, `dws reservations` and `dws audit` send and show, against a stub of the server."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from click.testing import Result

from dws.cli import zones
from dws.model.errors import NoRoom
from dws.wire import native_v1 as wire
from tests.cli.stub import NOW, PROJECT, Stub, a_reason, an_event, clock, instant

Run = Callable[..., Result]
Golden = Callable[[str, str], None]
RESERVATIONS = f"{PROJECT}/reservations"
DAY = 86_400
WISH = ("--machine", "a3-highgpu-8g", "--count", "8", "--zone", "us-central1-a")


def a_reservation(**changes: Any) -> wire.Reservation:
    """Eight hosts for a week, open since yesterday, three of them in use and one lacking."""
    given: dict[str, Any] = {
        "id": "77",
        "name": "spring-run",
        "project": "default",
        "principal": "kim",
        "state": "FULFILLED",
        "start": instant(NOW - DAY),
        "end": instant(NOW + 6 * DAY),
        "duration_s": 7 * DAY,
        "time_zone": "Europe/Paris",
        "pool": "a3",
        "zone": "us-central1-a",
        "machine": "a3-highgpu-8g",
        "count": 8,
        "within": None,
        "short": 1,
        "in_use": 3,
        "waiting": 1,
        "shares": [wire.Share(project="vision", hosts_max=2), wire.Share(project="speech")],
        "specific_only": True,
        "at_end": "stop",
        "request_hosts_max": 4,
        "request_run_max_s": 14_400,
        "description": "the spring run",
        "labels": {},
        "series": "",
        "created_at": instant(NOW - 9 * DAY),
        "lock_at": instant(NOW - DAY - 900),
        "approve_by": "",
        "cancel_until": "",
        "opened_at": instant(NOW - DAY + 60),
        "idle_since": "",
        "ended_at": "",
        "end_message": "",
        "sequence": 2,
        "version": 5,
        "cost": "11289.60",
        "hosts": ["a3-0001", "a3-0002"],
        "inside": [
            wire.Inside(name="vm", project="vision", state="ACTIVE", hosts=3, ends_at=instant(NOW + DAY)),
            wire.Inside(name="late", project="default", state="PENDING", hosts=0, ends_at=""),
        ],
    }
    return wire.Reservation(**(given | changes))


def reserved(*warnings: str) -> wire.Reserved:
    rule = wire.Reason(
        code="RULE_END",
        message="",
        text="what still runs in it at {at:time} is stopped",
        facts={"at": NOW + 6 * DAY},
    )
    return wire.Reserved(
        reservation=a_reservation(state="APPROVED"),
        dry_run=False,
        rules=[rule],
        now=instant(NOW),
        warnings=list(warnings),
    )


def test_e06_the_servers_clock_decides_and_a_wrong_one_is_told(dws: Run, stub: Stub) -> None:
    """O-E06: a laptop ten minutes fast would book ten minutes late, and its owner would not know."""
    stub.on(f"POST {RESERVATIONS}", reserved("your clock is 10m ahead of the server's"))
    machine = stub.machine(wall=NOW + 600)
    done = dws("reserve", "soon", *WISH, "--in", "5m", "--for", "1h", "-o", "json", machine=machine)
    assert done.exit_code == 0, done.stderr
    (body,) = stub.bodies(f"POST {RESERVATIONS}")
    assert body["start"] == "in 5m"
    assert body["clientTime"] == instant(NOW + 600)
    assert done.stderr == "warning: your clock is 10m ahead of the server's\n"
    assert done.stdout.startswith("{"), "a program reads data alone"


def test_e04_what_was_understood_is_echoed_before_it_is_booked(dws: Run, stub: Stub) -> None:
    """O-E04: a start in another zone than meant would be seen when nobody can change it any more."""
    stub.on(f"POST {RESERVATIONS}", reserved())
    done = dws("reserve", "block", *WISH, "--start", "2027-05-03 09:00", "--until", "2027-05-04 09:00")
    assert done.stderr.splitlines()[0] == (
        "start: 2027-05-03 09:00:00 CEST (Europe/Paris) = 2027-05-03T07:00:00Z"
    )
    (body,) = stub.bodies(f"POST {RESERVATIONS}")
    assert (body["start"], body["end"]) == ("2027-05-03T07:00:00Z", "2027-05-04T07:00:00Z")
    assert body["timeZone"] == "Europe/Paris"
    assert "- what still runs in it at Thu 21 Jan 09:00 CET is stopped" in done.stdout


def test_a_zone_without_a_name_is_not_sent() -> None:
    """On a machine whose zone is a copied file every booking would be refused."""
    with resources.files("tzdata.zoneinfo").joinpath("Europe", "Berlin").open("rb") as file:
        unnamed = ZoneInfo.from_file(file, key=zones.UNNAMED)
    assert zones.name_of(unnamed) == ""
    assert zones.name_of(ZoneInfo("Europe/Berlin")) == "Europe/Berlin"


def test_e02_what_fits_is_offered_with_everything_that_was_asked(dws: Run, stub: Stub) -> None:
    """O-E02: a command that is offered and typed would book under other terms."""
    nearest = {"pool": "a3", "zone": "us-central1-a", "machine": "a3-highgpu-8g", "count": 8}
    nearest |= {"start": instant(NOW + 2 * DAY), "end": instant(NOW + 3 * DAY), "durationS": DAY}
    details: dict[str, object] = {"nearest": [nearest], "most": 5}
    stub.on(f"POST {RESERVATIONS}", NoRoom("needs 8 hosts; 5 are free", field="start", details=details))
    terms = ("--share", "vision:2", "--request-hosts", "4", "--request-run", "4h", "--description", "a b")
    done = dws("reserve", "block", *WISH, "--in", "1d", "--for", "1d", *terms)
    assert done.exit_code == 5
    offered = (
        "  dws reserve block --machine a3-highgpu-8g --count 8 --zone us-central1-a "
        "--start 2027-01-17T08:00:00Z --for 1d --share vision:2 --request-hosts 4 --request-run 4h "
        "--description 'a b'"
    )
    assert offered in done.stderr.splitlines()
    assert "that window has room for 5 hosts" in done.stderr
    stub.on(f"PATCH {RESERVATIONS}/block", NoRoom("needs 8 hosts; nothing was changed"))
    assert dws("reservations", "amend", "block", "--count", "8").exit_code == 5


def test_from_now_on_without_an_end(dws: Run, stub: Stub) -> None:
    """Who wants machines for good would have to think of an end, and see one that nobody said."""
    lab = a_reservation(name="lab", on_demand=True, end="", duration_s=0, cost="")
    stub.on(f"POST {RESERVATIONS}", msgspec.structs.replace(reserved(), reservation=lab, rules=[]))
    done = dws("reserve", "lab", *WISH, "--now")
    assert done.exit_code == 0, done.stderr
    (body,) = stub.bodies(f"POST {RESERVATIONS}")
    assert body["onDemand"] is True
    assert body.keys().isdisjoint({"start", "end", "duration"})
    assert done.stdout.splitlines()[2:] == ["to   until it is given back"]
    stub.on(f"GET {RESERVATIONS}", wire.ReservationList(items=[lab], next_page_token=""))
    assert "no end" in dws("reservations").stdout
    for wrong in (("--now", "--in", "5m"), ("--now", "--for", "1d", "--until", "+2d"), ("--in", "5m")):
        assert dws("reserve", "lab", *WISH, *wrong).exit_code == 2
    nearest = {"pool": "a3", "zone": "us-central1-a", "machine": "a3-highgpu-8g", "count": 8}
    details: dict[str, object] = {"nearest": [nearest], "most": 5}
    stub.on(f"POST {RESERVATIONS}", NoRoom("needs 8 hosts; 5 are free", field="start", details=details))
    full = dws("reserve", "lab", *WISH, "--now")
    assert (full.exit_code, full.stderr.splitlines()) == (
        5,
        ["dws: needs 8 hosts; 5 are free", "that window has room for 5 hosts"],
    )


def test_slices_are_booked_by_their_topology(dws: Run, stub: Stub) -> None:
    """A reservation of TPU slices could be made through the API alone, and be read as one of hosts."""
    told = reserved()
    square = {"machine": "ct5lp-hightpu-4t", "topology": "4x4", "count": 2, "pool": "v5e"}
    booked = a_reservation(state="APPROVED", **square)
    stub.on(f"POST {RESERVATIONS}", msgspec.structs.replace(told, reservation=booked))
    wish = ("--tpu", "v5e", "--topology", "4x4", "--count", "2")
    done = dws("reserve", "square", *wish, "--in", "6h", "--for", "2d")
    assert done.exit_code == 0, done.stderr
    (body,) = stub.bodies(f"POST {RESERVATIONS}")
    assert (body["accelerators"], body["topology"]) == ("v5e:2", "4x4") and "machine" not in body
    assert "square" not in body.get("machine", "") and "2 x 4x4 of ct5lp-hightpu-4t" in done.stdout
    details: dict[str, object] = {
        "nearest": [square | {"zone": "z", "start": instant(NOW + DAY), "durationS": DAY}],
        "most": 1,
    }
    stub.on(f"POST {RESERVATIONS}", NoRoom("needs 2 4x4 slices; 1 is free", details=details))
    refused = dws("reserve", "square", *wish, "--in", "6h", "--for", "2d").stderr
    offered = "dws reserve square --tpu v5e --topology 4x4 --count 2 --zone z --start 2027-01-16T08:00:00Z --for 1d"
    assert offered in refused and "that window has room for 1 slices" in refused
    stub.on(f"GET {RESERVATIONS}/square", booked)
    stub.on("GET /dws/v1/events", wire.EventList(items=[], last_seq=0))
    assert "lacks 1 of 2 slices" in dws("reservations", "describe", "square").stdout


def test_each_request_inside_can_be_bounded(dws: Run, stub: Stub) -> None:
    """One request would take a shared reservation whole."""
    stub.on(f"POST {RESERVATIONS}", reserved())
    stub.on(f"PATCH {RESERVATIONS}/spring-run", reserved())
    bounds = ("--request-hosts", "4", "--request-run", "4h")
    assert dws("reserve", "spring-run", *WISH, "--in", "1d", "--for", "1d", *bounds).exit_code == 0
    (body,) = stub.bodies(f"POST {RESERVATIONS}")
    assert (body["requestHostsMax"], body["requestRunMax"]) == (4, "4h")
    assert dws("reservations", "amend", "spring-run", "--request-hosts", "0").exit_code == 0
    assert stub.bodies(f"PATCH {RESERVATIONS}/spring-run") == [{"requestHostsMax": 0}]


def test_describe(dws: Run, stub: Stub, golden: Golden) -> None:
    """Who uses a reservation, what it lacks and what happened to it could not be read in one place."""
    story = [
        an_event(11, "ReservationAsked", at=NOW - 9 * DAY, actor="kim"),
        an_event(15, "ReservationDegraded", at=NOW - 600, reason="host a3-0004 failed"),
    ]
    stub.on(f"GET {RESERVATIONS}/spring-run", a_reservation())
    stub.on("GET /dws/v1/events", wire.EventList(items=story, last_seq=15))
    golden("reservation-describe", dws("reservations", "describe", "spring-run").stdout)
    assert stub.calls[-1][2]["reservation"] == "77"


def test_list(dws: Run, stub: Stub, golden: Golden) -> None:
    """What is booked, when it starts and how full it is would not be seen at a glance."""
    items = [
        a_reservation(),
        a_reservation(name="later", state="APPROVED", start=instant(NOW + DAY), short=0, in_use=0),
        a_reservation(name="over", state="ENDED"),
    ]
    stub.on(f"GET {RESERVATIONS}", wire.ReservationList(items=items))
    golden("reservations", dws("reservations").stdout)


def test_advise(dws: Run, stub: Stub, golden: Golden) -> None:
    """Nobody could see when it would fit, why not elsewhere, and how to book it."""
    option = wire.WindowOption(
        pool="a3",
        zone="us-central1-a",
        machine="a3-highgpu-8g",
        count=8,
        within=None,
        start=instant(NOW + DAY),
        end=instant(NOW + 2 * DAY),
        duration_s=DAY,
        cost="1612.80",
        currency="USD",
        reason=a_reason("the earliest", code="EARLIEST"),
    )
    lost = wire.ZoneLoss(zone="us-east5-a", pool="", reason=a_reason("has no {what}", what="a3-highgpu-8g"))
    later = msgspec.structs.replace(option, start=instant(NOW + 3 * DAY), end=instant(NOW + 4 * DAY))
    answer = wire.Advice(now=instant(NOW), options=[option, later], lost=[lost])
    stub.on(f"POST {PROJECT}:advise", answer)
    golden("advise", dws("advise", *WISH[:4], "--for", "1d", "--to", "+10d").stdout)


def test_the_story_of_a_reservation_is_told_by_its_name(dws: Run, stub: Stub) -> None:
    """Who changed a booking, and when, could not be found out."""
    events = [an_event(11, "ReservationAsked", at=NOW - DAY, actor="kim")]
    stub.on("GET /dws/v1/events", wire.EventList(items=events, last_seq=11))
    assert "ReservationAsked" in dws("audit", "--reservation", "spring-run").stdout
    assert stub.calls[-1][2] == {
        "project": "default", "reservation": "spring-run", "newestFirst": "true", "after": "0", "limit": "50",
    }  # fmt: skip
    both = dws("audit", "--reservation", "a", "--name", "b")
    assert both.exit_code == 2


@pytest.mark.parametrize("virtual", [False, True])
def test_a_virtual_clock_is_nobodys_fault(dws: Run, stub: Stub, virtual: bool) -> None:
    """Every look at a demonstration would warn of the reader's clock."""
    stub.on("GET /dws/v1/clock", clock(virtual=virtual))
    stub.on(f"GET {RESERVATIONS}", wire.ReservationList(items=[a_reservation()]))
    done = dws("reservations", machine=stub.machine(wall=NOW + 600))
    assert ("warning" in done.stderr) is not virtual
