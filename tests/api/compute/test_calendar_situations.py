"""What people reported of calendars, tried on future reservations through the Compute door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dws.model.time import DAY
from dws.planner.options import PolicyOptions
from dws.wire.timefmt import format_instant
from tests.api.compute.test_future_reservation_changes import draft, patch
from tests.api.compute.test_future_reservation_states import NATIVE
from tests.api.compute.test_future_reservations import (
    ALL,
    MADE,
    SKU,
    announced,
    insert,
    made,
    message,
    state,
    window,
)
from tests.api.served import MONDAY_9, Served, serving

WHOLE = {"specificSkuProperties": SKU | {"totalCount": "4"}}
EXHAUSTED = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"


def names(served: Served, **query: str) -> list[str]:
    """The names a list has, in its order."""
    told = served.owner.get(ALL, params=query)
    assert told.status_code == 200, told.text
    return [each["name"] for each in told.json()["items"]]


def test_a05_what_is_over_is_not_cancelled_again(fresh: Served) -> None:
    """A second cancel, or one that comes too late, would change the record of what was."""
    made(fresh, announced(timeWindow=window(length=DAY)))
    fresh.advance("3d")
    before = fresh.owner.get(f"{ALL}/block").json()
    assert "FULFILLED" in message(fresh.owner.post(f"{ALL}/block/cancel"), 400, "failedPrecondition")
    assert fresh.owner.get(f"{ALL}/block").json() == before


def test_a07_an_explicit_false_and_a_description_survive_other_changes(fresh: Served) -> None:
    """Terraform sends a field at a time: a false that is not sent again would become true."""
    told = {"specificReservationRequired": False, "description": "first", "planningStatus": "SUBMITTED"}
    before = made(fresh, announced(**told))
    assert patch(fresh, {"description": "second"}, "description").status_code == 200
    after = fresh.owner.get(f"{ALL}/block").json()
    assert after == before | {"description": "second"}
    assert "'status,description'" in message(
        patch(fresh, {"status": {}, "description": "third"}, "status,description"), 400, "invalid"
    )
    assert fresh.owner.get(f"{ALL}/block").json() == after


def test_b01_lists_let_through_what_a_filter_says(fresh: Served) -> None:
    """Scripts that look for what is booked would act on drafts."""
    made(fresh, announced("a"))
    made(fresh, draft("b"))
    made(fresh, announced("c", timeWindow=window(start=30 * DAY)))
    assert names(fresh, filter='status.procurementStatus = "APPROVED"') == ["a", "c"]
    assert names(fresh, filter="(status.procurementStatus eq DRAFTING)") == ["b"]
    assert names(fresh, filter="NOT (name = a OR planningStatus = DRAFT)") == ["c"]
    assert names(fresh, filter="specificSkuProperties.totalCount > 2") == []
    assert "position" in message(fresh.owner.get(ALL, params={"filter": "name ~ 3"}), 400, "invalid")


def test_b02_a_filter_and_an_order_hold_together(fresh: Served) -> None:
    """The newest block would not come first as soon as somebody filters."""
    for name in ("a", "b", "c"):
        made(fresh, draft(name))
        fresh.advance("1m")
    assert names(fresh, filter="name != b", orderBy="creationTimestamp desc") == ["c", "a"]
    assert names(fresh, filter="name != b", orderBy="name") == ["a", "c"]
    told = fresh.owner.get(ALL, params={"filter": "name != b", "orderBy": "timeWindow.startTime"})
    assert "orderBy" in message(told, 400, "invalid")


def test_e01_blocks_that_touch_are_both_booked(fresh: Served) -> None:
    """The next course could not begin when the last one ends."""
    made(fresh, announced("first", **WHOLE))
    assert made(fresh, announced("second", timeWindow=window(start=15 * DAY), **WHOLE))
    fresh.advance("15d")
    assert (state(fresh, "first"), state(fresh, "second")) == ("FULFILLED", "FULFILLED")
    assert [each["name"] for each in fresh.owner.get(MADE).json()["items"]] == ["second"]


def test_e02_one_second_of_overlap_is_refused_with_the_next_start(fresh: Served) -> None:
    """Two courses would have the same machines for a second, or the refusal give no hint."""
    made(fresh, announced("first", **WHOLE))
    late = announced("second", timeWindow=window(start=15 * DAY - 1), **WHOLE)
    said = message(insert(fresh, late), 409, EXHAUSTED)
    assert f"{window(start=15 * DAY)['startTime']} to" in said
    assert names(fresh) == ["first"]


def test_e04_a_start_without_an_offset_is_asked_for_one(served: Served) -> None:
    """Nine o'clock would be taken for nine in another part of the world."""
    body = announced(timeWindow=window() | {"startTime": "2027-01-12T09:00:00"})
    said = message(insert(served, body), 400, "invalid")
    assert "resource.timeWindow.startTime" in said
    assert "has no offset; add 'Z'" in said


def test_e05_a_start_that_is_just_past_means_now(fresh: Served) -> None:
    """A block asked for at once would be refused because the call took a moment."""
    start = {"startTime": format_instant(MONDAY_9 - 10), "duration": {"seconds": DAY}}
    seen = made(fresh, announced(timeWindow=start))
    assert seen["timeWindow"]["startTime"] == format_instant(MONDAY_9)
    assert state(fresh) == "FULFILLED"
    past = announced("past", timeWindow=start | {"startTime": format_instant(MONDAY_9 - 5 * 3600)})
    said = message(insert(fresh, past), 400, "invalid")
    assert "lies 5 hours in the past" in said


