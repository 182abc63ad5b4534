"""What people read: every table as a golden file (`--update-golden` rewrites them)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from click.testing import Result

from dws.wire import native_v1 as wire
from tests.cli.stub import (
    NOW,
    PROJECT,
    REQUESTS,
    Stub,
    a_fleet,
    a_forecast,
    a_quote,
    a_reason,
    a_request,
    an_event,
    clock,
    ended,
    instant,
    running,
    waiting,
)

Run = Callable[..., Result]
Golden = Callable[[str, str], None]


def line() -> wire.RequestList:
    """Three who wait: one promised, an array of three, and one nothing is known for."""
    array = [
        waiting(
            id=str(100 + i),
            name=f"sweep-{i}",
            array="sweep",
            array_index=i,
            alternatives=[wire.Alternative(accelerators="h100:1", duration="1800s")],
            forecast=a_forecast(place=2 + i, expected_start=instant(NOW + 3_600 * (i + 1))),
        )
        for i in range(3)
    ]
    first = waiting(
        forecast=a_forecast(place=1, promised_start=instant(NOW + 9_000)),
        alternatives=[
            wire.Alternative(accelerators="h100:16", duration="14400s", within="block"),
            wire.Alternative(
                machine="a2-highgpu-8g", count=2, duration="28800s", locations=["us-central1-b"]
            ),
        ],
    )
    lost = waiting(
        name="huge",
        project="other",
        submitted_at=instant(NOW - 200_000),
        forecast=a_forecast(
            place=5,
            expected_start="",
            reason=a_reason("pool {pool} is unavailable: {why}", pool="a3", why="no power"),
        ),
    )
    return wire.RequestList(items=[first, *array, lost])


def story() -> wire.EventList:
    return wire.EventList(
        items=[
            an_event(11, "Submitted", at=NOW - 720, actor="kim"),
            an_event(12, "Booked", at=NOW - 719),
            an_event(15, "Moved", at=NOW - 600, reason="host a3-0004 failed"),
        ],
        last_seq=15,
    )


def test_queue(dws: Run, stub: Stub, golden: Golden) -> None:
    """Who waits could not see their place, when to expect a start, or why it has not come."""
    stub.on("GET /dws/v1/queue", line())
    golden("queue", dws("queue").stdout)


def test_m11_an_array_is_one_row_unless_all_are_wanted(dws: Run, stub: Stub, golden: Golden) -> None:
    """A hundred small requests would push everyone else off the screen."""
    stub.on("GET /dws/v1/queue", line())
    assert dws("queue").stdout.count("sweep") == 1
    golden("queue-all", dws("queue", "--all").stdout)


def test_queue_of_mine(dws: Run, stub: Stub) -> None:
    """One's own requests would have to be picked out by eye."""
    stub.on("GET /dws/v1/queue", line())
    assert "huge" not in dws("queue", "--mine").stdout


def test_nobody_waits(dws: Run, stub: Stub) -> None:
    """An empty queue would look like a fault."""
    stub.on("GET /dws/v1/queue", wire.RequestList(items=[]))
    assert dws("queue").stdout == "Nobody waits.\n"


def test_list(dws: Run, stub: Stub, golden: Golden) -> None:
    """Requests, how they stand and why they ended would not be seen at a glance."""
    items = [
        waiting(),
        running(name="train-b", cost="12.50"),
        ended("HOST_LOST", state="FAILED", code=None, name="train-c", end_message="host a3-0004 is gone"),
    ]
    stub.on(f"GET {REQUESTS}", wire.RequestList(items=items))
    golden("list", dws("list").stdout)


def test_describe_waiting(dws: Run, stub: Stub, golden: Golden) -> None:
    """The story of a waiting request could not be read in one place."""
    request = waiting(labels={"team": "vision"}, promised_start=instant(NOW + 9_000))
    stub.on(f"GET {REQUESTS}/train-a", request).on("GET /dws/v1/events", story())
    golden("describe-waiting", dws("describe", "train-a").stdout)


def test_describe_ended(dws: Run, stub: Stub, golden: Golden) -> None:
    """What ended and why, on which hosts and with which status, could not be found out."""
    stub.on(f"GET {REQUESTS}/train-a", ended("PROGRAM_FAILED", state="FAILED", code=3, cost="12.50"))
    stub.on("GET /dws/v1/events", story())
    golden("describe-ended", dws("describe", "train-a").stdout)


def test_l03_explain(dws: Run, stub: Stub, golden: Golden) -> None:
    """ "Why is it not starting?" would stay the most common question."""
    stub.on(f"GET {REQUESTS}/train-a", waiting()).on(f"POST {PROJECT}:quote", a_quote())
    golden("explain", dws("explain", "train-a").stdout)


def test_explain_what_does_not_wait(dws: Run, stub: Stub) -> None:
    """A request that runs or has ended would be explained as if it waited."""
    stub.on(f"GET {REQUESTS}/train-a", [running(), ended("WAIT_LIMIT", state="EXPIRED", code=None)])
    assert dws("explain", "train-a").stdout == "train-a runs.\n"
    assert dws("explain", "train-a").stdout == "train-a is expired: wait limit.\n"


