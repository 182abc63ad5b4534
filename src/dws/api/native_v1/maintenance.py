"""Maintenance windows: planned, listed, cancelled."""

from __future__ import annotations

from typing import Final

from dws.api.method import Call, Method, NoQuery
from dws.api.native_v1 import convert
from dws.api.native_v1 import convert_reservations as moments
from dws.engine.answers import MaintenanceView
from dws.engine.commands import PlanMaintenance
from dws.model.access import Role
from dws.model.errors import InvalidArgument
from dws.wire import native_v1 as wire
from dws.wire.timefmt import format_instant

COLLECTION: Final = "/dws/v1/maintenance"


def plan(call: Call[wire.MaintenanceBody, NoQuery]) -> wire.MaintenanceAnswer:
    """Whom it touches, and the window once it is confirmed."""
    told, now = call.body, call.engine.now()
    if bool(told.end) == bool(told.duration):
        raise InvalidArgument("duration: give either this or 'end'", field="duration")
    start = moments.moment(told.start, "start", told.time_zone, now)
    end = (
        moments.moment(told.end, "end", told.time_zone, now)
        if told.end
        else start + convert.duration(told.duration, "duration")
    )
    command = PlanMaintenance(
        name=told.name,
        hosts=tuple(told.hosts),
        start=start,
        end=end,
        reason=told.reason,
        force=told.force,
        confirm=told.confirm,
    )
    answer = call.engine.plan_maintenance(call.who, command)
    return wire.MaintenanceAnswer(
        affected=[convert.affected(each) for each in answer.affected],
        window=_told(answer.window) if answer.window is not None else None,
    )


def page(call: Call[None, NoQuery]) -> wire.MaintenanceList:
    """Every window that is not over."""
    return wire.MaintenanceList(items=[_told(v) for v in call.engine.maintenance(call.who)])


def cancel(call: Call[None, NoQuery]) -> None:
    """It will not be, or is over before its time."""
    call.engine.cancel_maintenance(call.who, call.path["name"])


def _told(view: MaintenanceView) -> wire.Maintenance:
    return wire.Maintenance(
        id=str(view.id),
        name=view.name,
        pool=view.pool,
        hosts=list(view.hosts),
        start=format_instant(view.window.start),
        end=format_instant(view.window.end),
        reason=view.reason,
        begun=view.begun,
    )


METHODS: Final = (
    Method(
        id="dws.maintenance.plan",
        verb="POST",
        path=COLLECTION,
        summary="Take hosts out of service over a window; without confirm only say whom it touches.",
        role=Role.OPERATOR,
        request=wire.MaintenanceBody,
        response=wire.MaintenanceAnswer,
        handler=plan,
    ),
    Method(
        id="dws.maintenance.list",
        verb="GET",
        path=COLLECTION,
        summary="Every maintenance window that is not over, by start.",
        response=wire.MaintenanceList,
        handler=page,
    ),
    Method(
        id="dws.maintenance.cancel",
        verb="DELETE",
        path=COLLECTION + "/{name}",
        summary="Cancel a maintenance window, or end it before its time: its hosts are back.",
        role=Role.OPERATOR,
        handler=cancel,
    ),
)
