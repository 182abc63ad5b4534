"""The real gcloud asks for flex start: template, group, resize request, and what it prints of them."""

from __future__ import annotations

import shutil

import pytest

from tests.api.compute.test_resize_requests import FLEX, TEMPLATES
from tests.api.served import Served
from tests.conformance.compute.conftest import Gcloud

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="not run: gcloud not found"),
]
ZONE = "--zone=us-central1-a"
MANAGED = ("compute", "instance-groups", "managed")


def test_flex_start_from_group_to_deletion(served: Served, gcloud: Gcloud) -> None:
    """The commands of the public guide, one after the other, would not work here."""
    assert served.owner.post(TEMPLATES, json={"name": "t", "properties": FLEX}).is_success
    made = gcloud(*MANAGED, "create", "g", "--template=t", "--size=0", ZONE)
    assert [(g["name"], g["targetSize"]) for g in made] == [("g", 0)]
    requests = (*MANAGED, "resize-requests")
    asked = ("g", ZONE, "--resize-by=3", "--requested-run-duration=1h")
    gcloud(*requests, "create", *asked, "--resize-request=first")
    gcloud(*requests, "create", *asked, "--resize-request=second")
    states = {r["name"]: r["state"] for r in gcloud(*requests, "list", "g", ZONE)}
    assert states == {"first": "SUCCEEDED", "second": "ACCEPTED"}
    told = gcloud(*requests, "describe", "g", ZONE, "--resize-request=second")
    assert "needs 3 free hosts" in told["status"]["lastAttempt"]["error"]["errors"][0]["message"]
    (listed,) = gcloud(*MANAGED, "list")
    assert (listed["name"], listed["targetSize"], listed["size"]) == ("g", 6, "3")
    actions = [m["currentAction"] for m in gcloud(*MANAGED, "list-instances", "g", ZONE)]
    assert sorted(actions) == ["CREATING"] * 3 + ["NONE"] * 3
    gcloud(*requests, "cancel", "g", ZONE, "--resize-requests=second")
    assert gcloud(*requests, "describe", "g", ZONE, "--resize-request=second")["state"] == "CANCELLED"
    told = gcloud(*MANAGED, "wait-until", "g", ZONE, "--stable", "--timeout=30", plain=True)
    assert "Group is stable" in told
    gcloud(*MANAGED, "delete", "g", ZONE)
    assert gcloud(*MANAGED, "list") == []
