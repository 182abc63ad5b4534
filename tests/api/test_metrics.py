"""The engine's meters: what is measured from the events, and that they forget what is over."""

from __future__ import annotations

from dataclasses import replace

from dws.model import events as ev
from dws.model.names import BookingId
from dws.telemetry.metrics import EngineMetrics
from tests.api.test_convert import GRANT, NINE, REQUEST

H = 3600


def tell(metrics: EngineMetrics, *bodies: ev.EventBody, subject: int = 1) -> None:
    """The meters are told of events of one request."""
    metrics.happened(
        [
            ev.Event(
                seq=n,
                subject_seq=n,
                at=NINE,
                actor="planner",
                subject_kind=ev.SubjectKind.REQUEST,
                subject=subject,
                body=body,
            )
            for n, body in enumerate(bodies, 1)
        ]
    )


def errors_within(metrics: EngineMetrics, bound: int) -> float:
    """How many promises were kept to within so many seconds: what may be negative has no sum."""
    found = metrics.registry.get_sample_value("dws_promise_error_seconds_bucket", {"le": f"{bound}.0"})
    assert found is not None
    return found


def value(metrics: EngineMetrics, name: str) -> float:
    found = metrics.registry.get_sample_value(name)
    assert found is not None
    return found


def started(at: int) -> ev.Started:
    return ev.Started(booking=BookingId(1), grant=replace(GRANT, started_at=at))


def booked(at: int) -> ev.Booked:
    return ev.Booked(booking=BookingId(1), start=at)


def test_a_start_is_measured_against_submission_and_the_last_promise() -> None:
    """Waits and broken promises would be told wrongly to whoever judges the policy."""
    metrics = EngineMetrics()
    moved = ev.Moved(booking=BookingId(1), start=NINE + 2 * H, cause="host down")
    tell(metrics, ev.Submitted(request=REQUEST), booked(NINE + H), moved, started(NINE + 3 * H))
    assert value(metrics, "dws_request_wait_seconds_sum") == 3 * H
    assert errors_within(metrics, 900) == 0
    assert errors_within(metrics, H) == 1


def test_a_withdrawn_promise_and_a_second_attempt_are_not_measured() -> None:
    """A retry would count its wait twice; a promise that was withdrawn would count as broken."""
    metrics = EngineMetrics()
    tell(
        metrics, ev.Submitted(request=REQUEST), booked(NINE), ev.Unbooked(cause="amended"), started(NINE + H)
    )
    tell(metrics, started(NINE + 2 * H))
    assert value(metrics, "dws_request_wait_seconds_count") == 1
    assert value(metrics, "dws_promise_error_seconds_count") == 0


def test_what_waited_before_a_restart_is_known() -> None:
    """After each restart the longest waits would be missing."""
    metrics = EngineMetrics()
    metrics.know([replace(REQUEST, id=1, promised_start=NINE + H)])  # type: ignore[arg-type]
    tell(metrics, started(NINE + 2 * H))
    assert value(metrics, "dws_request_wait_seconds_sum") == 2 * H
    assert errors_within(metrics, 900) == 0
    assert errors_within(metrics, H) == 1


def test_requests_that_never_start_are_forgotten() -> None:
    """A server would grow with every request that was cancelled."""
    metrics = EngineMetrics()
    for subject, end in enumerate((ev.CancelRequested(), ev.WindowClosed(), ev.Deleted(), started(NINE))):
        tell(metrics, ev.Submitted(request=REQUEST), booked(NINE), end, subject=subject)
    assert not metrics._submitted_at
    assert not metrics._promised
