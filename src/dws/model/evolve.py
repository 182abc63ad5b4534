"""A frozen value with some of its fields changed: `dataclasses.replace`, many times faster.

    evolve(request, state=RequestState.ACTIVE)

A step of a lifecycle changes three of a request's twenty-five fields. `replace` looks all of them up by
name, passes them on and sets each through `object.__setattr__`. Here every class gets, at its first use,
a twin with the same slots that may be written to: a copy is filled in as the twin, then becomes the class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

__all__ = ["evolve"]

_SOURCE: Final = """
def make(old, changes):
    new = create(twin)
    {copies}
    for name in changes:
        setattr(new, name, changes[name])
    new.__class__ = cls
    {check}
    return new
"""

_makers: dict[type, Callable[[Any, dict[str, Any]], Any]] = {}


def _maker(cls: type) -> Callable[[Any, dict[str, Any]], Any]:
    """The function that makes changed copies of `cls`, a dataclass with slots."""
    own = {"__slots__": cls.__dict__["__slots__"], "__setattr__": object.__setattr__}
    twin = type(f"{cls.__name__}Draft", cls.__bases__, own)
    source = _SOURCE.format(
        copies="; ".join(f"new.{f.name} = old.{f.name}" for f in fields(cls)),
        check="new.__post_init__()" if hasattr(cls, "__post_init__") else "",
    )
    made: dict[str, Any] = {"cls": cls, "twin": twin, "create": object.__new__}
    exec(source, made)
    make: Callable[[Any, dict[str, Any]], Any] = made["make"]
    _makers[cls] = make
    return make


def _evolve(value: Any, /, **changes: Any) -> Any:
    """The value with `changes` made and checked. Raises AttributeError for a field that is not there."""
    try:
        make = _makers[type(value)]
    except KeyError:
        make = _maker(type(value))
    return make(value, changes)


if TYPE_CHECKING:  # so that the names and types of fields are checked as they are for `replace`
    from dataclasses import replace as evolve
else:
    evolve = _evolve
