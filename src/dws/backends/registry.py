"""Finds backends: every `dws.backends` entry point is a kind of backend, made from its own settings.

A backend class takes keyword settings it knows and refuses others, so that a misspelt setting is an error
and not a silence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

import msgspec

from dws.engine.ports import Backend
from dws.model.errors import InvalidArgument
from dws.wire.timefmt import parse_duration

GROUP = "dws.backends"


@cache
def available() -> Mapping[str, EntryPoint]:
    """Every backend that is installed, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _kind(name: str) -> Callable[..., Backend]:
    point = available().get(name)
    if point is None:
        known = ", ".join(sorted(available()))
        raise InvalidArgument(
            f"backend: no backend '{name}' is installed (there are: {known})", field="backend"
        )
    kind: Callable[..., Backend] = point.load()
    return kind


def settings_of(name: str) -> Mapping[str, object]:
    """The settings of a backend and the type of each: its keyword-only parameters.

    Raises InvalidArgument when there is no such backend.
    """
    takes = inspect.signature(_kind(name), eval_str=True).parameters.values()
    return {p.name: p.annotation for p in takes if p.kind is p.KEYWORD_ONLY}


def decode(name: str, key: str, value: object) -> object:
    """A setting as written in a file, as the backend takes it: names that end in `_s` may say "90s".

    Raises InvalidArgument for what it is not, or for a backend or setting that is not there.
    """
    known = settings_of(name)
    field = f"backends.{name}.{key}"
    if key not in known:
        raise InvalidArgument(
            f"{field}: no such setting (there are: {', '.join(sorted(known))})", field=field
        )
    wanted = known[key]
    if key.endswith("_s") and isinstance(value, str):
        value = parse_duration(value, field=field)
    if is_dataclass(wanted) and isinstance(value, dict):
        for part in value.keys() - {f.name for f in fields(wanted)}:
            raise InvalidArgument(f"{field}.{part}: no such setting", field=f"{field}.{part}")
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        said = str(error).removeprefix("Expected ")
        raise InvalidArgument(f"{field}: expected {said}", field=field) from None


def create(name: str, settings: Mapping[str, object], context: Mapping[str, object] | None = None) -> Backend:
    """Make the backend `name` from its settings. Of `context`, what every server offers (state directory,
    clock), each takes what it has a parameter for.

    Raises InvalidArgument when there is no such backend, or a setting it does not know.
    """
    kind = _kind(name)
    decoded = {key: decode(name, key, value) for key, value in settings.items()}
    takes = inspect.signature(kind).parameters
    offered = {key: value for key, value in (context or {}).items() if key in takes}
    return kind(**{**offered, **decoded})
