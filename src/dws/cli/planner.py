"""`dws planner query`: the planner alone, on a snapshot in a file. No server, no clock, no side effects.

A snapshot is JSON with the fields of the model, in snake_case:

    {"now": 1800000000, "fleet": {...} or "fleet.toml", "bookings": [...], "hosts": [...], "queue": [...],
     "policy": {...}}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import msgspec

from dws.cli import zones
from dws.cli.demand import parse_alternative
from dws.cli.session import Session, with_output
from dws.declared import fleetfile
from dws.model.booking import Booking
from dws.model.demand import Alternative, Demand
from dws.model.errors import InvalidArgument
from dws.model.request import CapacityRequest
from dws.model.topology import Fleet, HostStatus
from dws.planner import advise, backfill, explain, snapshot
from dws.planner.options import DEFAULT_POLICY, PolicyOptions
from dws.planner.plan import Bind, Decision, Forecast, Plan, Quote
from dws.planner.snapshot import FleetSnapshot
from dws.wire.timefmt import parse_duration, render_reason


@click.group()
def planner() -> None:
    """The planner alone, on a snapshot file.

    \b
    Example:
      dws planner query snapshot.json
    """


@planner.command()
@with_output
@click.argument("file", metavar="SNAPSHOT", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--quote", "wished", multiple=True, metavar="ALTERNATIVE", help='Also: "h100:16 for 4h".')
def query(session: Session, file: Path, wished: tuple[str, ...]) -> None:
    """What the planner would decide on a snapshot, and what everyone waiting can expect.

    \b
    Example:
      dws planner query snapshot.json --quote "h100:16 for 4h" -o json
    """
    asked = read(file)
    plan = backfill.plan(asked.snapshot, asked.policy, asked.now)
    forecasts = explain.forecast(asked.snapshot, asked.policy, asked.now)
    line = sorted(forecasts.values(), key=lambda f: f.place)
    quote = None
    if wished:
        quote = advise.quote(
            asked.snapshot, asked.policy, asked.now, demand_of(wished), project="", priority=0
        )
    session.emit(
        {"plan": plan_as_data(plan), "forecasts": line, "quote": quote},
        lambda: "\n".join(_report(session, asked, plan, line, quote)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    """What a snapshot file holds; a fleet may be the name of a fleet file beside it."""

    now: int
    fleet: Fleet | str
    bookings: list[Booking] = field(default_factory=list)
    hosts: list[HostStatus] = field(default_factory=list)
    queue: list[CapacityRequest] = field(default_factory=list)
    policy: PolicyOptions = DEFAULT_POLICY


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A snapshot, the policy and the instant it is about."""

    now: int
    snapshot: FleetSnapshot
    policy: PolicyOptions


def read(path: Path) -> Question:
    """The question in a file. Raises InvalidArgument naming the field that is wrong."""
    try:
        said = msgspec.json.decode(path.read_bytes(), type=SnapshotFile)
        fleet = said.fleet
        if isinstance(fleet, str):
            beside = path.parent / fleet
            fleet = fleetfile.parse(beside.read_text(encoding="utf-8"), source=str(beside))
        taken = snapshot.build(fleet, bookings=said.bookings, hosts=said.hosts, queue=said.queue)
    except (msgspec.MsgspecError, ValueError, OSError) as error:
        raise InvalidArgument(f"snapshot: {path}: {error}", field="snapshot") from None
    return Question(now=said.now, snapshot=taken, policy=said.policy)


def demand_of(wished: tuple[str, ...]) -> Demand:
    """A demand from sentences such as "h100:16 for 4h in z1 within block"."""
    found = []
    for text in wished:
        wire = parse_alternative(text, duration="1h")
        kind, _, count = wire.accelerators.partition(":")
        found.append(
            Alternative(
                count=int(count) if kind else wire.count,
                duration_s=parse_duration(wire.duration),
                shape=wire.machine,
                accelerator=kind,
                locations=tuple(wire.locations),
                within=wire.within,
            )
        )
    return Demand(alternatives=tuple(found))


def plan_as_data(plan: Plan) -> dict[str, Any]:
    """A plan with each decision named by its kind."""
    decisions = [{"kind": type(d).__name__, **msgspec.to_builtins(d)} for d in plan.decisions]
    return {"now": plan.now, "decisions": decisions, "look_again_at": plan.look_again_at}


def _report(
    session: Session, asked: Question, plan: Plan, line: list[Forecast], quote: Quote | None
) -> list[str]:
    from dws.cli.output import table

    names: dict[int, str] = {r.id: r.name for r in asked.snapshot.queue}
    about_requests = [d for d in plan.decisions if not isinstance(d, Bind)]
    decisions = [_decision(session, d, names[d.request], asked) for d in about_requests]
    lines = [table(["DECISION", "REQUEST", "POOL", "HOSTS", "START"], decisions)] if decisions else []
    if line:
        waits = [
            [
                str(f.place),
                names[f.request],
                _at(session, f.expected_start, asked.now) or "unknown",
                _at(session, f.promised_start, asked.now) or "not yet",
                render_reason(f.reason.text, dict(f.reason.facts), session.zone),
            ]
            for f in line
        ]
        lines += ["", table(["PLACE", "REQUEST", "EXPECTED", "PROMISED", "REASON"], waits)]
    if quote is not None:
        options = [
            [
                o.kind,
                f"{o.count} x {o.shape}",
                o.pool,
                _at(session, o.start, asked.now) or "not in sight",
                _at(session, o.end, asked.now),
            ]
            for o in (quote.asked, *quote.options)
        ]
        lines += ["", table(["OPTION", "MACHINES", "POOL", "STARTS", "ENDS"], options)]
    return [*(lines or ["Nothing to decide."]), "", f"Times in {session.zone}."]


def _decision(session: Session, decision: Decision, name: str, asked: Question) -> list[str]:
    kind = type(decision).__name__
    placement = getattr(decision, "placement", None)
    if placement is None:
        return [kind, name, "", "", ""]
    return [kind, name, placement.pool, str(placement.count), _at(session, placement.start, asked.now)]


def _at(session: Session, instant: int | None, now: int) -> str:
    if not instant:
        return ""
    return zones.beside(instant, session.zone, now=now)
