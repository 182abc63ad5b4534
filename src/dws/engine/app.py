"""`Engine`: the object every face is given. One method for each thing a caller can ask.

Synchronous and thread-safe. Reads change nothing; writes return after they are durable; both raise
`dws.model.errors`. What makes time pass and work happen is `tick`, which production's loop, the virtual
clock and the simulator all call: there is no second implementation of anything.

    tick(now):  observe ─▶ execute ─▶ fire timers ─▶ plan     until nothing more happens at `now`
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date
from typing import Final, TypeVar

from dws.engine import (
    access,
    calendar,
    defrag,
    fleet,
    hosts,
    maintenance,
    requests,
    reservations,
    series,
    usage,
    verify,
)
from dws.engine.answers import (
    CalendarView,
    DefragRoom,
    Extended,
    FleetChange,
    FleetView,
    Health,
    HostChange,
    MaintenanceChange,
    MaintenanceView,
    RequestPage,
    RequestView,
    ReservationPage,
    ReservationView,
    Reserved,
    SeriesView,
    UsageLine,
    Verification,
)
from dws.engine.books import Books
from dws.engine.clock import MonotonicClock, VirtualClock, stopwatch
from dws.engine.commands import (
    Amend,
    AmendReservation,
    AmendSeries,
    ChangeHosts,
    Extend,
    PlanMaintenance,
    Release,
    Repeat,
    Reserve,
    Seek,
    Submit,
)
from dws.engine.committer import Committer
from dws.engine.executing import Executor, Job
from dws.engine.ids import Ids
from dws.engine.instances import order_key
from dws.engine.observing import Observer
from dws.engine.planning import plan_once
from dws.engine.ports import (
    Backend,
    Clock,
    HasTimers,
    IdSource,
    Meters,
    ProcessClock,
    Reader,
    RequestQuery,
    ReservationQuery,
    Store,
    StreamsLogs,
)
from dws.engine.timers import fire_due
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.access import Principal, Role
from dws.model.demand import Alternative, Demand
from dws.model.errors import FailedPrecondition, InvalidArgument, NotFound
from dws.model.request import CapacityRequest
from dws.model.reservation import Reservation
from dws.model.series import Series
from dws.model.time import DAY, Span
from dws.model.topology import Fleet, HostState, Pool
from dws.model.work import WorkKind
from dws.planner import advise, explain, windows
from dws.planner.options import DEFAULT_POLICY, PolicyOptions
from dws.planner.plan import Advice, Bind, Forecast, Quote, Start

T = TypeVar("T")
ROUNDS_MAX: Final = 10_000
STUCK_AFTER_S: Final = 60
CLOCK_KEY: Final = "virtual_now"
START_OVER_S: Final = 3_600
"""How often backends are asked for everything that is true instead of for news alone."""
PLAN_REST: Final = 4.0
PLAN_REST_MAX_S: Final = 0.5
"""After a pass the next one waits this many times as long as it took, at most so long: however deep the
queue and fast the arrivals, planning leaves most of the process to those who ask."""


class NoMeters:
    """Measures nothing."""

    def planned(self, seconds: float) -> None:
        """A planning pass took this long."""

    def happened(self, events: list[ev.Event]) -> None:
        """These events were committed."""


def run_here(work: Callable[[list[Job]], None], jobs: list[Job]) -> None:
    """Carry jobs out in this thread."""
    work(jobs)


class Engine:
    """Everything a face can ask, and the tick that makes it happen.

    `name` arguments accept a request's name (the newest of that name) or its id in decimal.
    """

    def __init__(
        self,
        *,
        store: Store,
        backends: Mapping[str, Backend],
        clock: Clock,
        policy: PolicyOptions = DEFAULT_POLICY,
        process_clock: ProcessClock | None = None,
        ids: IdSource | None = None,
        meters: Meters | None = None,
        run_all: Callable[[Callable[[list[Job]], None], list[Job]], None] = run_here,
    ) -> None:
        self.policy = policy
        self.books = Books()
        self._store = store
        self._backends = dict(backends)
        self._timed = [b for b in backends.values() if isinstance(b, HasTimers)]
        self._clock = clock
        self._meters = meters or NoMeters()
        self._driving = threading.RLock()
        self._news = threading.Condition()
        self._followers = 0
        self._last_seq = 0
        self._planned = -1
        self._planned_at = 0
        self._start_over_at = 0
        self._rest_until = 0.0
        self._look_again_at: int | None = None
        self._forecast: tuple[int, int, dict[int, Forecast]] = (-1, -1, {})
        self.wake = threading.Event()
        with store.read() as reader:
            self.books.load(reader)
            self._last_seq = reader.last_seq()
            ids = ids or Ids(reader.largest_id())
        self.committer = Committer(
            store=store,
            books=self.books,
            clock=clock,
            ids=ids,
            policy=policy,
            hints=_Hints(self.wake),
            on_events=self._told,
        )
        self.executor = Executor(
            store=store,
            committer=self.committer,
            backends=self._backends,
            process_clock=process_clock or MonotonicClock(),
            fleet=lambda: self.books.fleet,
            run_all=run_all,
        )
        self.observers = [Observer(b, self.committer) for b in self._backends.values()]

    # --- time ---------------------------------------------------------------------------------

    def now(self) -> int:
        """Domain time."""
        return self._clock.now()

    @property
    def is_virtual(self) -> bool:
        """True when time moves only when told."""
        return self._clock.is_virtual

    def open(self) -> None:
        """First act of a process that is alone with the store: leases of a dead one are void, and the
        standing timer exists."""
        self.committer.write(self._open, actor="system")

    def _open(self, w: Write) -> None:
        w.tx.clear_leases()
        if WorkKind.RETENTION not in {item.kind for item in w.tx.work(0)}:
            w.wake(0, WorkKind.RETENTION, w.now + DAY)

    def tick(self) -> None:
        """Do everything that is due at the present instant, until nothing more happens."""
        with self._driving:
            now = self._clock.now()
            for backend in self._timed:
                backend.advance(now)
            for _ in range(ROUNDS_MAX):
                did = 0
                for observer in self.observers:
                    did += observer.observe()
                did += self.work(now)
                if not did:
                    return
        raise AssertionError(f"still busy after {ROUNDS_MAX} rounds at one instant ({now})")

    def work(self, now: int) -> int:
        """One round without observing: carry out, fire, plan. Returns how much was done."""
        did = 0
        if now >= self._start_over_at:
            self._start_over_at = now + START_OVER_S
            for observer in self.observers:
                observer.start_over()
        due = self._next_work()
        if due is not None and due <= now:
            did += self.executor.execute_due(now)
            did += fire_due(self._store, self.committer, self.executor, now)
        return did + self._plan(now)

    def _plan(self, now: int) -> int:
        """Plan if anything the planner sees has changed, if time alone calls for it, or if it has not been
        done for `full_plan_interval_s`: what that last look starts had lost its wake-up."""
        due = self._look_again_at is not None and self._look_again_at <= now
        idle = self.books.stirred == self._planned and not due
        if idle and now < self._planned_at + self.policy.full_plan_interval_s:
            return 0
        if not self._clock.is_virtual and stopwatch() < self._rest_until:
            return 0
        self._planned_at = now
        if not self.books.waiting and not self.books.reservations:
            self._planned, self._look_again_at = self.books.stirred, None
            return 0
        began = stopwatch()
        seen, version = self.books.stirred, self.books.version
        plan, jobs = plan_once(self.books, self.committer, self.executor, self.policy, now)
        took = stopwatch() - began
        self._rest_until = stopwatch() + min(PLAN_REST_MAX_S, PLAN_REST * took)
        self._meters.planned(took)
        again = plan.look_again_at
        unfinished = again is not None and again <= now and not plan.decisions
        self._look_again_at = now + 1 if unfinished else again
        alone = self.books.version == version + bool(plan.decisions)
        bound = any(isinstance(d, Bind) for d in plan.decisions)  # what waits inside can start now
        self._planned = self.books.stirred if alone and not bound else seen
        late = [str(d.request) for d in plan.decisions if isinstance(d, Start)]
        if idle and late:
            note = ev.Noted(what="a wake-up was lost", facts={"requests": " ".join(late)})
            self.committer.write(
                lambda w: w.record(ev.SubjectKind.SYSTEM, 0, note), actor="watchdog"
            )
        self.executor.carry_out(jobs)
        return len(plan.decisions)

    def next_due(self) -> int | None:
        """The next instant at which there is something to do, None when there never will be."""
        dues = [self._next_work(), self._look_again_at]
        dues += [b.next_due() for b in self._timed]
        if self.books.stirred != self._planned:
            dues.append(self._clock.now())
        if self.books.waiting or self.books.reservations:
            dues.append(self._planned_at + self.policy.full_plan_interval_s)
        return min([due for due in dues if due is not None], default=None)

    def _next_work(self) -> int | None:
        with self._store.read() as reader:
            return reader.next_due()

    def advance(self, who: Principal, seconds: int) -> int:
        """Step a virtual clock through everything due in that time; returns the new now.

        Raises FailedPrecondition on a real clock, InvalidArgument when `seconds` is negative.
        """
        access.may_operate(who)
        if not isinstance(self._clock, VirtualClock):
            raise FailedPrecondition(
                "this server runs on the real clock; start it with --clock virtual to move time"
            )
        if seconds < 0:
            raise InvalidArgument(f"by: {seconds} s; time cannot go back", field="by")
        with self._driving:
            end = self._clock.now() + seconds
            self.tick()
            while (due := self.next_due()) is not None and due <= end:
                self._clock.jump_to(max(due, self._clock.now()))
                self.tick()
            self._clock.jump_to(end)
            self.tick()
            self.committer.write(lambda w: w.tx.put_meta(CLOCK_KEY, str(end)), actor="clock")
            self.books.prune(end)
            return end

    # --- requests -----------------------------------------------------------------------------

    def submit(self, who: Principal, command: Submit) -> tuple[RequestView, ...]:
        """Ask for capacity; an array makes several. Forecasts are left to `get` and `queue`."""
        return tuple(
            RequestView(request=r)
            for r in self._write(lambda w: requests.submit(w, who, command), who, command.call_id)
        )

    def amend(self, who: Principal, command: Amend) -> RequestView:
        """Change a waiting request."""
        work = lambda w: requests.amend(w, who, command)  # noqa: E731
        return self._view(self._write(work, who, command.call_id)[0])

    def cancel(self, who: Principal, project: str, name: str, call_id: str = "") -> RequestView:
        """Stop wanting a request that waits or is being provisioned."""
        work = lambda w: requests.cancel(w, who, project, name, call_id)  # noqa: E731
        return self._view(self._write(work, who, call_id)[0])

    def release(self, who: Principal, command: Release) -> RequestView:
        """Give back what a request holds, whole or by instance."""
        work = lambda w: requests.release(w, who, command)  # noqa: E731
        return self._view(self._write(work, who, command.call_id)[0])

    def extend(self, who: Principal, command: Extend) -> Extended:
        """Run longer, if that breaks no promise."""
        request, extension, applied = self._write(
            lambda w: requests.extend(w, who, command), who, command.call_id
        )
        return Extended(view=self._view(request), extension=extension, applied_s=applied)

    def delete(self, who: Principal, project: str, name: str) -> None:
        """Put a finished request's record away."""
        self._write(lambda w: requests.delete(w, who, project, name), who)

    def check(self, who: Principal, command: Submit) -> None:
        """Everything `submit` would refuse, without submitting."""
        access.may_write(who, command.project)
        access.may_run(who, command.workload)
        now = self.now()
        requests.check_submission(command)
        demand = requests.window(now, command.demand, command.wait_s)
        with self._store.read() as reader:
            demand = requests.aimed(reader, demand, command.project, command.reservation)
        requests.admit(self.books, self.policy, now, demand, command.project)

    def get(self, who: Principal, project: str, name: str) -> RequestView:
        """One request, with its forecast while it waits and its cost so far."""
        access.may_read(who, project)
        with self._store.read() as reader:
            request = requests.look_up(reader, project, name)
            cost = usage.cost_micros(reader, self.books, request, self.now())
        return self._view(request, cost)

    def list_requests(self, who: Principal, query: RequestQuery) -> RequestPage:
        """A page of requests the caller may see."""
        if query.project:
            access.may_read(who, query.project)
        elif who.projects:
            query = RequestQuery(
                projects=who.projects,
                states=query.states,
                array=query.array,
                labels=query.labels,
                newest_first=query.newest_first,
                after=query.after,
                limit=query.limit,
            )
        with self._store.read() as reader:
            found = reader.requests(query)
        more = found[-1].id if len(found) == query.limit else None
        return RequestPage(items=tuple(self._view(r) for r in found), next_after=more)

    def queue(self, who: Principal) -> tuple[RequestView, ...]:
        """Every waiting request the caller may see, in line order, each with its forecast."""
        told = self.forecast()
        with self.books.lock:
            waiting = [r for r in self.books.waiting.values() if r.id in told]
        waiting.sort(key=lambda r: told[r.id].place)
        return tuple(
            RequestView(request=r, forecast=told[r.id])
            for r in waiting
            if not who.projects or r.project in who.projects
        )

    def quote(
        self,
        who: Principal,
        project: str,
        demand: Demand,
        priority: int = 0,
        reservation: str = "",
    ) -> Quote:
        """When, until when and for how much, without asking. Holds nothing. `reservation` as in `Submit`."""
        access.may_read(who, project)
        now = self.now()
        demand = requests.window(now, demand, None)
        if reservation:
            with self._store.read() as reader:
                demand = requests.aimed(reader, demand, project, reservation)
            requests.admit(self.books, self.policy, now, demand, project)
        snapshot = self.books.snapshot()
        return advise.quote(snapshot, self.policy, now, demand, project=project, priority=priority)

    def forecast(self) -> dict[int, Forecast]:
        """What every waiting request can expect, computed at most once a ledger version and second."""
        snapshot, now = self.books.snapshot(), self.now()
        version, at, told = self._forecast
        if (version, at) != (snapshot.ledger_version, now):
            told = explain.forecast(snapshot, self.policy, now)
            self._forecast = (snapshot.ledger_version, now, told)
        return told

    def read_log(
        self, who: Principal, project: str, name: str, rank: int, offset: int, limit: int
    ) -> tuple[bytes, int, bool]:
        """Output bytes of an instance, the next offset, and whether no more will ever come."""
        request = self.get(who, project, name).request
        if request.grant is None:
            if request.state.is_terminal:
                return b"", offset, True
            raise NotFound(f"request '{request.name}' is {request.state}: nothing has run yet")
        if not 0 <= rank < len(request.grant.instances):
            raise InvalidArgument(
                f"rank: {rank} is not one of 0 … {len(request.grant.instances) - 1}", field="rank"
            )
        backend = self._backends.get(self.books.fleet.pool(request.grant.pool).backend)
        if not isinstance(backend, StreamsLogs):
            return b"", offset, request.state.is_terminal
        key = order_key(request, request.grant.instances[rank].incarnation)
        try:
            data, after = backend.read_log(key, rank, offset=offset, limit=limit)
        except NotFound:
            data, after = b"", offset
        return data, after, request.state.is_terminal and not data

    # --- reservations -------------------------------------------------------------------------

    def reserve(self, who: Principal, command: Reserve) -> Reserved:
        """Book a block of capacity, or with `dry_run` say how it would be."""
        work = lambda w: reservations.reserve(w, who, command)  # noqa: E731
        return self._reserved(self._write(work, who, command.call_id), dry_run=command.dry_run)

    def amend_reservation(self, who: Principal, command: AmendReservation) -> Reserved:
        """Change a reservation in one step, or with `dry_run` say how it would be."""
        work = lambda w: reservations.amend(w, who, command)  # noqa: E731
        return self._reserved(self._write(work, who, command.call_id), dry_run=command.dry_run)

    def _reserved(self, reservation: Reservation, *, dry_run: bool) -> Reserved:
        return Reserved(
            view=calendar.view(self.books, reservation),
            dry_run=dry_run,
            rules=calendar.rules(self.policy, reservation),
        )

    def approve_reservation(self, who: Principal, project: str, name: str) -> ReservationView:
        """Say yes to a reservation that waits for approval."""
        return self._on_reservation(lambda w: reservations.approve(w, who, project, name), who)

    def decline_reservation(
        self, who: Principal, project: str, name: str, reason: str = ""
    ) -> ReservationView:
        """Say no to a reservation that waits for approval."""
        return self._on_reservation(
            lambda w: reservations.decline(w, who, project, name, reason), who
        )

    def cancel_reservation(
        self, who: Principal, project: str, name: str, *, force: bool = False
    ) -> ReservationView:
        """Stop wanting a reservation that has not started; an operator may force it."""
        return self._on_reservation(
            lambda w: reservations.cancel(w, who, project, name, force=force), who
        )

    def release_reservation(self, who: Principal, project: str, name: str) -> ReservationView:
        """Give an open reservation back early."""
        return self._on_reservation(lambda w: reservations.release(w, who, project, name), who)

    def delete_reservation(self, who: Principal, project: str, name: str) -> None:
        """Put the record of a reservation that is over away."""
        self._write(lambda w: reservations.delete(w, who, project, name), who)

    def _on_reservation(
        self, work: Callable[[Write], Reservation], who: Principal
    ) -> ReservationView:
        done = self._write(work, who)
        with self._store.read() as reader:
            return calendar.view(self.books, reader.reservation(done.id) or done)

    def get_reservation(self, who: Principal, project: str, name: str) -> ReservationView:
        """One reservation, with what runs and waits in it."""
        with self._store.read() as reader:
            found = reservations.look_up(reader, project, name)
        if not calendar.may_see(who, found):
            access.may_read(who, project)
        return calendar.view(self.books, found)

    def list_reservations(self, who: Principal, query: ReservationQuery) -> ReservationPage:
        """A page of reservations the caller may see."""
        if query.project:
            access.may_read(who, query.project)
        elif who.projects and who.role is not Role.OPERATOR:
            query = replace(query, projects=who.projects)
        with self._store.read() as reader:
            found = reader.reservations(query)
        more = found[-1].id if len(found) == query.limit else None
        views = calendar.views(self.books, found)
        return ReservationPage(items=views, next_after=more)

    def booked(
        self, who: Principal, *, since: int, project: str = "", principal: str = ""
    ) -> tuple[Reservation, ...]:
        """Reservations whose windows end behind `since`, cancelled ones too, for a calendar to show: all,
        or only a project's, or only those that a person booked and the caller may see.

        Of those that are not the caller's, only when and how much may be shown (`calendar.may_see`).
        """
        if project:
            access.may_read(who, project)
        query = ReservationQuery(project=project, ends_after=since)
        found: list[Reservation] = []
        with self._store.read() as reader:
            while page := reader.reservations(query):
                found += page
                query = replace(query, after=page[-1].id)
        return tuple(
            r
            for r in found
            if not principal or (r.principal == principal and calendar.may_see(who, r))
        )

    def repeat(self, who: Principal, command: Repeat) -> SeriesView:
        """Begin a series of reservations."""
        return self._series_view(
            self._write(lambda w: series.repeat(w, who, command), who, command.call_id)
        )

    def amend_series(self, who: Principal, command: AmendSeries) -> SeriesView:
        """Change a series from now on."""
        return self._series_view(self._write(lambda w: series.amend(w, who, command), who))

    def leave_out(self, who: Principal, project: str, name: str, day: date) -> SeriesView:
        """Cancel the occurrence of one day."""
        return self._series_view(
            self._write(lambda w: series.leave_out(w, who, project, name, day), who)
        )

    def cancel_series(self, who: Principal, project: str, name: str) -> SeriesView:
        """End a series and cancel what of it has not started."""
        return self._series_view(
            self._write(lambda w: series.cancel(w, who, project, name), who)
        )

    def get_series(self, who: Principal, project: str, name: str) -> SeriesView:
        """One series, with its next occurrences."""
        access.may_read(who, project)
        with self._store.read() as reader:
            found = series.look_up(reader, project, name)
        return self._series_view(found)

    def list_series(self, who: Principal, project: str = "") -> tuple[SeriesView, ...]:
        """Every series the caller may see."""
        if project:
            access.may_read(who, project)
        with self._store.read() as reader:
            found = reader.all_series(project)
        mine = (s for s in found if not who.projects or s.project in who.projects)
        return tuple(self._series_view(s) for s in mine)

    def _series_view(self, found: Series) -> SeriesView:
        with self._store.read() as reader:
            ahead = series.upcoming(reader, found, self.now(), self.policy.calendar_horizon_s)
        return SeriesView(series=found, upcoming=ahead)

    def advise(self, who: Principal, command: Seek) -> Advice:
        """Windows that could be booked now, best first. Holds nothing."""
        access.may_read(who, command.project)
        now = self.now()
        search = reservations.search_of(now, self.policy, command)
        return windows.advise(
            self.books.snapshot(),
            self.policy,
            now,
            command.alternative,
            search,
            limit=command.limit,
            hours=reservations.hours_of(command, search),
            soonest=command.soonest,
        )

    def calendar(
        self, who: Principal, *, start: int, end: int, pools: frozenset[str] = frozenset()
    ) -> CalendarView:
        """All bookings over [start, end), as the caller may see them, and what is free; of the pools or
        zones named, or of all."""
        if end <= start:
            raise InvalidArgument("end: must lie after the start", field="end")
        return calendar.calendar(self.books, who, self.now(), Span(start, end), pools)

    # --- fleet --------------------------------------------------------------------------------

    def fleet(self, who: Principal) -> FleetView:
        """How the fleet stands now."""
        del who
        return fleet.view(self.books, self.now())

    def defrag(self, who: Principal, wanted: Alternative) -> tuple[DefragRoom, ...]:
        """Whose work would have to end or move to make room for a shape, pool by pool. Changes nothing."""
        access.may_operate(who)
        return defrag.rooms(self.books, self.now(), wanted)

    def declared_fleet(self, who: Principal) -> Fleet:
        """The fleet as declared."""
        del who
        return self.books.fleet

    @property
    def backend_names(self) -> frozenset[str]:
        """The backends that pools may name."""
        return frozenset(self._backends)

    def apply_fleet(self, who: Principal, new: Fleet, *, confirm: bool) -> FleetChange:
        """Declare the fleet anew; without `confirm` only say what would change."""
        access.may_operate(who)
        known = set(self._backends)
        for pool in new.pools:
            if pool.backend not in known:
                raise InvalidArgument(
                    f"pools.{pool.name}.backend: '{pool.backend}' is not running here "
                    f"(this server has: {', '.join(sorted(known))})",
                    field="pools.backend",
                )
        if not self._clock.is_virtual:
            new = fleet.for_real_time(new)
        lines = fleet.differences(self.books.fleet, new)
        if not lines or not confirm:
            fleet.refuse_if_in_use(self.books, new)
            return FleetChange(version=self.books.fleet.version, lines=lines, applied=False)
        applied = self._write(lambda w: fleet.apply(w, new, lines), who)
        return FleetChange(version=applied.version, lines=lines, applied=True)

    def change_hosts(self, who: Principal, command: ChangeHosts) -> HostChange:
        """Drain, fail or repair hosts; without `confirm` only say whom it affects."""
        access.may_operate(who)
        try:
            state = HostState(command.state)
        except ValueError:
            states = ", ".join(HostState)
            raise InvalidArgument(
                f"state: '{command.state}' is not one of {states}", field="state"
            ) from None
        if not command.hosts:
            raise InvalidArgument("hosts: name at least one", field="hosts")
        if command.until and command.until <= self.now():
            raise InvalidArgument("until: lies in the past", field="until")
        with self.books.lock:
            targets = [hosts.find(self.books.fleet, name) for name in command.hosts]
            touched = hosts.affected(
                self.books,
                targets,
                state,
                until=command.until,
                policy=self.policy,
                now=self.now(),
            )
        if command.confirm:
            reason = command.reason or f"{who.name} said so"
            self._write(
                lambda w: _change_hosts(w, targets, state, reason, command.until),
                who,
            )
        return HostChange(
            hosts=tuple(pool.hosts[unit] for pool, unit in targets),
            state=state,
            affected=touched,
            confirmed=command.confirm,
        )

    def plan_maintenance(self, who: Principal, command: PlanMaintenance) -> MaintenanceChange:
        """Take hosts out of service over a window; without `confirm` only say whom it touches."""
        access.may_operate(who)
        now = self.now()
        with self.books.lock:
            targets = [hosts.find(self.books.fleet, name) for name in command.hosts]
            maintenance.check(self.books, now, command, targets)
            window = maintenance.window_of(command)
            touched = maintenance.affected(self.books, self.policy, now, targets, window)
        if not command.confirm:
            return MaintenanceChange(affected=touched, window=None)
        planned = self._write(lambda w: maintenance.plan(w, command, targets), who)
        return MaintenanceChange(affected=touched, window=maintenance.view(self.books, planned))

    def cancel_maintenance(self, who: Principal, name: str) -> None:
        """A window will not be, or is over before its time."""
        access.may_operate(who)
        self._write(lambda w: maintenance.cancel(w, name), who)

    def maintenance(self, who: Principal) -> tuple[MaintenanceView, ...]:
        """Every maintenance window that is not over."""
        del who
        with self.books.lock:
            return maintenance.windows(self.books)

    # --- the story ----------------------------------------------------------------------------

    def events(
        self,
        who: Principal,
        *,
        after: int = 0,
        limit: int = 500,
        project: str = "",
        name: str = "",
        reservation: str = "",
        newest_first: bool = False,
    ) -> list[ev.Event]:
        """Recorded facts the caller may see; with `name` those of one request, with `reservation` those of
        the reservation of that name. None means: none behind `after`, however many there are of others'."""
        if project:
            access.may_read(who, project)
        with self._store.read() as reader:
            if name or reservation:
                kind = ev.SubjectKind.REQUEST if name else ev.SubjectKind.RESERVATION
                subject = (
                    requests.look_up(reader, project, name).id
                    if name
                    else reservations.look_up(reader, project, reservation).id
                )
                return reader.events(
                    after=after,
                    limit=limit,
                    subject_kind=kind,
                    subject=subject,
                    newest_first=newest_first,
                )
            while True:
                found = reader.events(
                    after=after, limit=limit, project=project, newest_first=newest_first
                )
                seen = [e for e in found if _may_see(who, e)]
                if seen or newest_first or len(found) < limit:
                    return seen
                after = found[-1].seq

    def last_seq(self) -> int:
        """The sequence number of the newest event."""
        return self._last_seq

    def wait_for_events(self, after: int, timeout_s: float) -> bool:
        """Block until an event behind `after` is committed; False when the time is over."""
        with self._news:
            self._followers += 1
            try:
                return self._news.wait_for(lambda: self._last_seq > after, timeout_s)
            finally:
                self._followers -= 1

    def usage(
        self, who: Principal, *, start: int, end: int, project: str = ""
    ) -> tuple[UsageLine, ...]:
        """Use over [start, end), running work included until now."""
        if project:
            access.may_read(who, project)
        with self._store.read() as reader:
            found = usage.lines(
                reader, self.books, start=start, end=end, now=self.now(), project=project
            )
        return tuple(line for line in found if not who.projects or line.project in who.projects)

    def verify(self, who: Principal) -> Verification:
        """The ledger checked against itself."""
        del who
        with self._store.read() as reader:
            return verify.verify(reader)

    def backup(self, who: Principal, path: str) -> None:
        """A consistent copy of the store, while it is in use."""
        access.may_operate(who)
        self._store.backup(path)

    def health(self) -> Health:
        """What health checks and metrics are made of."""
        now = self.now()
        with self._store.read() as reader:
            late = reader.due_work(now - STUCK_AFTER_S, limit=1_000)
            return Health(
                now=now,
                ledger_version=reader.ledger_version(),
                last_seq=reader.last_seq(),
                states=reader.count_requests(),
                oldest_due_s=max((now - item.due_at for item in late), default=0),
                stuck=len(late),
                fragments=fleet.fragments(self.books),
            )

    # --- doors' documents ---------------------------------------------------------------------

    def transact(self, who: Principal, work: Callable[[Write], T], call_id: str = "") -> T:
        """Run a door's unit of writing: its documents, and the requests and reservations they stand for,
        change together or not at all. Access is for `work` to check."""
        return self._write(work, who, call_id)

    def reading(self) -> AbstractContextManager[Reader]:
        """A consistent view of what is stored, for a door to show its documents by. Access is for the
        reader to check."""
        return self._store.read()

    # --- inside -------------------------------------------------------------------------------

    def _write(self, work: Callable[[Write], T], who: Principal, call_id: str = "") -> T:
        """Write, and under virtual time do at once what is due because of it."""
        if not self._clock.is_virtual:
            return self.committer.write(work, actor=who.name, call_id=call_id)
        with self._driving:
            done = self.committer.write(work, actor=who.name, call_id=call_id)
            self.tick()
            return done

    def _view(self, request: CapacityRequest, cost_micros: int = 0) -> RequestView:
        told = self.forecast().get(request.id) if request.state.is_waiting else None
        named = request.grant.reservation if request.grant is not None else request.demand.reservation
        return RequestView(
            request=request,
            forecast=told,
            cost_micros=cost_micros,
            reservation=self.books.reservations.get(named),
        )

    def _told(self, events: list[ev.Event]) -> None:
        newest = events[-1].seq
        with self._news:
            self._last_seq = max(self._last_seq, newest)
            if self._followers:
                self._news.notify_all()
        self._meters.happened(events)


def _may_see(who: Principal, event: ev.Event) -> bool:
    return not who.projects or not event.project or event.project in who.projects


class _Hints:
    """Hints wake the one driver; one that is awake already needs no lock taken to be told again."""

    def __init__(self, wake: threading.Event) -> None:
        self._wake = wake

    def planning(self) -> None:
        """Something the planner cares about changed."""
        if not self._wake.is_set():
            self._wake.set()

    def executing(self) -> None:
        """Work is due."""
        if not self._wake.is_set():
            self._wake.set()

    def published(self) -> None:
        """New events were committed."""


def _change_hosts(
    w: Write, targets: list[tuple[Pool, int]], state: HostState, reason: str, until: int
) -> None:
    for pool, unit in targets:
        match state:
            case HostState.DOWN:
                hosts.take_down(w, pool.name, unit, reason=reason, until=until)
            case HostState.DRAINING:
                hosts.drain(w, pool.name, unit, reason=reason)
            case HostState.READY:
                hosts.bring_back(w, pool.name, unit, reason=reason)
