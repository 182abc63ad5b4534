"""Who calls, and what a call is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dws.engine.answers import RequestView, Reserved, SeriesView
from dws.engine.app import Engine
from dws.model.access import Principal, Role
from dws.model.errors import DwsError

ANN: Final = Principal(name="ann", projects=("blue",), may_run_programs=True)
BOB: Final = Principal(name="bob", projects=("red",))
VERA: Final = Principal(name="vera", role=Role.VIEWER)
OLGA: Final = Principal(name="olga", role=Role.OPERATOR, may_run_programs=True)
USERS: Final = ((ANN, "blue"), (BOB, "red"), (OLGA, "blue"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One call, in `words`. `refusal` is the error it must get, None when it must succeed; with
    `may_refuse` it may also do the other thing, and be refused with one of `also`. `reads` says that it must
    change nothing. One with a `call_id` may be repeated, and made `makes` new requests or reservations the
    first time."""

    words: str
    act: Callable[[Engine], object]
    refusal: type[DwsError] | None = None
    may_refuse: bool = False
    also: tuple[type[DwsError], ...] = ()
    reads: bool = False
    call_id: str = ""
    makes: int = 0


def subjects(reply: object) -> tuple[int, ...]:
    """The ids of the requests, reservations or series a reply is about."""
    views = reply if isinstance(reply, tuple) else (reply,)
    return tuple(found for view in views for found in _subject(view))


def _subject(view: object) -> tuple[int, ...]:
    match view:
        case RequestView(request=request):
            return (request.id,)
        case Reserved(view=reserved):
            return (reserved.reservation.id,)
        case SeriesView(series=series):
            return (series.id,)
        case _:
            return ()
