"""What a served system answers at the Compute door, each answer held against Google's Discovery document.

`Checked` stands between the batches and the pipeline, so that it sees every call of every test: those of real
clients, those in a batch, and errors. It changes nothing; `faults` are what it found, `ANSWERED` the methods
that were answered with success in this process (`tests/conftest.py` asks for all of them).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dws.api.compute_v1.schemas import spoken
from dws.api.dispatch import TRACE, Trace
from tests.conformance.compute.schema import document, faults

ANSWERED: set[str] = set()
_PATH = re.compile(r"/compute/(v1|beta|alpha)/")
_ERROR = {"code": int, "message": str, "status": str, "errors": list}
_ITEM = {"message": str, "domain": str, "reason": str}
_WHERE = {"location": str, "locationType": str}


@cache
def known(version: str) -> dict[str, dict[str, Any]]:
    """The service's methods in a version, by id."""

    def below(resources: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for each in resources.values():
            yield from each.get("methods", {}).values()
            yield from below(each.get("resources", {}))

    return {method["id"]: method for method in below(document(version)["resources"])}


class Checked:
    """An ASGI application: `app`, with each of its Compute answers checked."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.faults: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = _PATH.match(scope["path"]) if scope["type"] == "http" else None
        if asked is None or scope["method"] == "HEAD":
            await self._app(scope, receive, send)
            return
        trace = scope.setdefault(TRACE, Trace("-"))
        status, body = 0, bytearray()

        async def noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            body.extend(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, noting)
        if status:
            said = f"{scope['method']} {scope['path']} -> {status}"
            test = os.environ.get("PYTEST_CURRENT_TEST", "between tests")
            client = dict(scope["headers"]).get(b"user-agent", b"").decode("latin-1")
            found = wrong(spoken(asked[1], client), trace.method_id, status, bytes(body))
            self.faults += [f"{said}: {fault} (in {test})" for fault in found]


def wrong(version: str, method: str, status: int, body: bytes) -> list[str]:
    """Where an answer of a method differs from what that version of the service may say."""
    try:
        told = json.loads(body)
    except ValueError:
        return [f"{body[:80]!r} is no JSON"]
    if status >= 400:
        return list(_wrong_error(status, told))
    if method not in known(version):
        return [f"{version} has no {method}"]
    ANSWERED.add(method)
    response = known(version)[method].get("response")
    if response is None:
        return [] if told == {} else [f"{method} answers nothing, not {told}"]
    return faults(version, response["$ref"], told)


def _wrong_error(status: int, told: Any) -> Iterator[str]:
    """Where an error differs from the shape that clients read."""
    error = told.get("error") if isinstance(told, dict) and set(told) == {"error"} else None
    if not isinstance(error, dict) or {k: type(v) for k, v in error.items()} != _ERROR:
        yield f"{told} is no error"
        return
    if status == 500:
        yield f"{error['message']}: trouble nobody expected"
    if error["code"] != status or not error["message"] or not error["errors"]:
        yield f"{error} does not say what went wrong"
    for item in error["errors"]:
        if {k: type(v) for k, v in item.items()} not in (_ITEM, _ITEM | _WHERE):
            yield f"{item} is no part of an error"
