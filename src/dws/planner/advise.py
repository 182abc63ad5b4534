"""Answers to "what if": a quote, an extension, a spare host. Nothing here is a hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from dws.model import tpu
from dws.model.booking import Booking
from dws.model.demand import Alternative, Demand
from dws.model.errors import InvalidArgument
from dws.model.names import RequestId
from dws.model.piece import UNIT, Piece
from dws.model.request import CapacityRequest, RequestState
from dws.model.topology import Pool
from dws.planner import admission, slices
from dws.planner.backfill import Pass
from dws.planner.explain import walk
from dws.planner.options import PolicyOptions
from dws.planner.plan import Extension, Forecast, Quote, QuoteOption, Reason
from dws.planner.resolve import Candidate, candidates
from dws.planner.snapshot import FleetSnapshot

OPTIONS_MAX = 6
NEWCOMER = RequestId(2**62)


def quote(
    snapshot: FleetSnapshot,
    options: PolicyOptions,
    now: int,
    demand: Demand,
    *,
    project: str,
    priority: int,
) -> Quote:
    """When it would start, until when, for how much; and what would start sooner or cost less.

    Raises InvalidArgument for a slice that is none, or may be several: there is nothing to tell of it.
    """
    for alternative in demand.alternatives:
        admission.refuse_illegal_slice(alternative, snapshot.fleet)
    newcomer = CapacityRequest(
        id=NEWCOMER,
        name="quote",
        project=project,
        principal="",
        demand=demand,
        state=RequestState.PENDING,
        submitted_at=now,
        priority=priority,
    )
    told, promised = _expect(snapshot, options, now, newcomer)
    told = replace(told, reason=_why_unknown(snapshot, options, now, demand) or told.reason)
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


def _why_unknown(snapshot: FleetSnapshot, options: PolicyOptions, now: int, demand: Demand) -> Reason | None:
    """Of what no pool is or serves, the words that would refuse it: they say what there is instead."""
    if candidates(demand, snapshot.fleet):
        return None
    try:
        admission.check(demand, snapshot.fleet, options, now)
    except InvalidArgument as error:
        why = error.message.removeprefix(f"{error.field}: ")
        return Reason(code="NEVER_FITS", text="{why}", facts={"why": why})
    return None


def _others(snapshot: FleetSnapshot, demand: Demand) -> Iterator[tuple[str, Alternative]]:
    """Variations of what is preferred: shorter, smaller, elsewhere, another type."""
    first = demand.alternatives[0]
    found = candidates(Demand(alternatives=(first,)), snapshot.fleet)
    is_slice = any(c.topology for c in found) or (not found and slices.wanted(first) is not None)
    for part in (2, 4):
        if first.duration_s >= 2 * part:
            yield "shorter", replace(first, duration_s=first.duration_s // part)
        smaller = slices.smaller(first, part) if is_slice else _fewer(first, part)
        if smaller is not None:
            yield "smaller", smaller
    if first.locations:
        yield "elsewhere", replace(first, locations=())
    yield from _other_types(snapshot, first)


def _fewer(first: Alternative, part: int) -> Alternative | None:
    """So many parts fewer machines or accelerators, None when there would be none."""
    return replace(first, count=first.count // part) if first.count >= part else None


def _other_types(snapshot: FleetSnapshot, first: Alternative) -> Iterator[tuple[str, Alternative]]:
    found = candidates(Demand(alternatives=(first,)), snapshot.fleet)
    mine = {c.pool.shape_named(c.shape) for c in found}
    per_host = next((s.accelerators for s in mine), 0)
    wanted = first.count * per_host if first.shape else first.count
    unserved = None if found else slices.wanted(first)
    topology = unserved[1] if unserved is not None else next((c.topology for c in found), None)
    if not wanted and topology is None:
        return
    own = {s.accelerator for s in mine} | ({unserved[0].accelerator} if unserved is not None else set())
    is_tpu = any(tpu.generation_of(accelerator) for accelerator in own)  # programs for GPUs don't run on TPUs
    kinds = {
        p.shape.accelerator
        for p in snapshot.fleet.pools_in(first.locations)
        if p.shape.accelerator and bool(tpu.generation_of(p.shape.accelerator)) == is_tpu
    }
    for kind in sorted(kinds - own):
        within = first.within
        if topology is not None:
            yield from (("other-type", a) for a in slices.of_other_kind(first, topology, kind))
            continue
        yield "other-type", replace(first, shape="", accelerator=kind, count=wanted, within=within)


def _option(kind: str, snapshot: FleetSnapshot, request: CapacityRequest, told: Forecast) -> QuoteOption:
    candidate = _candidate_of(snapshot, request, told)
    placement = told.placement
    start = placement.start if placement else None
    duration_s = placement.duration_s if placement else 0  # inside a reservation it may be until the end
    if candidate is not None and not duration_s:
        duration_s = candidate.duration_s
    first = request.demand.alternatives[0]
    if candidate is None:
        unserved = slices.wanted(first)
        number = slices.number(first) if unserved is not None else 0
        chips = number * unserved[1].chips if unserved is not None else first.count
        return QuoteOption(
            kind=kind,
            shape=first.shape,
            count=first.count,
            accelerators=0 if first.shape and unserved is None else chips,
            topology="" if unserved is None else str(unserved[1]),
            slices=number,
            duration_s=first.duration_s,
            zone="",
            pool="",
            within=first.within,
            start=None,
            end=None,
            cost_micros=0,
            reason=told.reason,
        )
    return QuoteOption(
        kind=kind,
        shape=candidate.shape,
        count=candidate.machines,
        accelerators=candidate.accelerators,
        topology=str(candidate.topology or ""),
        slices=candidate.slices,
        duration_s=duration_s,
        zone=candidate.pool.zone,
        pool=candidate.pool.name,
        within=candidate.within,
        start=start,
        end=None if start is None else start + duration_s,
        cost_micros=candidate.cost_micros_of(duration_s),
        reason=told.reason if start is None else None,
    )


def _candidate_of(snapshot: FleetSnapshot, request: CapacityRequest, told: Forecast) -> Candidate | None:
    every = candidates(request.demand, snapshot.fleet)
    if told.placement is None:
        return next(iter(every), None)
    return next(
        c for c in every if (c.alternative, c.pool.name) == (told.placement.alternative, told.placement.pool)
    )


def _is_better(option: QuoteOption, asked: QuoteOption) -> bool:
    """Sooner, or the same elsewhere for less: what is less of the same costs less in any case."""
    if option.start is None:
        return False
    if asked.start is None or option.start < asked.start:
        return True
    return option.kind not in ("shorter", "smaller") and option.cost_micros < asked.cost_micros


def _distinct(options: list[QuoteOption]) -> Iterator[QuoteOption]:
    seen = set()
    for option in options:
        key = (option.shape, option.count, option.topology, option.duration_s, option.pool)
        if key not in seen:
            seen.add(key)
            yield option


def extension(
    snapshot: FleetSnapshot,
    options: PolicyOptions,
    now: int,
    request: CapacityRequest,
    by_s: int,
) -> Extension:
    """How much longer a running request may go on without breaking a promise, at most `by_s`."""
    grant = request.grant
    assert grant is not None, "only a granted request can be extended"
    booking = snapshot.bookings[grant.booking]
    calendar = snapshot.calendars[booking.calendar]
    most = _longest_run(snapshot, options, now, request)
    room = most - (grant.ends_at - grant.delivered_at)
    limit = min(by_s, max(0, room))
    unready = calendar.unready_units()
    drained = calendar.pool.hosts_of(u for u in booking.units if u in unready)
    if drained:
        reason = Reason(
            code="HOST_DRAINING",
            text="{host} is to be taken out of service",
            facts={"host": drained[0]},
        )
        return Extension(asked_s=by_s, longest_s=0, reason=reason)
    longest = calendar.longest(booking.span.end, booking.parts, limit)
    if longest < limit:
        at = grant.ends_at + longest
        reason = Reason(
            code="PROMISED_TO_OTHERS",
            text="its hosts are promised to others; it can run until {at:time} at the latest",
            facts={"at": at},
        )
    elif limit < by_s:
        reason = Reason(
            code="RUN_DURATION_MAX",
            text="a run lasts at most {max:duration}",
            facts={"max": most},
        )
    else:
        return Extension(asked_s=by_s, longest_s=by_s, reason=None)
    return Extension(asked_s=by_s, longest_s=longest, reason=reason)


def _longest_run(snapshot: FleetSnapshot, options: PolicyOptions, now: int, request: CapacityRequest) -> int:
    """For how long a running request may run from its delivery on: as long as any, as what runs in its
    reservation, or as its owner may have to wait for hosts that are only lent."""
    grant = request.grant
    assert grant is not None, "it runs"
    most = options.run_duration_max_s
    reservation = snapshot.reservations.get(grant.reservation)
    if reservation is None:
        return most
    if request.demand.reservation:
        return min(most, reservation.terms.request_run_max_s or most)
    after_s = snapshot.fleet.pool(grant.pool).overheads.after_run_s
    return min(most, now + options.lend_idle_s - after_s - grant.delivered_at)


def spare(
    snapshot: FleetSnapshot,
    options: PolicyOptions,
    now: int,
    booking: Booking,
    lost_units: tuple[int, ...],
    *,
    within: str | None = None,
    piece: Piece = UNIT,
) -> tuple[int, ...] | None:
    """Free units of READY hosts to replace `lost_units` of a live booking, which made whole pieces, until its
    end without breaking a promise: the nearest to each lost piece, and never outside the domain of level
    `within` that it lies in; where hosts are shared, of the nearest the fullest, so that whole ones stay
    whole. Pieces stay together, and apart, as `piece` says. None when there are not enough."""
    del options
    calendar = snapshot.calendars[booking.calendar]
    pool = calendar.pool
    end = max(booking.span.end, now + 1)
    found: list[int] = []
    idle = {
        cell: [u for u in calendar.idle_units(cell) if u not in lost_units] for cell in range(len(pool.cells))
    }
    left = {cell: len(units) for cell, units in idle.items()}
    domains = pool.domains_by_cell(piece.level) if piece.level else (0,) * len(pool.cells)
    there = Counter(domains[p.cell] for p in booking.parts for _ in range(p.count // piece.units))
    for lost in lost_units[:: piece.units]:
        for cell in _nearest_first(pool, pool.cell_of(lost), within, left):
            was, to = domains[pool.cell_of(lost)], domains[cell]
            if was != to and not (piece.together == 1 and piece.usable(there[to] + 1) == there[to] + 1):
                continue
            taken = len(idle[cell]) - left[cell]
            if taken + piece.units <= min(len(idle[cell]), calendar.least_free_in(cell, now, end)):
                found += idle[cell][taken : taken + piece.units]
                left[cell] -= piece.units
                there[was] -= 1
                there[to] += 1
                break
        else:
            return None
    return tuple(found)


def _nearest_first(pool: Pool, home: int, within: str | None, left: Mapping[int, int]) -> list[int]:
    """Cells by closeness to one of them: itself, then what shares its finest domain, and so on up to the
    level `within`, or the whole pool; hosts of which less is `left` first among equals."""
    cells = [home]
    for level in (*reversed(pool.levels), None):
        group = next((g for g in pool.groups(level) if home in g), ())
        more = [c for c in group if c not in cells]
        cells += sorted(more, key=lambda c: left[c]) if pool.is_shared else more
        if within is not None and level == within.partition("/")[0]:
            break
    return cells
