"""The real gcloud: templates from an image's family, and two names at once, which it sends as a batch."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="not run: gcloud not found"),
]


def test_templates_are_made_and_two_are_deleted_at_once(gcloud: Any) -> None:
    """Without images no template could be made; without batches no command with two names would work."""
    templates = ("compute", "instance-templates")
    for name in ("a", "b"):
        gcloud(*templates, "create", name, "--machine-type=a3-highgpu-8g")
    assert {t["name"] for t in gcloud(*templates, "list")} == {"a", "b"}
    gcloud(*templates, "delete", "a", "b")
    assert gcloud(*templates, "list") == []
