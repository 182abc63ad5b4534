"""Why a TPU slice does not start now, in the words of who asked: slices, chips, the largest that is free."""

from __future__ import annotations

from dws.model.topology import HOST_LEVEL
from dws.planner import slices
from dws.planner.backfill import Idle, Pass
from dws.planner.plan import Reason
from dws.planner.resolve import Candidate


def facts_of(candidate: Candidate) -> dict[str, int | str]:
    """How many slices of which topology."""
    return {"need": candidate.slices, "topology": str(candidate.topology)}


def in_slices(candidate: Candidate, pieces: int) -> int:
    """How many slices so many pieces of the candidate's kind are."""
    return pieces * candidate.slices // candidate.count


def what_is_missing(shadow: Pass, candidate: Candidate, where: str, idle: Idle, at: int) -> Reason:
    """The reason, where fewer slices are free than it needs; `where` is the domain of its level with the most
    room, `idle` counts pieces."""
    pool = candidate.pool
    per_host = shadow.calendar(candidate.calendar).idle_in_groups(HOST_LEVEL)
    largest = slices.largest_free(pool, per_host)
    facts = facts_of(candidate) | {
        "pool": pool.name,
        "at": at,
        "free": sum(per_host) * pool.unit_weight,
        "best": in_slices(candidate, idle.most),
    }
    free = "no free chips"
    if largest is not None:
        facts["largest"] = str(largest)
        noun = "rectangle" if len(largest.sides) == 2 else "slice"
        free = f"free chips: {{free}}, largest free {noun} {{largest}}"
    if candidate.within in (None, "pool"):
        room = ", room for {best}" if facts["best"] else ""
        text = f"needs {{need}} x {{topology}}; {{pool}} has {free}{room}; fits from {{at:time}}"
        return Reason(code="NOT_ENOUGH_FREE", text=text, facts=facts)
    return Reason(
        code="NO_GROUP_WITH_ENOUGH_FREE",
        text="needs {need} x {topology} in one {level}; the best, {where}, has room for {best} until "
        f"{{at:time}}, then for {{need}} ({{pool}} has {free})",
        facts=facts | {"level": candidate.within or "", "where": where},
    )


def behind_others(candidate: Candidate, where: str, idle: Idle, at: int) -> Reason:
    """The reason, where enough slices are free, but not for as long."""
    return Reason(
        code="BEHIND_OTHERS",
        text="{where} has room for {best} x {topology} now, but {need} for {length:duration} would delay "
        "what is promised to others; fits from {at:time}",
        facts=facts_of(candidate)
        | {"best": in_slices(candidate, idle.most), "where": where, "at": at, "length": candidate.length_s},
    )


def never_fits(candidate: Candidate) -> Reason:
    """How many were asked for, and the most there is room for."""
    most = in_slices(candidate, candidate.pool.largest(candidate.within, candidate.piece))
    level = candidate.within or "pool"
    facts = facts_of(candidate) | {"pool": candidate.pool.name, "most": most, "level": level}
    room = "room for {most}; ask for at most {most}" if most else "no room for one"
    return Reason(
        code="NEVER_FITS",
        text="will never start: asked for {need} x {topology}, the largest {level} of {pool} has " + room,
        facts=facts,
    )
