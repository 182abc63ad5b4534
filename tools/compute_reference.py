"""The page of the Compute door: its methods, what of their bodies does something, and what is refused.

Forms and the table of the public schemas say all but the refusals; each of those has a body that a test
sends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dws.api.compute_v1 import (
    bulk,
    calendar_advice,
    capacity_advice,
    extension_advice,
    future_reservation_forms,
    group_instances,
    groups,
    instance_forms,
    instance_settings,
    reservation_changes,
    reservation_forms,
    resize_requests,
    schemas,
    templates,
)
from dws.api.compute_v1.forms import DURATION, Form, anything
from dws.api.compute_v1.methods import METHODS

FORMS: dict[str, Form] = {
    "BulkInsertInstanceResource": bulk.FORM,
    "CalendarModeAdviceRequest": calendar_advice.FORM,
    "CalendarModeExtensionAdviceRequest": extension_advice.FORM,
    "CapacityAdviceRequest": capacity_advice.FORM,
    "FutureReservation": future_reservation_forms.FORM,
    "Instance": instance_forms.INSTANCE,
    "InstanceGroupManager": groups.FORM,
    "InstanceGroupManagerResizeRequest": resize_requests.FORM,
    "InstanceGroupManagersCreateInstancesRequest": group_instances.CREATE_FORM,
    "InstanceGroupManagersDeleteInstancesRequest": group_instances.DELETE_FORM,
    "InstanceGroupsListInstancesRequest": group_instances.LIST_FORM,
    "InstanceProperties": instance_forms.PROPERTIES,
    "InstanceTemplate": templates.FORM,
    "InstancesSetLabelsRequest": instance_settings.LABELS,
    "InstancesSetMachineTypeRequest": instance_settings.MACHINE_TYPE,
    "Metadata": instance_settings.NEW_METADATA,
    "Reservation": reservation_forms.FORM,
    "ReservationsResizeRequest": reservation_changes.RESIZE,
    "Scheduling": instance_forms.SCHEDULING,
    "Tags": instance_settings.NEW_TAGS,
}
"""The forms of bodies by their public schema; one of a region's has that of a zone's."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What the public service takes and this server refuses: by a method's id, what is said beside a right
    body, as JSON, and why not, in the words of the message."""

    method: str
    body: str
    why: str


REFUSED = (
    Refused(
        "futureReservations.insert",
        '{"storagePoolProperties": {"storagePoolType": "hyperdisk-balanced"}}',
        "This fleet has no storage pools.",
    ),
    Refused(
        "futureReservations.insert",
        '{"shareSettings": {"shareType": "ORGANIZATION"}}',
        "This fleet knows no organisation and no folders",
    ),
    Refused(
        "reservations.insert",
        '{"shareSettings": {"shareType": "ORGANIZATION"}}',
        "This fleet knows no organisation and no folders",
    ),
    Refused(
        "instances.bulkInsert",
        '{"instanceFlexibilityPolicy": {"instanceSelections": {"a": {"machineTypes": ["e2-medium"]}}}}',
        "Instances that are made together are of one machine type",
    ),
    Refused(
        "instanceGroupManagers.patch",
        '{"targetSizePolicy": {"mode": "BULK"}}',
        "targetSizePolicy",
    ),
    Refused(
        "instanceTemplates.insert",
        '{"properties": {}, "sourceInstance": "zones/us-central1-a/instances/there"}',
        "properties.machineType",
    ),
)
_HEAD = """\
# The Compute door

What of Google's Compute Engine API is there at `/compute/v1/`, `/compute/beta/` and `/compute/alpha/`: one
store behind all three. How to point clients at it is in [google-clients.md](../how-to/google-clients.md).

A body is read by the public schema of the version it is sent to: a field that this version does not know, a
wrong type and an unknown word are refused, `400` and reason `invalid`. What is *kept* below means nothing
here and is given back as it was said. What another version put there and this one does not know is not
shown. `fields`, `requestId`, both filter grammars, `orderBy=creationTimestamp desc` and pages of up to 500
work wherever they do in the public service.
"""
_BODIES = """\
## Bodies

