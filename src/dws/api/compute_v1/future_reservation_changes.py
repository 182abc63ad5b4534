"""Changing a future reservation: only what the mask names.

A draft may become anything, also submitted. What is submitted has its size, its window and who may use it
changed by the engine, in one step, as far as the owner's policy lets it; the rest stays as it was submitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dws.api.compute_v1 import documents, masks, operations
from dws.api.compute_v1 import future_reservation_bookings as bookings
from dws.api.compute_v1 import future_reservation_forms as forms
from dws.api.compute_v1 import future_reservations as future
from dws.api.compute_v1.documents import Body
from dws.api.compute_v1.forms import invalid, required
from dws.api.method import Call, Query
from dws.engine import reservations as native
from dws.engine.commands import AmendReservation
from dws.engine.write import Write
from dws.model.document import Document
from dws.model.errors import FailedPrecondition
from dws.model.reservation import Reservation

_NEEDED: Final = (bookings.COUNT, bookings.MACHINE, "timeWindow.startTime")
"""What no change may clear: clients name these in a mask without meaning to."""
_ONE_OF: Final = (
    ("timeWindow.endTime", "timeWindow.duration"),
    ("autoCreatedReservationsDeleteTime", "autoCreatedReservationsDuration"),
    ("reservationName", "namePrefix"),
)
_SKU: Final = "specificSkuProperties"
_WINDOW: Final = ("timeWindow", "autoCreatedReservationsDeleteTime", "autoCreatedReservationsDuration")
_TERMS: Final = ("shareSettings", "specificReservationRequired")
_TOLD_ONLY: Final = ("enableEmergentMaintenance",)
_OPEN: Final = (_SKU, "description", *_WINDOW, *_TERMS, *_TOLD_ONLY)


class UpdateQuery(Query):
    """Which fields a change touches."""

    update_mask: str = ""


def update(call: Call[Any, UpdateQuery]) -> dict[str, Any]:
    """Change what the mask names, or without one what the body says."""
    given = forms.FORM.read(call.body)
    name = given.pop("name", call.path["futureReservation"])
    if name != call.path["futureReservation"]:
        raise invalid("name", name, "A future reservation keeps its name.")
    asked = ",".join(path for path in call.query.update_mask.split(",") if path.strip() != "name")
    paths = masks.paths(asked, forms.FORM, given)
    for path in paths:
        if path in _NEEDED and masks.value_at(given, path) is None:
            raise required(path)

    def work(w: Write) -> operations.Change:
        kept = future.find(w.tx, call)
        behind = w.tx.reservation(kept.reservation)
        before = future.as_it_is(kept, behind)
        told = _without_copy(_merged(before, given, paths), kept.body["machine"])
        if behind is None:
            future.put(w, call, kept, told)
        else:
            _amend(w, call, kept, behind, before, told)
        return operations.Change(type="update", target=future.path_of(kept), target_id=kept.id)

    return operations.run(call, documents.where(call), work)


def _merged(before: Mapping[str, Any], given: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """What is said of it then. A field that takes the place of another drops it."""
    dropped = []
    for pair in _ONE_OF:
        for path, other in (pair, pair[::-1]):
            if other not in paths and path in paths and masks.value_at(given, path) is not None:
                dropped.append(other)
    told = forms.checked(masks.masked(masks.masked(before, {}, dropped), given, paths))
    return forms.UNLESS_SAID | told


def _without_copy(told: dict[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """The same without properties that are a template's, which clients that send all back have from us."""
    sku = told.get(_SKU, {})
    if "sourceInstanceTemplate" not in sku or sku.get("instanceProperties") != machine:
        return told
    return told | {_SKU: {name: value for name, value in sku.items() if name != "instanceProperties"}}


def _amend(
    w: Write,
    call: Call[Any, UpdateQuery],
    kept: Document,
    behind: Reservation,
    before: Mapping[str, Any],
    told: dict[str, Any],
) -> None:
    """Change one that is submitted. Raises FailedPrecondition for what cannot change any more."""
    changed = {field for field in {*before, *told} if before.get(field) != told.get(field)}
    for field in sorted(changed):
        if field not in _OPEN or (field == _SKU and _but_count(before) != _but_count(told)):
            raise FailedPrecondition(
                f"{future.says(w, kept, behind)} its '{field}' cannot change any more.",
                field=f"resource.{field}",
            )
    command = _command(call, behind, told, changed)
    with bookings.told_as_asked(behind.zone, told):
        native.amend(w, call.who, command)
    amended = kept.body["amended"] or bool(changed.intersection((_SKU, *_WINDOW, *_TERMS)))
    body = kept.body | {"told": told, "amended": amended}
    w.tx.put_document(replace(kept, body=body, version=kept.version + 1))


def _but_count(told: Mapping[str, Any]) -> dict[str, Any]:
    sku = told.get(_SKU, {})
    return {name: value for name, value in sku.items() if name != "totalCount"}


def _command(
    call: Call[Any, UpdateQuery], behind: Reservation, told: Mapping[str, Any], changed: set[str]
) -> AmendReservation:
    """What the engine is asked to change: no more than what is said otherwise now."""
    window = forms.window_of(told) if changed.intersection(_WINDOW) else None
    forms.check_submitted(told)
    terms = None
    if changed.intersection(_TERMS):
        terms = bookings.terms_of(told, call.project, behind.terms.shares)
        terms = replace(behind.terms, shares=terms.shares, specific_only=terms.specific_only)
    return AmendReservation(
        project=call.project,
        name=str(behind.id),
        start=window.start if window is not None else None,
        end=window.held_until if window is not None else None,
        count=int(told[_SKU]["totalCount"]) if _SKU in changed else None,
        terms=terms,
        description=told.get("description", "") if "description" in changed else None,
    )


METHODS: Final = (
    documents.change(
        "futureReservations.update",
        "PATCH",
        future.ONE,
        "Change what a mask names.",
        update,
        body=Body,
        query=UpdateQuery,
    ),
)
