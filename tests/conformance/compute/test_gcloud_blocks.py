"""The real gcloud looks at where a reservation lies."""

from __future__ import annotations

import shutil

import pytest

from tests.api.compute.test_reservations import booked
from tests.api.served import Served
from tests.conformance.compute.conftest import Gcloud

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="not run: gcloud not found"),
]


def test_blocks_and_sub_blocks(served: Served, gcloud: Gcloud) -> None:
    """Neither people nor xpk could see where a reservation lies."""
    booked(served, "r1")
    reservations = ("compute", "reservations")
    where = ("r1", "--zone=us-central1-a")
    (block,) = gcloud(*reservations, "blocks", "list", *where)
    assert (block["count"], block["inUseCount"], block["status"]) == (2, 0, "READY")
    name = f"--block-name={block['name']}"
    assert gcloud(*reservations, "blocks", "describe", *where, name)["resource"] == block
    assert gcloud(*reservations, "sub-blocks", "list", *where, name) == []
