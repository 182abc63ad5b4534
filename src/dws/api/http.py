"""The application: what surrounds the methods.

access log and metrics ─▶ doorkeeper (host, origin) ─▶ /healthz · /metrics · further pages · methods
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import structlog
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dws.api import openapi
from dws.api.auth import Doorkeeper, load_or_create_token, load_tokens
from dws.api.batch import Batches
from dws.api.bell import Bell
from dws.api.compute_v1 import methods as compute
from dws.api.context import Context
from dws.api.dispatch import TRACE, Dispatcher, Trace, refuse
from dws.api.errors import Internal
from dws.api.method import Registry
from dws.api.native_v1 import methods as native
from dws.api.pages import PageTokens
from dws.api.workers import Workers
from dws.model.access import SYSTEM
from dws.model.errors import DwsError
from dws.telemetry.metrics import EngineMetrics

if TYPE_CHECKING:
    from dws.bootstrap import System

REQUEST_ID_MAX: Final = 128
_READS: Final = frozenset({"GET", "HEAD"})
_log = structlog.get_logger("dws.access")


def all_methods() -> Registry:
    """Every method of every door."""
    return Registry([*native.METHODS, openapi.METHOD, *compute.METHODS])


def create_app(
    system: System,
    *,
    listen: str = "127.0.0.1",
    names: Sequence[str] = (),
    metrics: EngineMetrics | None = None,
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """The HTTP face of a system.

    `listen` is the address it will be served at: only on the loopback interface may a caller come
    without a token. `names` are further host names it may be called by. `metrics` are those the engine
    was built with. `routes` are further pages, behind the same doorkeeper.
    """
    engine, state_dir = system.engine, system.settings.state_dir
    metrics = metrics or EngineMetrics()
    metrics.watch(engine.health)
    metrics.know(view.request for view in engine.queue(SYSTEM))
    doorkeeper = Doorkeeper(load_tokens(state_dir), listen=listen, names=names)
    registry = all_methods()
    context = Context(
        engine=engine,
        workers=Workers(),
        bell=Bell(engine),
        pages=PageTokens(load_or_create_token(state_dir).encode()),
        registry=registry,
    )
    pages = _Pages(context, doorkeeper, metrics)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        context.bell.close()
        context.workers.close()

    app = Starlette(
        routes=[
            Route("/healthz", pages.health),
            Route("/metrics", pages.metrics),
            *routes,
        ],
        middleware=[Middleware(AccessLog, metrics=metrics), Middleware(Guard, doorkeeper=doorkeeper)],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    # Not a Mount: its pattern has no match for a path with a newline in it.
    app.router.default = Batches(Dispatcher(registry, context, doorkeeper), doorkeeper)
    app.state.bell = context.bell
    app.state.doorkeeper = doorkeeper
    app.state.registry = registry
    return app


class _Pages:
    """What operators ask for beside the API."""

    def __init__(self, context: Context, doorkeeper: Doorkeeper, metrics: EngineMetrics) -> None:
        self._context = context
        self._doorkeeper = doorkeeper
        self._metrics = metrics

    async def health(self, request: Request) -> Response:
        """200 while the store answers and nothing is stuck, 503 otherwise. Tells nobody anything else."""
        del request
        try:
            health = await self._context.workers.run(self._context.engine.health)
        except DwsError:
            return Response("the store does not answer\n", 503)
        if health.stuck:
            return Response(f"{health.stuck} work items are stuck\n", 503)
        return Response("ok\n")

    async def metrics(self, request: Request) -> Response:
        """Prometheus' text format."""
        peer = request.client.host if request.client else ""
        try:
            self._doorkeeper.principal(dict(request.scope["headers"]), peer)
        except DwsError as error:
            return Response(error.message + "\n", error.http_status)
        text = await self._context.workers.run(self._metrics.exposition)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


class Guard:
    """Lets nobody in whom the doorkeeper does not admit."""

    def __init__(self, app: ASGIApp, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                changes = scope["method"] not in _READS
                self._doorkeeper.admit(dict(scope["headers"]), changes=changes)
            except DwsError as error:
                await refuse(scope, send, error)
                return
        await self._app(scope, receive, send)


class AccessLog:
    """One line and one measurement for each call; gives every call an id and returns it."""

    def __init__(self, app: ASGIApp, metrics: EngineMetrics) -> None:
        self._app = app
        self._metrics = metrics
        self._process = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace = Trace(f"{self._process}-{next(self._numbers):x}")
        scope[TRACE] = trace
        request_id = (b"x-request-id", trace.request_id.encode())

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                trace.status = message["status"]
                message["headers"] = [*message.get("headers", ()), request_id]
            await send(message)

        began = time.perf_counter()
        try:
            await self._app(scope, receive, noting)
        except Exception as error:
            _log.error("trouble", request_id=trace.request_id, path=scope["path"], exc_info=error)
            if trace.status:
                raise
            await refuse(scope, noting, Internal(f"internal error; see the log at {trace.request_id}"))
        finally:
            took = time.perf_counter() - began
            self._metrics.observe_call(trace.method_id, trace.status, took)
            _log.info(
                "call",
                method=trace.method_id,
                verb=scope["method"],
                path=scope["path"],
                status=trace.status,
                ms=round(took * 1e3, 1),
                who=trace.principal,
                request_id=trace.request_id,
            )
