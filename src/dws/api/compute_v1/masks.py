"""Update masks: a change touches the fields its mask names, and nothing else.

A field that the mask names and the body leaves out is cleared. gcloud misspells some paths; what it means by
them is known here.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dws.api.compute_v1.forms import Form, Named
from dws.api.matching import camel
from dws.model.errors import InvalidArgument

_SPELT: Final = {"intanceProperties": "instanceProperties", "guestAccelerator": "guestAccelerators"} | {
    "localSsd": "localSsds"
}


def paths(mask: str, form: Form, body: Mapping[str, Any]) -> list[str]:
    """The paths a mask names, in one spelling; without a mask, everything the body says, field by field.

    Raises InvalidArgument when that is nothing, or a path is no field that can be changed.
    """
    found = [_path(each.strip()) for each in mask.split(",") if each.strip()] or sorted(_said(body, form))
    if not found:
        raise _refused(mask, "Name at least one field to change.")
    for path in found:
        kind: Any = form
        for name in path.split("."):
            if isinstance(kind, Named):
                kind = kind.kind
                continue
            if not isinstance(kind, Form) or name not in kind.fields:
                raise _refused(mask, f"There is no field '{path}' that can be changed.")
            kind = kind.fields[name]
    return found


def _said(body: Mapping[str, Any], form: Form, above: str = "") -> Iterator[str]:
    """The paths of the fields a body says: what an object leaves out, it does not mean to clear."""
    for name, value in body.items():
        kind = form.fields.get(name)
        if isinstance(kind, Form):
            yield from _said(value, kind, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def _path(path: str) -> str:
    return ".".join(_SPELT.get(name, name) for name in map(camel, path.split(".")))


def _refused(mask: str, why: str) -> InvalidArgument:
    return InvalidArgument(f"Invalid value for field 'updateMask': '{mask}'. {why}", field="updateMask")


def value_at(body: Mapping[str, Any], path: str) -> Any:
    """The value at a path, None when there is none."""
    found: Any = body
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def masked(kept: Mapping[str, Any], given: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """What is kept, with the fields at these paths as they were given."""
    changed: dict[str, Any] = copy.deepcopy(dict(kept))
    for path in paths:
        *above, name = path.split(".")
        inside = changed
        for step in above:
            inside = inside.setdefault(step, {})
        value = value_at(given, path)
        if value is None:
            inside.pop(name, None)
        else:
            inside[name] = copy.deepcopy(value)
    return changed
