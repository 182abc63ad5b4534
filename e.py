from pathlib import Path
def sub(s, a, b):
    assert s.count(a)==1, (s.count(a), a)
    return s.replace(a,b)
p=Path('src/dws/planner/explain.py'); s=p.read_text()
s=sub(s,'''The shadow walks the line as the planner would, places each request at its earliest fit beside all
promises and everyone before it, and keeps it there. It decides nothing and is never stored.
''','''The shadow begins with the very pass the planner would make, so who starts now is told so. Then it walks
who is left, places each request at its earliest fit beside all promises and everyone before it, and keeps
it there. It decides nothing and is never stored.
''')
a=s.index('    return walk(snapshot, options, now)'); b=s.index('def why(shadow')
s=s[:a]+'''    shadow = Pass(snapshot, options, now)
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
    promise = shadow._lift(request)
    latest = FOREVER if promise is None else promise.span.start
    placement = shadow.best(request, after=shadow.now, before=latest)
    if placement is None and promise is not None:  # due, but its hosts are not confirmed free yet
        placement = shadow.best(request, after=shadow.now)
    if placement is None:
        shadow._drop(promise)
    else:
        shadow._take(request, placement)
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


'''+s[b:]
s=sub(s,'from dws.planner.plan import Forecast, Placement, Reason\n','from dws.planner.plan import Forecast, Placement, Reason, Start\n')
a=s.index('def _free_in_groups'); b=s.index('def _free_hosts_now')
s=s[:a]+s[b:]
s=sub(s,'''    facts["zone_free"] = sum(_free_in_groups(shadow, candidate))
''','''    facts["zone_free"] = sum(shadow.idle_in_groups(candidate.pool.name, candidate.within))
''')
s=sub(s,'''    free = _free_in_groups(shadow, candidate)
''','''    free = shadow.idle_in_groups(candidate.pool.name, candidate.within)
''')
s=sub(s,'''        text="needs {need} free hosts; {out} of the {total} of {pool} are draining or down, with no known end",
''','''        text="needs {need} free hosts; {out} of the {total} of {pool} are draining or down, with no "
        "known end",
''')
p.write_text(s)

p=Path('src/dws/planner/advise.py'); s=p.read_text()
a=s.index('    told = _expect(snapshot, options, now, newcomer)'); b=s.index('def _others(')
s=s[:a]+'''    told, promised = _expect(snapshot, options, now, newcomer)
    asked = _option("asked", snapshot, newcomer, told)
    better = []
    for kind, other in _others(snapshot, demand):
        variant = replace(newcomer, demand=replace(demand, alternatives=(other,)))
        option = _option(kind, snapshot, variant, _expect(snapshot, options, now, variant)[0])
        if _is_better(option, asked):
            better.append(option)
    better.sort(key=lambda o: (o.start or 0, o.cost_micros, o.kind))
    return Quote(
        now=now,
        asked=asked,
        options=tuple(_distinct(better))[:OPTIONS_MAX],
        promised_latest=promised,
        reason=told.reason,
    )


def _expect(
    snapshot: FleetSnapshot, options: PolicyOptions, now: int, newcomer: CapacityRequest
) -> tuple[Forecast, int | None]:
    """What the newcomer can expect, and the latest start that would be promised at once."""
    shadow = Pass(replace(snapshot, queue=(*snapshot.queue, newcomer)), options, now)
    shadow.run()
    promise = shadow.promises.get(newcomer.id)
    told = walk(shadow, until=newcomer.id)[newcomer.id]
    if told.expected_start == now:
        return told, now
    return told, promise.span.start if promise is not None else None


'''+s[b:]
s=sub(s,'''    """Sooner, or as soon and cheaper."""
    if option.start is None:
        return False
    if asked.start is None or option.start < asked.start:
        return True
    return option.start == asked.start and option.cost_micros < asked.cost_micros
''','''    """Sooner, or the same elsewhere for less: what is less of the same costs less in any case."""
    if option.start is None:
        return False
    if asked.start is None or option.start < asked.start:
        return True
    return option.kind not in ("shorter", "smaller") and option.cost_micros < asked.cost_micros
''')
s=sub(s,'''    assert grant is not None and grant.delivered_at, "only a delivered request can be extended"
''','''    assert grant is not None, "only a granted request can be extended"
''')
a=s.index('    """Free READY hosts to replace')
s=s[:a]+'''    """Free READY hosts to replace `lost_units` of a live booking until its end without breaking a promise:
    the nearest to each lost one, and never outside the domain of level `within` that it lies in. None when
    there are not enough."""
    del options
    calendar = snapshot.calendars[booking.pool]
    pool = calendar.pool
    end = max(booking.span.end, now + 1)
    found: list[int] = []
    for lost in lost_units:
        for cell in _nearest_first(pool, pool.cell_of(lost), within):
            idle = [u for u in calendar.idle_units(cell) if u not in lost_units]
            taken = sum(1 for u in found if pool.cell_of(u) == cell)
            if taken < min(len(idle), calendar.least_free_in(cell, now, end)):
                found.append(idle[taken])
                break
        else:
            return None
    return tuple(found)


def _nearest_first(pool: Pool, home: int, within: str | None) -> list[int]:
    """Cells by closeness to one of them: itself, then what shares its finest domain, and so on up to the
    level `within`, or the whole pool."""
    cells = [home]
    for level in (*reversed(pool.levels), None):
        group = next((g for g in pool.groups(level) if home in g), ())
        cells += [c for c in group if c not in cells]
        if level == within:
            break
    return cells
'''
s=sub(s,'from dws.model.request import CapacityRequest, RequestState\n','from dws.model.request import CapacityRequest, RequestState\nfrom dws.model.topology import Pool\n')
p.write_text(s)

