"""Images that clients look up before they make a template."""

from __future__ import annotations

import pytest

from tests.api.served import Served


@pytest.mark.parametrize("version", ["v1", "beta", "alpha"])
def test_a_family_of_any_project_has_an_image(served: Served, version: str) -> None:
    """`gcloud compute instance-templates create` would stop before it asks for anything."""
    images = f"/compute/{version}/projects/debian-cloud/global/images"
    found = served.anyone.get(f"{images}/family/debian-12").json()
    assert (found["status"], found["family"]) == ("READY", "debian-12")
    assert found["selfLink"].endswith(f"{images}/{found['name']}")
    assert served.anyone.get(f"{images}/{found['name']}").json() == found
    assert served.anyone.get(f"{images}/family/Debian").status_code == 404