def test_e12_what_cannot_grow_keeps_what_it_has(fresh: Served) -> None:
    """Asking for more would cost what is there: the block would be made anew, or be gone."""
    before = made(fresh, announced("growing", timeWindow=window(start=0, length=2 * DAY)))
    made(fresh, announced("other", timeWindow=window(start=0, length=DAY)))
    fresh.advance("1h")
    body, mask = {"specificSkuProperties": {"totalCount": "4"}}, "specificSkuProperties.totalCount"
    said = message(patch(fresh, body, mask, "growing"), 409, EXHAUSTED)
    assert "0 more hosts of a3 are free until its end, 2 more were asked for" in said
    after = fresh.owner.get(f"{ALL}/growing").json()
    assert (after["id"], after["specificSkuProperties"]) == (before["id"], SKU)
    assert after["status"]["procurementStatus"] == "FULFILLED"
    fresh.advance("1d")
    assert patch(fresh, body, mask, "growing").status_code == 200
    fresh.advance("1m")
    assert fresh.owner.get(f"{ALL}/growing").json()["status"]["fulfilledCount"] == "4"


def test_e13_a_window_moves_in_one_step_until_the_lock(fresh: Served) -> None:
    """A block that takes the whole fleet could not move by a day, for it is in its own way; or it could when
    everybody counts on it."""
    made(fresh, announced(**WHOLE))
    later, mask = {"timeWindow": window(start=2 * DAY)}, "timeWindow.startTime,timeWindow.endTime"
    assert patch(fresh, later, mask).status_code == 200
    seen = fresh.owner.get(f"{ALL}/block").json()
    assert seen["timeWindow"] == window(start=2 * DAY)
    assert seen["status"]["lockTime"] == format_instant(MONDAY_9 + 2 * DAY - 900)
    fresh.advance("1d23h50m")
    told = patch(fresh, {"timeWindow": window(start=3 * DAY)}, mask)
    said = message(told, 400, "reservationLocked")
    assert "2027-01-13 08:45" in said
    assert "15 minutes before its start" in said
    assert fresh.owner.get(f"{ALL}/block").json()["timeWindow"] == window(start=2 * DAY)


@pytest.mark.parametrize(
    ("policy", "free"),
    [
        (PolicyOptions(reservation_cancel="never"), False),
        (PolicyOptions(reservation_cancel_s=DAY), True),
        (PolicyOptions(reservation_cancel_s=4 * DAY), False),
    ],
)
def test_e14_cancelling_is_as_the_policy_says(tmp_path: Path, policy: PolicyOptions, free: bool) -> None:
    """Three days ahead a cancellation would be refused where it is free, or free where it is not."""
    with serving(tmp_path, policy=policy) as served:
        made(served, announced(timeWindow=window(start=3 * DAY), **WHOLE))
        told = served.owner.post(f"{ALL}/block/cancel")
        if free:
            assert (told.status_code, state(served)) == (200, "CANCELLED")
            assert made(served, announced("next", timeWindow=window(start=3 * DAY), **WHOLE))
            return
        message(told, 400, "cancelNotAllowed")
        assert state(served) == "APPROVED"


def test_m02_what_is_gone_is_not_deleted_twice(fresh: Served) -> None:
    """A script that cleans up would stop at what somebody cleaned up before it."""
    made(fresh, draft())
    assert fresh.owner.delete(f"{ALL}/block").status_code == 200
    for told in (fresh.owner.delete(f"{ALL}/block"), fresh.owner.post(f"{ALL}/block/cancel")):
        assert "futureReservations/block' was not found" in message(told, 404, "notFound")


@pytest.mark.parametrize(
    ("body", "acts", "goes"),
    [
        (draft(), (), True),
        (announced(), (), False),
        (announced(), ("cancel",), True),
        (announced(), ("23h50m",), False),
        (announced(), ("2d",), False),
        (announced(), ("16d",), True),
        (announced(), ("2d", "release"), True),
    ],
)
def test_m10_destroying_ends_well_or_says_why_not(
    fresh: Served, body: dict[str, Any], acts: tuple[str, ...], goes: bool
) -> None:
    """Terraform would go round in circles: told that it is gone, it finds it again; or it finds no reason."""
    before = made(fresh, body)
    assert fresh.owner.get(f"{ALL}/block").json() == before
    for act in acts:
        if act == "cancel":
            assert fresh.owner.post(f"{ALL}/block/cancel").is_success
        elif act == "release":
            assert fresh.owner.post(f"{NATIVE}/block:release").is_success
        else:
            fresh.advance(act)
    told = fresh.owner.delete(f"{ALL}/block")
    if not goes:
        assert "cannot be deleted" in message(told, 400, "resourceInUseByAnotherResource")
        assert fresh.owner.get(f"{ALL}/block").status_code == 200
        return
    assert told.status_code == 200
    assert fresh.owner.get(f"{ALL}/block").status_code == 404
    assert names(fresh) == []
    assert made(fresh, announced(timeWindow=window(start=20 * DAY)))
