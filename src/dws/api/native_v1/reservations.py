"""Reservations: book, list, get, amend, approve, decline, cancel, release, delete."""

from __future__ import annotations

from typing import Final

from dws.api.method import Call, Method, NoQuery
from dws.api.native_v1 import convert_reservations as convert
from dws.api.native_v1.listing import ALL_PROJECTS
from dws.api.native_v1.queries import ReservationsQuery
from dws.engine.ports import ReservationQuery
from dws.model.access import Role
from dws.model.errors import InvalidArgument
from dws.model.reservation import ReservationState
from dws.wire import native_v1 as wire

COLLECTION: Final = "/dws/v1/projects/{project}/reservations"
ONE: Final = COLLECTION + "/{name}"


def reserve(call: Call[wire.ReserveBody, NoQuery]) -> wire.Reserved:
    """Booked, or refused with the nearest windows that would fit."""
    now = call.engine.now()
    warnings = convert.skew(call.body.client_time, now, virtual=call.engine.is_virtual)
    command = convert.reserve(call.project, call.body, now, call.call_id)
    with convert.told_room():
        told = call.engine.reserve(call.who, command)
    return convert.reserved(told, now=now, warnings=warnings)


def page(call: Call[None, ReservationsQuery]) -> wire.ReservationList:
    """One page of the reservations the caller may see."""
    query, pages = call.query, call.context.pages
    scope = ("reservations", call.project, query.state, str(query.newest_first))
    position = pages.open(query.page_token, *scope) if query.page_token else None
    after = position[0] if position else None
    found = call.engine.list_reservations(
        call.who,
        ReservationQuery(
            project="" if call.project == ALL_PROJECTS else call.project,
            states=_states(query.state),
            newest_first=query.newest_first,
            after=after if isinstance(after, int) else None,
            limit=query.page_size,
        ),
    )
    token = "" if found.next_after is None else pages.seal([found.next_after], *scope)
    return wire.ReservationList(
        items=[convert.reservation(view) for view in found.items], next_page_token=token
    )


def _states(text: str) -> tuple[ReservationState, ...]:
    try:
        return tuple(ReservationState(word.strip()) for word in text.split(",")) if text else ()
    except ValueError:
        known = ", ".join(ReservationState)
        raise InvalidArgument(
            f"state: '{text}' is not one or more of {known}, with commas between", field="state"
        ) from None


def get(call: Call[None, NoQuery]) -> wire.Reservation:
    """One reservation, with its hosts and what runs and waits in it."""
    view = call.engine.get_reservation(call.who, call.project, call.path["name"])
    return convert.reservation(view, full=True)


def amend(call: Call[wire.AmendReservationBody, NoQuery]) -> wire.Reserved:
    """Change what was sent, keep the rest."""
    now = call.engine.now()
    had = call.engine.get_reservation(call.who, call.project, call.path["name"]).reservation
    command = convert.amend(had, call.body, now, call.call_id)
    with convert.told_room():
        told = call.engine.amend_reservation(call.who, command)
    return convert.reserved(told, now=now, warnings=[])


def approve(call: Call[None, NoQuery]) -> wire.Reservation:
    """Say yes."""
    view = call.engine.approve_reservation(call.who, call.project, call.path["name"])
    return convert.reservation(view)


def decline(call: Call[wire.DeclineBody, NoQuery]) -> wire.Reservation:
    """Say no."""
    name, reason = call.path["name"], call.body.reason
    return convert.reservation(call.engine.decline_reservation(call.who, call.project, name, reason))


def cancel(call: Call[wire.CancelBody, NoQuery]) -> wire.Reservation:
    """Stop wanting it."""
    name, force = call.path["name"], call.body.force
    view = call.engine.cancel_reservation(call.who, call.project, name, force=force)
    return convert.reservation(view)


def release(call: Call[None, NoQuery]) -> wire.Reservation:
    """Give it back early."""
    view = call.engine.release_reservation(call.who, call.project, call.path["name"])
    return convert.reservation(view)


def delete(call: Call[None, NoQuery]) -> None:
    """Put a record away."""
    call.engine.delete_reservation(call.who, call.project, call.path["name"])


METHODS: Final = (
    Method(
        id="dws.reservations.reserve",
        verb="POST",
        path=COLLECTION,
        summary="Book capacity ahead, or with dryRun say how it would be; 409 noRoom names the nearest "
        "windows that fit.",
        role=Role.USER,
        request=wire.ReserveBody,
        response=wire.Reserved,
        idempotent=True,
        handler=reserve,
    ),
    Method(
        id="dws.reservations.list",
        verb="GET",
        path=COLLECTION,
        summary="List reservations, oldest first unless asked otherwise; project `-` is all you may see.",
        query=ReservationsQuery,
        response=wire.ReservationList,
        handler=page,
    ),
    Method(
        id="dws.reservations.get",
        verb="GET",
        path=ONE,
        summary="One reservation by name or id, with its hosts and what runs and waits in it.",
        response=wire.Reservation,
        handler=get,
    ),
    Method(
        id="dws.reservations.amend",
        verb="PATCH",
        path=ONE,
        summary="Change a reservation in one step, or with dryRun say how it would be; what is left out "
        "stays, and what it has is given up only for what it gets.",
        role=Role.USER,
        request=wire.AmendReservationBody,
        response=wire.Reserved,
        idempotent=True,
        handler=amend,
    ),
    Method(
        id="dws.reservations.approve",
        verb="POST",
        path=ONE + ":approve",
        summary="Say yes to a reservation that waits for approval.",
        role=Role.OPERATOR,
        response=wire.Reservation,
        handler=approve,
    ),
    Method(
        id="dws.reservations.decline",
        verb="POST",
        path=ONE + ":decline",
        summary="Say no to a reservation that waits for approval.",
        role=Role.OPERATOR,
        request=wire.DeclineBody,
        response=wire.Reservation,
        handler=decline,
    ),
    Method(
        id="dws.reservations.cancel",
        verb="POST",
        path=ONE + ":cancel",
        summary="Stop wanting a reservation that has not started, as the policy allows; an operator may "
        "force it.",
        role=Role.USER,
        request=wire.CancelBody,
        response=wire.Reservation,
        handler=cancel,
    ),
    Method(
        id="dws.reservations.release",
        verb="POST",
        path=ONE + ":release",
        summary="Give an open reservation back early; what runs in it is stopped.",
        role=Role.USER,
        response=wire.Reservation,
        handler=release,
    ),
    Method(
        id="dws.reservations.delete",
        verb="DELETE",
        path=ONE,
        summary="Put the record of a reservation that is over away; its name is free at once.",
        role=Role.USER,
        handler=delete,
    ),
)
