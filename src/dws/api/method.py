"""`Method`: one record for each thing the API can do; `Registry`: all of them, as a routing table.

From the registry come the routes with their 404 and 405, decoding, authorisation, the OpenAPI document,
the metrics' labels and the names in the access log.

A path template has literal segments, `{name}` segments and `{name=one|other}` segments that are one of a
few words; the last segment may carry a verb after a colon:
`/dws/v1/projects/{project}/requests/{name}:cancel`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_origin
from urllib.parse import unquote_to_bytes

import msgspec

from dws.api.errors import MethodNotAllowed, NoSuchPath
from dws.model.access import Principal, Role
from dws.model.errors import InvalidArgument

if TYPE_CHECKING:
    from dws.api.context import Context
    from dws.engine.app import Engine

B = TypeVar("B")
Q = TypeVar("Q")


class Query(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Base of query parameters: a struct whose fields are the parameters, with types and defaults."""


class NoQuery(Query):
    """A method without query parameters."""


@dataclass(slots=True)
class Call(Generic[B, Q]):
    """One call, decoded: who asks, the path's values, the query, the body.

    `call_id` makes it idempotent, empty when the caller gave none. `base_url` is this server as the
    caller addressed it. `last_event_id` is where a broken event stream is to be taken up. `client` is the
    program that calls, in its own words.
    """

    context: Context
    who: Principal
    path: dict[str, str]
    query: Q
    body: B
    call_id: str = ""
    base_url: str = ""
    last_event_id: str = ""
    client: str = ""

    @property
    def engine(self) -> Engine:
        """What the handlers call."""
        return self.context.engine

    @property
    def project(self) -> str:
        """The path's project, empty when it has none."""
        return self.path.get("project", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One thing the API can do.

    `request` is a struct, or `dict` where the handler itself reads any JSON object by a form of its own.
    `role` is what the caller needs at least. A method that `streams` has a handler giving an async
    iterator of bytes; any other gives a value of `response` (None: an empty object) and may block.
    """

    id: str
    verb: str
    path: str
    summary: str
    handler: Callable[[Call[Any, Any]], Any]
    role: Role = Role.VIEWER
    request: type[msgspec.Struct] | type[dict[str, Any]] | None = None
    response: type[msgspec.Struct] | None = None
    query: type[Query] = NoQuery
    idempotent: bool = False
    streams: bool = False
    media: str = ""
    """What its answer is when it is not JSON; the handler gives bytes then."""
    lenient: bool = False
    """Query parameters that are not known are skipped, and `fields` picks parts of the answer: what other
    servers' clients expect."""
    open_to_all: bool = False
    """Its project is a name only: who may see no more than some projects may ask in every one."""


@dataclass(frozen=True, slots=True)
class Route:
    """A method with what it needs to decode a call, made once."""

    method: Method
    body: msgspec.json.Decoder[Any] | None
    body_optional: bool
    no_query: Query | None
    names: frozenset[str]
    repeated: frozenset[str]


@dataclass(slots=True)
class _Node:
    literals: dict[str, _Node] = field(default_factory=dict)
    choice_name: str = ""
    value: _Node | None = None
    value_name: str = ""
    verbs: dict[str, dict[str, Route]] = field(default_factory=dict)

    def choose(self, name: str, words: list[str]) -> _Node:
        """The one node behind each of these words."""
        self.choice_name = name
        behind = self.literals.get(words[0]) or _Node()
        self.literals |= dict.fromkeys(words, behind)
        return behind


class Registry:
    """Methods by path and verb. Raises ValueError when two methods are one, or a path is ambiguous."""

    def __init__(self, methods: Iterable[Method]) -> None:
        self._root = _Node()
        self._methods: dict[str, Method] = {}
        for method in methods:
            self._add(method)

    def __iter__(self) -> Iterator[Method]:
        return iter(self._methods.values())

    def _add(self, method: Method) -> None:
        if method.id in self._methods:
            raise ValueError(f"two methods are called {method.id}")
        self._methods[method.id] = method
        segments, verb = split_template(method.path)
        node = self._root
        for segment in segments:
            if not segment.startswith("{"):
                node = node.literals.setdefault(segment, _Node())
                continue
            name, _, words = segment.strip("{}").partition("=")
            if words:
                node = node.choose(name, words.split("|"))
                continue
            node.value = node.value or _Node()
            if node.value_name not in ("", name):
                raise ValueError(f"{method.path}: '{name}' is called '{node.value_name}' elsewhere")
            node.value_name, node = name, node.value
        if method.verb in node.verbs.setdefault(verb, {}):
            raise ValueError(f"two methods are {method.verb} {method.path}")
        node.verbs[verb][method.verb] = _compile(method)

    def match(self, verb: str, path: bytes) -> tuple[Route, dict[str, str]]:
        """The route of a raw path, and its values. Raises NoSuchPath, MethodNotAllowed, InvalidArgument."""
        ahead = path.decode("latin-1")[1:].split("/")
        values: dict[str, str] = {}
        node, custom = self._root, ""
        while ahead:
            segment = ahead.pop(0)
            name, custom = segment, ""
            if not ahead and ":" in segment[:-1]:
                name, _, custom = segment.rpartition(":")
            if not custom:
                name = segment
            found = self._step(node, name, values)
            if custom and (found is None or custom not in found.verbs):
                found, custom = self._step(node, segment, values), ""
            if found is None and "%2F" in segment:  # slashes inside a part of a path, escaped by its client
                ahead = segment.split("%2F") + ahead
                continue
            if found is None:
                raise NoSuchPath(_nothing_at(path))
            node = found
        routes = node.verbs.get(custom)
        if routes is None:
            raise NoSuchPath(_nothing_at(path))
        route = routes.get(verb)
        if route is None:
            raise MethodNotAllowed(
                f"{verb} is not possible here; {' and '.join(sorted(routes))} is",
                details={"allow": sorted(routes)},
            )
        return route, values

    @staticmethod
    def _step(node: _Node, segment: str, values: dict[str, str]) -> _Node | None:
        found = node.literals.get(segment)
        if found is None and node.value is not None and segment:
            values[node.value_name] = _plain(segment)
            return node.value
        if found is not None and node.choice_name:
            values[node.choice_name] = segment
        return found


def split_template(path: str) -> tuple[list[str], str]:
    """A path template's segments, and the verb after the last colon."""
    segments = path.strip("/").split("/")
    segments[-1], _, verb = segments[-1].partition(":")
    return segments, verb


def _compile(method: Method) -> Route:
    body_optional = True
    if method.request is not None and issubclass(method.request, msgspec.Struct):
        body_optional = not any(f.required for f in msgspec.structs.fields(method.request))
    fields = msgspec.structs.fields(method.query)
    return Route(
        method=method,
        body=None if method.request is None else msgspec.json.Decoder(method.request),
        body_optional=body_optional,
        no_query=None if any(f.required for f in fields) else method.query(),
        names=frozenset(f.encode_name for f in fields),
        repeated=frozenset(f.encode_name for f in fields if get_origin(f.type) is list),
    )


def _plain(segment: str) -> str:
    if "%" not in segment:
        return segment
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise InvalidArgument("path: it is not UTF-8", field="path") from None


def _nothing_at(path: bytes) -> str:
    return f"nothing answers at {path[:200].decode('ascii', 'replace')}"
