"""What the public service's bodies and answers may have, in each of its versions, from one table.

A handler reads by a form what means something here, and keeps the rest. So that whoever reads it back finds
what it can understand, a body is first read by its method's schema: every field is one that the version it
was sent to knows, of the right type, canonical. What was said under another version, and this one does not
know, is not shown under this one. `guarded` does both for a method.

`schemas.json` is written by `python -m tools.schemas` from Google's Discovery documents. A field's kind is a
type, `#` and the name of a schema, or `=` for one of a few words; behind `[]` a list of it, behind `{}` a map
to it. After it stand the versions that know the field, where not all do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from dws.api.compute_v1.forms import (
    OUTPUT_ONLY,
    Form,
    Kind,
    anything,
    boolean,
    int32,
    int64,
    many,
    named,
    number,
    required,
    text,
    words,
)
from dws.api.errors import NoSuchPath
from dws.api.method import Call, Method

VERSIONS: Final = ("v1", "beta", "alpha")
TABLE: Final = Path(__file__).with_name("schemas.json")
Cut = Callable[[Any], Any]
"""Gives a value without what a version does not know, `_GONE` when nothing is left of it."""

_GONE: Final = object()
_TRACK: Final = re.compile(r"\bcommand/gcloud\.(alpha|beta)\.")
_TYPES: Final[dict[str, Kind]] = {
    "string": text,
    "boolean": boolean,
    "int32": int32,
    "integer": int32,
    "int64": int64,
    "number": number,
    "any": anything,
}
_ASKED: Final = "asked"
_OURS: Final = {"Scheduling": {"requestValidForDuration": f"#Duration {_ASKED}"}}
"""Fields that clients of the public service send, in every version, and its documents do not have: they are
read, and never shown."""


def guarded(method: Method) -> Method:
    """A method whose body is what the version it was sent to takes, and whose answer what that one knows."""
    entry = _table()["methods"].get(method.id)
    if entry is None:
        return method
    request, versions = _split(entry[0])
    response, handler = entry[1], method.handler

    def handle(call: Call[Any, Any]) -> Any:
        version = spoken(call.path["version"], call.client)
        if version not in versions:
            raise NoSuchPath(f"version {version} has no method {method.id}; {' and '.join(versions)} have")
        if method.request is not None:
            call.body = form(request, version).read(call.body)
            if method.verb == "PATCH" and not _says(call):
                raise required("")
        answer = handler(call)
        return shown(response, version, answer) if response in _varied(version) else answer

    return replace(method, handler=handle)


def spoken(version: str, client: str) -> str:
    """The version that a call to `version` is made in. gcloud, given an endpoint that ends in `/compute/v1/`,
    sends its alpha and beta commands there too, each as it was: it says which in the name of its `client`."""
    track = _TRACK.search(client) if version == "v1" else None
    return track[1] if track else version


def _says(call: Call[Any, Any]) -> bool:
    """Whether a change says what it is to change: in its body, or by a mask that clears something."""
    masked = any(getattr(call.query, name, None) for name in ("update_mask", "paths"))
    return masked or not OUTPUT_ONLY.issuperset(call.body)


@cache
def form(schema: str, version: str) -> Form:
    """The form of a body with the fields that a version knows."""
    return Form({name: _kind(told, f"{schema}.{name}", version) for name, told in _fields(schema, version)})


def shown(schema: str, version: str, value: Any) -> Any:
    """An answer without the fields, and without the words, that only other versions know."""
    if not isinstance(value, dict):
        return value
    cuts, found = _cuts(schema, version), {}
    for name, part in value.items():
        cut = cuts.get(name)
        left = part if cut is None else cut(part)
        if left is not _GONE:
            found[name] = left
    return found


def methods() -> dict[str, tuple[str, ...]]:
    """The public methods of the resources in the table, each with the versions that have it."""
    return {name: _split(told[0])[1] for name, told in _table()["methods"].items()}


def body_of(method: str) -> str:
    """The schema of a method's body, empty for one that takes none."""
    return _split(_table()["methods"][method][0])[0].removeprefix("-")


def fields(schema: str) -> frozenset[str]:
    """The fields of a schema, over all versions."""
    return frozenset(_table()["schemas"][schema])


# --- the table --------------------------------------------------------------------------------


@cache
def _table() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
    for schema, fields in _OURS.items():
        found["schemas"][schema] |= fields
    return found


def _split(told: str) -> tuple[str, tuple[str, ...]]:
    """A word of the table, and the versions that know it."""
    word, *versions = told.split(" ")
    return word, tuple(versions) or VERSIONS


def _fields(schema: str, version: str) -> list[tuple[str, str]]:
    """The fields of a schema that a version knows, each with its kind."""
    every = ((name, _split(told)) for name, told in _table()["schemas"][schema].items())
    return [(name, kind) for name, (kind, versions) in every if {version, _ASKED} & set(versions)]


def _allowed(at: str, version: str) -> list[str]:
    return [word for word, versions in map(_split, _table()["enums"][at]) if version in versions]


def _kind(told: str, at: str, version: str) -> Kind:
    if told.startswith("[]"):
        return many(_kind(told[2:], at, version))
    if told.startswith("{}"):
        return named(_kind(told[2:], at, version))
    if told == "=":
        return words(*_allowed(at, version))
    if told.startswith("#"):
        return _reference(told[1:], version)
    return _TYPES[told]


def _reference(schema: str, version: str) -> Kind:
    """A schema's form, made when it is first needed: schemas hold each other."""

    def read(value: Any, path: str) -> Any:
        return form(schema, version)(value, path)

    return read


# --- what only other versions know ------------------------------------------------------------


@cache
def _varied(version: str) -> frozenset[str]:
    """The schemas that have, however deep, what the version does not know."""
    found: set[str] = set()
    while True:
        more = {
            schema
            for schema, fields in _table()["schemas"].items()
            if schema not in found
            and any(_varies(told, f"{schema}.{name}", version, found) for name, told in fields.items())
        }
        if not more:
            return frozenset(found)
        found |= more


def _varies(told: str, at: str, version: str, below: set[str]) -> bool:
    kind, versions = _split(told)
    kind = kind.lstrip("[]{}")
    if kind == "=":
        return version not in versions or len(_allowed(at, version)) < len(_table()["enums"][at])
    return version not in versions or kind[1:] in below


@cache
def _cuts(schema: str, version: str) -> dict[str, Cut]:
    """What to do with the fields of a schema that are not simply shown."""
    every = ((name, *_split(told)) for name, told in _table()["schemas"][schema].items())
    cuts = {
        name: _cut(kind, f"{schema}.{name}", version) if version in versions else _drop
        for name, kind, versions in every
    }
    return {name: cut for name, cut in cuts.items() if cut is not None}


def _drop(_: Any) -> Any:
    return _GONE


def _cut(kind: str, at: str, version: str) -> Cut | None:
    if kind.startswith(("[]", "{}")):
        inner = _cut(kind[2:], at, version)
        return None if inner is None else lambda value: _each(inner, value)
    if kind == "=":
        allowed = set(_allowed(at, version))
        strange = {word for word, _ in map(_split, _table()["enums"][at])} - allowed
        return (lambda value: _GONE if value in strange else value) if strange else None
    if kind[1:] in _varied(version):
        return lambda value: shown(kind[1:], version, value)
    return None


def _each(cut: Cut, values: Any) -> Any:
    if isinstance(values, dict):
        kept = ((name, cut(value)) for name, value in values.items())
        return {name: value for name, value in kept if value is not _GONE}
    return [left for value in values if (left := cut(value)) is not _GONE]
