"""A small world for scenario tests: the real engine under a virtual clock, told what to do in one line.

    world = World(f1())
    world.submit("train", hosts=2, hours=4)
    world.advance(hours=1)
    assert world.state("train") is RequestState.ACTIVE
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from dws.backends.simulated.backend import SimulatedBackend
from dws.engine.answers import HostChange, RequestView, ReservationView
from dws.engine.app import Engine
from dws.engine.clock import VirtualClock
from dws.engine.commands import (
    Amend,
    AmendReservation,
    ChangeHosts,
    Extend,
    Release,
    Reserve,
    Submit,
)
from dws.engine.ports import Backend, RequestQuery, ReservationQuery, Store
from dws.model import events as ev
from dws.model.access import Principal, Role
from dws.model.catalog import shape
from dws.model.demand import Alternative, Demand
from dws.model.request import CapacityRequest, HostLossPolicy, RequestState, Workload
from dws.model.reservation import Reservation
from dws.model.resources import NO_OVERHEADS, Overheads
from dws.model.time import FOREVER
from dws.model.topology import Domain, Fleet, Pool, Zone
from dws.planner.options import PolicyOptions
from dws.planner.plan import Quote
from dws.store.memory import MemoryStore

MONDAY_9 = int(datetime(2027, 1, 11, 9, tzinfo=UTC).timestamp())
H = 3600
ANN = Principal(name="ann", role=Role.USER, may_run_programs=True)
OPERATOR = Principal(name="olga", role=Role.OPERATOR, may_run_programs=True)


def a_gpu_pool(
    name: str,
    hosts: int,
    blocks: Mapping[str, int],
    machine: str = "a3-highgpu-8g",
    zone: str = "z1",
    overheads: Overheads = NO_OVERHEADS,
) -> Pool:
    """A pool of simulated GPU hosts `NAME-h1` … in blocks of the given sizes, at 4.20 an hour."""
    known = shape(machine)
    assert known is not None
    domains, first = [], 0
    for block, size in blocks.items():
        domains.append(Domain(level="block", name=block, first=first, size=size))
        first += size
    return Pool(
        name=name,
        zone=zone,
        shape=known,
        backend="simulated",
        hosts=tuple(f"{name}-h{i + 1}" for i in range(hosts)),
        domains=tuple(domains),
        overheads=overheads,
        price_micros_per_hour=4_200_000,
    )


def f1(overheads: Overheads = NO_OVERHEADS) -> Fleet:
    """Four hosts of 8 H100 in two blocks of two."""
    pool = a_gpu_pool("h100", 4, {"b1": 2, "b2": 2}, overheads=overheads)
    return Fleet(zones=(Zone(name="z1"),), pools=(pool,))


def f2() -> Fleet:
    """F1 plus two hosts of 8 A100."""
    a100 = a_gpu_pool("a100", 2, {"b3": 2}, machine="a2-highgpu-8g")
    return Fleet(zones=(Zone(name="z1"),), pools=(*f1().pools, a100))


class World:
    """An engine on a memory store (or the store given), a virtual clock and a simulated backend."""

    def __init__(
        self,
        fleet: Fleet,
        policy: PolicyOptions | None = None,
        *,
        backend: Backend | None = None,
        store: Store | None = None,
        start: int = MONDAY_9,
    ) -> None:
        self.policy = policy or PolicyOptions(warning_leads_s=())
        self.clock = VirtualClock(start)
        self.backend = backend or SimulatedBackend()
        self.store = store or MemoryStore()
        self.engine = self._engine()
        self.engine.apply_fleet(OPERATOR, fleet, confirm=True)

    def _engine(self) -> Engine:
        engine = Engine(
            store=self.store,
            backends={"simulated": self.backend},
            clock=self.clock,
            policy=self.policy,
        )
        engine.open()
        engine.tick()
        return engine

    def restart(self) -> None:
        """The process dies and another takes over store and world."""
        self.engine = self._engine()

    # --- commands -----------------------------------------------------------------------------

    def submit(
        self,
        name: str,
        *,
        hosts: int = 0,
        gpus: int = 0,
        hours: float = 1,
        seconds: int = 0,
        machine: str = "a3-highgpu-8g",
        accelerator: str = "h100",
        within: str | None = None,
        zones: tuple[str, ...] = (),
        alternatives: tuple[Alternative, ...] = (),
        not_before: int = 0,
        not_after: int = FOREVER,
        wait_s: int | None = None,
        command: tuple[str, ...] | None = None,
        environment: dict[str, str] | None = None,
        on_host_loss: HostLossPolicy | None = None,
        priority: int = 0,
        project: str = "p",
        call_id: str = "",
        who: Principal = ANN,
        array: int = 0,
        reservation: str = "",
    ) -> CapacityRequest:
        """Ask for so many hosts, or GPUs, for so long (`hours=0`: to the end of its reservation)."""
        duration = seconds or int(hours * H)
        if not alternatives:
            one = (
                Alternative(shape=machine, count=hosts, duration_s=duration, within=within, locations=zones)
                if hosts
                else Alternative(
                    accelerator=accelerator, count=gpus, duration_s=duration, within=within, locations=zones
                )
            )
            alternatives = (one,)
        workload = None
        if command is not None:
            workload = Workload(command=command, environment=environment or {})
        demand = Demand(alternatives=alternatives, not_before=not_before, not_after=not_after)
        views = self.engine.submit(
            who,
            Submit(
                project=project,
                name=name,
                demand=demand,
                wait_s=wait_s,
                priority=priority,
                workload=workload,
                on_host_loss=on_host_loss,
                call_id=call_id,
                array=array,
                reservation=reservation,
            ),
        )
        return self.request(views[0].request.name, project)

    def cancel(self, name: str) -> RequestView:
        return self.engine.cancel(ANN, "p", name)

    def release(self, name: str, ranks: tuple[int, ...] = ()) -> RequestView:
        return self.engine.release(ANN, Release(project="p", name=name, ranks=ranks))

    def extend(self, name: str, hours: float, *, at_most: bool = False):  # type: ignore[no-untyped-def]
        command = Extend(project="p", name=name, by_s=int(hours * H), at_most=at_most)
        return self.engine.extend(ANN, command)

    def amend(self, name: str, **changes: object) -> RequestView:
        return self.engine.amend(ANN, Amend(project="p", name=name, **changes))  # type: ignore[arg-type]

    def quote(self, *, gpus: int, hours: float, within: str | None = None) -> Quote:
        alternative = Alternative(accelerator="h100", count=gpus, duration_s=int(hours * H), within=within)
        return self.engine.quote(ANN, "p", Demand(alternatives=(alternative,)))

    def reserve(
        self,
        name: str,
        *,
        hosts: int,
        start: int,
        hours: float,
        machine: str = "a3-highgpu-8g",
        zones: tuple[str, ...] = (),
        within: str | None = None,
        who: Principal = ANN,
        project: str = "p",
        **more: object,
    ) -> Reservation:
        """Book so many hosts from an instant for so long."""
        alternative = Alternative(
            shape=machine, count=hosts, duration_s=int(hours * H), locations=zones, within=within
        )
        command = Reserve(project=project, name=name, alternative=alternative, start=start, **more)  # type: ignore[arg-type]
        return self.engine.reserve(who, command).view.reservation

    def amend_reservation(self, name: str, *, who: Principal = ANN, **changes: object) -> Reservation:
        command = AmendReservation(project="p", name=name, **changes)  # type: ignore[arg-type]
        return self.engine.amend_reservation(who, command).view.reservation

    def reservation(self, name: str, project: str = "p") -> Reservation:
        return self.reserved(name, project).reservation

    def reserved(self, name: str, project: str = "p") -> ReservationView:
        return self.engine.get_reservation(OPERATOR, project, name)

    def kinds(self, name: str) -> list[str]:
        """The kinds of events of a reservation, in order."""
        found = self.engine.events(OPERATOR, limit=100_000)
        return [e.kind for e in found if e.name == name and e.kind.startswith("Reservation")]

    def hosts(self, state: str, *names: str, until: int = 0) -> HostChange:
        """Drain (`DRAINING`), fail (`DOWN`) or repair (`READY`) hosts."""
        return self.engine.change_hosts(
            OPERATOR, ChangeHosts(hosts=names, state=state, until=until, confirm=True)
        )

    def advance(self, *, hours: float = 0, minutes: float = 0, seconds: int = 0) -> int:
        return self.engine.advance(OPERATOR, int(hours * H + minutes * 60) + seconds)

    # --- what is so ---------------------------------------------------------------------------

    def now(self) -> int:
        return self.engine.now()

    def view(self, name: str, project: str = "p") -> RequestView:
        return self.engine.get(ANN, project, name)

    def request(self, name: str, project: str = "p") -> CapacityRequest:
        return self.view(name, project).request

    def state(self, name: str) -> RequestState:
        return self.request(name).state

    def hosts_of(self, name: str) -> list[str]:
        grant = self.request(name).grant
        return [i.host for i in grant.instances if i.is_held] if grant else []

    def started_at(self, name: str) -> int:
        grant = self.request(name).grant
        assert grant is not None, f"{name} has not started: {self.view(name)}"
        return grant.started_at

    def expected_start(self, name: str) -> int | None:
        forecast = self.view(name).forecast
        assert forecast is not None
        return forecast.expected_start

    def reason(self, name: str) -> str:
        """The reason it waits, with its facts, as one string."""
        forecast = self.view(name).forecast
        assert forecast is not None
        return f"{forecast.reason.code}: {forecast.reason.text} {dict(forecast.reason.facts)}"

    def story(self, name: str) -> list[str]:
        """The kinds of events of a request, in order."""
        return [e.kind for e in self.engine.events(ANN, project="p", name=name)]

    def events(self, kind: type) -> list[ev.Event]:
        return [e for e in self.engine.events(OPERATOR, limit=100_000) if isinstance(e.body, kind)]

    def everything(self) -> tuple[object, ...]:
        """All that is stored, for comparing before and after."""
        with self.store.read() as reader:
            return (
                reader.requests(RequestQuery(include_deleted=True, limit=100_000)),
                reader.reservations(ReservationQuery(include_deleted=True, limit=100_000)),
                reader.open_bookings(),
                reader.host_statuses(),
                reader.last_seq(),
                reader.ledger_version(),
                reader.next_due(),
            )

    def booked_hosts(self) -> int:
        """Hosts in live bookings now."""
        with self.store.read() as reader:
            return sum(b.count for b in reader.open_bookings() if b.stage == "LIVE")

    def check(self) -> None:
        """The ledger agrees with itself."""
        assert self.engine.verify(OPERATOR).faults == ()