Fields by what they do; `a.b` is field `b` of `a`, `a[].b` of each of the list `a`. What is *passed over* only
a server says: it may be sent back and changes nothing.
"""
_REFUSED = """\
## Refused

What the public service takes and this server does not, beside what the owner's policy does not allow. Each
answers `400`; the example is said beside a body that is right.

| Method | Example | Message |
|---|---|---|"""


def page() -> Iterator[str]:
    """The page, piece by piece."""
    yield _HEAD
    yield from _methods()
    yield from _bodies()
    yield _REFUSED
    for each in REFUSED:
        yield f"| `{each.method}` | `{each.body}` | {each.why} |"


def _methods() -> Iterator[str]:
    yield "## Methods\n"
    yield "| Method | Call | Meaning |\n|---|---|---|"
    for method in METHODS:
        where = re.sub(r"^/compute/\{[^}]*\}/projects/\{project\}/?", "", method.path)
        name = f"`{method.id.removeprefix('compute.')}`{_versions(method.id)}"
        yield f"| {name} | `{method.verb} {where or '…'}` | {method.summary} |"
    yield "\nNot there, of the resources that are: they answer `404`.\n"
    there = {method.id for method in METHODS}
    resources = sorted({name.split(".")[1] for name in there})
    for resource in resources:
        missing = [
            name.split(".")[2]
            for name in schemas.methods()
            if name.split(".")[1] == resource and name not in there
        ]
        if missing:
            yield f"- `{resource}`: {', '.join(f'`{verb}`' for verb in missing)}."
    yield ""


def _versions(method: str) -> str:
    """In which versions a method is, where not in all."""
    told = schemas.methods().get(method, schemas.VERSIONS)
    return "" if len(told) == len(schemas.VERSIONS) else f" ({', '.join(told)})"


def _bodies() -> Iterator[str]:
    yield _BODIES
    for schema, form in FORMS.items():
        found = _sorted_out(form, schema)
        yield f"### {schema}\n"
        for title, names in found.items():
            if names:
                yield f"- {title}: {', '.join(names)}."
        yield ""


def _sorted_out(form: Form, schema: str) -> dict[str, list[str]]:
    """The fields of a form by what they do."""
    told = [json.loads(each.body) for each in REFUSED if schemas.body_of(f"compute.{each.method}") == schema]
    never = {f"`{field}`" for body in told if len(body) == 1 for field in body}
    paths = sorted(_paths(form))
    passed = sorted(form.ignored & schemas.fields(schema))
    return {
        "Does something": [path for path, means in paths if means],
        "Kept": [path for path, means in paths if not means and path not in never],
        "Passed over": [f"`{name}`" for name in passed],
    }


def _paths(form: Form, above: str = "") -> Iterator[tuple[str, bool]]:
    """The fields of a form with their paths, and whether they mean something. A part of which nothing does is
    one field, and so is one that has its own section."""
    sections = {id(form): schema for schema, form in FORMS.items()}
    for name, kind in form.fields.items():
        inner, path = _form_in(kind), f"{above}{name}"
        if inner is None or inner is DURATION:
            yield f"`{path}`", kind is not anything
            continue
        if id(inner) in sections:
            section = sections[id(inner)]
            yield f"`{path}` (see [{section}](#{section.lower()}))", True
            continue
        parts = list(_paths(inner, f"{path}." if isinstance(kind, Form) else f"{path}[]."))
        if any(means for _, means in parts):
            yield from parts
        else:
            yield f"`{path}`", False


def _form_in(kind: object) -> Form | None:
    """The form of an object, or of the members of a list or map."""
    while not isinstance(kind, Form):
        cells = getattr(kind, "__closure__", None) or ()
        inner = [cell.cell_contents for cell in cells if callable(cell.cell_contents)]
        if not inner:
            return None
        kind = inner[0]
    return kind
