"""The real gcloud asks for advice before it books."""

from __future__ import annotations

import shutil

import pytest

from tests.api.compute.test_calendar_advice import at
from tests.api.served import Served
from tests.conformance.compute.conftest import Gcloud

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="not run: gcloud not found"),
]


@pytest.mark.parametrize("track", ["beta", "alpha"])
def test_calendar_mode(served: Served, gcloud: Gcloud, track: str) -> None:
    """The command that people look for a block with would not work here."""
    command = (track, "compute", "advice", "calendar-mode", "--region=us-central1")
    (told,) = gcloud(
        *command,
        "--machine-type=a3-highgpu-8g",
        "--vm-count=2",
        f"--start-time-range=from={at(5)},to={at(50)}",
        f"--end-time-range=from={at(30)},to={at(90)}",
        "--duration-range=min=1d,max=2d",
        "--location-policy=us-central1-b=deny",
    )
    (one,) = told["recommendations"]
    seen = one["recommendationsPerSpec"]["spec"]
    assert (seen["location"], seen["recommendationType"]) == ("zones/us-central1-a", "FUTURE_RESERVATION")
    assert (seen["startTime"], seen["endTime"]) == (at(5), at(53))
    assert seen["otherLocations"]["zones/us-central1-b"]["status"] == "CONDITIONS_NOT_MET"
    (told,) = gcloud(*command, "--tpu-version=V5E", "--chip-count=16", "--duration-range=min=1d,max=2d")
    seen = told["recommendations"][0]["recommendationsPerSpec"]["spec"]
    assert "location" not in seen and len(seen["otherLocations"]) == 2
