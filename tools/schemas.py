"""Writes what Google's Discovery documents say of Compute's bodies: `python -m tools.schemas`.

The documents come with google-api-python-client, which a server does not need. What the server needs of
them is one table, `dws/api/compute_v1/schemas.json`: of the methods of some resources the schema of the
request and of the answer, and of every schema below those its fields, with the versions that know them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import googleapiclient

from dws.api.compute_v1.schemas import TABLE, VERSIONS

DOCUMENTS = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
RESOURCES = (
    "advice",
    "futureReservations",
    "instanceGroupManagerResizeRequests",
    "instanceGroupManagers",
    "instanceGroups",
    "instanceTemplates",
    "instances",
    "regionInstanceGroupManagerResizeRequests",
    "regionInstanceGroupManagers",
    "regionInstanceGroups",
    "regionInstanceTemplates",
    "regionInstances",
    "reservationBlocks",
    "reservationSubBlocks",
    "reservations",
)
LEFT_OUT = ("warning", "warnings")
"""Fields of lists and operations that are the same in all versions, with hundreds of words."""
FORMATS = {"int64": "int64", "uint64": "int64", "int32": "int32", "uint32": "int32"}


class Table:
    """The table as it grows, one version's document after the other."""

    def __init__(self) -> None:
        self.methods: dict[str, dict[str, Any]] = {}
        self.schemas: dict[str, dict[str, dict[str, Any]]] = {}
        self.enums: dict[str, dict[str, list[str]]] = {}

    def add(self, version: str, document: dict[str, Any]) -> None:
        """What a version's document says."""
        todo: list[str] = []
        for resource in RESOURCES:
            for method in document["resources"].get(resource, {}).get("methods", {}).values():
                entry = self.methods.setdefault(method["id"], {"versions": []})
                entry["versions"].append(version)
                for side in ("request", "response"):
                    if side in method:
                        entry[side] = method[side]["$ref"]
                        todo.append(method[side]["$ref"])
        done: set[str] = set()
        while todo:
            name = todo.pop()
            if name not in done:
                done.add(name)
                todo += self._schema(version, name, document["schemas"][name])

    def _schema(self, version: str, name: str, told: dict[str, Any]) -> Iterator[str]:
        fields = self.schemas.setdefault(name, {})
        for field, each in told.get("properties", {}).items():
            if field in LEFT_OUT:
                continue
            found: list[str] = []
            kind = self._kind(version, f"{name}.{field}", each, found)
            entry = fields.setdefault(field, {"kind": kind, "versions": []})
            entry["versions"].append(version)
            yield from found

    def _kind(self, version: str, at: str, told: dict[str, Any], found: list[str]) -> str:
        """A field's kind as the table spells it."""
        if "$ref" in told:
            found.append(told["$ref"])
            return f"#{told['$ref']}"
        if "enum" in told:
            words = self.enums.setdefault(at, {})
            for word in told["enum"]:
                words.setdefault(word, []).append(version)
            return "="
        match told.get("type"):
            case "array":
                return f"[]{self._kind(version, at, told['items'], found)}"
            case "object" if "additionalProperties" in told:
                return f"{{}}{self._kind(version, at, told['additionalProperties'], found)}"
            case "object":
                found += self._schema(version, at, told)
                return f"#{at}"
            case kind:
                return FORMATS.get(told.get("format", ""), kind or "any")

    def text(self) -> str:
        """The table as it is kept: a line for each method, schema and enum."""
        tables: dict[str, dict[str, Any]] = {
            "methods": {
                name: [_spanned(m.get("request", "-"), m["versions"]), m.get("response", "-")]
                for name, m in self.methods.items()
            },
            "schemas": {
                name: {field: _spanned(e["kind"], e["versions"]) for field, e in sorted(fields.items())}
                for name, fields in self.schemas.items()
            },
            "enums": {
                name: [_spanned(word, v) for word, v in sorted(words.items())]
                for name, words in self.enums.items()
            },
        }
        parts = []
        for title, rows in tables.items():
            lines = [f"{json.dumps(name)}: {json.dumps(rows[name])}" for name in sorted(rows)]
            parts.append(f"{json.dumps(title)}: {{\n" + ",\n".join(lines) + "\n}")
        return "{\n" + ",\n".join(parts) + "\n}\n"


def _spanned(word: str, versions: list[str]) -> str:
    """A word with the versions that know it, where not all do."""
    return word if len(versions) == len(VERSIONS) else " ".join([word, *versions])


def main() -> None:
    """Write the table if it differs."""
    table = Table()
    for version in VERSIONS:
        table.add(version, json.loads((DOCUMENTS / f"compute.{version}.json").read_text()))
    text = table.text()
    if not TABLE.exists() or TABLE.read_text(encoding="utf-8") != text:
        TABLE.write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {TABLE.name}\n")


if __name__ == "__main__":
    main()
