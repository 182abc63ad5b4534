"""Reservations through the Compute door: as the engine's own reservations stand behind them."""

from __future__ import annotations

from typing import Any

import pytest

from dws.api.compute_v1 import reservations
from dws.engine import reservations as native
from dws.engine.commands import Reserve
from dws.engine.write import Write
from dws.model.access import SYSTEM
from dws.model.demand import Alternative
from dws.model.reservation import Share, Terms
from tests.api.served import MONDAY_9, Served
from tests.conformance.compute.schema import faults

ZONE = "/compute/v1/projects/research/zones/us-central1-a"
ALL = f"{ZONE}/reservations"
HOUR = 3_600


def booked(served: Served, name: str, *, start: int = MONDAY_9, hosts: int = 2, **terms: Any) -> None:
    """A reservation of the engine for four hours, and the document beside it."""
    wanted = Alternative(
        shape="a3-highgpu-8g", count=hosts, duration_s=4 * HOUR, locations=("us-central1-a",)
    )
    command = Reserve(
        project="research", name=name, alternative=wanted, start=start, terms=Terms(**terms)
    )

    def work(w: Write) -> None:
        made = native.book(w, SYSTEM, command)
        reservations.keep(w, "research", "zones/us-central1-a", name, {}, reservation=made.id)

    served.engine.transact(SYSTEM, work)


def test_it_is_ready_while_it_is_open_and_gone_behind_its_end(fresh: Served) -> None:
    """Who waits for READY would start work before there is anything, or in what is over."""
    booked(fresh, "r1", start=MONDAY_9 + HOUR)
    seen = fresh.owner.get(f"{ALL}/r1").json()
    assert (seen["status"], seen["specificReservation"]["assuredCount"]) == ("CREATING", "0")
    fresh.advance("1h")
    seen = fresh.owner.get(f"{ALL}/r1").json()
    assert seen["status"] == "READY"
    assert seen["specificReservation"] == {
        "count": "2",
        "assuredCount": "2",
        "inUseCount": "0",
        "instanceProperties": {"machineType": "a3-highgpu-8g"},
    }
    for version in ("v1", "beta", "alpha"):
        found = fresh.owner.get(f"{ALL.replace('v1', version)}/r1").json()
        assert faults(version, "Reservation", found) == []
    assert fresh.owner.get(ALL).json()["items"] == [seen]
    assert fresh.owner.get(ALL, params={"filter": "status=CREATING"}).json()["items"] == []
    everywhere = fresh.owner.get("/compute/v1/projects/research/aggregated/reservations").json()["items"]
    assert everywhere["zones/us-central1-a"]["reservations"] == [seen]
    fresh.advance("5h")
    assert fresh.owner.get(f"{ALL}/r1").status_code == 404
    assert fresh.owner.get(ALL).json()["items"] == []


def test_what_runs_in_it_is_counted_block_by_block(fresh: Served) -> None:
    """Nobody would see how much of it is free."""
    booked(fresh, "r1")
    fresh.submit(
        "inside", alternatives=[{"accelerators": "h100:8", "duration": "1h"}], reservation="r1"
    )
    seen = fresh.owner.get(f"{ALL}/r1").json()
    assert seen["specificReservation"]["inUseCount"] == "1"
    assert seen["resourceStatus"] == {
        "reservationBlockCount": 1,
        "healthInfo": {"healthStatus": "HEALTHY", "healthyBlockCount": 1, "degradedBlockCount": 0},
        "specificSkuAllocation": {"utilizations": {"research": "1"}},
    }


@pytest.mark.parametrize(
    ("project", "reference", "found"),
    [
        ("research", "r1", True),
        ("research", "projects/research/reservations/r1", True),
        ("research", "projects/research/zones/us-central1-a/reservations/r1", True),
        ("research", "projects/research/zones/us-central1-b/reservations/r1", False),
        ("research", "https://x.test/compute/v1/projects/research/zones/us-central1-a/reservations/r1", True),
        ("research", "projects/research/reservations/r1/reservationBlocks/b1", True),
        ("research", "r1/reservationBlocks/b1/reservationSubBlocks/s1", True),
        ("research", "projects/research/futureReservations/r1", False),
        ("research", "r2", False),
        ("partner", "projects/research/reservations/r1", True),
        ("partner", "r1", False),
        ("stranger", "projects/research/reservations/r1", False),
    ],
)
def test_a_reservation_is_found_by_every_spelling(
    fresh: Served, project: str, reference: str, found: bool
) -> None:
    """Work that names it as its client does would be refused; or strangers would get in."""
    booked(fresh, "r1", shares=(Share(project="partner"),))
    with fresh.engine.reading() as reader:
        kept = reservations.look_up(reader, project, "us-central1-a", reference)
    assert (kept is not None and kept.name == "r1") is found
