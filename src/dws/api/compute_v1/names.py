"""Compute's names and links: which project and version were asked, and the URLs that follow."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from dws.api.method import Call
from dws.model.errors import AlreadyExists, InvalidArgument, NotFound
from dws.model.names import check_project
from dws.model.topology import Fleet

_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
ROOT: Final = "/compute/{version=v1|beta|alpha}/projects/{project}"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a call was addressed, for links answer in kind; and the fleet it is about."""

    base_url: str
    version: str
    project: str
    fleet: Fleet = field(compare=False, repr=False)

    def link(self, path: str = "") -> str:
        """The URL of a path below the project."""
        tail = f"/{path}" if path else ""
        return f"{self.base_url}/compute/{self.version}/projects/{self.project}{tail}"

    def not_found(self, path: str) -> NotFound:
        """The error for what is not there, in the words clients look for."""
        return NotFound(f"The resource 'projects/{self.project}/{path}' was not found")

    def exists(self, path: str) -> AlreadyExists:
        """The error for what is there already."""
        return AlreadyExists(f"The resource 'projects/{self.project}/{path}' already exists")


def check_resource_name(name: object, field: str = "resource.name") -> str:
    """A resource's name as RFC 1035 has it. Raises InvalidArgument."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"Invalid value for field '{field}': '{name or ''}'. Must be a match of regex "
            "'(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'",
            field=field,
        )
    return name


def below_project(reference: str, default_scope: str = "") -> str:
    """The path below its project that a reference means, in whichever of its shapes: a URL of any host and
    version, `projects/P/zones/Z/…`, `zones/Z/…`, or a bare name, which is below `default_scope`."""
    head, found, tail = reference.rpartition("projects/")
    if found:
        return tail.partition("/")[2]
    del head
    if reference.startswith(("zones/", "regions/", "global/")):
        return reference
    return f"{default_scope}/{reference}" if default_scope else reference


def last(reference: str) -> str:
    """The last part of a reference: the bare name of what it means."""
    return reference.rstrip("/").rpartition("/")[2]


def fingerprint(version: int) -> str:
    """A version as clients carry it back: base64."""
    return base64.urlsafe_b64encode(version.to_bytes(8, "big")).decode()


def fingerprint_of(value: object) -> str:
    """What a value is now, as clients carry it back: base64, the same for the same value. gcloud decodes and
    encodes it, always in the alphabet that is safe in URLs."""
    said = msgspec.json.encode(value, order="sorted")
    return base64.urlsafe_b64encode(hashlib.sha256(said).digest()[:8]).decode()


def scope_of(call: Call[Any, Any]) -> Scope:
    """The scope of a call. Raises InvalidArgument when its project is no project id."""
    project = check_project(call.project)
    return Scope(call.base_url, call.path["version"], project, call.engine.declared_fleet(call.who))


def stable_id(kind: str, name: str) -> str:
    """A 63-bit number, always the same for the same thing."""
    digest = hashlib.sha256(f"{kind}\0{name}".encode()).digest()
    return str(int.from_bytes(digest[:8], "big") >> 1)
