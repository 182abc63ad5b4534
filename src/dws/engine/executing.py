"""Carries out due work that calls a backend.

    lease ─▶ (outside any transaction) call ─▶ apply, if the lease is still ours

The lease's token is a fence: work that took so long that someone else took over changes nothing. A
backend that is unavailable makes the item due again later; a retry is a row, never a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dws.engine import instances, orphans
from dws.engine.committer import Committer
from dws.engine.ports import (
    Backend,
    BackendUnavailable,
    Delivery,
    DeliveryState,
    InstanceOrder,
    Order,
    OrderRejected,
    ProcessClock,
    SetsDeadlines,
    Store,
)
from dws.engine.write import Write
from dws.model.evolve import evolve
from dws.model.request import CapacityRequest, Grant, InstanceState, RequestState
from dws.model.topology import Fleet
from dws.model.work import WorkItem, WorkKind

LEASE_S: Final = 120
LEASE_BATCH: Final = 64
UNAVAILABLE_RETRY_S: Final = 5

Outcome = Delivery | BackendUnavailable | OrderRejected | None


@dataclass(frozen=True, slots=True)
class Job:
    """A leased item, what to ask of which backend, and why nothing needs asking when orders are none."""

    item: WorkItem
    backend: Backend | None
    orders: tuple[Order, ...]


class Executor:
    """Leases due work, calls backends through `run_all`, applies what came back."""

    def __init__(
        self,
        *,
        store: Store,
        committer: Committer,
        backends: Mapping[str, Backend],
        process_clock: ProcessClock,
        fleet: Callable[[], Fleet],
        run_all: Callable[[Callable[[list[Job]], None], list[Job]], None],
    ) -> None:
        self._store = store
        self._committer = committer
        self._backends = backends
        self._process = process_clock
        self._fleet = fleet
        self._run_all = run_all
        self._leases = 0

    def execute_due(self, now: int) -> int:
        """Lease what is due and carry it out; returns how many items were taken."""
        with self._store.read() as reader:
            if not any(
                item.kind.calls_backend and item.lease_until <= self._process.now()
                for item in reader.due_work(now, limit=LEASE_BATCH, kinds=_KINDS)
            ):
                return 0
        jobs = self._committer.write(lambda w: self.lease(w, now), actor="executor")
        self.carry_out(jobs)
        return len(jobs)

    def finish(self, now: int) -> None:
        """Carry out, in this thread, what is due when the process is about to stop: a deadline that a
        backend has not been told yet would be kept by nobody until another server runs."""
        self._carry_out(self._committer.write(lambda w: self.lease(w, now), actor="executor"))

    def lease(self, w: Write, now: int) -> list[Job]:
        """Take what is due, in the caller's unit: a unit that makes work due may take it along. What is
        taken must be handed to `carry_out` once the unit is committed."""
        self._leases += 1
        process_now = self._process.now()
        items = w.tx.lease_work(
            now=now,
            process_now=process_now,
            until=process_now + LEASE_S,
            token=f"{id(self):x}.{self._leases}",
            limit=LEASE_BATCH,
        )
        return [self._job(w.books.holding.get(item.subject), item) for item in items]

    def carry_out(self, jobs: list[Job]) -> None:
        """Have leased jobs carried out, here or by the pool of callers."""
        if jobs:
            self._run_all(self._carry_out, jobs)

    def _job(self, request: CapacityRequest | None, item: WorkItem) -> Job:
        if item.subject == orphans.FLEET:
            return Job(item, self._backends.get(orphans.backend_of(item)), (orphans.order_of(item),))
        if request is None or request.grant is None:
            return Job(item, None, ())
        pool = self._fleet().pool(request.grant.pool)
        backend = self._backends.get(pool.backend)
        return Job(item, backend, tuple(orders_for(request, item, self._fleet())))

    def _carry_out(self, jobs: list[Job]) -> None:
        """Call for each job, then write what came back."""
        done = [(job, self._call_all(job)) for job in jobs]
        self._committer.write(lambda w: self._apply_all(w, done), actor="executor")

    def _call_all(self, job: Job) -> Outcome:
        outcome: Outcome = None
        for order in job.orders:
            outcome = _worse(outcome, self._call(job, order))
        return outcome

    def _apply_all(self, w: Write, done: list[tuple[Job, Outcome]]) -> None:
        for job, outcome in done:
            self._apply(w, job, outcome)

    def _call(self, job: Job, order: Order) -> Outcome:
        backend = job.backend
        if backend is None:
            return BackendUnavailable(f"no backend runs pool {order.pool}")
        try:
            match job.item.kind:
                case WorkKind.PROVISION:
                    return backend.provision(order)
                case WorkKind.RELEASE:
                    orphan = job.item.subject == orphans.FLEET
                    return backend.release(order, hard=orphan or job.item.attempt > 0)
                case _:
                    if isinstance(backend, SetsDeadlines):
                        backend.set_deadline(order)
                    return Delivery(state=DeliveryState.DELIVERED)
        except (BackendUnavailable, OrderRejected) as error:
            return error

    def _apply(self, w: Write, job: Job, outcome: Outcome) -> None:
        if not w.tx.leased(job.item):
            return
        item = job.item
        w.tx.unschedule(item.subject, (item.kind,), item.tag)
        if isinstance(outcome, BackendUnavailable):
            later = w.now + UNAVAILABLE_RETRY_S
            w.tx.schedule((evolve(item, due_at=later, lease_token="", lease_until=0),))
            return
        request = w.books.holding.get(item.subject)
        if request is None or _is_stale(request, job):
            if item.kind is WorkKind.PROVISION:
                _take_back(w, job)
            return
        if outcome is None:
            return
        match item.kind:
            case WorkKind.PROVISION:
                _provisioned(w, request, job.orders, outcome)
            case WorkKind.RELEASE if isinstance(outcome, Delivery):
                if outcome.state is DeliveryState.DELIVERED:
                    gone = {i.rank for o in job.orders for i in o.instances}
                    instances.released(w, request, gone)


_KINDS = tuple(k for k in WorkKind if k.calls_backend)


def _is_stale(request: CapacityRequest, job: Job) -> bool:
    """True when the request went on while the backend was asked: to another attempt, or to its end."""
    if not job.orders or request.grant is None:
        return False
    parsed = instances.parse_key(job.orders[0].key)
    if parsed is None or parsed[1] != request.grant.attempt:
        return True
    return job.item.kind is WorkKind.PROVISION and request.state is RequestState.ENDING


def _take_back(w: Write, job: Job) -> None:
    """What was made for a request that no longer wants it."""
    for order in job.orders:
        for instance in order.instances:
            orphans.give_back(
                w,
                backend=job.backend.name if job.backend is not None else "",
                key=order.key,
                rank=instance.rank,
                unit=instance.unit,
            )


def _worse(a: Outcome, b: Outcome) -> Outcome:
    """Of two outcomes, the one that says less was done."""
    order = (DeliveryState.DELIVERED, DeliveryState.UNDER_WAY, DeliveryState.FAILED)

    def rank(outcome: Outcome) -> int:
        return order.index(outcome.state) if isinstance(outcome, Delivery) else len(order)

    if a is None or b is None:
        return b if a is None else a
    return b if rank(b) > rank(a) else a


def _provisioned(
    w: Write, request: CapacityRequest, orders: tuple[Order, ...], outcome: Outcome
) -> None:
    if isinstance(outcome, OrderRejected):
        _refused(w, request, orders, str(outcome), may_retry=False)
    elif isinstance(outcome, Delivery):
        if outcome.state is DeliveryState.FAILED:
            _refused(w, request, orders, outcome.cause, may_retry=outcome.may_retry)
        elif outcome.state is DeliveryState.DELIVERED:
            up = {i.rank: outcome.addresses.get(i.rank, i.host) for o in orders for i in o.instances}
            instances.ran(w, request, up)


def _refused(
    w: Write, request: CapacityRequest, orders: tuple[Order, ...], cause: str, *, may_retry: bool
) -> None:
    if request.state is RequestState.PROVISIONING:
        instances.failed(w, request, cause, may_retry=may_retry, phase="provisioning")
        return
    for instance in orders[0].instances:
        cause = f"no spare: {cause}"
        request = instances.lost(w, request, instance.rank, cause, may_replace=False)


def orders_for(request: CapacityRequest, item: WorkItem, fleet: Fleet) -> Iterable[Order]:
    """What an item asks of the backend: the instances it is about, one order for each incarnation."""
    grant = instances.granted(request)
    match item.kind:
        case WorkKind.PROVISION:
            wanted = [i for i in grant.instances if i.state is InstanceState.STARTING]
        case WorkKind.RELEASE:
            wanted = [i for i in grant.instances if i.state is InstanceState.RELEASING]
        case _:
            wanted = [i for i in grant.instances if i.is_held]
    pool = fleet.pool(grant.pool)
    until = grant.ends_at or grant.started_at + pool.overheads.setup_s + grant.duration_s
    for incarnation in sorted({i.incarnation for i in wanted}):
        yield Order(
            key=instances.order_key(request, incarnation),
            request=request.id,
            request_name=request.name,
            project=request.project,
            pool=pool.name,
            zone=pool.zone,
            shape=pool.shape_named(grant.shape),
            instances=tuple(
                InstanceOrder(
                    rank=i.rank, unit=i.unit, host=i.host, slots=i.slots, environment=_of_slice(grant, i.rank)
                )
                for i in wanted
                if i.incarnation == incarnation
            ),
            size=len(grant.instances),
            workload=request.workload,
            environment=_environment(request),
            runs_until=until,
            duration_s=grant.duration_s,
            grace_s=pool.overheads.grace_s,
            issued_at=grant.started_at,
        )


def _environment(request: CapacityRequest) -> dict[str, str]:
    environment = {
        "DWS_REQUEST": request.name,
        "DWS_REQUEST_ID": str(request.id),
        "DWS_PROJECT": request.project,
        "DWS_ATTEMPT": str(instances.granted(request).attempt),
    }
    if request.array:
        environment["DWS_ARRAY"] = request.array
        environment["DWS_ARRAY_INDEX"] = str(request.array_index)
    return environment


def _of_slice(grant: Grant, rank: int) -> dict[str, str]:
    """What an instance of a TPU slice is told of it, under the names that programs look for."""
    if not grant.slices:
        return {}
    told = {"TPU_TOPOLOGY": grant.topology, "TPU_WORKER_ID": str(grant.worker_of(rank))}
    if grant.slices > 1:
        told["MEGASCALE_SLICE_ID"] = str(grant.slice_of(rank))
        told["MEGASCALE_NUM_SLICES"] = str(grant.slices)
    return told
