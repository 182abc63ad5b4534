"""`dws planner query`: the planner alone, on a snapshot in a file. No server, no clock, no side effects.

A snapshot is JSON with the fields of the model, in snake_case:

    {"now": 1800000000, "fleet": {...} or "fleet.toml", "bookings": [...], "hosts": [...], "queue": [...],
     "policy": {...}}
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dws.cli import zones
from dws.cli.session import Session, with_output
from dws.model.errors import InvalidArgument

if TYPE_CHECKING:
    from dws.model.demand import Demand
    from dws.model.topology import Fleet
    from dws.planner.plan import Decision, Forecast, Plan, Quote
    from dws.planner.snapshot import FleetSnapshot


@click.group()
def planner() -> None:
    """The planner alone, on a snapshot file.

    \b
    Example:
      dws planner query snapshot.json
    """


@planner.command()
@with_output
@click.argument("snapshot", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--quote", "wished", multiple=True, metavar="ALTERNATIVE", help='Also: "h100:16 for 4h".')
def query(session: Session, snapshot: Path, wished: tuple[str, ...]) -> None:
    """What the planner would decide on a snapshot, and what everyone waiting can expect.

    \b
    Example:
      dws planner query snapshot.json --quote "h100:16 for 4h" -o json
    """
    from dws.planner import advise, backfill, explain

    asked = read(snapshot)
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
class Question:
    """A snapshot, the policy and the instant it is about."""

    now: int
    snapshot: FleetSnapshot
    policy: Any


def read(path: Path) -> Question:
    """The question in a file. Raises InvalidArgument naming the field that is wrong."""
    import msgspec

    from dws.model.booking import Booking
    from dws.model.request import CapacityRequest
    from dws.model.topology import Fleet, HostStatus
    from dws.planner import snapshot as snapshots
    from dws.planner.options import PolicyOptions

    def fail(error: object) -> InvalidArgument:
        return InvalidArgument(f"snapshot: {path}: {error}", field="snapshot")

    try:
        said = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        return Question(
            now=msgspec.convert(said["now"], int),
            snapshot=snapshots.build(
                _fleet(said["fleet"], path.parent) or msgspec.convert(said["fleet"], Fleet),
                bookings=msgspec.convert(said.get("bookings", []), list[Booking]),
                hosts=msgspec.convert(said.get("hosts", []), list[HostStatus]),
                queue=msgspec.convert(said.get("queue", []), list[CapacityRequest]),
            ),
            policy=msgspec.convert(said.get("policy", {}), PolicyOptions),
        )
    except KeyError as error:
        raise fail(f"{error} is missing") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise fail(error) from None


def _fleet(said: object, folder: Path) -> Fleet | None:
    """The fleet of a file named in the snapshot, None when the fleet is written out there."""
    from dws.declared import fleetfile

    if not isinstance(said, str):
        return None
    path = folder / said
    return fleetfile.parse(path.read_text(encoding="utf-8"), source=str(path))


def demand_of(wished: tuple[str, ...]) -> Demand:
    """A demand from sentences such as "h100:16 for 4h in z1 within block"."""
    from dws.cli.demand import parse_alternative
    from dws.model.demand import Alternative, Demand
    from dws.wire.timefmt import parse_duration

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
    import msgspec

    decisions = [{"kind": type(d).__name__, **msgspec.to_builtins(d)} for d in plan.decisions]
    return {"now": plan.now, "decisions": decisions, "look_again_at": plan.look_again_at}


def _report(
    session: Session, asked: Question, plan: Plan, line: list[Forecast], quote: Quote | None
) -> list[str]:
    from dws.cli.output import table
    from dws.wire.timefmt import render_reason

    names: dict[int, str] = {r.id: r.name for r in asked.snapshot.queue}
    decisions = [_decision(session, d, names[d.request], asked) for d in plan.decisions]
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
