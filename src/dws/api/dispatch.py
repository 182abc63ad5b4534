"""The one pipeline every call of every door goes through.

    authenticate ─▶ match ─▶ decode ─▶ authorise ─▶ handler, in a thread ─▶ encode
                    404 405   400 413 415            events: streamed as they come

Whatever goes wrong on the way becomes the door's envelope here and nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
import structlog
from starlette.types import Receive, Scope, Send

from dws.api.auth import Doorkeeper
from dws.api.context import Context
from dws.api.errors import (
    BodyTooLarge,
    Internal,
    MethodNotAllowed,
    NotJson,
    envelope_for,
    undecodable,
)
from dws.api.matching import camel
from dws.api.method import Call, Method, Registry, Route
from dws.api.partial import Mask, parse_mask, prune
from dws.engine import access
from dws.model.access import Principal, Role
from dws.model.errors import DwsError, InvalidArgument, Unauthenticated, Unavailable

BODY_MAX_BYTES: Final = 1_048_576
QUERY_FIELDS_MAX: Final = 64
CALL_ID_MAX: Final = 128
TRACE: Final = "dws.trace"

_JSON: Final = b"application/json"
_EVENTS: Final = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"))
_FORM_HAS_BODY: Final = frozenset({"POST", "PATCH", "PUT"})
_log = structlog.get_logger("dws.api")


@dataclass(slots=True)
class Trace:
    """What the access log and the metrics want to know of a call; filled in on the way."""

    request_id: str
    method_id: str = "-"
    principal: str = "-"
    status: int = 0


class Disconnected(Exception):
    """The caller went away before it had said what it wants."""


class Dispatcher:
    """An ASGI application: the methods of a registry."""

    def __init__(self, registry: Registry, context: Context, doorkeeper: Doorkeeper) -> None:
        self._registry = registry
        self._context = context
        self._doorkeeper = doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        trace: Trace = scope.get(TRACE) or Trace("-")
        await answered(self._answer(scope, receive, send, trace), scope, send, trace)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, trace: Trace) -> None:
        headers = dict(scope["headers"])
        peer = scope["client"][0] if scope.get("client") else ""
        who = self._doorkeeper.principal(headers, peer)
        trace.principal = who.name
        verb: str = scope["method"]
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        route, values = self._registry.match("GET" if verb == "HEAD" else verb, path)
        method = route.method
        trace.method_id = method.id
        query, call_id, mask = _query(route, scope["query_string"], headers)
        body = await _body(route, headers, receive, scope)
        authorise(who, method, "" if method.open_to_all else values.get("project", ""))
        call: Call[Any, Any] = Call(
            context=self._context,
            who=who,
            path=values,
            query=query,
            body=body,
            call_id=call_id,
            base_url=f"{scope['scheme']}://{headers.get(b'host', b'').decode('latin-1')}",
            last_event_id=headers.get(b"last-event-id", b"").decode("latin-1"),
            client=headers.get(b"user-agent", b"").decode("latin-1"),
        )
        if method.streams:
            await _stream(method.handler(call), send, head_only=verb == "HEAD")
        else:
            answer = await self._context.workers.run(_handle, method, call, mask)
            media = f"{method.media}; charset=utf-8".encode() if method.media else _JSON
            await _send(send, 200, answer, media=media, head_only=verb == "HEAD")


async def answered(answer: Awaitable[None], scope: Scope, send: Send, trace: Trace) -> None:
    """Answer a call; whatever goes wrong is told in the envelope of the door, and what nobody expected in the
    log."""
    try:
        await answer
    except Disconnected:
        trace.status = 499
    except DwsError as error:
        await refuse(scope, send, error)
    except TimeoutError as error:
        _log.error("no answer", request_id=trace.request_id, exc_info=error)
        await refuse(scope, send, Unavailable("no answer in time; repeat the call, with its requestId"))
    except Exception as error:
        _log.error("trouble", request_id=trace.request_id, method=trace.method_id, exc_info=error)
        await refuse(scope, send, Internal(f"internal error; the log tells more at {trace.request_id}"))


def authorise(who: Principal, method: Method, project: str) -> None:
    """Raises PermissionDenied when `who` may not call this method in this project ("-": all it may see)."""
    project = "" if project == "-" else project
    if method.role is Role.OPERATOR:
        access.may_operate(who)
    elif method.role is Role.USER:
        access.may_write(who, project or next(iter(who.projects), ""))
    elif project:
        access.may_read(who, project)


def need_token(who: Principal, what: str) -> None:
    """Raises Unauthenticated unless `who` showed a token."""
    if not who.may_run_programs:
        raise Unauthenticated(f"{what} needs a token: send 'Authorization: Bearer …'")


async def refuse(scope: Scope, send: Send, error: DwsError) -> None:
    """Answer with an error, in the envelope of the door."""
    extra = []
    if isinstance(error, Unauthenticated):
        extra.append((b"www-authenticate", b'Bearer realm="dws"'))
    if isinstance(error, MethodNotAllowed):
        extra.append((b"allow", ", ".join(error.details["allow"]).encode()))  # type: ignore[arg-type]
    if isinstance(error, Unavailable):
        extra.append((b"retry-after", b"1"))
    body = envelope_for(scope["path"])(error)
    await _send(send, error.http_status, body, extra, head_only=scope["method"] == "HEAD")


def _handle(method: Method, call: Call[Any, Any], mask: Mask) -> bytes:
    answer = method.handler(call)
    if mask:
        answer = prune(msgspec.to_builtins(answer), mask)
    if method.media:
        given: bytes = answer
        return given
    return b"{}" if answer is None else msgspec.json.encode(answer)


async def _send(
    send: Send,
    status: int,
    body: bytes,
    extra: list[tuple[bytes, bytes]] | None = None,
    *,
    media: bytes = _JSON,
    head_only: bool = False,
) -> None:
    headers = [(b"content-type", media), (b"content-length", str(len(body)).encode()), *(extra or ())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head_only else body})


async def _stream(chunks: AsyncIterator[bytes], send: Send, *, head_only: bool) -> None:
    """Send chunks as they come. What the first one raises is still an ordinary error."""
    first = await anext(chunks, b"")
    await send({"type": "http.response.start", "status": 200, "headers": list(_EVENTS)})
    if not head_only:
        await send({"type": "http.response.body", "body": first, "more_body": True})
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _query(route: Route, raw: bytes, headers: dict[bytes, bytes]) -> tuple[Any, str, Mask]:
    """The query as the method's struct, the call's id, and what is wanted of the answer."""
    call_id = headers.get(b"idempotency-key", b"").decode("latin-1")
    if not raw and route.no_query is not None and not call_id:
        return route.no_query, "", {}
    mask: Mask = {}
    given: dict[str, Any] = {}
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        raise InvalidArgument(f"query: more than {QUERY_FIELDS_MAX} parameters", field="query") from None
    for name, value in pairs:
        if route.method.lenient:
            name = camel(name)
        if name in route.repeated:
            given.setdefault(name, []).append(value)
            continue
        if name in given and not route.method.lenient:
            raise InvalidArgument(f"{name}: is given twice", field=name)
        given[name] = value
    if route.method.verb != "GET":
        call_id = given.pop("requestId", call_id)
    if len(call_id) > CALL_ID_MAX or not call_id.isprintable():
        raise InvalidArgument(
            f"requestId: at most {CALL_ID_MAX} printable characters are possible", field="requestId"
        )
    if route.method.lenient:
        mask = parse_mask(given["fields"]) if given.get("fields") else {}
        given = {name: value for name, value in given.items() if name in route.names}
    try:
        return msgspec.convert(given, route.method.query, strict=False), call_id, mask
    except msgspec.ValidationError as error:
        raise undecodable(error, what="query") from None


async def _body(route: Route, headers: dict[bytes, bytes], receive: Receive, scope: Scope) -> Any:
    """The decoded body: a value of the method's request struct, None where it has none."""
    raw = await read_body(headers, receive)
    if scope["method"] in _FORM_HAS_BODY:
        kind = headers.get(b"content-type")
        if kind is None:
            if raw:
                raise NotJson("content-type: send the body as application/json", field="content-type")
        elif kind.partition(b";")[0].strip().lower() != b"application/json":
            raise NotJson(
                f"content-type: '{kind[:80].decode('latin-1')}' is not application/json",
                field="content-type",
            )
    if route.body is None:
        if raw and raw.strip() not in (b"", b"{}"):
            raise InvalidArgument("body: this method takes none", field="body", reason="unexpectedBody")
        return None
    if not raw:
        if not route.body_optional:
            raise InvalidArgument("body: is missing", field="body", reason="missingField")
        raw = b"{}"
    try:
        return route.body.decode(raw)
    except msgspec.DecodeError as error:
        raise undecodable(error) from None
    except RecursionError:
        raise InvalidArgument("body: it is nested too deeply", field="body") from None


async def read_body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """A call's body. Raises BodyTooLarge, and Disconnected when the caller goes away meanwhile."""
    told = headers.get(b"content-length", b"")
    if told.isdigit() and int(told) > BODY_MAX_BYTES:
        raise BodyTooLarge(_too_large())
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_MAX_BYTES:
            raise BodyTooLarge(_too_large())
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large() -> str:
    return f"body: at most {BODY_MAX_BYTES} bytes are read"
