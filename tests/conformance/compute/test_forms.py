"""What bodies may have, against Google's own Discovery document: every field it knows, and no other."""

from __future__ import annotations

import pytest

from dws.api.compute_v1 import instance_forms, templates
from dws.api.compute_v1.forms import Form
from tests.conformance.compute.schema import document

FORMS = [
    ("Scheduling", instance_forms.SCHEDULING),
    ("ReservationAffinity", instance_forms.AFFINITY),
    ("Metadata", instance_forms.METADATA),
    ("InstanceProperties", instance_forms.PROPERTIES),
    ("Instance", instance_forms.INSTANCE),
    ("InstanceTemplate", templates.FORM),
]


@pytest.mark.parametrize(("schema", "form"), FORMS, ids=[name for name, _ in FORMS])
def test_a_form_has_the_fields_of_the_service(schema: str, form: Form) -> None:
    """A body that the public service takes would be refused here, or a misspelt field taken."""
    known: set[str] = set()
    for version in ("v1", "beta", "alpha"):
        known |= set(document(version)["schemas"][schema]["properties"])
    ours = set(form.fields) | form.ignored
    assert known - ours == set(), "the service knows these too"
    assert set(form.fields) - known <= {"requestValidForDuration"}, "the service knows none of these"
