"""May this enter the queue at all? Checked at submission and when a demand is amended.

Everything that could never start is refused here, naming the field, the value and what is there.
"""

from __future__ import annotations

from dws.model.booking import Booking
from dws.model.demand import OPEN_ENDED_S, Alternative, Demand
from dws.model.errors import InvalidArgument, NeverFits, PermissionDenied
from dws.model.reservation import Reservation
from dws.model.topology import HOST_LEVEL, Fleet, Pool
from dws.planner import slices
from dws.planner.explain import never_fits
from dws.planner.options import PolicyOptions
from dws.planner.resolve import (
    Candidate,
    can_stand,
    candidates,
    candidates_inside,
    has_level,
    is_of_kind,
    machines_needed,
    pieces_needed,
)

ALTERNATIVES_MAX = 16


def check(demand: Demand, fleet: Fleet, options: PolicyOptions, now: int) -> None:
    """Raises InvalidArgument for a field out of bounds or unknown to this fleet, NeverFits when the empty
    fleet could not hold any alternative and the policy is to refuse."""
    del now
    if len(demand.alternatives) > ALTERNATIVES_MAX:
        raise InvalidArgument(
            f"alternatives: {len(demand.alternatives)} given, at most {ALTERNATIVES_MAX} are allowed",
            field="alternatives",
        )
    for index, alternative in enumerate(demand.alternatives):
        where = f"alternatives[{index}]." if len(demand.alternatives) > 1 else ""
        _bounds(alternative, options, where)
        _size(alternative, _known(alternative, fleet, where), options, where)
    every = candidates(demand, fleet)
    if options.never_fits == "refuse" and not any(c.could_ever_fit for c in every):
        reason = never_fits(every)
        facts = dict(reason.facts)
        raise NeverFits(
            _sentence(reason.text, facts), field="count", details={"code": reason.code, **facts}
        )


def check_inside(
    demand: Demand,
    fleet: Fleet,
    options: PolicyOptions,
    reservation: Reservation,
    booking: Booking,
    project: str,
) -> None:
    """The same for work aimed at a reservation: its window bounds the run, its hosts and its terms the size.

    Raises PermissionDenied when it is not shared with the project.
    """
    allowed = reservation.hosts_max_of(project)
    if allowed is None:
        raise PermissionDenied(
            f"reservation: '{reservation.name}' is not shared with project '{project}'", field="reservation"
        )
    for index, alternative in enumerate(demand.alternatives):
        where = f"alternatives[{index}]." if len(demand.alternatives) > 1 else ""
        _size(alternative, _known(alternative, fleet, where), options, where)
    inside = candidates_inside(demand, fleet, booking, reservation)
    each = slices.units_each(reservation, fleet.pool(booking.pool))
    if not inside:
        held = f"{reservation.topology} slices" if reservation.topology else reservation.shape
        raise InvalidArgument(
            f"reservation: '{reservation.name}' holds {reservation.count} x {held} in "
            f"{reservation.zone}, which is not what is asked for",
            field="reservation",
        )
    if not any(c.could_ever_fit or c.units > reservation.count * each for c in inside):
        short_enough = [c for c in inside if c.duration_s > 0 and c.length_s <= booking.span.length_s]
        if short_enough:
            raise _spread_too_far(min(short_enough, key=lambda c: c.units), reservation)
        longest = max(0, reservation.window.length_s - inside[0].pool.overheads.total_s)
        raise NeverFits(
            f"duration: a run in reservation '{reservation.name}' lasts at most {longest} s, from its start "
            "to its end",
            field="duration",
        )
    terms = reservation.terms
    limit = min(allowed, terms.request_hosts_max or allowed)
    if all(c.units > limit * each for c in inside):
        least = min(inside, key=lambda c: c.units)
        what = "hosts" if least.shape == reservation.shape else f"{least.shape} machines"
        what = f"{least.topology} slices" if least.topology is not None else what
        raise NeverFits(
            f"count: needs {least.number} {what}; in reservation '{reservation.name}' a "
            f"request of project '{project}' may have {least.number_of(limit * each // least.piece.units)}",
            field="count",
        )
    too_long = [c for c in inside if c.duration_s > terms.request_run_max_s]
    if terms.request_run_max_s and len(too_long) == len(inside):
        raise NeverFits(
            f"duration: {too_long[0].duration_s} s; a run in reservation '{reservation.name}' lasts at most "
            f"{terms.request_run_max_s} s",
            field="duration",
        )


def _spread_too_far(least: Candidate, reservation: Reservation) -> NeverFits:
    """It is small enough for a reservation, but not for one domain of what that holds."""
    domain = least.pool.domain_named(least.within or "")
    where = f"{domain.level} {domain.name}" if domain is not None else f"one {least.within or 'pool'}"
    what = "hosts" if least.shape == reservation.shape else f"{least.shape} machines"
    return NeverFits(
        f"count: {least.count} {what} are more than reservation '{reservation.name}' holds in {where}",
        field="count",
    )


def _bounds(alternative: Alternative, options: PolicyOptions, where: str) -> None:
    low, high = options.run_duration_min_s, options.run_duration_max_s
    if options.open_ended and alternative.duration_s == OPEN_ENDED_S:
        return
    if not low <= alternative.duration_s <= high:
        raise InvalidArgument(
            f"{where}duration: {alternative.duration_s} s is outside the allowed {low} s … {high} s",
            field=f"{where}duration",
        )


