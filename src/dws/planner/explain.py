"""Why not now, and when: a shadow of the policy over everyone who waits.

The shadow begins with the very pass the planner would make, so who starts now is told so. Then it walks
who is left, places each request at its earliest fit beside all promises and everyone before it, and keeps
it there. It decides nothing and is never stored.
"""

from __future__ import annotations

from dataclasses import replace

from dws.model.request import CapacityRequest
from dws.model.time import FOREVER
from dws.model.topology import HOST_LEVEL
from dws.planner import explain_groups, explain_slices
from dws.planner.backfill import Pass, standing, start_order
from dws.planner.explain_inside import why_inside
from dws.planner.explain_shared import what_is_missing
from dws.planner.options import PolicyOptions
from dws.planner.plan import Forecast, Placement, Reason, Start
from dws.planner.resolve import Candidate, candidates, has_level
from dws.planner.snapshot import FleetSnapshot


def forecast(snapshot: FleetSnapshot, options: PolicyOptions, now: int) -> dict[int, Forecast]:
    """What every waiting request can expect, by request id."""
    shadow = Pass(snapshot, options, now)
    shadow.run()
    return walk(shadow)


def walk(shadow: Pass, *, until: int | None = None) -> dict[int, Forecast]:
    """The walk behind a pass that was run; with `until` it stops behind that request, which is all its
    forecast needs."""
    starts = {d.request: d.placement for d in shadow.decisions if isinstance(d, Start)}
    line = sorted(shadow.snapshot.queue, key=standing)
    place = {r.id: i + 1 for i, r in enumerate(line)}
    first = [r for r in line if r.id in starts or r.id in shadow.protected]
    rest = [r for r in line if r.id not in starts and r.id not in shadow.protected]
    told: dict[int, Forecast] = {}
    for request in [*first, *sorted(rest, key=start_order)]:
        placement = starts.get(request.id) or _expect(shadow, request)
        told[request.id] = _tell(shadow, request, place[request.id], placement)
        if request.id == until:
            break
    return told


def _expect(shadow: Pass, request: CapacityRequest) -> Placement | None:
    """Its earliest fit, not later than promised, and now taken."""
    promise = shadow.lift(request)
    latest = FOREVER if promise is None else promise.span.start
    placement = shadow.best(request, after=shadow.now, before=latest)
    if placement is None and promise is not None:  # due, but its hosts are not confirmed free yet
        placement = shadow.best(request, after=shadow.now)
    if placement is None:
        shadow.drop(promise)
    else:
        shadow.hold(request, placement)
    return placement


def _tell(
    shadow: Pass, request: CapacityRequest, place: int, placement: Placement | None
) -> Forecast:
    aged = request.submitted_at + shadow.options.max_wait_age_s
    return Forecast(
        request=request.id,
        place=place,
        expected_start=placement.start if placement else None,
        promised_start=request.promised_start,
        promise_by=0 if request.promised_start or not shadow.usable(request) else aged,
        placement=placement,
        reason=why(shadow, request, placement),
    )


def why(shadow: Pass, request: CapacityRequest, placement: Placement | None) -> Reason:
    """The one reason why it does not start now."""
    usable = shadow.usable(request)
    now = shadow.now
    if request.demand.reservation > 0:
        inside = why_inside(shadow, request, placement)
        if inside is not None:
            return inside
    if not usable:
        return why_never(request, shadow.snapshot)
    if request.demand.not_before > now:
        return Reason(
            code="NOT_BEFORE",
            text="asked not to start before {at:time}",
            facts={"at": request.demand.not_before},
        )
    if request.not_again_before > now:
        return Reason(
            code="BACKING_OFF",
            text="the last attempt failed ({cause}); the next one is not before {at:time}",
            facts={"cause": request.last_failure, "at": request.not_again_before},
        )
    if placement is None and request.demand.not_after >= FOREVER:
        return _too_few_in_service(shadow, usable)
    if placement is None:
        return Reason(
            code="NO_START_IN_WINDOW",
            text="nothing fits before {at:time}, the latest start asked for",
            facts={"at": request.demand.not_after},
        )
    if placement.start <= now:
        return Reason(code="STARTING", text="starts at once")
    return _what_is_missing(shadow, request, placement)


def _too_few_in_service(shadow: Pass, usable: tuple[Candidate, ...]) -> Reason:
    """It would fit the fleet as declared, but not the hosts that are in service."""
    candidate = min(usable, key=lambda c: c.count)
    pool = candidate.pool
    unready = shadow.snapshot.calendars[candidate.calendar].unready_units()
    out = len({pool.host_of(unit) for unit in unready})
    facts: dict[str, int | str] = {
        "need": candidate.count,
        "shape": candidate.shape,
        "out": out,
        "total": len(pool.hosts),
        "pool": pool.name,
    }
    needs = "1 free host" if candidate.count == 1 else "{need} free hosts"
    if pool.is_shared:
        needs = "{need} x {shape}"
    if candidate.topology is not None:
        needs = "{need} x {topology}"
        facts |= explain_slices.facts_of(candidate)
    return Reason(
        code="HOSTS_OUT_OF_SERVICE",
        text=f"needs {needs}; {{out}} of the {{total}} hosts of {{pool}} are draining or down, with no "
        "known end",
        facts=facts,
    )


