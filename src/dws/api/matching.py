"""Compute's filters over JSON things as they are shown: any field, by its path.

A thing of the Compute door has hundreds of fields, so there is no table of them. A path goes through objects
(`scheduling.provisioningModel`, `labels.team`) and into every member of a list; what is not there is
the empty text, so a filter about an unknown field matches nothing rather than failing.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dws.api.filters import All, Comparison, Dialect, Not, Some, Tree, parse, pattern, wrong
from dws.model.errors import InvalidArgument
from dws.wire.timefmt import parse_instant

Thing = Mapping[str, Any]
Matches = Callable[[Thing], bool]

_SNAKE: Final = re.compile(r"_([a-z0-9])")
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}(?:\.[0-9]{1,9})?")
_ORDERED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def matcher(text: str) -> Matches:
    """The predicate a filter describes, in either of Compute's grammars; the empty one lets all through.

    Raises InvalidArgument with the position when it cannot be read.
    """
    return _of(parse(text, Dialect.COMPUTE), text)


def _of(tree: Tree, text: str) -> Matches:
    match tree:
        case All(parts):
            every = [_of(part, text) for part in parts]
            return lambda thing: all(holds(thing) for holds in every)
        case Some(parts):
            some = [_of(part, text) for part in parts]
            return lambda thing: any(holds(thing) for holds in some)
        case Not(part):
            holds = _of(part, text)
            return lambda thing: not holds(thing)
        case Comparison():
            return _compared(tree, text)


def _compared(told: Comparison, text: str) -> Matches:
    path = f"{told.field}.{told.key}" if told.key else told.field
    negated = told.op in ("!=", "ne")
    fits = _test(told, text)

    def holds(thing: Thing) -> bool:
        found = list(values(thing, path)) or [""]
        return any(fits(value) for value in found) is not negated

    return holds


def _test(told: Comparison, text: str) -> Callable[[str], bool]:
    """Whether one value is what the comparison asks for (for `!=` and `ne`: what it excludes)."""
    value = told.value
    if told.op in ("eq", "ne"):
        expression = pattern(told, text)
        return lambda found: expression.fullmatch(found) is not None
    if told.op in ("=", "!="):
        head, star, rest = value.partition("*")
        if rest:
            wrong(text, told.value_at, "'*' can stand at the end only")
        if star:
            return lambda found: found.startswith(head)
        truth = value.lower() if value.lower() in ("true", "false") else value
        return lambda found: found == truth
    compare, bound = _ORDERED[told.op], _measure(value)
    return lambda found: found != "" and _in_order(compare, found, value, bound)


def _in_order(compare: Callable[[Any, Any], bool], found: str, value: str, bound: float | None) -> bool:
    measured = _measure(found)
    if measured is not None and bound is not None:
        return compare(measured, bound)
    return measured is bound is None and compare(found, value)


def _measure(text: str) -> float | None:
    """A number, or an instant in seconds; None for any other text."""
    if _NUMBER.fullmatch(text):
        return float(text)
    if text[4:5] != "-":
        return None
    try:
        return parse_instant(text)
    except InvalidArgument:
        return None


def values(thing: Any, path: str) -> Iterator[str]:
    """Every plain value at a dotted path, as a text; the word `true` stands for an object that is there."""
    if isinstance(thing, list):
        for member in thing:
            yield from values(member, path)
    elif not path:
        if isinstance(thing, Mapping):
            yield from ("true",) if thing else ()
        elif thing is not None:
            yield str(thing).lower() if isinstance(thing, bool) else str(thing)
    elif isinstance(thing, Mapping):
        for name, rest in _steps(path):
            if name in thing:
                yield from values(thing[name], rest)
                return


def _steps(path: str) -> Iterator[tuple[str, str]]:
    """Ways to take the first step of a path: the whole as one name (labels may have dots), or up to the dot;
    as spelt, or in camelCase."""
    head, _, rest = path.partition(".")
    yield path, ""
    yield head, rest
    yield camel(head), rest


def camel(name: str) -> str:
    """A field's name as it is shown, however it was spelt."""
    return _SNAKE.sub(lambda m: m.group(1).upper(), name)
