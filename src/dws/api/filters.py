"""List filters and orders: one tree, evaluated over any object through a table of fields.

    state = "PENDING" AND (labels.team = a OR NOT name = "train-*") AND submitTime >= 2027-01-11T09:00:00Z

Comparisons are `=`, `!=`, `<`, `<=`, `>`, `>=`; a `*` at the end of a text is "begins with". AND and OR
may not be mixed without parentheses: readers disagree about which binds tighter. Instants are compared
exactly, fractions of a second included.

The Compute dialect has two grammars in one, as its clients send both:

    name eq ".*(^a3).*"          `eq`, `ne`: regular expressions over the whole text
    (zone eq z1)(status eq UP)   terms side by side are joined by AND
    a = 1 OR b = 2 AND c:3       OR binds tighter; `:` is equality, `:*` is "has any"

Whatever is not understood is an error that gives its position,
never "everything".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Generic, NoReturn, TypeVar

from dws.model.errors import InvalidArgument
from dws.wire.timefmt import parse_instant

T = TypeVar("T")
LENGTH_MAX: Final = 2_048
DEPTH_MAX: Final = 32


class Dialect(Enum):
    """Whose grammar."""

    NATIVE = auto()
    COMPUTE = auto()


class Kind(Enum):
    """What a field's values are. INSTANT is RFC 3339 in UTC or empty; WORD is one of a few."""

    TEXT = auto()
    WORD = auto()
    NUMBER = auto()
    INSTANT = auto()
    MAP = auto()


@dataclass(frozen=True, slots=True)
class Field(Generic[T]):
    """How a field is read from an item, and for a WORD what it may be."""

    kind: Kind
    get: Callable[[T], Any]
    words: tuple[str, ...] = ()


Fields = Mapping[str, Field[T]]
Predicate = Callable[[T], bool]

# --- the tree ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """`field op value`; `key` is a map's key. `at` is where it is written, and `value_at` its value."""

    field: str
    key: str
    op: str
    value: str
    at: int
    value_at: int


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    part: Tree


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds; of no parts: always."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one part holds."""

    parts: tuple[Tree, ...]


Tree = Comparison | Not | All | Some


def parse_filter(text: str, fields: Fields[T], dialect: Dialect = Dialect.NATIVE) -> Predicate[T]:
    """The predicate a filter describes; the empty filter lets everything through.

    Raises InvalidArgument with the position (from 0) in its message and details.
    """
    return evaluator(parse(text, dialect), text, fields)


def parse(text: str, dialect: Dialect = Dialect.NATIVE) -> Tree:
    """The tree of a filter. Raises InvalidArgument with the position."""
    return _Parser(text, dialect).whole()


# --- reading ----------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<op><=|>=|!=|=|<|>)
    | (?P<open>\() | (?P<close>\))
    | (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<bare>[^\s()<>=!"']+)
    )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)")
