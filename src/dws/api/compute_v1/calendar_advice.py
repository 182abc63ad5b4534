"""Advice for the calendar: the soonest window that could be booked in a region, and why not elsewhere.

It is answered at once and holds nothing. A range that contradicts itself is refused; one that the owner's
policy has no reservations in is answered with the condition that is not met, zone by zone.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dws.api.compute_v1 import documents, tpu_families
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.forms import Form, int64, invalid, many, named, required, text, words
from dws.api.compute_v1.names import ROOT, last
from dws.api.compute_v1.times import instant, length
from dws.api.method import Method
from dws.engine.commands import Seek
from dws.model.demand import Alternative
from dws.model.errors import InvalidArgument
from dws.model.time import in_words, length_in_words
from dws.planner.options import PolicyOptions
from dws.planner.plan import WindowOption, ZoneLoss
from dws.wire.timefmt import format_instant, render_reason

SPEC: Final = Form(
    {
        "deploymentType": words("DENSE", "DEPLOYMENT_TYPE_UNSPECIFIED", "FLEXIBLE"),
        "locationPolicy": Form(
            {
                "locations": named(
                    Form({"preference": words("ALLOW", "DENY", "PREFERENCE_UNSPECIFIED")})
                )
            }
        ),
        "targetResources": Form(
            {
                "specificSkuResources": Form(
                    {
                        "instanceCount": int64,
                        "machineType": text,
                        "localSsdPartitions": many(
                            Form({"diskInterface": words("NVDIMM", "NVME", "SCSI"), "diskSizeGb": int64})
                        ),
                    }
                ),
                "aggregateResources": Form(
                    {
                        "acceleratorCount": int64,
                        "vmFamily": words(*tpu_families.FAMILIES),
                        "workloadType": words("BATCH", "SERVING", "UNSPECIFIED"),
                    }
                ),
            }
        ),
        "timeRangeSpec": Form(
            {
                "startTimeNotEarlierThan": instant,
                "startTimeNotLaterThan": instant,
                "endTimeNotEarlierThan": instant,
                "endTimeNotLaterThan": instant,
                "minDuration": length,
                "maxDuration": length,
            }
        ),
    }
)
FORM: Final = Form({"futureResourcesSpecs": named(SPEC)})


@dataclass(frozen=True, slots=True)
class Found:
    """What a zone has: its soonest window, or a status and what is in the way."""

    window: WindowOption | None
    status: str = "RECOMMENDED"
    details: str = ""


def advise(call: Called) -> dict[str, Any]:
    """The soonest window of what is asked for."""
    where = documents.where(call)
    specs = FORM.read(call.body).get("futureResourcesSpecs", {})
    if not specs:
        raise required("futureResourcesSpecs")
    if len(specs) > 1:
        raise invalid("futureResourcesSpecs", len(specs), "Exactly one specification is possible.")
    ((key, spec),) = specs.items()
    path = f"futureResourcesSpecs.{key}"
    wanted = _wanted(spec.get("targetResources", {}), f"{path}.targetResources")
    seek = _seek(call, spec.get("timeRangeSpec", {}), wanted, f"{path}.timeRangeSpec")
    zones = call.engine.declared_fleet(call.who).zones_of(last(where))
    denied = _denied(spec.get("locationPolicy", {}).get("locations", {}), zones, path)
    found = {zone: _in_zone(call, seek, zone, denied=zone in denied) for zone in zones}
    return {"recommendations": [{"recommendationsPerSpec": {key: _recommendation(found)}}]}


def _wanted(target: Mapping[str, Any], path: str) -> Alternative | None:
    """What is to be booked; None for what no fleet can have. Raises InvalidArgument."""
    kinds = ("specificSkuResources", "aggregateResources")
    if len(target) != 1:
        raise invalid(path, ", ".join(target), f"Exactly one of {' and '.join(kinds)} is needed.")
    ((kind, told),) = target.items()
    count, what = ("instanceCount", "machineType") if kind == kinds[0] else ("acceleratorCount", "vmFamily")
    for field in (count, what):
        if not told.get(field):
            raise required(f"{path}.{kind}.{field}")
    number = int(told[count])
    if number < 1:
        raise invalid(f"{path}.{kind}.{count}", number, "At least 1 is needed.")
    if kind == kinds[0]:
        return Alternative(shape=last(told[what]), count=number, duration_s=1)
    accelerator = tpu_families.accelerator_of(told[what])
    return Alternative(accelerator=accelerator, count=number, duration_s=1) if accelerator else None


def _seek(
    call: Called, told: Mapping[str, int], wanted: Alternative | None, path: str
) -> tuple[Seek, ...] | Found:
    """The searches that a time range asks for, one for each range of lengths; where the policy has nothing in
    it, the condition not met.

    Raises InvalidArgument for a range that contradicts itself.
    """
    policy, now = call.engine.policy, call.engine.now()
    shortest, longest = told.get("minDuration", 1), told.get("maxDuration", policy.reservation_max_s)
    start_from = told.get("startTimeNotEarlierThan", now)
    start_to = told.get("startTimeNotLaterThan", max(start_from, now + policy.calendar_horizon_s))
    end_from, end_to = told.get("endTimeNotEarlierThan", 0), told.get("endTimeNotLaterThan", 0)
    if shortest > longest and "maxDuration" in told:
        why = f"It is longer than maxDuration, {length_in_words(longest)}."
        raise invalid(f"{path}.minDuration", f"{shortest}s", why)
    if start_from > start_to:
        why = f"It lies behind startTimeNotLaterThan, {format_instant(start_to)}."
        raise invalid(f"{path}.startTimeNotEarlierThan", format_instant(start_from), why)
    if end_to and end_from > end_to:
        why = f"It lies behind endTimeNotLaterThan, {format_instant(end_to)}."
        raise invalid(f"{path}.endTimeNotEarlierThan", format_instant(end_from), why)
    if end_to and start_from + shortest > end_to:
        why = f"The earliest start, {format_instant(start_from)}, and minDuration end behind it."
        raise invalid(f"{path}.endTimeNotLaterThan", format_instant(end_to), why)
    if "maxDuration" in told and start_to + longest < end_from:
        why = f"The latest start, {format_instant(start_to)}, and maxDuration end before it."
        raise invalid(f"{path}.endTimeNotEarlierThan", format_instant(end_from), why)
    if wanted is None:
        return Found(None, "NOT_SUPPORTED", "No pool has machines of this family.")
    lengths = _lengths(policy, shortest, longest)
    if isinstance(lengths, str):
        return Found(None, "CONDITIONS_NOT_MET", lengths)
    return tuple(
        Seek(
            project=call.project,
            alternative=wanted,
            start_from=start_from,
            start_to=start_to,
            end_from=end_from,
            end_to=end_to,
            min_s=least,
            max_s=most,
            limit=1,
            soonest=True,
        )
        for least, most in lengths
    )


def _lengths(policy: PolicyOptions, shortest: int, longest: int) -> list[tuple[int, int]] | str:
    """The ranges of lengths within a range that the policy allows; or why there are none."""
    if policy.reservation_lengths_s:
        fixed = [(each, each) for each in policy.reservation_lengths_s if shortest <= each <= longest]
        allowed = " or ".join(map(length_in_words, policy.reservation_lengths_s))
        return fixed or f"Reservations last {allowed}."
    first, most = max(shortest, policy.reservation_min_s), min(longest, policy.reservation_max_s)
    if first <= most:
        return [(first, most)]
    least, most = policy.reservation_min_s, policy.reservation_max_s
    return f"Reservations last between {length_in_words(least)} and {length_in_words(most)}."


def _denied(locations: Mapping[str, Any], zones: tuple[str, ...], path: str) -> set[str]:
    """The zones that a location policy excludes. Raises InvalidArgument for one outside the region."""
    for zone in locations:
        if last(zone) not in zones:
            raise invalid(f"{path}.locationPolicy.locations", zone, "The region has no such zone.")
    return {last(zone) for zone, told in locations.items() if told.get("preference") == "DENY"}


def _in_zone(call: Called, sought: tuple[Seek, ...] | Found, zone: str, *, denied: bool) -> Found:
    """What a zone has of what is sought."""
    if isinstance(sought, Found):
        return sought
    if denied:
        return Found(None, "CONDITIONS_NOT_MET", "The location policy denies this zone.")
    windows: list[WindowOption] = []
    lost: list[ZoneLoss] = []
    for seek in sought:
        asked = replace(seek.alternative, locations=(zone,))
        there = replace(seek, alternative=tpu_families.as_slices(call.engine.declared_fleet(call.who), asked))
        try:
            told = call.engine.advise(call.who, there)
        except InvalidArgument as error:
            impossible = error.field in ("accelerators", "topology")
            status = "NOT_SUPPORTED" if impossible else "CONDITIONS_NOT_MET"
            return Found(None, status, error.message.partition(": ")[2])
        windows += told.options
        lost += told.lost
    if windows:
        best = min(windows, key=_soonest)
        span = best.window
        return Found(best, details=f"Free from {in_words(span.start)} until {in_words(span.end)}.")
    if not lost:
        return Found(None, "NOT_SUPPORTED", "The zone has no pool of what is asked for.")
    return Found(None, "NO_CAPACITY", _why(lost))


def _soonest(option: WindowOption) -> tuple[int, int]:
    """The order of windows: the soonest first, of several the longest."""
    return option.window.start, -option.window.end


def _why(lost: list[ZoneLoss]) -> str:
    """Why a zone has no window: of several pools the one that is only too full."""
    reason = next((each.reason for each in lost if each.reason.code == "NO_ROOM"), lost[0].reason)
    return render_reason(reason.text, dict(reason.facts))


def _recommendation(found: Mapping[str, Found]) -> dict[str, Any]:
    """The zone with the soonest window (of several the longest), and what the others have."""
    windows = {zone: each.window for zone, each in found.items() if each.window is not None}
    best = min(windows, key=lambda zone: _soonest(windows[zone]), default="")
    told: dict[str, Any] = {
        "recommendationId": str(uuid.uuid4()),
        "recommendationType": "FUTURE_RESERVATION",
        "otherLocations": {
            f"zones/{zone}": {"status": each.status, "details": each.details}
            for zone, each in found.items()
            if zone != best
        },
    }
    if best:
        window = windows[best].window
        told |= {
            "location": f"zones/{best}",
            "startTime": format_instant(window.start),
            "endTime": format_instant(window.end),
        }
    return told


METHODS: Final = (
    Method(
        id="compute.advice.calendarMode",
        verb="POST",
        path=f"{ROOT}/regions/{{region}}/advice/calendarMode",
        summary="The soonest window that could be booked in a region.",
        request=Body,
        lenient=True,
        handler=advise,
    ),
)
