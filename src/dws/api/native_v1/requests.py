"""Capacity requests: submit, list, get, amend, cancel, release, extend, delete, quote, queue."""

from __future__ import annotations

from typing import Final

from dws.api.method import Call, Method, NoQuery
from dws.api.native_v1 import convert, listing
from dws.api.native_v1.queries import ListQuery, SubmitQuery
from dws.model.access import Role
from dws.wire import native_v1 as wire

COLLECTION: Final = "/dws/v1/projects/{project}/requests"
ONE: Final = COLLECTION + "/{name}"


def submit(call: Call[wire.SubmitRequest, SubmitQuery]) -> wire.RequestList:
    """An array makes several requests, so the answer is always a list."""
    command = convert.submit(call.project, call.body, call.call_id)
    if call.query.validate_only:
        call.engine.check(call.who, command)
        return wire.RequestList(items=[])
    views = call.engine.submit(call.who, command)
    return wire.RequestList(items=[convert.request(view) for view in views])


def get(call: Call[None, NoQuery]) -> wire.Request:
    """One request, with its forecast and its cost so far."""
    view = call.engine.get(call.who, call.project, call.path["name"])
    return convert.request(view, cost=True)


def amend(call: Call[wire.AmendRequest, NoQuery]) -> wire.Request:
    """Change what was sent, keep the rest."""
    command = convert.amend(call.project, call.path["name"], call.body, call.call_id)
    return convert.request(call.engine.amend(call.who, command))


def delete(call: Call[None, NoQuery]) -> None:
    """Put a record away."""
    call.engine.delete(call.who, call.project, call.path["name"])


def cancel(call: Call[None, NoQuery]) -> wire.Request:
    """Stop wanting it."""
    view = call.engine.cancel(call.who, call.project, call.path["name"], call.call_id)
    return convert.request(view)


def release(call: Call[wire.ReleaseRequest, NoQuery]) -> wire.Request:
    """Give back."""
    command = convert.release(call.project, call.path["name"], call.body, call.call_id)
    return convert.request(call.engine.release(call.who, command))


def extend(call: Call[wire.ExtendRequest, NoQuery]) -> wire.ExtendAnswer:
    """Run longer."""
    command = convert.extend(call.project, call.path["name"], call.body, call.call_id)
    return convert.extended(call.engine.extend(call.who, command))


def quote(call: Call[wire.QuoteRequest, NoQuery]) -> wire.Quote:
    """Ask without asking."""
    body = call.body
    demand = convert.demand(body)
    told = call.engine.quote(call.who, call.project, demand, body.priority, body.reservation)
    return convert.quote(told, call.engine.declared_fleet(call.who).currency)


def queue(call: Call[None, NoQuery]) -> wire.RequestList:
    """Everything waiting, in line order."""
    return wire.RequestList(items=[convert.request(view) for view in call.engine.queue(call.who)])


METHODS: Final = (
    Method(
        id="dws.requests.submit",
        verb="POST",
        path=COLLECTION,
        summary="Ask for capacity. With validateOnly the request is only checked and the list is empty.",
        role=Role.USER,
        query=SubmitQuery,
        request=wire.SubmitRequest,
        response=wire.RequestList,
        idempotent=True,
        handler=submit,
    ),
    Method(
        id="dws.requests.list",
        verb="GET",
        path=COLLECTION,
        summary="List requests, oldest first unless ordered otherwise; project `-` is all you may see.",
        query=ListQuery,
        response=wire.RequestList,
        handler=listing.page,
    ),
    Method(
        id="dws.requests.get",
        verb="GET",
        path=ONE,
        summary="One request by name or id, with its forecast while it waits and its cost so far.",
        response=wire.Request,
        handler=get,
    ),
    Method(
        id="dws.requests.amend",
        verb="PATCH",
        path=ONE,
        summary="Change a waiting request; what is left out stays, and so does its age in the queue.",
        role=Role.USER,
        request=wire.AmendRequest,
        response=wire.Request,
        idempotent=True,
        handler=amend,
    ),
    Method(
        id="dws.requests.delete",
        verb="DELETE",
        path=ONE,
        summary="Put the record of a finished request away; its name is free at once.",
        role=Role.USER,
        handler=delete,
    ),
    Method(
        id="dws.requests.cancel",
        verb="POST",
        path=ONE + ":cancel",
        summary="Stop wanting a request that waits or is being provisioned.",
        role=Role.USER,
        response=wire.Request,
        idempotent=True,
        handler=cancel,
    ),
    Method(
        id="dws.requests.release",
        verb="POST",
        path=ONE + ":release",
        summary="Give back what a request holds, whole or by instance.",
        role=Role.USER,
        request=wire.ReleaseRequest,
        response=wire.Request,
        idempotent=True,
        handler=release,
    ),
    Method(
        id="dws.requests.extend",
        verb="POST",
        path=ONE + ":extend",
        summary="Run longer, if that breaks no promise.",
        role=Role.USER,
        request=wire.ExtendRequest,
        response=wire.ExtendAnswer,
        idempotent=True,
        handler=extend,
    ),
    Method(
        id="dws.quote",
        verb="POST",
        path="/dws/v1/projects/{project}:quote",
        summary="When, until when and for how much, without asking. Holds nothing.",
        request=wire.QuoteRequest,
        response=wire.Quote,
        handler=quote,
    ),
    Method(
        id="dws.queue",
        verb="GET",
        path="/dws/v1/queue",
        summary="Every waiting request you may see, in line order, each with its forecast.",
        response=wire.RequestList,
        handler=queue,
    ),
)
