"""The page of the Compute door says what is so: every body has its section, and what it calls refused is."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

pytest.importorskip("googleapiclient", reason="not run: googleapiclient not found")

from tools.compute_reference import FORMS, REFUSED, Refused

from dws.api.compute_v1 import schemas
from dws.api.compute_v1.forms import Form
from dws.api.compute_v1.methods import METHODS
from tests.api.served import Served, serving
from tests.conformance.compute import world


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as server:
        world.furnish(server)
        yield server


def test_every_body_has_its_section() -> None:
    """A user could not see which fields of a body do something."""
    bodies = {schemas.body_of(m.id).replace("RegionI", "I") for m in METHODS if m.request is not None}
    assert bodies <= FORMS.keys(), "name their forms in tools/compute_reference.py"


@pytest.mark.parametrize("schema", FORMS)
def test_a_section_is_of_the_schema_it_names(schema: str) -> None:
    """The page would describe fields that no client can send."""
    form: Form = FORMS[schema]
    regional = schemas._table()["schemas"].get(f"Region{schema}", {})
    assert form.fields.keys() <= schemas.fields(schema) | regional.keys()


@pytest.mark.parametrize("each", REFUSED, ids=lambda each: f"{each.method}-{each.body}")
def test_what_is_called_refused_is_refused(served: Served, each: Refused) -> None:
    """The page would keep people from what is possible, or send them where nothing is."""
    (method,) = [m for m in METHODS if m.id == f"compute.{each.method}"]
    body = world.body_of(served, method) | json.loads(each.body)
    before = world.everything(served)
    answer = served.owner.request(method.verb, world.path_of(method), json=body)
    assert (answer.status_code, each.why in answer.json()["error"]["message"]) == (400, True), answer.text
    assert world.everything(served) == before