_QUOTE_ESCAPE = re.compile(r"\\([\"'])")
_NAME = re.compile(r"([A-Za-z][A-Za-z0-9_]*)(?:\.(.+))?")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    def __init__(self, text: str, dialect: Dialect) -> None:
        if len(text) > LENGTH_MAX:
            raise InvalidArgument(
                f"filter: {len(text)} characters; at most {LENGTH_MAX} are possible", field="filter"
            )
        self._text = text
        self._compute = dialect is Dialect.COMPUTE
        self._tokens = self._split()
        self._next = 0

    def _split(self) -> list[_Token]:
        tokens, at, end = [], 0, len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                at += len(self._text[at:]) - len(self._text[at:].lstrip())
                what = "a quote that is never closed" if self._text[at] in "\"'" else "this character"
                wrong(self._text, at, f"{what} cannot stand here")
            kind = match.lastgroup or ""
            tokens.append(_Token(kind, match.group(kind), match.start(kind)))
            at = match.end()
        return [*tokens, _Token("end", "", end)]

    def whole(self) -> Tree:
        if self._peek().kind == "end":
            return All(())
        tree = self._sequence(0)
        if self._peek().kind != "end":
            self._wrong("AND or OR is expected here")
        return tree

    def _sequence(self, depth: int) -> Tree:
        """Terms joined by AND alone, or by OR alone."""
        if self._compute:
            return self._conjunction(depth)
        parts, joint = [self._term(depth)], ""
        while (word := self._peek()).kind == "bare" and word.text in ("AND", "OR"):
            if joint and word.text != joint:
                self._wrong("AND and OR are mixed; put parentheses around one of them")
            joint = word.text
            self._take()
            parts.append(self._term(depth))
        if not joint:
            return parts[0]
        return All(tuple(parts)) if joint == "AND" else Some(tuple(parts))

    def _conjunction(self, depth: int) -> Tree:
        """Compute's order: OR first, then AND, said or unsaid."""
        parts = [self._disjunction(depth)]
        while (token := self._peek()).kind in ("open", "bare") and token.text != "OR":
            if token.text == "AND":
                self._take()
            parts.append(self._disjunction(depth))
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _disjunction(self, depth: int) -> Tree:
        parts = [self._term(depth)]
        while self._peek().kind == "bare" and self._peek().text == "OR":
            self._take()
            parts.append(self._term(depth))
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def _term(self, depth: int) -> Tree:
        if depth > DEPTH_MAX:
            self._wrong(f"nested more than {DEPTH_MAX} deep")
        token = self._peek()
        if token.kind == "bare" and token.text == "NOT":
            self._take()
            return Not(self._term(depth + 1))
        if token.kind == "open":
            self._take()
            tree = self._sequence(depth + 1)
            if self._peek().kind != "close":
                self._wrong("')' is expected here")
            self._take()
            return tree
        return self._comparison()

    def _comparison(self) -> Comparison:
        name = self._peek()
        if name.kind != "bare" or name.text in ("AND", "OR"):
            self._wrong("a field is expected here")
        self._take()
        if self._compute and ":" in name.text:
            return self._has(name)
        field, key = self._field(name.text, name.at)
        if name.text.endswith(".") and self._peek().kind == "quoted":
            key = self._unquoted(self._take().text)
        op = self._peek()
        if op.kind != "op" and not (self._compute and op.text in ("eq", "ne")):
            self._wrong("one of = != < <= > >= is expected here")
        self._take()
        value, at = self._value()
        return Comparison(field, key, op.text, value, name.at, at)

    def _has(self, token: _Token) -> Comparison:
        """`field:value`, which is one token because instants have colons too."""
        name, _, value = token.text.partition(":")
        field, key = self._field(name, token.at)
        at = token.at + len(name) + 1
        if not value:
            value, at = self._value()
        op, value = ("!=", "") if value == "*" else ("=", value)
        return Comparison(field, key, op, value, token.at, at)

    def _field(self, text: str, at: int) -> tuple[str, str]:
        parts = _NAME.fullmatch(text.removesuffix("."))
        if parts is None:
            wrong(self._text, at, f"'{text}' is not a field")
        return parts.group(1), parts.group(2) or ""

    def _value(self) -> tuple[str, int]:
        value = self._peek()
        if value.kind not in ("bare", "quoted") or value.text in ("AND", "OR", "NOT"):
            self._wrong("a value is expected here")
        self._take()
        return (self._unquoted(value.text) if value.kind == "quoted" else value.text), value.at

    def _unquoted(self, text: str) -> str:
        """Between the quotes; Compute's clients escape nothing there but quotes."""
        return (_QUOTE_ESCAPE if self._compute else _ESCAPE).sub(r"\1", text[1:-1])

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _wrong(self, why: str) -> NoReturn:
        wrong(self._text, self._peek().at, why)


def wrong(text: str, at: int, why: str, *, field: str = "filter") -> NoReturn:
    """Raise the InvalidArgument that points at a position."""
    around = text[at : at + 20]
    where = f"position {at} ('{around}')" if around else f"the end (position {at})"
    raise InvalidArgument(f"{field}: {why}, at {where}", field=field, details={"position": at})


# --- meaning ----------------------------------------------------------------------------------

REPEATS_MAX: Final = 4
_REPEATS = re.compile(r"(?<!\\)[*+{?]")
_COSTLY = re.compile(r"\)[*+{?]|\(\?|\\[1-9]")

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluator(tree: Tree, text: str, fields: Fields[T]) -> Predicate[T]:
    """The predicate of a tree. Raises InvalidArgument for a field or value that cannot be."""
    match tree:
        case All(parts):
            every = [evaluator(part, text, fields) for part in parts]
            return lambda item: all(holds(item) for holds in every)
        case Some(parts):
            some = [evaluator(part, text, fields) for part in parts]
            return lambda item: any(holds(item) for holds in some)
        case Not(part):
            holds = evaluator(part, text, fields)
            return lambda item: not holds(item)
        case Comparison():
            return _compared(tree, text, fields)


def _compared(told: Comparison, text: str, fields: Fields[T]) -> Predicate[T]:
    field = fields.get(told.field)
    if field is None:
        wrong(text, told.at, f"there is no field '{told.field}' (there are: {', '.join(fields)})")
    if (field.kind is Kind.MAP) != bool(told.key):
        hint = f"write {told.field}.KEY" if field.kind is Kind.MAP else f"'{told.field}' has no parts"
        wrong(text, told.at, hint)
    if told.op in ("eq", "ne"):
        return _matched(told, text, field.get)
    compare, get, value = _COMPARE[told.op], field.get, told.value
    match field.kind:
        case Kind.NUMBER:
            if not re.fullmatch(r"-?[0-9]{1,19}", value):
                wrong(text, told.value_at, f"'{told.field}' is compared with a whole number")
            number = int(value)
            return lambda item: _known(get(item), number, told.op, compare)
        case Kind.INSTANT:
            return _instant(told, text, get)
        case Kind.WORD if value not in field.words:
            wrong(text, told.value_at, f"'{told.field}' is one of {', '.join(field.words)}")
        case Kind.MAP:
            key, whole = told.key, field.get
            get = lambda item: whole(item).get(key)  # noqa: E731
    if told.op not in ("=", "!="):
        wrong(text, told.at, f"'{told.field}' can be compared with = and != only")
    return _text(told, text, get)


