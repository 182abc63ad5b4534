"""Advice on extension: how much longer a future reservation could last.

It is asked of the engine by trying: the latest end that a change of the reservation would be given, so what
is advised is what the change gets. Nothing is held.
"""

from __future__ import annotations

import re
import uuid
from typing import Any, Final

from dws.api.compute_v1 import documents, future_reservations
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.forms import Form, invalid, required, text
from dws.api.compute_v1.names import ROOT, last, scope_of
from dws.api.compute_v1.times import instant
from dws.api.method import Method
from dws.engine import reservations as native
from dws.engine.commands import AmendReservation
from dws.engine.write import Write
from dws.model.access import Role
from dws.model.document import Document
from dws.model.errors import DwsError, NoRoom
from dws.model.reservation import Reservation
from dws.model.time import in_words
from dws.wire.timefmt import format_instant

FORM: Final = Form({"futureReservation": text, "endTimeNotLaterThan": instant})
_REFERENCE: Final = re.compile(r"(?:.*/)?projects/([^/]+)/zones/([^/]+)/futureReservations/([^/]+)")


def advise(call: Called) -> dict[str, Any]:
    """The latest end up to the one asked for, or why there is none."""
    region, body = last(documents.where(call)), FORM.read(call.body)
    for field in FORM.fields:
        if field not in body:
            raise required(field)
    end: int = body["endTimeNotLaterThan"]

    def work(w: Write) -> dict[str, Any]:
        kept = _find(w, call, body["futureReservation"], region)
        behind = w.tx.reservation(kept.reservation)
        if behind is None or behind.state.is_terminal:
            state = future_reservations.status(w.tx, behind)
            return _not("CONDITIONS_NOT_MET", f"Future reservation '{kept.name}' is in state {state}.")
        if end <= behind.window.end:
            why = f"The reservation lasts until {in_words(behind.window.end)} as it is."
            raise invalid("endTimeNotLaterThan", format_instant(end), why)
        return _longest(w, call, behind, end)

    return {"recommendationId": str(uuid.uuid4())} | call.engine.transact(call.who, work)


def _find(w: Write, call: Called, reference: str, region: str) -> Document:
    """The future reservation a reference means, in a zone of the region. Raises NotFound, InvalidArgument."""
    named = _REFERENCE.fullmatch(reference)
    if named is None:
        why = "It must be projects/PROJECT/zones/ZONE/futureReservations/NAME."
        raise invalid("futureReservation", reference, why)
    project, zone_name, name = named.groups()
    zone = w.books.fleet.zone(zone_name)
    if project != call.project or zone is None or zone.region != region:
        why = f"It must lie in project '{call.project}' and region '{region}'."
        raise invalid("futureReservation", reference, why)
    kept = w.tx.document_named(future_reservations.KIND, project, f"zones/{zone_name}", name)
    if kept is None:
        raise scope_of(call).not_found(f"zones/{zone_name}/futureReservations/{name}")
    return kept


def _longest(w: Write, call: Called, behind: Reservation, end: int) -> dict[str, Any]:
    """The latest end of those that come into question, found by halving: of two ends the later is never
    possible without the earlier."""
    ends = _possible_ends(w, behind, end)
    refused = _refusal(w, call, behind, ends[-1])
    if refused is None:
        return {"endTime": format_instant(ends[-1])}
    low, high = -1, len(ends) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if _refusal(w, call, behind, ends[middle]) is None:
            low = middle
        else:
            high = middle
    if low >= 0:
        return {"endTime": format_instant(ends[low])}
    first = _refusal(w, call, behind, ends[0]) or refused
    status = "NO_CAPACITY" if isinstance(first, NoRoom) else "CONDITIONS_NOT_MET"
    return _not(status, first.message)


def _possible_ends(w: Write, behind: Reservation, end: int) -> range | list[int]:
    """The ends behind its own, up to the one asked for, at which it would have a length that the policy
    allows; the one asked for when there is none, for the reason why."""
    policy, start = w.policy, behind.window.start
    if policy.reservation_lengths_s:
        found = sorted(start + each for each in policy.reservation_lengths_s)
        return [each for each in found if behind.window.end < each <= end] or [end]
    return range(behind.window.end + 1, min(end, start + policy.reservation_max_s) + 1) or [end]


def _refusal(w: Write, call: Called, behind: Reservation, end: int) -> DwsError | None:
    """Why the reservation could not be given that end, None when it could."""
    change = AmendReservation(project=behind.project, name=str(behind.id), end=end, dry_run=True)
    try:
        native.amend(w, call.who, change)
    except DwsError as error:
        return error
    return None


def _not(status: str, details: str) -> dict[str, Any]:
    return {"notRecommendedReason": {"status": status, "details": details}}


METHODS: Final = (
    Method(
        id="compute.advice.calendarModeExtension",
        verb="POST",
        path=f"{ROOT}/regions/{{region}}/advice/calendarModeExtension",
        summary="How much longer a future reservation could last.",
        role=Role.USER,
        request=Body,
        lenient=True,
        handler=advise,
    ),
)
