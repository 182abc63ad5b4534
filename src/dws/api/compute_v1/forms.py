"""Forms: which fields a Compute body may have, and of what kind.

Clients send camelCase or snake_case, 64-bit numbers as numbers or as strings. `read` makes of a body one
canonical value (camelCase, 64-bit numbers as strings, as they are answered), or says which field is wrong.
What this server only keeps and gives back is of kind ANY or of a form that lists its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dws.api.matching import camel
from dws.model.errors import InvalidArgument

Kind = Callable[[Any, str], Any]
"""Makes a value canonical. Raises InvalidArgument naming the field at that path."""

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1


def invalid(path: str, value: object, why: str = "") -> InvalidArgument:
    """A wrong value, in the words clients know."""
    shown = f"'{value}'"[:200]
    field = f"resource.{path}" if path else "resource"
    return InvalidArgument(f"Invalid value for field '{field}': {shown}. {why}".rstrip(), field=field)


def required(path: str) -> InvalidArgument:
    """A field that must be there is not; the whole body for the empty path."""
    field = f"resource.{path}" if path else "resource"
    return InvalidArgument(f"Required field '{field}' not specified", field=field, reason="required")


def text(value: Any, path: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise invalid(path, value, "A text is needed.")
    return value


def boolean(value: Any, path: str) -> bool:
    """True or false, also as a word."""
    found = {True: True, False: False, "true": True, "false": False}.get(value) if value in _TRUTH else None
    if found is None:
        raise invalid(path, value, "true or false is needed.")
    return found


_TRUTH: Final = (True, False, "true", "false")


def int32(value: Any, path: str) -> int:
    """A whole number of 32 bits, also as a text."""
    return _whole(value, path, INT32_MAX)


def int64(value: Any, path: str) -> str:
    """A whole number of 64 bits, also as a text; canonical as a text."""
    return str(_whole(value, path, INT64_MAX))


def _whole(value: Any, path: str, most: int) -> int:
    try:
        number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    if number is None:
        raise invalid(path, value, "A whole number is needed.")
    if not -most - 1 <= number <= most:
        raise invalid(path, value, f"It must lie between {-most - 1} and {most}.")
    return number


def number(value: Any, path: str) -> float:
    """Any number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(path, value, "A number is needed.")
    return value


def anything(value: Any, path: str) -> Any:
    """Kept and given back as it is, with its names made canonical."""
    del path
    if isinstance(value, dict):
        return {camel(name): anything(part, "") for name, part in value.items()}
    if isinstance(value, list):
        return [anything(part, "") for part in value]
    return value


def words(*allowed: str) -> Kind:
    """One of a few words."""

    def read(value: Any, path: str) -> str:
        if value not in allowed:
            raise invalid(path, value, f"It must be one of {', '.join(allowed)}.")
        return str(value)

    return read


def many(kind: Kind) -> Kind:
    """A list of them."""

    def read(value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise invalid(path, value, "A list is needed.")
        return [kind(part, f"{path}[{index}]") for index, part in enumerate(value)]

    return read


@dataclass(frozen=True, slots=True)
class Named:
    """A map from names, kept as they are, to values of a kind."""

    kind: Kind

    def __call__(self, value: Any, path: str) -> dict[str, Any]:
        """The map, canonical."""
        if not isinstance(value, dict):
            raise invalid(path, value, "An object is needed.")
        return {name: self.kind(part, f"{path}.{name}") for name, part in value.items()}


def named(kind: Kind) -> Named:
    """A map from names to them."""
    return Named(kind)


@dataclass(frozen=True, slots=True)
class Form:
    """An object with these fields and no other. `ignored` are fields only this server says: a client that
    sends back what it was given means no harm by them."""

    fields: Mapping[str, Kind]
    ignored: frozenset[str] = frozenset()

    def __call__(self, value: Any, path: str) -> dict[str, Any]:
        """The object, canonical, without fields that are null."""
        if not isinstance(value, dict):
            raise invalid(path, value, "An object is needed.")
        found: dict[str, Any] = {}
        for given, part in value.items():
            name = given if given in self.fields or given in self.ignored else camel(given)
            here = f"{path}.{name}" if path else name
            if name in self.ignored or part is None:
                continue
            kind = self.fields.get(name)
            if kind is None:
                where = f" at '{path}'" if path else ""
                raise InvalidArgument(
                    f'Invalid JSON payload received. Unknown name "{given}"{where}: Cannot find field.',
                    field=here,
                    reason="invalid",
                )
            found[name] = kind(part, here)
        return found

    def read(self, body: Any) -> dict[str, Any]:
        """A whole body."""
        return self({} if body is None else body, "")


def merged(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A template's properties with those that are said beside it, object by object; lists are said anew."""
    found = dict(base)
    for name, value in patch.items():
        both = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = merged(found[name], value) if both else value
    return found


OUTPUT_ONLY: Final = frozenset(
    {
        "kind",
        "id",
        "creationTimestamp",
        "selfLink",
        "selfLinkWithId",
        "fingerprint",
        "status",
        "zone",
        "region",
    }
)
DURATION: Final = Form({"seconds": int64, "nanos": int32})
"""`{seconds, nanos}`."""


def seconds(duration: Mapping[str, Any] | None) -> int | None:
    """A duration's whole seconds, None when it is not there."""
    return int(duration.get("seconds", 0)) if duration is not None else None
