"""What the owner's policy allows at the Compute door: each preset by its own numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dws.model.time import DAY, HOUR, MINUTE
from dws.planner.options import PRESETS
from tests.api.compute.test_future_reservations import ALL as BLOCKS
from tests.api.compute.test_future_reservations import announced, message, window
from tests.api.compute.test_instances import FLEX as FLEX_VM
from tests.api.compute.test_instances import insert
from tests.api.compute.test_resize_requests import FLEX, REGION, TEMPLATES, ZONE, ask, get, make_group
from tests.api.served import Served, serving

GOOGLE = replace(PRESETS["google"], open_resize_requests_max=2)
BULK = {"targetSizePolicy": {"mode": "BULK"}}
OWN = ("default", "seed")
ALL = (*OWN, "google")


@pytest.fixture
def ruled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """A server under the preset that a test names."""
    with serving(tmp_path, policy=PRESETS[request.param]) as server:
        yield server


def by(*rows: tuple[tuple[str, ...], int, bool]) -> list[Any]:
    """Each row for each of its presets."""
    return [(preset, value, fits) for presets, value, fits in rows for preset in presets]


@pytest.mark.parametrize(
    ("ruled", "wait_s", "fits"),
    by(
        (ALL, 0, True),
        (ALL, 90, True),
        (ALL, 2 * HOUR, True),
        (OWN, 1, True),
        (OWN, 365 * DAY, True),
        (OWN, 365 * DAY + 1, False),
        (("google",), 89, False),
        (("google",), 2 * HOUR + 1, False),
    ),
    indirect=["ruled"],
)
def test_how_long_an_instance_may_wait(ruled: Served, wait_s: int, fits: bool) -> None:
    """A client would wait longer than the owner of the fleet allows, or be refused what is allowed."""
    told = insert(
        ruled,
        "v1",
        FLEX_VM | {"maxRunDuration": {"seconds": HOUR}},
        params={"requestValidForDuration": {"seconds": wait_s}},
    )
    assert told.is_success is fits, told.text
    if not fits:
        assert told.status_code == 400
        assert "resource.params.requestValidForDuration.seconds" in told.json()["error"]["message"]


RUNS = by(
    (ALL, 10 * MINUTE, True),
    (ALL, 7 * DAY, True),
    (ALL, 7 * DAY + 1, False),
    (ALL, 0, False),
    (OWN, 1, True),
    (("google",), 10 * MINUTE - 1, False),
)


@pytest.mark.parametrize(("ruled", "run_s", "fits"), RUNS, indirect=["ruled"])
def test_how_long_a_run_may_be(ruled: Served, run_s: int, fits: bool) -> None:
    """Capacity would be promised for longer, or in shorter pieces, than the owner allows."""
    duration = {"seconds": run_s}
    alone = insert(ruled, "v1", FLEX_VM | {"maxRunDuration": duration})
    group = make_group(ruled, properties={"machineType": "a3-highgpu-8g"})
    asked = ask(ruled, group, requestedRunDuration=duration)
    assert (alone.is_success, asked.is_success) == (fits, fits), (alone.text, asked.text)
    if not fits:
        assert {alone.status_code, asked.status_code} == {400}
        assert "between 1 second and 7 days" in alone.text or "between 10 minutes and 7 days" in alone.text
        assert get(ruled, f"{group}/resizeRequests")["items"] == []


@pytest.mark.parametrize(
    ("ruled", "count", "fits"),
    by((OWN, 4096, True), (OWN, 4097, False), (("google",), 1000, True), (("google",), 1001, False)),
    indirect=["ruled"],
)
def test_how_many_instances_a_resize_request_may_ask_for(ruled: Served, count: int, fits: bool) -> None:
    """A request would be refused here that the owner allows, or wait that he does not."""
    assert ask(ruled, make_group(ruled), resizeBy=count).is_success is fits


@pytest.mark.parametrize(("ruled", "most"), [("default", 4096), ("google", 2000)], indirect=["ruled"])
def test_how_large_a_group_may_be(ruled: Served, most: int) -> None:
    """A group would grow beyond what its owner has allowed."""
    group = make_group(ruled, **BULK)
    refused = ruled.owner.post(f"{group}/resize?size={most + 1}")
    assert refused.json()["error"]["errors"][0]["reason"] == "limitExceeded"
    assert f"the limit is {most}" in refused.text
    assert get(ruled, group)["targetSize"] == 0


def test_how_many_resize_requests_may_be_open(tmp_path: Path) -> None:
    """One project would fill the queue; or the requests of others would count as its own, or past ones."""
    with serving(tmp_path, policy=GOOGLE) as served:
        group = make_group(served)
        other = ZONE.replace("research", "other")
        served.owner.post(TEMPLATES.replace("research", "other"), json={"name": "t", "properties": FLEX})
        group_of_another = make_group(served, other)
        for name in ("r1", "r2"):
            assert ask(served, group_of_another, name, resizeBy=40).is_success
        assert ask(served, group, "r1", resizeBy=40).is_success
        assert ask(served, make_group(served, REGION), "r2", resizeBy=40).is_success
        refused = ask(served, group, "r3")
        assert refused.json()["error"]["errors"][0]["reason"] == "quotaExceeded"
        assert "Quota 'ACTIVE_RESIZE_REQUESTS' exceeded. Limit: 2 in region us-central1." in refused.text
        assert [r["name"] for r in get(served, f"{group}/resizeRequests")["items"]] == ["r1"]
        assert served.owner.post(f"{group}/resizeRequests/r1/cancel").is_success
        assert ask(served, group, "r3").is_success


@pytest.mark.parametrize(
    ("ruled", "start", "length", "field"),
    [
        ("google", 87 * HOUR, DAY, ""),
        ("google", 60 * DAY, 90 * DAY, ""),
        ("google", 87 * HOUR - 1, DAY, "startTime"),
        ("google", 60 * DAY + 1, DAY, "startTime"),
        ("google", 10 * DAY, DAY - 1, "endTime"),
        ("google", 10 * DAY, 90 * DAY + 1, "endTime"),
        ("seed", 0, 7 * DAY, ""),
        ("seed", 56 * DAY, 14 * DAY, ""),
        ("seed", 56 * DAY + 1, 14 * DAY, "startTime"),
        ("seed", DAY, 10 * DAY, "endTime"),
        ("default", 0, MINUTE, ""),
        ("default", DAY, 90 * DAY + 1, "endTime"),
    ],
    indirect=["ruled"],
)
def test_when_and_how_long_a_block_may_be(ruled: Served, start: int, length: int, field: str) -> None:
    """A block would be booked that the owner does not give, or refused that was announced."""
    body = announced(reservationMode="CALENDAR", planningStatus="SUBMITTED", timeWindow=window(start, length))
    told = ruled.owner.post(BLOCKS, json=body)
    assert told.is_success is not bool(field), told.text
    if field:
        assert f"resource.timeWindow.{field}" in message(told, 400, "invalid")
        assert ruled.owner.get(BLOCKS).json()["items"] == []