def test_l01_quote(dws: Run, stub: Stub, golden: Golden) -> None:
    """Nobody could learn when and for how much without asking for it."""
    stub.on(f"POST {PROJECT}:quote", a_quote())
    golden("quote", dws("quote", "--accelerators", "h100:16", "--for", "4h").stdout)


def test_a_fleet_of_many_cubes_fits_a_screen(dws: Run, stub: Stub) -> None:
    """A pod of a hundred cubes would be a hundred rows, and how many are whole would have to be counted."""
    fleet = a_fleet()
    (pool,) = fleet.pools
    host = pool.hosts[1]
    pool.hosts = [
        msgspec.structs.replace(host, name=f"h{n}", domains={"pod": "pod1", "cube": f"cube{n // 4}"}, free=int(n > 1))
        for n in range(400)
    ]
    pool.free_hosts = {"pod": {"pod1": 398}, "cube": {f"cube{n}": 2 if n == 0 else 4 for n in range(100)}}
    pool.largest_slices = {"pod1": "8x16x16"}
    stub.on("GET /dws/v1/fleet", fleet)
    shown = dws("fleet").stdout
    assert len(shown.splitlines()) < 10
    assert "whole hosts 398; by cube: 99 of 100 wholly free, at most 4 in one, cube1; largest slice 8x16x16" in shown


def test_fleet(dws: Run, stub: Stub, golden: Golden) -> None:
    """Free, busy, draining and failed hosts could not be told apart."""
    stub.on("GET /dws/v1/fleet", a_fleet())
    golden("fleet", dws("fleet").stdout)
    golden("fleet-hosts", dws("fleet", "show", "--hosts").stdout)


def test_usage(dws: Run, stub: Stub, golden: Golden) -> None:
    """Nobody would know who used how much."""
    usage = wire.Usage(
        start=instant(NOW - 86_400),
        end=instant(NOW),
        currency="USD",
        lines=[
            wire.UsageLine(
                project="default",
                principal="kim",
                request="train-a",
                accelerator="nvidia-h100-80gb",
                machine="a3-highgpu-8g",
                kind="RUN",
                seconds=7_200,
                accelerator_s=57_600,
                cost="48.00",
                open=True,
            )
        ],
    )
    stub.on("GET /dws/v1/usage", usage)
    golden("usage", dws("usage").stdout)


def test_usage_is_of_this_month_in_the_users_zone(dws: Run, stub: Stub) -> None:
    """A monthly report would begin an hour or a day off."""
    stub.on("GET /dws/v1/usage", wire.Usage(start="", end="", currency="USD", lines=[]))
    dws("usage")
    assert stub.calls[-1][2]["start"] == "2026-12-31T23:00:00Z"


def test_audit(dws: Run, stub: Stub, golden: Golden) -> None:
    """Who did what, and why, would not be readable in order."""
    newest_first = wire.EventList(items=story().items[::-1], last_seq=15)
    stub.on("GET /dws/v1/events", newest_first)
    golden("audit", dws("audit").stdout)


def test_clock(dws: Run, stub: Stub) -> None:
    """Nobody would see which time the server lives in."""
    stub.on("GET /dws/v1/clock", clock(virtual=True))
    shown = "2027-01-15 09:00:00 CET (Europe/Paris) = 2027-01-15T08:00:00Z, virtual clock\n"
    assert dws("clock").stdout == shown


def test_times_follow_the_zone_asked_for(dws: Run, stub: Stub) -> None:
    """A user elsewhere would read times of another zone."""
    stub.on("GET /dws/v1/queue", line())
    shown = dws("queue", "--tz", "America/New_York").stdout
    assert "05:05 (in 2h05m)" in shown
    assert "America/New_York" in shown


def test_no_colour_and_no_folding_away_from_a_terminal(dws: Run, stub: Stub) -> None:
    """`dws queue | grep` would meet escape codes and broken lines."""
    stub.on("GET /dws/v1/queue", line())
    rows = dws("queue").stdout.splitlines()
    assert "\x1b" not in "".join(rows)
    assert max(map(len, rows)) > 100


@pytest.mark.parametrize(
    ("parts", "drawn"),
    [
        ([("#", 1), (".", 3)], "#..."),
        ([("#", 100), (".", 0)], "#" * 20),
        ([("#", 1), (".", 999)], "#" + "." * 19),
        ([("#", 999), (".", 1)], "#" * 19 + "."),
        ([("#", 0), (".", 0)], ""),
    ],
)
def test_a_bar_hides_nothing_that_is_there(parts: list[tuple[str, int]], drawn: str) -> None:
    """One failed host among a thousand would not be seen."""
    from dws.cli.output import bar

    assert bar(parts) == drawn


def test_a_request_deleted_from_under_an_array_is_no_fault(dws: Run, stub: Stub) -> None:
    """A request without a forecast would break the whole queue table."""
    stub.on("GET /dws/v1/queue", wire.RequestList(items=[a_request()]))
    assert "train-a" in dws("queue").stdout
