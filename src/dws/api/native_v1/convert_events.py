"""Recorded facts to native wire. Pure.

Bodies are told field by field: ids as strings, instants as RFC 3339, seconds as numbers; the few bodies
that carry a request, a grant or a demand tell it as the API tells it everywhere else.
"""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any, Final

import msgspec

from dws.api.native_v1 import convert, convert_reservations
from dws.engine.answers import RequestView, ReservationView
from dws.model import events as ev
from dws.model.series import Series
from dws.wire import native_v1 as wire
from dws.wire.timefmt import format_instant

IDS: Final = frozenset({"booking"})
INSTANTS: Final = frozenset(
    {
        "start", "ends_at", "not_again_before", "since", "expected_by", "until", "lock_at", "cancel_until",
        "release_at",
    }
)  # fmt: skip
PLAIN: Final = frozenset(
    {
        "attempt", "cause", "code", "count", "description", "facts", "host", "hosts", "idle_s", "labels",
        "late_s", "lead_s", "may_retry", "message", "name", "pool", "priority", "rank", "ranks", "reason",
        "requeue", "short", "state", "summary", "time_zone", "version", "what", "zone",
    }
)  # fmt: skip
TOLD_OTHERWISE: Final = frozenset(
    {
        "request", "grant", "demand", "workload", "instance", "addresses", "on_host_loss", "why",
        "reservation", "window", "terms", "series", "day",
    }
)  # fmt: skip


def event(told: ev.Event) -> wire.Event:
    """One recorded fact."""
    return wire.Event(
        seq=told.seq,
        at=format_instant(told.at),
        actor=told.actor,
        kind=told.kind,
        subject_kind=told.subject_kind.value,
        subject=str(told.subject),
        project=told.project,
        name=told.name,
        reason=told.reason,
        request_id=told.call_id,
        data=body(told.body),
    )


def body(told: ev.EventBody) -> dict[str, object]:
    """What a fact says, as JSON."""
    data: dict[str, object] = {}
    for each in fields(told):
        data |= _field(each.name, getattr(told, each.name))
    return data


def _field(name: str, value: Any) -> dict[str, object]:
    match name:
        case "request":
            return {"request": msgspec.to_builtins(convert.request(RequestView(request=value)))}
        case "grant":
            return {"grant": msgspec.to_builtins(convert.grant(value))}
        case "reservation":
            told = convert_reservations.reservation(ReservationView(reservation=value))
            return {"reservation": msgspec.to_builtins(told)}
        case "window":
            return {"start": format_instant(value.start), "end": format_instant(value.end)}
        case "terms":
            return convert_reservations.terms(value)
        case "series":
            return {"series": _series(value)}
        case "day":
            return {"day": value.isoformat()}
        case "instance":
            return {"instance": msgspec.to_builtins(convert.instance(value))}
        case "workload":
            return {"workload": msgspec.to_builtins(convert.wire_workload(value))}
        case "demand":
            forms = [convert.wire_alternative(each) for each in value.alternatives]
            return {
                "alternatives": msgspec.to_builtins(forms),
                "notBefore": format_instant(value.not_before),
                "notAfter": format_instant(value.not_after),
            }
        case "addresses":
            return {"addresses": {str(rank): address for rank, address in value.items()}}
    if name in IDS:
        value = str(value)
    elif name in INSTANTS:
        value = format_instant(value)
    elif isinstance(value, Enum):
        value = value.value
    elif isinstance(value, tuple):
        value = list(value)
    return {_camel(name): value}


def _series(told: Series) -> dict[str, object]:
    return {
        "id": str(told.id),
        "name": told.name,
        "project": told.project,
        "alternative": msgspec.to_builtins(convert.wire_alternative(told.alternative)),
        "recurrence": str(told.recurrence),
        **convert_reservations.terms(told.terms),
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
