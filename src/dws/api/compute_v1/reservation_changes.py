"""Making, changing and giving back reservations: capacity from now on, until it is given back.

All of it or none: where there is no room nothing is held. What was made for a future reservation is as that
one has it, to its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from dws.api.compute_v1 import (
    documents,
    masks,
    operations,
    reservations,
    reserved_machines,
    share_settings,
    shortages,
    vm,
)
from dws.api.compute_v1 import reservation_forms as forms
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.forms import Form, int64, invalid, required
from dws.api.compute_v1.names import check_resource_name, scope_of, stable_id
from dws.api.method import Call, Query
from dws.engine import access, windows
from dws.engine import reservations as native
from dws.engine.commands import AmendReservation, Reserve
from dws.engine.ports import Reader
from dws.engine.write import Write
from dws.model.booking import Stage
from dws.model.demand import OPEN_ENDED_S
from dws.model.document import Document
from dws.model.errors import FailedPrecondition, InvalidArgument, NoRoom
from dws.model.evolve import evolve
from dws.model.reservation import Reservation, Share, Terms
from dws.wire.timefmt import format_instant

RESIZE: Final = Form({"specificSkuCount": int64})
_SHARED: Final = "shareSettings.projectMap"
_ENDS: Final = ("deleteAtTime", "deleteAfterDuration")
_CHANGEABLE: Final = frozenset(
    {
        "description",
        "enableEmergentMaintenance",
        "reservationSharingPolicy",
        "schedulingType",
        "shareSettings",
        "specificReservation",
        *_ENDS,
    }
)
_OF_FUTURE: Final = frozenset({"enableEmergentMaintenance", "reservationSharingPolicy"})
"""What may change of one that was made for a future reservation."""


class UpdateQuery(Query):
    """Which fields a change touches: in one text, or one by one."""

    update_mask: str = ""
    paths: list[str] = msgspec.field(default_factory=list)


def insert(call: Called) -> dict[str, Any]:
    """Reserve machines from now on."""
    scope, place, zone = scope_of(call), documents.where(call), call.path["zone"]
    told = forms.read(call.body, zone)
    name = check_resource_name(told.get("name"))
    forms.check_new(told)
    terms = Terms(
        shares=share_settings.shares(told.get("shareSettings"), call.project),
        specific_only=told.get("specificReservationRequired", False),
    )

    def work(w: Write) -> operations.Change:
        path = f"{place}/reservations/{name}"
        if not reservations.is_free(w.tx, call.project, zone, name):
            raise scope.exists(path)
        machine, _ = reserved_machines.machine_of(w.tx, call, told, forms.SKU)
        end = forms.end_of(told, w.now, w.now)
        length_s = OPEN_ENDED_S if end is None else end - w.now
        command = Reserve(
            project=call.project,
            name=reservations.native_name(w.tx, call.project, zone, name),
            alternative=reserved_machines.alternative_of(
                w.books.fleet, zone, told, machine, forms.SKU, length_s
            ),
            terms=terms,
            description=told.get("description", ""),
            on_demand=True,
        )
        with _told_as_asked(zone, told):
            made = native.book(w, call.who, command)
        body = _kept_of(told, machine)
        kept = reservations.keep(w, call.project, place, name, body, reservation=made.id)
        return operations.Change(type="insert", target=path, target_id=kept.id)

    return operations.run(call, place, work)


def _kept_of(told: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """What of a body is kept: what the engine's reservation does not say."""
    kept = {name: value for name, value in told.items() if name not in forms.DERIVED}
    if "aggregateReservation" in told:
        return kept | {"aggregateReservation": told["aggregateReservation"]}
    sku = {name: value for name, value in told["specificReservation"].items() if name != "count"}
    return kept | {"specificReservation": sku | {"instanceProperties": dict(machine)}}


