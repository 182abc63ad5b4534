"""Series: the same reservation again and again."""

from __future__ import annotations

from datetime import date
from typing import Final

from dws.api.method import Call, Method, NoQuery
from dws.api.native_v1 import convert_reservations as convert
from dws.engine.answers import SeriesView
from dws.engine.commands import AmendSeries, Repeat
from dws.model.access import Role
from dws.model.errors import InvalidArgument
from dws.model.evolve import evolve
from dws.model.recurrence import parse_recurrence
from dws.wire import native_v1 as wire
from dws.wire.timefmt import format_instant

COLLECTION: Final = "/dws/v1/projects/{project}/series"
ONE: Final = COLLECTION + "/{name}"


def repeat(call: Call[wire.RepeatBody, NoQuery]) -> wire.Series:
    """Begun and booked within the horizon, or refused with the occurrences that do not fit."""
    told = call.body
    command = Repeat(
        project=call.project,
        name=told.name,
        alternative=convert.what(told, 1),
        recurrence=parse_recurrence(told.every, now=call.engine.now()),
        terms=convert.terms_of(told),
        description=told.description,
        labels=told.labels,
        may_miss=told.may_miss,
        call_id=call.call_id,
    )
    return _told(call.engine.repeat(call.who, command))


def page(call: Call[None, NoQuery]) -> wire.SeriesList:
    """Every series of a project; `-` is all one may see."""
    project = "" if call.project == "-" else call.project
    return wire.SeriesList(items=[_told(v) for v in call.engine.list_series(call.who, project)])


def get(call: Call[None, NoQuery]) -> wire.Series:
    """One series with its next occurrences."""
    return _told(call.engine.get_series(call.who, call.project, call.path["name"]))


def amend(call: Call[wire.AmendSeriesBody, NoQuery]) -> wire.Series:
    """Change it from now on."""
    told, name = call.body, call.path["name"]
    had = call.engine.get_series(call.who, call.project, name).series
    other = None if told.count is None else evolve(had.alternative, count=told.count)
    command = AmendSeries(
        project=call.project,
        name=name,
        recurrence=None if told.every is None else parse_recurrence(told.every, now=call.engine.now()),
        alternative=other,
        terms=convert.changed_terms(had.terms, told),
        description=told.description,
        may_miss=told.may_miss,
    )
    return _told(call.engine.amend_series(call.who, command))


def leave_out(call: Call[wire.LeaveOutBody, NoQuery]) -> wire.Series:
    """Cancel the occurrence of one day."""
    try:
        day = date.fromisoformat(call.body.day)
    except ValueError:
        raise InvalidArgument(
            f"day: '{call.body.day}' is not a day, such as 2027-01-25", field="day"
        ) from None
    return _told(call.engine.leave_out(call.who, call.project, call.path["name"], day))


def cancel(call: Call[None, NoQuery]) -> wire.Series:
    """End it, and cancel what of it has not started."""
    return _told(call.engine.cancel_series(call.who, call.project, call.path["name"]))


def _told(view: SeriesView) -> wire.Series:
    row = view.series
    what = row.alternative
    return wire.Series(
        id=str(row.id),
        name=row.name,
        project=row.project,
        principal=row.principal,
        state=row.state.value,
        every=str(row.recurrence).removeprefix("every "),
        time_zone=row.recurrence.zone,
        accelerators=f"{what.accelerator}:{what.count}" if what.accelerator else "",
        machine=what.shape,
        count=what.count,
        locations=list(what.locations),
        within=what.within,
        topology=what.topology,
        shares=convert.shares(row.terms),
        specific_only=row.terms.specific_only,
        at_end=row.terms.at_end.value,
        description=row.description,
        labels=dict(row.labels),
        created_at=format_instant(row.created_at),
        ended_at=format_instant(row.ended_at),
        booked_until=format_instant(row.booked_until),
        upcoming=[
            wire.Occurrence(
                day=str(one.day),
                start=format_instant(one.span.start),
                end=format_instant(one.span.end),
                note=one.note,
                reservation=one.reservation.name if one.reservation else "",
                state=one.reservation.state.value if one.reservation else "",
                missed=one.cause,
                books_at=format_instant(one.books_at),
            )
            for one in view.upcoming
        ],
        missed=[
            wire.Missed(day=str(m.day), start=format_instant(m.start), cause=m.cause) for m in row.missed
        ],
    )


METHODS: Final = (
    Method(
        id="dws.series.repeat",
        verb="POST",
        path=COLLECTION,
        summary="Book the same again and again; 409 noRoom names the occurrences that do not fit.",
        role=Role.USER,
        request=wire.RepeatBody,
        response=wire.Series,
        idempotent=True,
        handler=repeat,
    ),
    Method(
        id="dws.series.list",
        verb="GET",
        path=COLLECTION,
        summary="Every series of a project, with its next occurrences; project `-` is all you may see.",
        response=wire.SeriesList,
        handler=page,
    ),
    Method(
        id="dws.series.get",
        verb="GET",
        path=ONE,
        summary="One series with its next occurrences: booked, missed, or not booked yet.",
        response=wire.Series,
        handler=get,
    ),
    Method(
        id="dws.series.amend",
        verb="PATCH",
        path=ONE,
        summary="Change a series from now on, in one step.",
        role=Role.USER,
        request=wire.AmendSeriesBody,
        response=wire.Series,
        handler=amend,
    ),
    Method(
        id="dws.series.leaveOut",
        verb="POST",
        path=ONE + ":leaveOut",
        summary="Cancel the occurrence of one day; the others are not touched.",
        role=Role.USER,
        request=wire.LeaveOutBody,
        response=wire.Series,
        handler=leave_out,
    ),
    Method(
        id="dws.series.cancel",
        verb="POST",
        path=ONE + ":cancel",
        summary="End a series and cancel what of it has not started.",
        role=Role.USER,
        response=wire.Series,
        handler=cancel,
    ),
)
