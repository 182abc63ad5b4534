"""Why what must stand together, or apart, does not start now: what there is room for that way."""

from __future__ import annotations

from dws.planner.backfill import Idle
from dws.planner.plan import Reason
from dws.planner.resolve import Candidate


def what_is_missing(candidate: Candidate, where: str, idle: Idle, at: int) -> Reason:
    """The reason, with the room that there is now for pieces that stand as asked; those of `where`, the
    fullest group of the level that all must share, in `idle`."""
    what, facts = _asked(candidate)
    facts |= {"best": idle.most, "where": where, "at": at}
    if idle.most >= candidate.count:
        return Reason(
            code="BEHIND_OTHERS",
            text=f"needs {what}; {{where}} has room for {{best}} now, but for the whole run that would delay "
            "what is promised to others; fits from {at:time}",
            facts=facts,
        )
    return Reason(
        code="NO_GROUP_WITH_ENOUGH_FREE",
        text=f"needs {what}; {{where}} has room for {{best}} now, for {{need}} from {{at:time}}",
        facts=facts,
    )


def never_fits(candidate: Candidate) -> Reason:
    """What was asked, and the most there is room for that way."""
    what, facts = _asked(candidate)
    pool = candidate.pool
    facts |= {
        "most": candidate.number_of(pool.largest(candidate.within, candidate.piece)),
        "pool": pool.name,
    }
    where = "{pool}" if candidate.within in (None, "pool") else "the largest {level} of {pool}"
    return Reason(
        code="NEVER_FITS",
        text=f"will never start: asked for {what}; {where} has room for {{most}}, ask for at most {{most}}",
        facts=facts,
    )


def _asked(candidate: Candidate) -> tuple[str, dict[str, int | str]]:
    """What is asked for and how it has to stand, as a template with its facts."""
    piece = candidate.piece
    facts: dict[str, int | str] = {
        "need": candidate.number,
        "what": candidate.noun,
        "group_level": piece.level,
    }
    text = "{need} {what}"
    if piece.together > 1:
        facts["together"] = piece.together
        text += ", each {together} in one {group_level}"
    if piece.at_most:
        facts["at_most"] = piece.at_most
        text += ", at most {at_most} in each {group_level}"
    if candidate.within not in (None, "pool"):
        facts["level"] = candidate.within or ""
        text += ", all in one {level}"
    return text, facts