p=Path('src/dws/planner/admission.py'); s=p.read_text()
s=sub(s,'''    if alternative.count > options.instances_max * 16:
        raise InvalidArgument(
            f"{where}count: {alternative.count} is more than any request may have", field=f"{where}count"
        )
''','')
s=sub(s,'''            field=f"{where}within",
        )
''','''            field=f"{where}within",
        )
    return here
''')
s=sub(s,'''def _known(alternative: Alternative, fleet: Fleet, where: str) -> None:
''','''def _known(alternative: Alternative, fleet: Fleet, where: str) -> list[Pool]:
    """The pools that are of the kind and in the place asked for; at least one."""
''')
s=sub(s,'''        _known(alternative, fleet, where)
''','''        _size(alternative, _known(alternative, fleet, where), options, where)
''')
s=sub(s,'''def _names(''','''def _size(alternative: Alternative, pools: list[Pool], options: PolicyOptions, where: str) -> None:
    instances = min(hosts_needed(alternative, p) for p in pools)
    if instances > options.instances_max:
        raise InvalidArgument(
            f"{where}count: {alternative.count} means {instances} instances, at most "
            f"{options.instances_max} are allowed",
            field=f"{where}count",
        )


def _names(''')
s=sub(s,'from dws.model.topology import Fleet\n','from dws.model.topology import Fleet, Pool\n')
s=sub(s,'from dws.planner.resolve import candidates, has_level, is_of_kind\n','from dws.planner.resolve import candidates, has_level, hosts_needed, is_of_kind\n')
p.write_text(s)

p=Path('src/dws/planner/backfill.py'); s=p.read_text()
s=sub(s,'''        found = self.snapshot.usable.get(kind)
        if found is None:
            found = self.snapshot.usable[kind] = usable(request, self.snapshot)
''','''        known = self.snapshot.usable
        found = known.get(kind)
        if found is None:
            if len(known) >= USABLE_MAX:
                known.clear()
            found = known[kind] = usable(request, self.snapshot)
''')
s=sub(s,'''

def plan(snapshot''','''
USABLE_MAX = 20_000
"""How many lists of alternatives a fleet's memory of candidates may have before it begins anew."""


def plan(snapshot''')
p.write_text(s)
