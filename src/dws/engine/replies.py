"""A call that carries a call id is remembered for a day: repeating it answers the same, changing nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from dws.engine.ports import IdempotentReply
from dws.engine.write import Write
from dws.model.access import Principal
from dws.model.errors import Conflict
from dws.model.request import CapacityRequest
from dws.model.reservation import Reservation
from dws.model.series import Series

REPLY_KEPT_S: Final = 86_400
S = TypeVar("S", CapacityRequest, Reservation, Series)


def once(
    w: Write,
    who: Principal,
    method: str,
    call_id: str,
    body: object,
    act: Callable[[], list[S]],
    find: Callable[[int], S | None],
) -> list[S]:
    """Run `act`, or answer with what `find` says of its subjects when this very call was answered within a
    day.

    Raises Conflict when the call id came with another body.
    """
    if not call_id:
        return act()
    body_hash = hashlib.sha256(msgspec.json.encode(body, enc_hook=str)).hexdigest()
    before = w.tx.idempotent(who.name, method, call_id)
    if before is not None and before.at > w.now - REPLY_KEPT_S:
        if before.body_hash != body_hash:
            raise Conflict(
                f"requestId: '{call_id}' was used for another call; take a new one",
                field="requestId",
                reason="requestIdReused",
            )
        return [found for found in map(find, before.subjects) if found is not None]
    done = act()
    w.tx.put_idempotent(
        IdempotentReply(
            principal=who.name,
            method=method,
            call_id=call_id,
            body_hash=body_hash,
            subjects=tuple(subject.id for subject in done),
            at=w.now,
        )
    )
    return done
