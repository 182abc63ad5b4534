"""What every handler may use besides its call."""

from __future__ import annotations

from dataclasses import dataclass

from dws.api.bell import Bell
from dws.api.method import Registry
from dws.api.pages import PageTokens
from dws.api.workers import Workers
from dws.engine.app import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One for each running API: the engine, the threads that may wait for it, the bell that rings for
    new events, the seal of page tokens, and what all can be asked."""

    engine: Engine
    workers: Workers
    bell: Bell
    pages: PageTokens
    registry: Registry
