"""The page's route: who may see it, and what it is made of."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from dws.console.page import render
from dws.engine.app import Engine
from dws.model.access import Principal
from dws.model.errors import DwsError

EVENTS_SHOWN = 20


def routes(engine: Engine) -> list[Route]:
    """`/`: how the fleet stands, for whom the application's doorkeeper admits."""

    async def front(request: Request) -> Response:
        try:
            who = _principal(request)
        except DwsError as error:
            return PlainTextResponse(error.message + "\n", error.http_status)
        return HTMLResponse(await run_in_threadpool(front_page, engine, who))

    return [Route("/", front)]


def _principal(request: Request) -> Principal:
    peer = request.client.host if request.client else ""
    who: Principal = request.app.state.doorkeeper.principal(dict(request.scope["headers"]), peer)
    return who


def front_page(engine: Engine, who: Principal) -> str:
    """The page as `who` may see it."""
    events = engine.events(who, limit=EVENTS_SHOWN, newest_first=True)
    return render(engine.fleet(who), engine.queue(who), events)