def _text(told: Comparison, text: str, get: Callable[[T], Any]) -> Predicate[T]:
    """Equality, or "begins with"; what is not there differs from everything."""
    value, same = told.value, told.op == "="
    head, star, rest = value.partition("*")
    if rest:
        wrong(text, told.value_at, "'*' can stand at the end only")
    if star:
        return lambda item: ((found := get(item)) is not None and found.startswith(head)) is same
    return lambda item: (get(item) == value) is same


def _matched(told: Comparison, text: str, get: Callable[[T], Any]) -> Predicate[T]:
    """A regular expression over the whole text."""
    matches, wanted = pattern(told, text).fullmatch, told.op == "eq"

    def holds(item: T) -> bool:
        found = get(item)
        plain = str(found).lower() if isinstance(found, bool) else str(found or "")
        return (matches(plain) is not None) is wanted

    return holds


def pattern(told: Comparison, text: str) -> re.Pattern[str]:
    """The expression of an `eq` or `ne`, if it is of the kind that cannot take for ever: few repetitions,
    none of a group. Raises InvalidArgument with the position for any other."""
    if told.op == "eq" and not told.value:
        wrong(text, told.value_at, "an expression is expected here")
    if len(_REPEATS.findall(told.value)) > REPEATS_MAX or _COSTLY.search(told.value):
        wrong(
            text,
            told.value_at,
            f"this server matches expressions of at most {REPEATS_MAX} repetitions, none of a group",
        )
    try:
        return re.compile(told.value)
    except re.error as error:
        wrong(text, told.value_at, f"not a regular expression: {error}")


def _instant(told: Comparison, text: str, get: Callable[[T], str]) -> Predicate[T]:
    compare, op = _COMPARE[told.op], told.op
    if not told.value:
        if op not in ("=", "!="):
            wrong(text, told.value_at, "an instant is expected here")
        return lambda item: compare(get(item), "")
    try:
        whole = parse_instant(told.value, field="filter")
    except InvalidArgument as error:
        wrong(text, told.value_at, error.message.removeprefix("filter: "))
    halves = 2 * whole + bool(re.search(r"[.,]\d*[1-9]", told.value))
    return lambda item: _known(_halves(get(item)), halves, op, compare)


def _halves(instant: str) -> int | None:
    """Half seconds since the epoch: ours are whole seconds, so a bound between two is an odd number."""
    return 2 * parse_instant(instant) if instant else None


def _known(found: Any, value: int, op: str, compare: Callable[[Any, Any], bool]) -> bool:
    return op == "!=" if found is None else compare(found, value)


# --- order ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Term(Generic[T]):
    """One field of an order."""

    name: str
    get: Callable[[T], Any]
    descending: bool


@dataclass(frozen=True, slots=True)
class Order(Generic[T]):
    """By the first term, then the second …; what is not there comes first, or last when descending."""

    terms: tuple[Term[T], ...] = ()

    def is_by(self, names: tuple[str, ...], *, descending: bool = False) -> bool:
        """True when one of these fields decides alone, in this direction."""
        return bool(self.terms) and self.terms[0].name in names and self.terms[0].descending is descending

    def values(self, item: T) -> list[str | int | None]:
        """What an item is sorted by."""
        return [term.get(item) for term in self.terms]

    def rank(self, values: list[str | int | None]) -> tuple[Any, ...]:
        """Values as something that sorts right. More values than terms sort ascending behind them."""
        ranked: list[Any] = []
        for index, value in enumerate(values):
            key = (value is not None, 0 if value is None else value)
            down = index < len(self.terms) and self.terms[index].descending
            ranked.append(_Downwards(key) if down else key)
        return tuple(ranked)


@dataclass(frozen=True, slots=True)
class _Downwards:
    key: tuple[bool, str | int]

    def __lt__(self, other: _Downwards) -> bool:
        return self.key > other.key


def parse_order(text: str, fields: Fields[T]) -> Order[T]:
    """The order `priority desc, submitTime` describes. Raises InvalidArgument with the position."""
    terms: list[Term[T]] = []
    at = 0
    for part in text.split(",") if text.strip() else ():
        start = at + len(part) - len(part.lstrip())
        at += len(part) + 1
        name, _, direction = part.strip().partition(" ")
        field = fields.get(name)
        if field is None:
            wrong(
                text, start, f"there is no field '{name}' (there are: {', '.join(fields)})", field="orderBy"
            )
        if field.kind is Kind.MAP:
            wrong(text, start, f"lists cannot be ordered by '{name}'", field="orderBy")
        if direction.strip() not in ("", "asc", "desc"):
            wrong(text, start, "after the field comes nothing, asc or desc", field="orderBy")
        terms.append(Term(name, field.get, direction.strip() == "desc"))
    return Order(tuple(terms))
