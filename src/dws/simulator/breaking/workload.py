"""Invents commands, legal and illegal, as different people, and knows what each must be answered.

What a legal-looking command may be answered depends on the state of the request it is about, which the
auditor's model knows: every event so far has been judged before a command is drawn.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from dws.engine.app import Engine
from dws.engine.commands import Amend, ChangeHosts, Extend, Release, Submit
from dws.engine.ports import RequestQuery
from dws.model.access import Principal
from dws.model.booking import Booking
from dws.model.demand import Demand
from dws.model.errors import (
    DwsError,
    FailedPrecondition,
    InvalidArgument,
    NeverFits,
    NotFound,
    PermissionDenied,
)
from dws.model.request import HostLossPolicy, Workload
from dws.model.time import FOREVER
from dws.model.topology import Fleet, HostState
from dws.planner.options import PolicyOptions
from dws.simulator.breaking.auditor import Auditor
from dws.simulator.breaking.demands import alternative
from dws.simulator.breaking.model import OVER, Told
from dws.simulator.breaking.nonsense import nonsense
from dws.simulator.breaking.people import ANN, BOB, OLGA, USERS, Command
from dws.simulator.breaking.reservers import ReservationSource
from dws.simulator.breaking.shapes import could_hold
from dws.simulator.breaking.sizes import larger, smaller

ENDS_EVERY = 5
"""One request of so many ends at an instant: as far ahead as it is long, so any delay makes it shorter."""


class CommandSource:
    """Draws commands. `auditor` tells what requests there are, `fleet` the present fleet, `bookings` what is
    booked at present."""

    def __init__(
        self,
        dice: random.Random,
        auditor: Auditor,
        fleet: Callable[[], Fleet],
        policy: PolicyOptions,
        bookings: Callable[[], list[Booking]],
    ) -> None:
        self._dice = dice
        self._auditor = auditor
        self._fleet = fleet
        self._policy = policy
        self._number = 0
        self._reservers = ReservationSource(dice, auditor, fleet, policy, bookings)
        self._kinds: tuple[tuple[int, Callable[[int], Command]], ...] = (
            (30, self._submit),
            (6, self._amend),
            (6, self._cancel),
            (8, self._release),
            (5, self._extend),
            (3, self._delete),
            (8, self._look),
            (12, self._change_hosts),
            (2, self._apply_fleet),
            (12, lambda now: nonsense(dice, auditor, fleet(), policy, now)),
            (70, self._reservers.next),
        )

    def next(self, now: int) -> Command:
        """The next command at `now`."""
        self._number += 1
        ((_, draw),) = self._dice.choices(self._kinds, [weight for weight, _ in self._kinds])
        return draw(now)

    # --- asking -------------------------------------------------------------------------------

    def _submit(self, now: int) -> Command:
        dice = self._dice
        who, project = dice.choice(USERS)
        array = dice.choice((0, 0, 0, 0, 0, 0, 0, 0, 2, 3))
        command = Submit(
            project=project,
            name=f"r{self._number}",
            demand=self._demand(now),
            wait_s=dice.choice((None, None, None, 0, 60, 600, 7_200)),
            priority=dice.choice((0, 0, 0, 10)),
            workload=self._program(who),
            on_host_loss=dice.choice((None, *HostLossPolicy)),
            array=array,
            reservation=dice.choice(("", "", "any")),
            call_id=dice.choice(("", f"call-{self._number}")),
        )
        return Command(
            words=f"{who.name} submits r{self._number}" + (f" x {array}" if array else ""),
            act=lambda engine: engine.submit(who, command),
            call_id=command.call_id,
            makes=array or 1,
        )

    def _program(self, who: Principal) -> Workload | None:
        if not who.may_run_programs or self._dice.random() < 0.5:
            return None
        environment = {
            "DWS_SIM_RUN_S": str(self._dice.choice((10, 500, 100_000))),
            "DWS_SIM_EXIT": self._dice.choice(("0", "0", "3")),
        }
        return Workload(command=("train",), environment=environment)

    def _demand(self, now: int) -> Demand:
        dice = self._dice
        not_before = dice.choice((0, 0, 0, now + 300, now + 3_600))
        alternatives = tuple(alternative(dice, self._fleet()) for _ in range(dice.choice((1, 1, 1, 2, 3))))
        longest = max(one.duration_s for one in alternatives)
        ends = self._number % ENDS_EVERY == 0  # without a throw, so that the others stay as they are
        return Demand(
            alternatives=alternatives,
            not_before=not_before,
            not_after=dice.choice((FOREVER, FOREVER, max(now, not_before) + 900)),
            end_by=max(now, not_before) + longest if ends and longest else 0,
        )

    # --- changing one's mind ------------------------------------------------------------------

    def _about_one(
        self,
        verb: str,
        now: int,
        legal: Callable[[Told], bool],
        act: Callable[[Engine, Told], object],
        never_fits: Callable[[Told], bool] | None = None,
    ) -> Command:
        """A command about some request that is not put away, in whatever state; nobody's is not found. It
        may be refused as well when the fleet has shrunk so far that the request `never_fits`."""
        told = self._some([t for t in self._auditor.requests.values() if not t.deleted])
        if told is None:
            return self._look(now)
        refusal: type[DwsError] | None = None if legal(told) else FailedPrecondition
        shrunk = refusal is None and never_fits is not None and never_fits(told)
        return Command(
            words=f"{verb} '{told.name}' ({told.phase})",
            act=lambda engine: act(engine, told),
            refusal=NeverFits if shrunk else refusal,
            may_refuse=shrunk,
            also=(PermissionDenied,) if shrunk else (),
        )

    def _some(self, those: list[Told]) -> Told | None:
        """One of those, more likely a living one."""
        living = [t for t in those if not t.is_over]
        if living and self._dice.random() < 0.8:
            those = living
        return self._dice.choice(those) if those else None

    def _amend(self, now: int) -> Command:
        change = self._dice.choice(("demand", "wait", "priority", "labels"))
        demand = self._demand(now) if change == "demand" else None
        wait_s = self._dice.choice((60, 7_200)) if change == "wait" else None
        priority = self._dice.choice((0, 5, 20)) if change == "priority" else None

        def act(engine: Engine, told: Told) -> object:
            command = Amend(
                project=told.project,
                name=str(told.id),
                demand=demand,
                wait_s=wait_s,
                priority=priority,
                labels={"colour": "green"} if change == "labels" else None,
            )
            return engine.amend(OLGA, command)

        def too_large_now(told: Told) -> bool:
            inside = told.demand.reservation > 0  # whose terms, or window, may have changed meanwhile
            return wait_s is not None and (inside or not could_hold(self._fleet(), told.demand))

        legal = lambda t: t.phase in ("PENDING", "BOOKED")  # noqa: E731
        return self._about_one(f"amend {change} of", now, legal, act, never_fits=too_large_now)

    def _cancel(self, now: int) -> Command:
        call_id = self._dice.choice(("", f"call-{self._number}"))
        command = self._about_one(
            "cancel",
            now,
            lambda t: t.phase in ("PENDING", "BOOKED", "PROVISIONING") or (t.phase == "ENDING" and t.requeue),
            lambda engine, t: engine.cancel(OLGA, t.project, str(t.id), call_id),
        )
        return command if command.reads else replace(command, call_id=call_id)

    def _release(self, now: int) -> Command:
        those = [t for t in self._auditor.requests.values() if not t.deleted]
        gangs = [t for t in those if t.phase == "ACTIVE" and t.held is not None and len(t.held.places) > 1]
        told = self._some(gangs if gangs and self._dice.random() < 0.5 else those)
        if told is None:
            return self._look(now)
        held, rank = told.held, self._dice.choice((None, 0, 1))
        ranks: tuple[int, ...] = ()
        if held is not None and rank in held.places:
            assert rank is not None, "no rank is None"
            ranks = tuple(self._dice.choice((held.mates(rank), (rank,))))
        command = Release(project=told.project, name=str(told.id), ranks=ranks)
        refusal: type[DwsError] | None = None if told.phase == "ACTIVE" else FailedPrecondition
        if refusal is None and held is not None and any(not {*held.mates(r)} <= {*ranks} for r in ranks):
            refusal = InvalidArgument  # a slice is given back as a whole
        return Command(
            words=f"release {f'ranks {ranks} of ' if ranks else ''}'{told.name}' ({told.phase})",
            act=lambda engine: engine.release(OLGA, command),
            refusal=refusal,
        )

    def _extend(self, now: int) -> Command:
        by_s = self._dice.choice((1, 60, 3_600, 100_000))
        at_most = self._dice.random() < 0.5

        def act(engine: Engine, told: Told) -> object:
            command = Extend(project=told.project, name=str(told.id), by_s=by_s, at_most=at_most)
            return engine.extend(OLGA, command)

        return self._about_one(f"extend by {by_s} s", now, lambda t: t.phase == "ACTIVE", act)

    def _delete(self, now: int) -> Command:
        return self._about_one(
            "delete",
            now,
            lambda t: t.phase in OVER,
            lambda engine, t: engine.delete(OLGA, t.project, str(t.id)),
        )

    # --- looking ------------------------------------------------------------------------------

    def _look(self, now: int) -> Command:
        dice = self._dice
        demand = self._demand(now)
        told = self._some(list(self._auditor.requests.values()))
        host = dice.choice(dice.choice(self._fleet().pools).hosts)
        ways: list[Command] = [
            Command(words="look at the queue", act=lambda e: e.queue(BOB), reads=True),
            Command(words="ann asks for a quote", act=lambda e: e.quote(ANN, "blue", demand), reads=True),
            Command(words="list requests", act=lambda e: e.list_requests(ANN, RequestQuery()), reads=True),
            Command(words="look at the fleet", act=lambda e: e.fleet(BOB), reads=True),
            Command(words="sum up usage", act=lambda e: e.usage(OLGA, start=0, end=FOREVER), reads=True),
            Command(
                words=f"olga asks who would lose {host}",
                act=lambda e: e.change_hosts(OLGA, ChangeHosts(hosts=(host,), state="DOWN")),
                reads=True,
            ),
        ]
        if told is not None:
            gone = NotFound if told.deleted else None
            ways.append(
                Command(
                    words=f"look at '{told.name}'",
                    act=lambda e: e.get(OLGA, told.project, str(told.id)),
                    refusal=gone,
                    reads=True,
                )
            )
        return dice.choice(ways)

    # --- the fleet ----------------------------------------------------------------------------

    def _change_hosts(self, now: int) -> Command:
        dice = self._dice
        pool = dice.choice(self._fleet().pools)
        names = tuple(dice.sample(pool.hosts, min(len(pool.hosts), dice.choice((1, 1, 2)))))
        state = dice.choice((HostState.DOWN, HostState.DRAINING, HostState.READY, HostState.READY))
        until = now + 600 if state is HostState.DOWN and dice.random() < 0.5 else 0
        command = ChangeHosts(hosts=names, state=state.value, until=until, confirm=True)
        return Command(
            words=f"olga makes {', '.join(names)} {state}",
            act=lambda engine: engine.change_hosts(OLGA, command),
        )

    def _apply_fleet(self, now: int) -> Command:
        del now
        fleet = self._fleet()
        pool = self._dice.choice(fleet.pools)
        grows = self._dice.random() < 0.6
        changed = larger(pool) if grows else smaller(pool)
        pools = tuple(changed if p is pool else p for p in fleet.pools)
        return Command(
            words=f"olga {'grows' if grows else 'shrinks'} {pool.name}",
            act=lambda engine: engine.apply_fleet(OLGA, replace(fleet, pools=pools), confirm=True),
            refusal=None if grows else FailedPrecondition,
            may_refuse=not grows,
        )
