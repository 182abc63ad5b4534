"""Commands that must be refused, each with the error it must get."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from dws.engine.commands import ChangeHosts, Extend, Release, Submit
from dws.model.access import Principal
from dws.model.demand import Alternative, Demand
from dws.model.errors import (
    AlreadyExists,
    DwsError,
    InvalidArgument,
    NeverFits,
    NotFound,
    PermissionDenied,
    Unauthenticated,
)
from dws.model.request import Workload
from dws.model.topology import Fleet
from dws.planner.options import PolicyOptions
from dws.simulator.breaking.auditor import Auditor
from dws.simulator.breaking.people import ANN, BOB, OLGA, VERA, Command


def nonsense(dice: random.Random, auditor: Auditor, fleet: Fleet, policy: PolicyOptions, now: int) -> Command:
    """One illegal command."""
    pool = dice.choice(fleet.pools)
    good = Alternative(shape=pool.shape.name, count=1, duration_s=60)
    ask = Submit(project="blue", name="nonsense", demand=Demand(alternatives=(good,)))
    kinds: list[Callable[[], Command]] = [
        lambda: _wrong_caller(dice, ask),
        lambda: _wrong_demand(dice, ask, good, fleet, policy, now),
        lambda: _wrong_field(dice, ask),
        lambda: _wrong_host(dice, fleet),
        lambda: _wrong_subject(dice, auditor, ask),
    ]
    return dice.choice(kinds)()


def _submits(who: Principal, words: str, command: Submit, refusal: type[DwsError]) -> Command:
    return Command(
        words=f"{who.name} submits {words}",
        act=lambda engine: engine.submit(who, command),
        refusal=refusal,
    )


def _wrong_caller(dice: random.Random, ask: Submit) -> Command:
    program = Workload(command=("rm", "-r", "/"))
    red = replace(ask, project="red")
    return dice.choice(
        (
            _submits(VERA, "as a viewer", ask, PermissionDenied),
            _submits(BOB, "into another project", ask, PermissionDenied),
            _submits(BOB, "a program without a token", replace(red, workload=program), Unauthenticated),
            Command(
                words="ann moves the clock",
                act=lambda engine: engine.advance(ANN, 60),
                refusal=PermissionDenied,
            ),
            Command(
                words="bob looks into another project",
                act=lambda engine: engine.get(BOB, "blue", "anything"),
                refusal=PermissionDenied,
            ),
            Command(
                words="olga moves the clock back",
                act=lambda engine: engine.advance(OLGA, -1),
                refusal=InvalidArgument,
            ),
        )
    )


def _wrong_demand(
    dice: random.Random,
    ask: Submit,
    good: Alternative,
    fleet: Fleet,
    policy: PolicyOptions,
    now: int,
) -> Command:
    too_many = 1 + max(p.largest_group(None) for p in fleet.pools)
    too_long = policy.run_duration_max_s + 1
    wrong: tuple[tuple[str, Demand, type[DwsError]], ...] = (
        ("an unknown machine", _of(replace(good, shape="abacus")), InvalidArgument),
        ("an unknown zone", _of(replace(good, locations=("mars",))), InvalidArgument),
        ("an unknown level", _of(replace(good, within="galaxy")), InvalidArgument),
        ("more than there is", _of(replace(good, count=too_many)), NeverFits),
        ("too long a run", _of(replace(good, duration_s=too_long)), InvalidArgument),
        ("a window that is over", Demand(alternatives=(good,), not_after=now - 1), InvalidArgument),
    )
    words, demand, refusal = dice.choice(wrong)
    return _submits(ANN, words, replace(ask, demand=demand), refusal)


def _of(alternative: Alternative) -> Demand:
    return Demand(alternatives=(alternative,))


def _wrong_field(dice: random.Random, ask: Submit) -> Command:
    words, command = dice.choice(
        (
            ("an illegal name", replace(ask, name="Not_A_Name")),
            ("an illegal label", replace(ask, labels={"Bad Key": "x"})),
            ("an impossible priority", replace(ask, priority=10**7)),
            ("too large an array", replace(ask, array=100_000)),
            ("a negative wait", replace(ask, wait_s=-1)),
        )
    )
    return _submits(ANN, words, command, InvalidArgument)


def _wrong_host(dice: random.Random, fleet: Fleet) -> Command:
    host = dice.choice(dice.choice(fleet.pools).hosts)
    nowhere = tuple(replace(p, backend="nowhere") for p in fleet.pools)
    wrong: tuple[tuple[str, Principal, ChangeHosts, type[DwsError]], ...] = (
        ("ann drains a host", ANN, _hosts(host, "DRAINING"), PermissionDenied),
        ("olga drains a host that is not", OLGA, _hosts("atlantis", "DRAINING"), NotFound),
        ("olga wishes a host away", OLGA, _hosts(host, "AWAY"), InvalidArgument),
    )
    words, who, command, refusal = dice.choice(wrong)
    return dice.choice(
        (
            Command(words=words, act=lambda engine: engine.change_hosts(who, command), refusal=refusal),
            Command(
                words="ann applies a fleet",
                act=lambda engine: engine.apply_fleet(ANN, fleet, confirm=True),
                refusal=PermissionDenied,
            ),
            Command(
                words="olga applies a fleet on no backend",
                act=lambda engine: engine.apply_fleet(OLGA, replace(fleet, pools=nowhere), confirm=True),
                refusal=InvalidArgument,
            ),
        )
    )


def _hosts(host: str, state: str) -> ChangeHosts:
    return ChangeHosts(hosts=(host,), state=state, confirm=True)


def _wrong_subject(dice: random.Random, auditor: Auditor, ask: Submit) -> Command:
    active = [t for t in auditor.requests.values() if t.phase == "ACTIVE"]
    living = [t for t in auditor.requests.values() if not t.is_over]
    wrong = [
        Command(
            words="olga cancels what is not",
            act=lambda engine: engine.cancel(OLGA, "blue", "no-such-request"),
            refusal=NotFound,
        )
    ]
    if living:
        twin = dice.choice(living)
        again = replace(ask, project=twin.project, name=twin.name)
        wrong.append(_submits(OLGA, f"'{twin.name}' a second time", again, AlreadyExists))
    if active:
        told = dice.choice(active)
        part = Release(project=told.project, name=str(told.id), ranks=(999,))
        more = Extend(project=told.project, name=str(told.id), by_s=0)
        wrong += [
            Command(
                words=f"olga releases rank 999 of '{told.name}'",
                act=lambda engine: engine.release(OLGA, part),
                refusal=InvalidArgument,
            ),
            Command(
                words=f"olga extends '{told.name}' by nothing",
                act=lambda engine: engine.extend(OLGA, more),
                refusal=InvalidArgument,
            ),
        ]
    return dice.choice(wrong)
