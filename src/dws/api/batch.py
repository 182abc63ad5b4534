"""Several calls in one: `POST /batch/compute/{version}`, `multipart/mixed` in and out.

Each part is a whole HTTP request with a path of the Compute door, of any version. It goes through the same
pipeline as a call of its own, with the outer call's headers where it has none, one after the other; each
succeeds or fails by itself and is answered under its own Content-ID.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from dws.api.auth import Doorkeeper
from dws.api.dispatch import TRACE, Trace, answered, read_body
from dws.api.errors import MethodNotAllowed
from dws.model.errors import InvalidArgument

PARTS_MAX: Final = 1_000
_PATH: Final = re.compile(r"/batch/compute/(?:v1|beta|alpha)/?")
_LINE: Final = re.compile(rb"(GET|HEAD|POST|PUT|PATCH|DELETE) (\S+)(?: HTTP/1\.[01])?")
_HEAD_ENDS: Final = re.compile(rb"\r?\n\r?\n")
_OWN: Final = frozenset({b"host", b"content-length", b"transfer-encoding"})
_OF_THE_OUTER_BODY: Final = frozenset({b"content-type", b"content-length", b"transfer-encoding"})

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Part:
    """One call of a batch."""

    content_id: str
    verb: str
    path: bytes
    query: bytes
    headers: Headers
    body: bytes


class Batches:
    """An ASGI application: answers batches by `app`, and leaves every other call to it."""

    def __init__(self, app: ASGIApp, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _PATH.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        trace: Trace = scope.get(TRACE) or Trace("-")
        trace.method_id = "compute.batch"
        await answered(self._answer(scope, receive, send, trace), scope, send, trace)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, trace: Trace) -> None:
        headers = dict(scope["headers"])
        peer = scope["client"][0] if scope.get("client") else ""
        trace.principal = self._doorkeeper.principal(headers, peer).name
        if scope["method"] != "POST":
            raise MethodNotAllowed("a batch is sent by POST", details={"allow": ["POST"]})
        raw = await read_body(headers, receive)
        boundary = f"batch_{trace.request_id}".encode()
        answers = [
            _wrapped(boundary, part.content_id, *await self._one(scope, part, trace))
            for part in parts(headers.get(b"content-type", b""), raw)
        ]
        body = b"".join(answers) + b"--" + boundary + b"--\r\n"
        told = [
            (b"content-type", b'multipart/mixed; boundary="' + boundary + b'"'),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": told})
        await send({"type": "http.response.body", "body": body})

    async def _one(self, outer: Scope, part: Part, trace: Trace) -> tuple[int, Headers, bytes]:
        """The answer to one part: status, headers, body."""
        given = dict(part.headers)
        kept = [(n, v) for n, v in outer["headers"] if n not in _OF_THE_OUTER_BODY and n not in given]
        scope = {
            **outer,
            "method": part.verb,
            "path": part.path.decode("latin-1"),
            "raw_path": part.path,
            "query_string": part.query,
            "headers": kept + part.headers,
            TRACE: Trace(trace.request_id),
        }
        told: dict[str, Any] = {"status": 500, "headers": []}
        body = bytearray()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": part.body}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                told.update(message)
            else:
                body.extend(message.get("body", b""))

        await self._app(scope, receive, send)
        return told["status"], told["headers"], bytes(body)


def parts(content_type: bytes, raw: bytes) -> Iterator[Part]:
    """The calls in a multipart body, all read before the first is given. Raises InvalidArgument."""
    whole = message_from_bytes(b"Content-Type: " + content_type + b"\r\n\r\n" + raw)
    inside = whole.get_payload() if whole.get_content_type() == "multipart/mixed" else []
    if not isinstance(inside, list) or not inside:
        raise _bad("a batch is a multipart/mixed body with a boundary and at least one part")
    if len(inside) > PARTS_MAX:
        raise _bad(f"a batch has at most {PARTS_MAX} parts, this one {len(inside)}")
    return iter([_part(each, number) for number, each in enumerate(inside, 1)])


def _part(message: Any, number: int) -> Part:
    if not isinstance(message, Message) or message.get_content_type() != "application/http":
        raise _bad(f"part {number}: its type must be application/http")
    payload = message.get_payload(decode=True)
    head, *rest = _HEAD_ENDS.split(payload.lstrip() if isinstance(payload, bytes) else b"", maxsplit=1)
    first, *lines = head.splitlines() or [b""]
    line = _LINE.fullmatch(first.strip())
    if line is None:
        raise _bad(f"part {number}: it does not begin with a request such as 'GET /compute/v1/… HTTP/1.1'")
    target = urlsplit(line[2])
    if not target.path.startswith(b"/compute/"):
        raise _bad(f"part {number}: its path is not one of /compute/")
    pairs = (each.partition(b":") for each in lines)
    headers = [(n.strip().lower(), v.strip()) for n, _, v in pairs if n.strip().lower() not in _OWN]
    body = rest[0].strip() if rest else b""
    return Part(
        str(message.get("Content-ID", "")), line[1].decode(), target.path, target.query, headers, body
    )


def _wrapped(boundary: bytes, content_id: str, status: int, headers: Headers, body: bytes) -> bytes:
    """An answer as a part: under the id it was asked by, with a status line of three words."""
    lines = [b"--" + boundary, b"Content-Type: application/http"]
    if content_id:
        told = "<response-" + " ".join(content_id.split()).removeprefix("<").removesuffix(">") + ">"
        lines.append(f"Content-ID: {told}".encode("ascii", "replace"))
    lines += [b"", f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    lines += [name.title() + b": " + value for name, value in headers]
    return b"\r\n".join([*lines, b"", body, b""])


def _bad(why: str) -> InvalidArgument:
    return InvalidArgument(f"Failed to parse batch request: {why}", field="body", reason="badRequest")
