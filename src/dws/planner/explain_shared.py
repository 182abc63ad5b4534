"""Why what takes part of hosts does not start now: what is free is not added up over hosts."""

from __future__ import annotations

from dws.model.piece import UNIT
from dws.model.topology import HOST_LEVEL, Pool
from dws.planner.backfill import Idle, Pass
from dws.planner.plan import Reason
from dws.planner.resolve import Candidate


def unit_noun(pool: Pool) -> str:
    """What a pool's units are called, several of them."""
    if not pool.is_shared:
        return "hosts"
    return "accelerators" if pool.shape.accelerators else "machines"


def what_is_missing(shadow: Pass, candidate: Candidate, where: str, idle: Idle, at: int) -> Reason:
    """The reason, where fewer pieces of the candidate's kind are free than it needs; free ones of `where`,
    the fullest group of its level, in `idle`."""
    per_host = shadow.calendar(candidate.calendar).idle_in_groups(HOST_LEVEL)
    facts: dict[str, int | str] = {
        "need": candidate.count,
        "shape": candidate.shape,
        "best": idle.most,
        "where": where,
        "at": at,
        "free": sum(per_host),
        "hosts": sum(1 for n in per_host if n),
    }
    free = f"{{free}} free {unit_noun(candidate.pool)} on {{hosts}} hosts"
    if not facts["free"]:
        free = f"no free {unit_noun(candidate.pool)}"
    elif not idle.total and candidate.piece != UNIT:
        facts["size"] = candidate.piece.size
        free += ", none has {size}"
    else:
        free += ", room for {total}"
        facts["total"] = idle.total
    facts["pool"] = candidate.pool.name
    if candidate.within in (None, "pool"):
        text = f"needs {{need}} x {{shape}}; {{pool}} has {free} now, room for {{need}} from {{at:time}}"
        return Reason(code="NOT_ENOUGH_FREE", text=text, facts=facts)
    facts["level"] = candidate.within or ""
    return Reason(
        code="NO_GROUP_WITH_ENOUGH_FREE",
        text="needs {need} x {shape} in one {level}; the best, {where}, has room for {best} until {at:time}, "
        f"then for {{need}} ({{pool}} has {free})",
        facts=facts,
    )
