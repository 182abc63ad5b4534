"""Prometheus metrics: what the engine does and how the API answers.

`EngineMetrics` is the engine's `Meters`: it is told of every plan and every committed event. What is
counted at one instant (requests by state, stuck work) is read when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dws.model import events as ev
from dws.model.request import CapacityRequest, RequestState

WAITS_S: Final = (1, 10, 60, 300, 900, 3_600, 14_400, 43_200, 86_400, 259_200, 604_800)
PROMISE_ERRORS_S: Final = (-86_400, -14_400, -3_600, -900, -60, 0, 60, 900, 3_600, 14_400, 86_400)
PLANS_S: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
CALLS_S: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
REMEMBERED_MAX: Final = 200_000


class Fragmented(Protocol):
    """What is free in a pool, and how much of it each shape could use."""

    @property
    def pool(self) -> str: ...
    @property
    def free(self) -> int: ...
    @property
    def usable(self) -> Mapping[str, int]: ...
    @property
    def in_slices(self) -> Mapping[str, int]: ...
    @property
    def largest_slice(self) -> int | None: ...


class Healthy(Protocol):
    """What the engine says of itself."""

    @property
    def now(self) -> int: ...
    @property
    def ledger_version(self) -> int: ...
    @property
    def last_seq(self) -> int: ...
    @property
    def states(self) -> Mapping[RequestState, int]: ...
    @property
    def oldest_due_s(self) -> int: ...
    @property
    def stuck(self) -> int: ...
    @property
    def fragments(self) -> Sequence[Fragmented]: ...


class EngineMetrics:
    """Every metric of one server, in a registry of its own. Methods take seconds and never raise."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        self._waits = Histogram(
            "dws_request_wait_seconds", "From submission to start.", registry=own, buckets=WAITS_S
        )
        self._promises = Histogram(
            "dws_promise_error_seconds",
            "Actual start minus the start last promised.",
            registry=own,
            buckets=PROMISE_ERRORS_S,
        )
        self._plans = Histogram("dws_plan_seconds", "One planning pass.", registry=own, buckets=PLANS_S)
        self._events = Counter("dws_events", "Committed events.", ["kind"], registry=own)
        self._calls = Counter("dws_http_requests", "Answered calls.", ["method", "code"], registry=own)
        self._call_times = Histogram(
            "dws_http_request_seconds", "From call to answer.", ["method"], registry=own, buckets=CALLS_S
        )
        self._submitted_at: dict[int, int] = {}
        self._promised: dict[int, int] = {}

    # --- told by the engine -------------------------------------------------------------------

    def planned(self, seconds: float) -> None:
        """A planning pass took this long."""
        self.observe_plan_seconds(seconds)

    def happened(self, events: list[ev.Event]) -> None:
        """These events were committed."""
        for event in events:
            self._events.labels(event.kind).inc()
            if event.subject_kind is ev.SubjectKind.REQUEST:
                self._follow(event)

    def know(self, waiting: Iterable[CapacityRequest]) -> None:
        """Requests that were waiting before this process began."""
        for request in waiting:
            self._remember(request.id, request.submitted_at)
            if request.promised_start:
                self._promised[request.id] = request.promised_start

    def _follow(self, event: ev.Event) -> None:
        subject, body = event.subject, event.body
        match body:
            case ev.Submitted():
                self._remember(subject, body.request.submitted_at)
            case ev.Booked() | ev.Moved():
                if subject in self._submitted_at:
                    self._promised[subject] = body.start
            case ev.Unbooked():
                self._promised.pop(subject, None)
            case ev.Started():
                self._started(subject, body.grant.started_at)
            case ev.CancelRequested() | ev.WindowClosed() | ev.Deleted():
                self._forget(subject)

    def _started(self, subject: int, at: int) -> None:
        submitted_at, promised = self._submitted_at.get(subject), self._promised.get(subject)
        if submitted_at is not None:
            self.observe_wait(at - submitted_at)
        if promised is not None:
            self.observe_promise_error(at - promised)
        self._forget(subject)

    def _remember(self, subject: int, submitted_at: int) -> None:
        if len(self._submitted_at) < REMEMBERED_MAX:
            self._submitted_at[subject] = submitted_at

    def _forget(self, subject: int) -> None:
        self._submitted_at.pop(subject, None)
        self._promised.pop(subject, None)

    # --- measured -----------------------------------------------------------------------------

    def observe_wait(self, seconds: float) -> None:
        """A request started after waiting this long."""
        self._waits.observe(seconds)

    def observe_promise_error(self, seconds: float) -> None:
        """A request started this much later (or earlier, negative) than last promised."""
        self._promises.observe(seconds)

    def observe_plan_seconds(self, seconds: float) -> None:
        """A planning pass took this long, in process time."""
        self._plans.observe(seconds)

    def observe_call(self, method: str, code: int, seconds: float) -> None:
        """A call of a method was answered."""
        self._calls.labels(method, str(code)).inc()
        self._call_times.labels(method).observe(seconds)

    # --- read ---------------------------------------------------------------------------------

    def watch(self, health: Callable[[], Healthy]) -> None:
        """Also report what the engine says of itself, read at each exposition."""
        self.registry.register(_Health(health))

    def exposition(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)


class _Health(Collector):
    def __init__(self, health: Callable[[], Healthy]) -> None:
        self._health = health

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        health = self._health()
        states = GaugeMetricFamily("dws_requests", "Requests by state.", labels=["state"])
        for state in RequestState:
            states.add_metric([state.value], health.states.get(state, 0))
        yield states
        for name, text, value in (
            ("dws_stuck_work", "Work items due for more than a minute.", health.stuck),
            ("dws_oldest_due_seconds", "How long the oldest stuck work item is due.", health.oldest_due_s),
            ("dws_ledger_version", "Changes of the ledger so far.", health.ledger_version),
            ("dws_last_event", "Sequence number of the newest event.", health.last_seq),
            ("dws_domain_time_seconds", "Domain time, since the epoch.", health.now),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        free = GaugeMetricFamily(
            "dws_free_accelerators", "Accelerators free now; machines in a pool without any.", labels=["pool"]
        )
        lost = GaugeMetricFamily(
            "dws_fragmentation",
            "The share of a pool's free accelerators that a shape cannot use, from 0 to 1.",
            labels=["pool", "machine"],
        )
        torn = GaugeMetricFamily(
            "dws_slice_fragmentation",
            "The share of a TPU pool's free chips that slices of a topology cannot use, from 0 to 1.",
            labels=["pool", "topology"],
        )
        largest = GaugeMetricFamily(
            "dws_largest_free_slice_chips", "Chips of the largest slice a pod has room for.", labels=["pool"]
        )
        for pool in health.fragments:
            free.add_metric([pool.pool], pool.free)
            for machine, usable in pool.usable.items():
                lost.add_metric([pool.pool, machine], 1 - usable / pool.free if pool.free else 0)
            for topology, usable in pool.in_slices.items():
                torn.add_metric([pool.pool, topology], 1 - usable / pool.free if pool.free else 0)
            if pool.largest_slice is not None:
                largest.add_metric([pool.pool], pool.largest_slice)
        yield from (free, lost, torn, largest)
