"""Frozen values, made many times faster: anew, and from another with some of its fields changed.

    @swift
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Instance: ...

    evolve(instance, state=InstanceState.RUNNING)

A frozen dataclass sets each field through `object.__setattr__`, and `dataclasses.replace` looks all of them
up by name as well, though a step of a lifecycle changes three of a request's twenty-five. Here a class gets
a twin with the same slots that may be written to: a value is filled in as the twin, then becomes the class.
`evolve` works on every dataclass with slots; `swift` is for those of which a run makes hundreds of thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

__all__ = ["evolve", "swift"]

C = TypeVar("C", bound=type)

_EVOLVE: Final = """
def make(old, changes):
    new = create(twin)
    {copies}
    for name in changes:
        setattr(new, name, changes[name])
    new.__class__ = cls
    {check}
    return new
"""

_INIT: Final = """
def __init__(self, {arguments}):
    become(self, "__class__", twin)
    {sets}
    self.__class__ = cls
    {check}
"""

_makers: dict[type, Callable[[Any, dict[str, Any]], Any]] = {}


def _twin(cls: type) -> type:
    """A class with the slots of `cls` that may be written to."""
    own = {"__slots__": cls.__dict__["__slots__"], "__setattr__": object.__setattr__}
    return type(f"{cls.__name__}Draft", cls.__bases__, own)


def _maker(cls: type) -> Callable[[Any, dict[str, Any]], Any]:
    """The function that makes changed copies of `cls`, a dataclass with slots."""
    source = _EVOLVE.format(
        copies="; ".join(f"new.{f.name} = old.{f.name}" for f in fields(cls)),
        check="new.__post_init__()" if hasattr(cls, "__post_init__") else "",
    )
    made: dict[str, Any] = {"cls": cls, "twin": _twin(cls), "create": object.__new__}
    exec(source, made)
    make: Callable[[Any, dict[str, Any]], Any] = made["make"]
    _makers[cls] = make
    return make


def swift(cls: C) -> C:
    """The same frozen dataclass, whose fields are all given by keyword, with an `__init__` that is faster."""
    scope: dict[str, Any] = {"cls": cls, "twin": _twin(cls), "become": object.__setattr__}
    source = _INIT.format(
        arguments="*, " + ", ".join(_argument(f, scope) for f in fields(cls)),
        sets="; ".join(f"self.{f.name} = {_given(f)}" for f in fields(cls)),
        check="self.__post_init__()" if hasattr(cls, "__post_init__") else "",
    )
    exec(source, scope)
    cls.__init__ = scope["__init__"]  # type: ignore[misc]
    return cls


def _argument(field: Field[Any], scope: dict[str, Any]) -> str:
    """A field in the signature, its default or what makes one put in `scope`."""
    if field.default_factory is not MISSING:
        scope[f"new_{field.name}"] = field.default_factory
        return f"{field.name}=cls"
    if field.default is MISSING:
        return field.name
    scope[f"default_{field.name}"] = field.default
    return f"{field.name}=default_{field.name}"


def _given(field: Field[Any]) -> str:
    """A field's value: what was given, or a new default (`cls` stands for nothing given)."""
    if field.default_factory is MISSING:
        return field.name
    return f"new_{field.name}() if {field.name} is cls else {field.name}"


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
