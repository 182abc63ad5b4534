"""The story of a request: causes are told, and what goes round and round is told once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from dws.model.errors import InvalidArgument
from dws.wire import native_v1 as wire
from tests.cli.stub import NOW, REQUESTS, Stub, an_event, waiting

Run = Callable[..., Result]


def attempt(number: int) -> list[wire.Event]:
    """One of many attempts that the backend refused."""
    at = NOW + 600 * number
    failed = an_event(4 * number + 3, "DeliveryFailed", at=at, reason="provisioning")
    failed.data["cause"] = "no capacity today"
    return [
        an_event(4 * number + 2, "Started", at=at),
        failed,
        an_event(4 * number + 4, "InstancesReleased", at=at),
        an_event(4 * number + 5, "Returned", at=at),
    ]


def test_d02_what_repeats_itself_is_one_round_with_a_counter(dws: Run, stub: Stub) -> None:
    """Six hours without capacity would be hundreds of lines, and the reason in none of them."""
    story = [an_event(1, "Submitted", at=NOW), *(event for n in range(30) for event in attempt(n))]
    stub.on(f"GET {REQUESTS}/train-a", waiting())
    stub.on("GET /dws/v1/events", wire.EventList(items=story, last_seq=200))
    printed = dws("describe", "train-a").stdout
    assert printed.count("DeliveryFailed") == 1
    assert "provisioning: no capacity today; 30 times" in printed
    assert printed.count("Submitted") == 2, "the fact, and the event that happened once"


def test_a_story_without_repetition_is_told_whole(dws: Run, stub: Stub) -> None:
    """Different failures would be taken for one."""
    first, second = attempt(0), attempt(1)
    second[1].data["cause"] = "host a3-0004 is gone"
    stub.on(f"GET {REQUESTS}/train-a", waiting())
    stub.on("GET /dws/v1/events", wire.EventList(items=[*first, *second], last_seq=9))
    printed = dws("describe", "train-a").stdout
    assert printed.count("DeliveryFailed") == 2
    assert "times" not in printed.lower().replace("times in", "")


def test_a_mistake_in_a_fleet_file_names_the_file(dws: Run, stub: Stub, tmp_path: Path) -> None:
    """A person with several fleet files would be sent to one that does not exist."""
    file = tmp_path / "north.toml"
    file.write_text("[[pools]]\nname = 5\n")
    stub.on(
        "POST /dws/v1/fleet:apply",
        InvalidArgument("fleet.toml:2: pools.name: expected a text", field="fleet"),
    )
    done = dws("fleet", "apply", str(file))
    assert done.exit_code == 2
    assert f"{file}:2: pools.name" in done.stderr
