"""Advice on capacity through the Compute door: where instances would start, and after how long a wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.served import FLEET, Served, serving

HOUR = 3_600
POD = """
[[pools]]
name = "v5e"
zone = "us-central1-a"
machine = "ct5lp-hightpu-4t"
topology = "4x4"
"""


def ask(
    served: Served, size: int, *machines: str, version: str = "alpha", zones: list[str] | None = None, **more: Any
) -> httpx2.Response:
    """Ask for advice on so many of a machine type; `more` is of the scheduling."""
    scheduling = {"provisioningModel": "FLEX_START"} | more
    topology = scheduling.pop("topology", None)
    body = {
        "size": size,
        "instanceProperties": {"scheduling": scheduling}
        | ({"acceleratorTopology": topology} if topology else {}),
        "instanceFlexibilityPolicy": {
            "instanceSelections": {
                f"s{rank}": {"machineTypes": [machine]} | ({"rank": rank} if version == "alpha" else {})
                for rank, machine in enumerate(machines)
            }
        },
        "distributionPolicy": {
            "targetShape": "ANY_SINGLE_ZONE",
            "zones": [{"zone": f"zones/{zone}"} for zone in zones or []],
        },
    }
    path = f"/compute/{version}/projects/research/regions/us-central1/advice/capacity"
    return served.owner.post(path, json=body)


def told(served: Served, size: int, *machines: str, **more: Any) -> dict[str, Any]:
    """The recommendation."""
    answer = ask(served, size, *machines, **more)
    assert answer.status_code == 200, answer.text
    (one,) = answer.json()["recommendations"]
    return one


def test_what_is_free_can_be_had_at_once(fresh: Served) -> None:
    """A client that asks first would go elsewhere although there is capacity."""
    before = fresh.last_seq()
    seen = told(fresh, 3, "a3-highgpu-8g", maxRunDuration="7200s")
    assert fresh.last_seq() == before, "nothing is held"
    assert seen == {
        "scores": {"obtainability": 1.0, "estimatedWaitDuration": "0s"},
        "shards": [
            {
                "zone": "us-central1-a",
                "machineType": "a3-highgpu-8g",
                "instanceCount": 3,
                "provisioningModel": "FLEX_START",
            }
        ],
    }


def test_the_wait_is_what_a_request_made_now_would_be_told(fresh: Served) -> None:
    """A client would wait longer than it was told, or give up on what is free in an hour."""
    fresh.submit("busy", alternatives=[{"accelerators": "h100:24", "duration": "3h"}])
    seen = told(fresh, 2, "a3-highgpu-8g", maxRunDuration="3600s")
    assert seen["scores"] == {"obtainability": 0.25, "estimatedWaitDuration": f"{3 * HOUR}s"}
    fresh.submit("next", alternatives=[{"accelerators": "h100:16", "duration": "1h"}])
    assert fresh.get("next")["forecast"]["expectedStart"] == "2027-01-11T12:00:00Z"
    for model in ("STANDARD", "SPOT"):
        now = told(fresh, 2, "a3-highgpu-8g", provisioningModel=model)
        assert now["scores"]["obtainability"] == 0.0, "what cannot wait would have to"


def test_of_several_machine_types_the_one_that_can_start(fresh: Served) -> None:
    """Flexible clients would wait for the type they like best while another is free."""
    fresh.submit("busy", alternatives=[{"accelerators": "h100:32", "duration": "3h"}])
    seen = told(fresh, 2, "a3-highgpu-8g", "a2-highgpu-8g", "h9-nowhere", maxRunDuration="3600s")
    assert [(s["zone"], s["machineType"]) for s in seen["shards"]] == [("us-central1-b", "a2-highgpu-8g")]
    here = told(
        fresh, 2, "a3-highgpu-8g", "a2-highgpu-8g", zones=["us-central1-a"], maxRunDuration="3600s"
    )
    assert (here["shards"][0]["zone"], here["scores"]["estimatedWaitDuration"]) == (
        "us-central1-a",
        f"{3 * HOUR}s",
    )


def test_more_than_there_is_cannot_be_had(fresh: Served) -> None:
    """It would look as if one only had to wait."""
    assert told(fresh, 5, "a3-highgpu-8g") == {"scores": {"obtainability": 0.0}, "shards": []}


@pytest.mark.parametrize("version", ["v1", "beta"])
def test_the_wait_is_told_where_the_version_has_a_field_for_it(fresh: Served, version: str) -> None:
    """Typed clients would refuse the answer."""
    seen = told(fresh, 3, "a3-highgpu-8g", version=version)
    assert seen["scores"] == {"obtainability": 1.0}


def test_machines_of_a_slice(tmp_path: Path) -> None:
    """Four hosts of a TPU pod would be advised that do not make the slice."""
    with serving(tmp_path, fleet=FLEET + POD) as served:
        seen = told(served, 4, "ct5lp-hightpu-4t", topology="4x4", maxRunDuration="3600s")
        assert seen["scores"]["obtainability"] == 1.0
        assert seen["shards"][0]["instanceCount"] == 4
        odd = ask(served, 3, "ct5lp-hightpu-4t", topology="4x4")
        assert odd.status_code == 400 and "not whole slices" in odd.text
        gpus = ask(served, 3, "a3-highgpu-8g", topology="4x4")
        assert gpus.status_code == 400 and "goes with TPUs" in gpus.text


@pytest.mark.parametrize(
    ("size", "machines", "more", "field"),
    [
        (0, ["a3-highgpu-8g"], {}, "size"),
        (1, [], {}, "machineTypes"),
        (1, ["h9-nowhere"], {}, "machineTypes"),
        (1, ["a3-highgpu-8g"], {"zones": ["us-east5-a"]}, "zones"),
        (1, ["a3-highgpu-8g"], {"provisioningModel": "RESERVATION_BOUND"}, "provisioningModel"),
        (1, ["a3-highgpu-8g"], {"maxRunDuration": {"seconds": 60}}, "maxRunDuration"),
    ],
)
def test_what_cannot_be_advised_on_is_refused_by_its_field(
    served: Served, size: int, machines: list[str], more: dict[str, Any], field: str
) -> None:
    """A typo would be answered as if there were no capacity."""
    answer = ask(served, size, *machines, **more)
    assert answer.status_code == 400 and field in answer.json()["error"]["message"], answer.text
