"""Serving an application over HTTP until told to stop.

Binds first, so that an address in use is an error in words; says where it listens (port 0 takes a free
one); on a signal lets followers go, answers what is in hand, and returns.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

import uvicorn
from starlette.applications import Starlette

from dws.model.errors import FailedPrecondition

GRACE_S: Final = 10
CONNECTIONS_WAITING_MAX: Final = 1_024


class Server(uvicorn.Server):
    """A server at one address. `address` is its URL; set `should_exit` from any thread to stop it."""

    def __init__(
        self,
        app: Starlette,
        host: str,
        port: int,
        *,
        ssl_certfile: str | None = None,
        ssl_keyfile: str | None = None,
        ready: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=GRACE_S,
                ssl_certfile=ssl_certfile,
                ssl_keyfile=ssl_keyfile,
            )
        )
        self._app = app
        self._ready = ready
        self._socket = bind(host, port)
        shown = f"[{host}]" if ":" in host else host
        scheme = "https" if ssl_certfile else "http"
        self.address = f"{scheme}://{shown}:{self._socket.getsockname()[1]}"

    def serve_until_told(self) -> None:
        """Serve; returns after a signal or `should_exit`, with everything in hand answered."""
        try:
            self.run(sockets=[self._socket])
        finally:
            self._socket.close()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        if self.started and self._ready is not None:
            self._ready(self.address)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let followers go first: a stream would hold the others up."""
        self._app.state.bell.close()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises FailedPrecondition when the address is taken or not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS_WAITING_MAX)
    except OSError as error:
        raise FailedPrecondition(
            f"cannot listen at {host} port {port}: {error.strerror or error}; choose another with --port"
        ) from None


def serve(
    app: Starlette,
    host: str,
    port: int,
    *,
    ssl_certfile: str | None = None,
    ssl_keyfile: str | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve an application until a signal; `ready` is told the address once it answers."""
    Server(
        app, host, port, ssl_certfile=ssl_certfile, ssl_keyfile=ssl_keyfile, ready=ready
    ).serve_until_told()