def _known(alternative: Alternative, fleet: Fleet, where: str) -> list[Pool]:
    """The pools that are of the kind and in the place asked for; at least one."""
    refuse_illegal_slice(alternative, fleet, where)
    zones, regions = {z.name for z in fleet.zones}, {z.region for z in fleet.zones}
    for location in alternative.locations:
        if location not in zones | regions:
            raise InvalidArgument(
                f"{where}locations: no zone or region '{location}' here (zones: {_names(zones)}; "
                f"regions: {_names(regions)})",
                field=f"{where}locations",
            )
    kinds = [p for p in fleet.pools if is_of_kind(alternative, p)]
    has_pods = any(p.topology for p in fleet.pools)
    is_slice = slices.names_slice(alternative) or (has_pods and slices.wanted(alternative) is not None)
    if not kinds and is_slice:
        raise _no_such_slice(alternative, fleet, where)
    if not kinds and alternative.shape:
        shapes = {s.name for p in fleet.pools for s in p.shapes}
        raise InvalidArgument(
            f"{where}machine: this fleet has no '{alternative.shape}' (it has: {_names(shapes)})",
            field=f"{where}machine",
        )
    if not kinds:
        types = {p.shape.accelerator for p in fleet.pools if p.shape.accelerator}
        raise InvalidArgument(
            f"{where}accelerators: this fleet has no '{alternative.accelerator}' "
            f"(it has: {_names(types)})",
            field=f"{where}accelerators",
        )
    here = [p for p in fleet.pools_in(alternative.locations) if p in kinds]
    if not here:
        raise InvalidArgument(
            f"{where}locations: none of {', '.join(alternative.locations)} has "
            f"'{alternative.shape or alternative.accelerator}' "
            f"(it is in: {_names({p.zone for p in kinds})})",
            field=f"{where}locations",
        )
    _closeness(alternative, here, where)
    return here


def _closeness(alternative: Alternative, pools: list[Pool], where: str) -> None:
    """Raises InvalidArgument for levels that no pool has that fits, or groups that it does not come in."""
    asked = alternative.grouping
    levels = {level for p in pools for level in (*p.levels, *([HOST_LEVEL] if p.is_shared else []))}
    for field, level in (("within", alternative.within), ("grouping", asked.level if asked else None)):
        apart = field == "grouping" and level == HOST_LEVEL
        if not apart and not any(has_level(p, level) for p in pools):
            raise InvalidArgument(
                f"{where}{field}: no pool that fits has a level '{level}' (they have: {_names(levels)})",
                field=f"{where}{field}",
            )
    if asked is None or any(can_stand(alternative, p) for p in pools):
        return
    topology = next((t for p in pools if (t := slices.in_pool(alternative, p)) is not None), None)
    if topology is not None and topology.cubes > 1:
        raise InvalidArgument(
            f"{where}grouping: a {topology} slice is {topology.cubes} cubes that stand together in a pod "
            "already",
            field=f"{where}grouping",
        )
    number = min(pieces_needed(alternative, p)[0] for p in pools)
    raise InvalidArgument(
        f"{where}grouping: {number} do not come in groups of {asked.together} in one {asked.level}",
        field=f"{where}grouping",
    )


def refuse_illegal_slice(alternative: Alternative, fleet: Fleet, where: str = "") -> None:
    """Raises InvalidArgument for a topology, a name or a number of chips that no slice has, or several, with
    those that are there. Of hosts that are no pod any number may be asked for."""
    if not slices.names_slice(alternative) and not any(p.topology for p in fleet.pools):
        return
    try:
        slices.wanted(alternative)
    except InvalidArgument as error:
        field = error.field or ""
        plain = error.message.removeprefix(f"{field}: ")
        raise InvalidArgument(f"{where}{field}: {plain}", field=f"{where}{field}") from None


def _no_such_slice(alternative: Alternative, fleet: Fleet, where: str) -> InvalidArgument:
    """A legal slice that no pod of the fleet serves: what its pods of that kind do, or what pods it has."""
    asked = slices.wanted(alternative)
    pods = [p for p in fleet.pools if p.topology]
    alike = [p for p in pods if asked is not None and p.shape.accelerator == asked[0].accelerator]
    there = {f"{p.shape.accelerator} {p.topology}" for p in pods}
    told = "; ".join(f"{p.name} has {slices.offered(p)}" for p in alike) or f"it has: {_names(there)}"
    size = f" {alternative.topology}" if alternative.topology else ""
    if not slices.names_slice(alternative):
        size = f" with {alternative.count} chips"
    return InvalidArgument(
        f"{where}accelerators: no pod of this fleet serves '{alternative.accelerator or alternative.shape}'"
        f"{size} ({told})",
        field=f"{where}accelerators",
    )


def _size(alternative: Alternative, pools: list[Pool], options: PolicyOptions, where: str) -> None:
    instances = min(machines_needed(alternative, p) for p in pools)
    if instances > options.instances_max:
        raise InvalidArgument(
            f"{where}count: {alternative.count} means {instances} instances, at most "
            f"{options.instances_max} are allowed",
            field=f"{where}count",
        )


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _sentence(text: str, facts: dict[str, int | str]) -> str:
    return text.format(**facts)