def delete(call: Called) -> dict[str, Any]:
    """Give a reservation back that nothing runs in."""

    def work(w: Write) -> operations.Change:
        access.may_write(call.who, call.project)
        kept = reservations.find(w.tx, call)
        behind, path = _behind(w, kept), reservations.path_of(kept)
        resource = f"The reservation resource 'projects/{kept.project}/{path}'"
        if future := kept.body["future"]:
            raise FailedPrecondition(
                f"{resource} was made by the future reservation '{future}' and cannot be deleted before its "
                f"end, {format_instant(behind.window.end)}.",
                reason="resourceInUseByAnotherResource",
            )
        if user := _user(w.tx, behind):
            raise InvalidArgument(
                f"{resource} is already being used by '{user}'",
                reason="resourceInUseByAnotherResource",
            )
        if behind.state.is_ahead:
            native.cancel(w, call.who, call.project, str(behind.id))
        elif behind.state.is_open:
            windows.close(w, behind, f"deleted by {call.who.name}")
        else:
            raise FailedPrecondition(f"The resource '{path}' is not ready", reason="resourceNotReady")
        w.tx.drop_document(kept.id)
        return operations.Change(type="delete", target=path, target_id=kept.id)

    return operations.run(call, documents.where(call), work)


def _behind(w: Write, kept: Document) -> Reservation:
    found = w.tx.reservation(kept.reservation)
    assert found is not None, "a reservation that is found stands for one of the engine's"
    return found


def _user(reader: Reader, behind: Reservation) -> str:
    """Something that runs in it and is not merely lent its machines, by its path; empty for nothing."""
    for inside in reader.bookings_inside(behind.booking or 0):
        request = reader.request(inside.owner) if inside.stage is Stage.LIVE else None
        if request is not None and request.demand.reservation:
            instances = vm.of_request(reader, request.id)
            path = vm.path_of(instances[0], request) if instances else f"requests/{request.name}"
            return f"projects/{request.project}/{path}"
    return ""


def resize(call: Called) -> dict[str, Any]:
    """Change how many machines a reservation has."""
    told = RESIZE.read(call.body).get("specificSkuCount")
    if told is None:
        raise required("specificSkuCount")
    count = forms.check_count(told, "specificSkuCount")

    def work(w: Write) -> operations.Change:
        kept = reservations.find(w.tx, call)
        _amend(w, call, kept, {"specificReservation"}, count=count)
        return operations.Change(type="resize", target=reservations.path_of(kept), target_id=kept.id)

    return operations.run(call, documents.where(call), work)


def _amend(w: Write, call: Called, kept: Document, fields: set[str], **changes: Any) -> None:
    """Change the engine's reservation. Raises FailedPrecondition for what may not change."""
    if kept.body["future"] and not fields <= _OF_FUTURE:
        raise FailedPrecondition(
            f"Reservation '{kept.name}' was made by the future reservation '{kept.body['future']}': "
            f"'{min(fields - _OF_FUTURE)}' is as that one has it."
        )
    if changes:
        command = AmendReservation(project=call.project, name=str(kept.reservation), **changes)
        with _told_as_asked(call.path["zone"], call.body):
            native.amend(w, call.who, command)


# --- by a mask --------------------------------------------------------------------------------


def update(call: Call[Any, UpdateQuery]) -> dict[str, Any]:
    """Change what the mask names, or without one what the body says."""
    zone = call.path["zone"]
    given = forms.read(call.body, zone)
    mask = ",".join([call.query.update_mask, *call.query.paths])
    asked = masks.paths(mask.replace("shareSettings.projects", _SHARED), forms.FORM, given)

    def work(w: Write) -> operations.Change:
        kept = reservations.find(w.tx, call)
        behind = _behind(w, kept)
        shown = reservations.shown(scope_of(call), w.tx, kept)
        before = forms.read(shown, zone)
        paths = [_by_name(path, behind) for path in asked]
        after = _merged(before, given, paths)
        fields = {field for field in {*before, *after} if before.get(field) != after.get(field)}
        _check_changeable(kept, before, after, fields)
        _amend(w, call, kept, fields, **_changes(w, kept, behind, after, fields))
        if told := fields - forms.DERIVED:
            own = kept.body["properties"]
            left = {name: value for name, value in own.items() if name not in told}
            reservations.put(w, kept, left | {name: after[name] for name in told if name in after})
        return operations.Change(type="update", target=reservations.path_of(kept), target_id=kept.id)

    return operations.run(call, documents.where(call), work)


