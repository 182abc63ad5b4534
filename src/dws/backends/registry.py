"""Finds backends: every `dws.backends` entry point is a kind of backend, made from its own settings.

A backend class takes keyword settings it knows and refuses others, so that a misspelt setting is an error
and not a silence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from dws.engine.ports import Backend
from dws.model.errors import InvalidArgument

GROUP = "dws.backends"


@cache
def available() -> Mapping[str, EntryPoint]:
    """Every backend that is installed, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def create(
    name: str, settings: Mapping[str, object], context: Mapping[str, object] | None = None
) -> Backend:
    """Make the backend `name` from its settings. Of `context`, what every server offers (state directory,
    clock), each takes what it has a parameter for.

    Raises InvalidArgument when there is no such backend, or a setting it does not know.
    """
    point = available().get(name)
    if point is None:
        known = ", ".join(sorted(available()))
        raise InvalidArgument(
            f"backend: no backend '{name}' is installed (there are: {known})", field="backend"
        )
    kind: Callable[..., Backend] = point.load()
    takes = inspect.signature(kind).parameters
    for key in settings:
        if key not in takes:
            raise InvalidArgument(
                f"backends.{name}.{key}: no such setting (there are: {', '.join(sorted(takes))})",
                field=f"backends.{name}.{key}",
            )
    offered = {key: value for key, value in (context or {}).items() if key in takes}
    return kind(**{**offered, **settings})
