"""`dws planner query`: the planner alone, on a snapshot file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result

from dws.cli import planner
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.demand import Alternative, Demand
from dws.model.errors import InvalidArgument
from dws.model.names import BookingId, RequestId
from dws.model.request import CapacityRequest, RequestState
from dws.model.time import Span
from tests.cli.stub import NOW

Run = Callable[..., Result]
FLEET = """
[[zones]]
name = "z1"
[[pools]]
name = "a3"
zone = "z1"
machine = "a3-highgpu-8g"
hosts = 4
"""


def request(number: int, *, accelerators: int, duration_s: int) -> CapacityRequest:
    form = Alternative(accelerator="h100", count=accelerators, duration_s=duration_s)
    return CapacityRequest(
        id=RequestId(number),
        name=f"r-{number}",
        project="p",
        principal="kim",
        demand=Demand(alternatives=(form,)),
        state=RequestState.PENDING,
        submitted_at=NOW - 60,
    )


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """F1 with half of it busy for two hours; the head needs all of it."""
    (tmp_path / "fleet.toml").write_text(FLEET)
    live = Booking(
        id=BookingId(1),
        pool="a3",
        span=Span(NOW - 3_600, NOW + 7_200),
        stage=Stage.LIVE,
        owner_kind=OwnerKind.REQUEST,
        owner=99,
        parts=(Part(cell=0, count=2, units=(0, 1)),),
    )
    queue = [
        request(1, accelerators=32, duration_s=3_600),
        request(2, accelerators=8, duration_s=3_600),
        request(3, accelerators=8, duration_s=10_800),
    ]
    path = tmp_path / "snapshot.json"
    said = {"now": NOW, "fleet": "fleet.toml", "bookings": [live], "queue": queue}
    path.write_bytes(msgspec.json.encode(said))
    return path


def test_c04_the_plan_backfills_without_delaying_the_head(dws: Run, snapshot: Path) -> None:
    """The planner could not be looked at without a server, or would answer otherwise than in one."""
    told = json.loads(dws("planner", "query", str(snapshot), "-o", "json").stdout)
    decisions = {
        (d["kind"], d["request"]): d["placement"]["span"]["start"] for d in told["plan"]["decisions"]
    }
    assert decisions["Book", 1] == NOW + 7_200
    assert decisions["Start", 2] == NOW
    assert ("Start", 3) not in decisions
    assert [f["request"] for f in told["forecasts"]] == [1, 2, 3]


def test_a_plan_is_shown_to_people(dws: Run, snapshot: Path, golden: Callable[[str, str], None]) -> None:
    """A plan could only be read as JSON."""
    golden("planner-query", dws("planner", "query", str(snapshot), "--quote", "h100:8 for 2h").stdout)


def test_looking_changes_nothing(dws: Run, snapshot: Path) -> None:
    """Two looks at one snapshot would differ, and a golden test of the planner would be worthless."""
    first = dws("planner", "query", str(snapshot), "-o", "json").stdout
    assert dws("planner", "query", str(snapshot), "-o", "json").stdout == first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"now": None}, "now"),
        ({"now": "soon"}, "Expected `int`"),
        ({"queue": [{"id": 1}]}, "missing required field"),
        ({"policy": {"queue_depth": "deep"}}, "queue_depth"),
        ({"fleet": 7}, "fleet"),
    ],
)
def test_a_mistake_in_the_file_is_named(
    dws: Run, snapshot: Path, change: dict[str, Any], message: str
) -> None:
    """Whoever writes a snapshot by hand would search for the mistake."""
    said = json.loads(snapshot.read_text()) | change
    snapshot.write_text(json.dumps({name: value for name, value in said.items() if value is not None}))
    with pytest.raises(InvalidArgument) as caught:
        planner.read(snapshot)
    assert message.lower() in caught.value.message.lower()
    assert dws("planner", "query", str(snapshot)).exit_code == 2
