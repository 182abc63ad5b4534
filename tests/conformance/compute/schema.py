"""Answers against Google's own Discovery document: right types, required shape, no field it does not know."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import googleapiclient

DOCUMENTS = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
PLAIN = {"string": str, "integer": int, "boolean": bool, "number": (int, float)}


@cache
def document(version: str) -> dict[str, Any]:
    """The document of a version, as googleapiclient carries it."""
    return json.loads((DOCUMENTS / f"compute.{version}.json").read_text())


def faults(version: str, schema: str, value: Any) -> list[str]:
    """Where a value differs from the document's schema of that name."""
    return list(_faults(document(version)["schemas"], {"$ref": schema}, value, "$"))


def _faults(schemas: dict[str, Any], schema: dict[str, Any], value: Any, at: str):
    schema = schemas[schema["$ref"]] if "$ref" in schema else schema
    kind = schema.get("type", "any")
    if kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or (kind == "integer" and isinstance(value, bool)):
            yield f"{at}: {value!r} is no {kind}"
        elif "enum" in schema and value not in schema["enum"]:
            yield f"{at}: {value!r} is not in the enum"
        elif schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
            yield f"{at}: {value!r} is no int32"
        elif schema.get("format") in ("int64", "uint64") and not value.lstrip("-").isdecimal():
            yield f"{at}: {value!r} is no {schema['format']}"
    elif kind == "array":
        if not isinstance(value, list):
            yield f"{at}: {value!r} is no array"
            return
        for index, item in enumerate(value):
            yield from _faults(schemas, schema["items"], item, f"{at}[{index}]")
    elif kind == "object":
        if not isinstance(value, dict):
            yield f"{at}: {value!r} is no object"
            return
        for name, part in value.items():
            inner = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if inner is None:
                yield f"{at}: there is no field {name!r}"
            else:
                yield from _faults(schemas, inner, part, f"{at}.{name}")
