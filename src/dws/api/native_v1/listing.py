"""Lists of requests: which fields can be filtered and sorted by, and one page at a time.

Without an order, or by submission, pages come from the store one after the other; any other order needs
everything that matches at once, and so has a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from dws.api.filters import Field, Kind, Order, parse_filter, parse_order
from dws.api.method import Call
from dws.api.native_v1 import convert
from dws.api.native_v1.queries import ListQuery
from dws.api.pages import Position
from dws.engine.ports import RequestQuery
from dws.model.errors import InvalidArgument
from dws.model.request import RequestState
from dws.wire import native_v1 as wire

READ_AT_ONCE: Final = 500
READS_MAX: Final = 40
SORTED_MAX: Final = 20_000
ALL_PROJECTS: Final = "-"

FIELDS: Final[Mapping[str, Field[wire.Request]]] = {
    "id": Field(Kind.NUMBER, lambda r: int(r.id)),
    "name": Field(Kind.TEXT, lambda r: r.name),
    "project": Field(Kind.TEXT, lambda r: r.project),
    "principal": Field(Kind.TEXT, lambda r: r.principal),
    "state": Field(Kind.WORD, lambda r: r.state, tuple(RequestState)),
    "priority": Field(Kind.NUMBER, lambda r: r.priority),
    "labels": Field(Kind.MAP, lambda r: r.labels),
    "array": Field(Kind.TEXT, lambda r: r.array),
    "arrayIndex": Field(Kind.NUMBER, lambda r: r.array_index),
    "attempts": Field(Kind.NUMBER, lambda r: r.attempts),
    "submitTime": Field(Kind.INSTANT, lambda r: r.submitted_at),
    "submittedAt": Field(Kind.INSTANT, lambda r: r.submitted_at),
    "notBefore": Field(Kind.INSTANT, lambda r: r.not_before),
    "notAfter": Field(Kind.INSTANT, lambda r: r.not_after),
    "promisedStart": Field(Kind.INSTANT, lambda r: r.promised_start),
    "startedAt": Field(Kind.INSTANT, lambda r: r.grant.started_at if r.grant else ""),
    "deliveredAt": Field(Kind.INSTANT, lambda r: r.grant.delivered_at if r.grant else ""),
    "endsAt": Field(Kind.INSTANT, lambda r: r.grant.ends_at if r.grant else ""),
    "endedAt": Field(Kind.INSTANT, lambda r: r.ended_at),
    "endReason": Field(Kind.TEXT, lambda r: r.end_reason),
    "exitCode": Field(Kind.NUMBER, lambda r: r.exit_code),
    "zone": Field(Kind.TEXT, lambda r: r.grant.zone if r.grant else ""),
    "pool": Field(Kind.TEXT, lambda r: r.grant.pool if r.grant else ""),
    "machine": Field(Kind.TEXT, lambda r: r.grant.machine if r.grant else ""),
    "onHostLoss": Field(Kind.TEXT, lambda r: r.on_host_loss),
}

Wanted = Callable[[wire.Request], bool]
BY_SUBMISSION: Final = ("submitTime", "submittedAt", "id")


def page(call: Call[None, ListQuery]) -> wire.RequestList:
    """One page of the requests the caller may see."""
    query, pages = call.query, call.context.pages
    wanted = parse_filter(query.filter, FIELDS)
    order = parse_order(query.order_by, FIELDS)
    scope = ("requests", call.project, query.filter, query.order_by, query.state)
    position = pages.open(query.page_token, *scope) if query.page_token else None
    newest_first = order.is_by(BY_SUBMISSION, descending=True)
    asked = RequestQuery(
        project="" if call.project == ALL_PROJECTS else call.project,
        states=_states(query.state),
        newest_first=newest_first,
        limit=READ_AT_ONCE if query.filter else query.page_size,
    )
    if not order.terms or newest_first or order.is_by(BY_SUBMISSION):
        items, next_position = _in_submission_order(call, asked, wanted, position)
    else:
        items, next_position = _sorted(call, asked, wanted, order, position)
    token = pages.seal(next_position, *scope) if next_position else ""
    return wire.RequestList(items=items, next_page_token=token)


def _states(text: str) -> tuple[RequestState, ...]:
    try:
        return tuple(RequestState(word.strip()) for word in text.split(",")) if text else ()
    except ValueError:
        known = ", ".join(RequestState)
        raise InvalidArgument(
            f"state: '{text}' is not one or more of {known}, with commas between", field="state"
        ) from None


def _in_submission_order(
    call: Call[None, ListQuery], asked: RequestQuery, wanted: Wanted, position: Position | None
) -> tuple[list[wire.Request], Position | None]:
    """Items, and the id to go on behind; a page may be short when the filter lets little through."""
    items: list[wire.Request] = []
    after = _number(position[0]) if position else None
    for _ in range(READS_MAX):
        found = call.engine.list_requests(call.who, replace(asked, after=after))
        for view in found.items:
            after = view.request.id
            item = convert.request(view)
            if wanted(item):
                items.append(item)
            if len(items) == call.query.page_size:
                last = view is found.items[-1] and found.next_after is None
                return items, None if last else [after]
        if found.next_after is None:
            return items, None
    return items, None if after is None else [after]


def _sorted(
    call: Call[None, ListQuery],
    asked: RequestQuery,
    wanted: Wanted,
    order: Order[wire.Request],
    position: Position | None,
) -> tuple[list[wire.Request], Position | None]:
    """Items behind a position, and the position of the last one."""
    everything = [item for item in _all(call, asked) if wanted(item)]
    everything.sort(key=lambda item: order.rank(_place(order, item)))
    if position is not None:
        reached = order.rank(position)
        everything = [item for item in everything if order.rank(_place(order, item)) > reached]
    items = everything[: call.query.page_size]
    return items, _place(order, items[-1]) if len(items) < len(everything) else None


def _place(order: Order[wire.Request], item: wire.Request) -> Position:
    return [*order.values(item), int(item.id)]


def _all(call: Call[None, ListQuery], asked: RequestQuery) -> Iterator[wire.Request]:
    after, count = None, 0
    while True:
        asked = replace(asked, after=after, limit=READ_AT_ONCE)
        found = call.engine.list_requests(call.who, asked)
        yield from map(convert.request, found.items)
        after, count = found.next_after, count + len(found.items)
        if after is None:
            return
        if count >= SORTED_MAX:
            raise InvalidArgument(
                f"orderBy: more than {SORTED_MAX} requests would have to be sorted; narrow the list with "
                "'state' or a project, or order it by submitTime",
                field="orderBy",
            )


def _number(value: str | int | None) -> int | None:
    return value if isinstance(value, int) else None