def _by_name(path: str, behind: Reservation) -> str:
    """The path of a project it is shared with, also where its number is told."""
    head, _, project = path.rpartition(".")
    if head != _SHARED or not project.isdecimal():
        return path
    for share in behind.terms.shares:
        if stable_id("project", share.project) == project:
            return f"{head}.{share.project}"
    raise invalid(_SHARED, project, "It is not shared with a project of that number.")


def _merged(before: Mapping[str, Any], given: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """What is said of it then. One way to say an end takes the place of the other, and so do the projects
    that share it and the kind of sharing."""
    named = {path.partition(".")[0] for path in paths}
    dropped = [other for end, other in zip(_ENDS, reversed(_ENDS), strict=True) if end in named]
    after = masks.masked(masks.masked(before, {}, dropped), given, paths)
    settings = after.get("shareSettings", {})
    if any(path.startswith(_SHARED) for path in paths):
        settings.pop("shareType", None)
    elif settings.get("shareType") == "LOCAL" and "shareSettings.shareType" in paths:
        settings.pop("projectMap", None)
    return after


def _check_changeable(
    kept: Document, before: Mapping[str, Any], after: Mapping[str, Any], fields: set[str]
) -> None:
    """Raises InvalidArgument naming a field that stays as it is once a reservation is made."""
    fixed = fields - _CHANGEABLE
    if "specificReservation" in fields and _but_count(before) != _but_count(after):
        fixed = fixed | {"specificReservation.instanceProperties"}
    if fixed:
        field = min(fixed)
        why = f"It cannot change once the reservation '{kept.name}' is made."
        raise invalid(field, masks.value_at(after, field) or "", why)


def _but_count(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.get("specificReservation", {}).items() if name != "count"}


def _changes(
    w: Write, kept: Document, behind: Reservation, after: Mapping[str, Any], fields: set[str]
) -> dict[str, Any]:
    """What of it the engine changes."""
    changes: dict[str, Any] = {}
    if "description" in fields:
        changes["description"] = after.get("description", "")
    if "specificReservation" in fields:
        count = after.get("specificReservation", {}).get("count")
        if count is None:
            raise required(forms.SKU.count)
        changes["count"] = forms.check_count(count, forms.SKU.count)
    if "shareSettings" in fields:
        shares: tuple[Share, ...] = share_settings.shares(
            after.get("shareSettings"), kept.project, behind.terms.shares
        )
        if shares != behind.terms.shares:
            changes["terms"] = evolve(behind.terms, shares=shares)
    if fields.intersection(_ENDS):
        end = forms.end_of(after, behind.window.start, w.now)
        changes["end"] = behind.window.start + OPEN_ENDED_S if end is None else end
    return changes


@contextmanager
def _told_as_asked(zone: str, told: Any) -> Iterator[None]:
    """The engine's refusals inside it name the fields of this body; one for want of room is the public
    service's."""
    try:
        yield
    except NoRoom as error:
        raise shortages.no_room(zone, error) from None
    except InvalidArgument as error:
        length = "deleteAfterDuration" if "deleteAfterDuration" in told else "deleteAtTime"
        chips = "aggregateReservation" in told
        of_sort = "aggregateReservation.reservedResources" if chips else forms.SKU.machine
        path = {
            "duration": length,
            "end": length,
            "count": of_sort if chips else forms.SKU.count,
            "accelerators": of_sort,
            "topology": of_sort,
            "description": "description",
        }.get(error.field or "")
        if path is None:
            raise
        said = error.message.partition(": ")[2] or error.message
        found = invalid(path, masks.value_at(told, path) or "", f"{said[:1].upper()}{said[1:]}.")
        found.reason = error.reason
        raise found from None


_ALL: Final = "zones/{zone}/reservations"
_ONE: Final = f"{_ALL}/{{reservation}}"
METHODS: Final = (
    documents.change("reservations.insert", "POST", _ALL, "Reserve machines from now on.", insert, body=Body),
    documents.change("reservations.delete", "DELETE", _ONE, "Give a reservation back.", delete),
    documents.change(
        "reservations.resize", "POST", f"{_ONE}/resize", "Change its number of machines.", resize, body=Body
    ),
    documents.change(
        "reservations.update",
        "PATCH",
        _ONE,
        "Change what a mask names.",
        update,
        body=Body,
        query=UpdateQuery,
    ),
)
