"""Compute's names and links: which project and version were asked, and the URLs that follow."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from dws.api.method import Call
from dws.model.errors import NotFound
from dws.model.names import check_project

ROOT: Final = "/compute/{version=v1|beta|alpha}/projects/{project}"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a call was addressed: links answer in kind."""

    base_url: str
    version: str
    project: str

    def link(self, path: str = "") -> str:
        """The URL of a path below the project."""
        tail = f"/{path}" if path else ""
        return f"{self.base_url}/compute/{self.version}/projects/{self.project}{tail}"

    def not_found(self, path: str) -> NotFound:
        """The error for what is not there, in the words clients look for."""
        return NotFound(f"The resource 'projects/{self.project}/{path}' was not found")


def scope_of(call: Call[Any, Any]) -> Scope:
    """The scope of a call. Raises InvalidArgument when its project is no project id."""
    return Scope(call.base_url, call.path["version"], check_project(call.project))


def stable_id(kind: str, name: str) -> str:
    """A 63-bit number, always the same for the same thing."""
    digest = hashlib.sha256(f"{kind}\0{name}".encode()).digest()
    return str(int.from_bytes(digest[:8], "big") >> 1)
