"""Who is asking: part of every call from the first day."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a principal may do: look, use capacity, or run the fleet."""

    VIEWER = "viewer"
    USER = "user"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A person, service or policy. `projects` limits where it may act; empty means everywhere.

    `may_run_programs` is True only for a caller who presented a token: no web page or passer-by on
    the loopback interface can run a command.
    """

    name: str
    role: Role = Role.USER
    projects: tuple[str, ...] = ()
    may_run_programs: bool = False


SYSTEM = Principal(name="system", role=Role.OPERATOR, may_run_programs=True)
"""The actor of what the scheduler does by itself."""
