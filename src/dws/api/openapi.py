"""The OpenAPI 3.1 document of the native door, made from the registry: nothing is written twice."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from dws.api.method import Call, Method, NoQuery, Registry
from dws.wire.native_v1 import ErrorEnvelope

PREFIX: Final = "/dws/v1/"
_REF: Final = "#/components/schemas/{name}"
_VALUE = re.compile(r"\{(\w+)\}")
_WHAT_A_VALUE_IS: Final = {
    "project": "A project id; `-` in lists is every project the caller may see.",
    "name": "A name (the newest of that name) or an id.",
    "person": "Whom a token stands for, as `principal` tells it.",
}


def get(call: Call[None, NoQuery]) -> msgspec.Raw:
    """The document."""
    return document_json(call.context.registry)


METHOD: Final = Method(
    id="dws.openapi",
    verb="GET",
    path="/dws/v1/openapi.json",
    summary="This document.",
    handler=get,
)


@lru_cache(maxsize=2)
def document_json(registry: Registry) -> msgspec.Raw:
    """The document, encoded."""
    return msgspec.Raw(msgspec.json.encode(document(registry)))


def document(registry: Registry) -> dict[str, Any]:
    """The document of the methods of a registry that are native."""
    methods = [m for m in registry if m.path.startswith(PREFIX)]
    bodies = {t for m in methods for t in (m.request, m.response) if t is not None}
    types = sorted(bodies, key=lambda t: t.__name__)
    schemas, components = msgspec.json.schema_components(
        [*types, ErrorEnvelope], ref_template=_REF, schema_hook=_anything
    )
    schema_of = dict(zip([*types, ErrorEnvelope], schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for method in methods:
        paths.setdefault(method.path, {})[method.verb.lower()] = _operation(method, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "OpenDWS native API",
            "version": "v1",
            "description": "Capacity requests over an accelerator fleet. Durations are seconds or texts "
            "such as `4h`; instants are RFC 3339; ids are texts.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _anything(kind: type) -> dict[str, Any]:
    """The schema of a value that may be anything."""
    if kind is object:
        return {"description": "Anything."}
    raise NotImplementedError(f"no schema for {kind}")


def _operation(method: Method, schema_of: dict[Any, Any]) -> dict[str, Any]:
    kind = "text/event-stream" if method.streams else method.media or "application/json"
    answer: dict[str, Any] = {"type": "object"}
    if method.streams or method.media:
        answer = {"type": "string"}
    elif method.response is not None:
        answer = schema_of[method.response]
    problem = {"application/json": {"schema": schema_of[ErrorEnvelope]}}
    operation: dict[str, Any] = {
        "operationId": method.id,
        "summary": method.summary,
        "tags": [method.id.split(".")[1]],
        "parameters": _parameters(method),
        "responses": {
            "200": {"description": "Done.", "content": {kind: {"schema": answer}}},
            "4XX": {"description": "Not as asked; the envelope says why.", "content": problem},
            "5XX": {"description": "Not possible now, or our fault.", "content": problem},
        },
        "x-dws-role": method.role.value,
    }
    if method.request is not None and issubclass(method.request, msgspec.Struct):
        needed = any(f.required for f in msgspec.structs.fields(method.request))
        operation["requestBody"] = {
            "required": needed,
            "content": {"application/json": {"schema": schema_of[method.request]}},
        }
    return operation


def _parameters(method: Method) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _WHAT_A_VALUE_IS[name],
            "schema": {"type": "string"},
        }
        for name in _VALUE.findall(method.path)
    ]
    for field in msgspec.structs.fields(method.query):
        schema = msgspec.json.schema(field.type)
        description = schema.pop("description", "")
        if field.default is not msgspec.NODEFAULT:
            schema["default"] = field.default
        told.append({"name": field.encode_name, "in": "query", "description": description, "schema": schema})
    if method.idempotent:
        told.append(
            {
                "name": "requestId",
                "in": "query",
                "description": "Repeating the call with it within a day answers the same and changes "
                "nothing; the Idempotency-Key header does as well.",
                "schema": {"type": "string", "maxLength": 128},
            }
        )
    return told
