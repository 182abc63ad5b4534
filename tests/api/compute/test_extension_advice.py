"""Advice on extension through the Compute door: how much longer a future reservation could last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from dws.model.time import DAY, HOUR
from dws.planner.options import PRESETS
from dws.wire.timefmt import format_instant
from tests.api.compute.test_future_reservations import announced, made, window
from tests.api.served import MONDAY_9, Served, serving

REGION = "/compute/beta/projects/research/regions/us-central1"
BLOCK = "projects/research/zones/us-central1-a/futureReservations/block"


def ask(served: Served, until: int, reference: str = BLOCK, region: str = REGION) -> httpx2.Response:
    """How far it could go on, up to `until` seconds from the start of the clock."""
    body = {"futureReservation": reference, "endTimeNotLaterThan": format_instant(MONDAY_9 + until)}
    return served.owner.post(f"{region}/advice/calendarModeExtension", json=body)


def told(served: Served, until: int) -> dict[str, Any]:
    """The answer, without its id."""
    answer = ask(served, until)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found.pop("recommendationId")
    return found


def lasting(served: Served, length: int = 2 * DAY, start: int = 0) -> None:
    """The reservation that is asked about, of two machines of four."""
    made(served, announced(timeWindow=window(start, length)))


@pytest.mark.parametrize("opened", [False, True], ids=["ahead", "open"])
def test_i03_the_longest_extension_in_front_of_the_next(fresh: Served, opened: bool) -> None:
    """Who asks for three hours more than there are would be told no, although two are free."""
    lasting(fresh, start=0 if opened else HOUR)
    made(fresh, announced(name="next", timeWindow=window(2 * DAY + 3 * HOUR, DAY)) | _three())
    end = 2 * DAY + 3 * HOUR
    assert told(fresh, 2 * DAY + 2 * HOUR) == {"endTime": format_instant(MONDAY_9 + 2 * DAY + 2 * HOUR)}
    before = fresh.last_seq()
    assert told(fresh, 5 * DAY) == {"endTime": format_instant(MONDAY_9 + end)}
    assert fresh.last_seq() == before, "nothing is held"
    change = {"end": format_instant(MONDAY_9 + end)}
    (native,) = [
        each
        for each in fresh.owner.get("/dws/v1/projects/research/reservations").json()["items"]
        if each["count"] == 2
    ]
    path = f"/dws/v1/projects/research/reservations/{native['name']}"
    later = fresh.owner.patch(path, json={"end": format_instant(MONDAY_9 + end + 1)})
    assert later.status_code == 409, "not a second longer"
    assert fresh.owner.patch(path, json=change).status_code == 200
    lost = told(fresh, 5 * DAY)["notRecommendedReason"]
    assert lost["status"] == "NO_CAPACITY" and lost["details"]


def _three() -> dict[str, Any]:
    return {
        "specificSkuProperties": {
            "totalCount": "3",
            "instanceProperties": {"machineType": "a3-highgpu-8g"},
        }
    }


def test_the_policy_bounds_it(tmp_path: Path) -> None:
    """The advice would be refused when the change is made."""
    with serving(tmp_path, policy=PRESETS["seed"]) as served:
        lasting(served, 7 * DAY)
        lost = told(served, 30 * DAY)["notRecommendedReason"]
        assert lost["status"] == "CONDITIONS_NOT_MET" and "reservation_amend" in lost["details"]


def test_no_longer_than_a_reservation_may_last(fresh: Served) -> None:
    """The advice would be refused when the change is made."""
    lasting(fresh)
    assert told(fresh, 200 * DAY) == {"endTime": format_instant(MONDAY_9 + 90 * DAY)}


def test_what_has_no_window_cannot_be_extended(fresh: Served) -> None:
    """A draft would end in an internal error."""
    made(fresh, announced(planningStatus="DRAFT", reservationMode="CALENDAR"))
    lost = told(fresh, 30 * DAY)["notRecommendedReason"]
    assert lost == {
        "status": "CONDITIONS_NOT_MET",
        "details": "Future reservation 'block' is in state DRAFTING.",
    }


def test_wrong_questions(fresh: Served) -> None:
    """A typo would be answered as if there were no capacity."""
    lasting(fresh)
    sooner = ask(fresh, DAY)
    assert sooner.status_code == 400 and "endTimeNotLaterThan" in sooner.text
    assert ask(fresh, 9 * DAY, BLOCK.replace("block", "other")).status_code == 404
    assert ask(fresh, 9 * DAY, "block").status_code == 400
    assert ask(fresh, 9 * DAY, BLOCK.replace("research", "other")).status_code == 400
    elsewhere = ask(fresh, 9 * DAY, region=REGION.replace("us-central1", "us-east5"))
    assert elsewhere.status_code == 400 and "us-east5" in elsewhere.text
    assert ask(fresh, 9 * DAY, region=REGION.replace("beta", "v1")).status_code == 404
    missing = fresh.owner.post(f"{REGION}/advice/calendarModeExtension", json={"futureReservation": BLOCK})
    assert missing.status_code == 400 and "endTimeNotLaterThan" in missing.text