def _what_is_missing(shadow: Pass, request: CapacityRequest, placement: Placement) -> Reason:
    candidate = next(
        c
        for c in shadow.usable(request)
        if c.alternative == placement.alternative and c.calendar == placement.calendar
    )
    reason = _missing_of(shadow, candidate, placement)
    calendar = shadow.snapshot.calendars[candidate.calendar]
    begins = calendar.maintenance_begins(shadow.now, shadow.now + candidate.length_s)
    if reason.code != "BEHIND_OTHERS" or not begins:
        return reason
    head, tail = reason.text.split("; fits from ")
    return replace(
        reason,
        text=f"{head}, or run into maintenance from {{maintenance:time}}; fits from {tail}",
        facts={**reason.facts, "maintenance": begins[0]},
    )


def _missing_of(shadow: Pass, candidate: Candidate, placement: Placement) -> Reason:
    idle = shadow.idle(candidate.calendar, candidate.within, candidate.piece)
    where = _name_of(candidate, idle.group)
    if candidate.is_grouped:
        return explain_groups.what_is_missing(candidate, where, idle, placement.start)
    if candidate.topology is not None:
        if idle.most >= candidate.count:
            return explain_slices.behind_others(candidate, where, idle, placement.start)
        return explain_slices.what_is_missing(shadow, candidate, where, idle, placement.start)
    if candidate.pool.is_shared and idle.most < candidate.count:
        return what_is_missing(shadow, candidate, where, idle, placement.start)
    facts: dict[str, int | str] = {
        "need": candidate.count,
        "best": idle.most,
        "where": where,
        "at": placement.start,
        "total": len(candidate.pool.hosts),
    }
    hosts = "1 free host" if candidate.count == 1 else "{need} free hosts"
    if idle.most >= candidate.count:
        facts["length"] = candidate.length_s
        free = "{best} free now, but {need} of them"
        if candidate.pool.is_shared:
            facts["shape"] = candidate.shape
            free = "room for {best} x {shape} now, but {need}"
        return Reason(
            code="BEHIND_OTHERS",
            text=f"{{where}} has {free} for {{length:duration}} would delay what is promised to others; "
            "fits from {at:time}",
            facts=facts,
        )
    one_domain = candidate.pool.domain_named(candidate.within or "") is not None
    if one_domain:
        facts["total"] = candidate.pool.largest(candidate.within, candidate.piece)
    if one_domain or candidate.within in (None, "pool"):
        return Reason(
            code="NOT_ENOUGH_FREE",
            text=f"needs {hosts}; {{where}} has {{best}} of {{total}} free now, {{need}} from {{at:time}}",
            facts=facts,
        )
    facts["level"] = candidate.within or ""
    facts["zone_free"] = idle.total
    return Reason(
        code="NO_GROUP_WITH_ENOUGH_FREE",
        text=f"needs {hosts} in one {{level}}; the best, {{where}}, has {{best}} until {{at:time}}, "
        "then {need} ({zone_free} free in all)",
        facts=facts,
    )


def _name_of(candidate: Candidate, group: int) -> str:
    """What a group of the candidate's level is called: the pool itself where there are no levels."""
    pool = candidate.pool
    domain = pool.domain_named(candidate.within or "")
    if domain is not None:
        return f"{domain.name} of {pool.name}"
    names = [d.name for d in pool.domains if d.level == candidate.within]
    if candidate.within == HOST_LEVEL and pool.is_shared:
        names = list(pool.hosts)
    return f"{names[group]} of {pool.name}" if names else pool.name


def why_never(request: CapacityRequest, snapshot: FleetSnapshot) -> Reason:
    """Why no pool of the fleet can ever hold it: too large, or none available."""
    every = candidates(request.demand, snapshot.fleet)
    zones = {z.name: z.unavailable for z in snapshot.fleet.zones}
    fitting = [c for c in every if c.could_ever_fit]
    if fitting:
        closed = fitting[0].pool
        return Reason(
            code="POOL_UNAVAILABLE",
            text="pool {pool} is unavailable: {why}",
            facts={"pool": closed.name, "why": closed.unavailable or zones[closed.zone]},
        )
    if not every:
        return Reason(code="NEVER_FITS", text="no pool of this fleet has what is asked for")
    return never_fits(every)


def never_fits(every: tuple[Candidate, ...]) -> Reason:
    """What was asked, the most there is, and so what would fit."""
    nearest = max(every, key=lambda c: c.pool.largest(c.within, c.piece) - c.count)
    if nearest.is_grouped:
        return explain_groups.never_fits(nearest)
    if nearest.topology is not None:
        return explain_slices.never_fits(nearest)
    most = nearest.pool.largest(nearest.within, nearest.piece)
    per_host = nearest.pool.shape_named(nearest.shape).accelerators
    level = nearest.within if nearest.within and has_level(nearest.pool, nearest.within) else "pool"
    facts: dict[str, int | str] = {
        "asked": nearest.count,
        "most": most,
        "pool": nearest.pool.name,
        "level": level,
        "asked_acc": nearest.accelerators,
        "most_acc": most * per_host,
    }
    what, room = "hosts", "{most}"
    if nearest.pool.is_shared:
        what, room = f"x {nearest.shape}", "room for {most}"
    accelerators = " ({asked_acc} accelerators asked, {most_acc} there)" if per_host else ""
    return Reason(
        code="NEVER_FITS",
        text=f"will never start: asked for {{asked}} {what}, the largest {{level}} of {{pool}} has {room}"
        + accelerators
        + f"; ask for at most {{most}} {what}",
        facts=facts,
    )
