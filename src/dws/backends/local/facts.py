"""What can be said of an instance, and what has been said already.

A status holds a whole life (`began, exited, gone`), so that one read after a long time still yields every
fact of it in order. News are numbered within one life of the server; a cursor from another life asks for
everything.
"""

from __future__ import annotations

import os
from typing import Final

from dws.backends.local.record import Fields
from dws.engine.ports import Fact, FactKind

ADDRESS: Final = "127.0.0.1"
NEWS_MAX: Final = 10_000


def life(key: str, rank: int, order: Fields, status: Fields) -> tuple[Fact, ...]:
    """Every fact of a status, in the order in which they became true."""

    def fact(kind: FactKind, *, code: int | None = None, detail: str = "") -> Fact:
        return Fact(
            kind=kind,
            key=key,
            rank=rank,
            pool=str(order.get("pool", "")),
            unit=int(order.get("unit", -1)),
            code=code,
            address=ADDRESS,
            detail=detail,
            at_deadline=status.get("ended_by") == "deadline",
        )

    state, code, detail = status.get("state"), status.get("code"), str(status.get("evidence", ""))
    said = []
    if status.get("started_at"):
        said.append(fact(FactKind.RUNNING))
        if code is not None:
            said.append(fact(FactKind.EXITED, code=int(code)))
    elif detail and state in ("failed_check", "gone"):
        said.append(fact(FactKind.FAILED_CHECK, detail=detail))
    if state == "gone":
        said.append(fact(FactKind.GONE))
    elif state == "lost":
        said.append(fact(FactKind.LOST, detail=detail))
    return tuple(said)


def true_now(said: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Of a life, what still holds: who has ended runs no more."""
    return said[1:] if len(said) > 1 and said[0].kind is FactKind.RUNNING else said


class News:
    """Facts in the order they were seen, a bounded number of them."""

    def __init__(self) -> None:
        self._life = os.urandom(4).hex()
        self._dropped = 0
        self._facts: list[Fact] = []

    def add(self, facts: tuple[Fact, ...]) -> None:
        """These were seen."""
        self._facts += facts
        if len(self._facts) > NEWS_MAX:
            half = len(self._facts) // 2
            del self._facts[:half]
            self._dropped += half

    @property
    def cursor(self) -> str:
        """Where the news end now."""
        return f"{self._life}.{self._dropped + len(self._facts)}"

    def since(self, cursor: str) -> tuple[Fact, ...] | None:
        """What came after a cursor; None when that is from another life, or too long ago."""
        life_, _, number = cursor.partition(".")
        if life_ != self._life or not number.isdecimal() or int(number) < self._dropped:
            return None
        return tuple(self._facts[int(number) - self._dropped :])
