"""The figures of a run, against ones counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dws.model import events as ev
from dws.model.names import BookingId
from dws.simulator.figures import figures, quantile
from dws.simulator.recorder import Course, Recorder
from tests.build import a_request

ONE = Course(submitted=0, size=2, started=0, ended=100)
TWO = Course(
    submitted=0, size=1, first_promise=150, promise=200, moved_later=1, started=210, ended=215, passed_others=True
)
THREE = Course(submitted=100, size=1, first_promise=400, promise=400, started=300, ended=1_300)
WAITS_STILL = Course(submitted=50, size=1)


def test_waits_and_slowdown() -> None:
    """A policy would look better or worse than it is."""
    told = figures([THREE, TWO, ONE, WAITS_STILL], capacity=4)
    assert (told.requests, told.makespan) == (3, 1_300)
    assert (told.wait_mean, told.wait_p95, told.wait_max) == (pytest.approx(410 / 3), 210, 210)
    assert told.slowdown_10 == pytest.approx((1 + 215 / 10 + 1_200 / 1_000) / 3)
    assert told.slowdown_600 == pytest.approx((1 + 1 + 1.2) / 3)


def test_utilisation_counts_units_and_seconds_within_the_window() -> None:
    """Half a fleet could be called full."""
    told = figures([ONE, TWO, THREE], capacity=4)
    assert told.utilisation == pytest.approx((200 + 5 + 1_000) / (4 * 1_300))
    assert told.utilisation_mid == pytest.approx(200 / (4 * 100)), "from the first to the last submission here"


def test_promises_kept_and_not() -> None:
    """A broken promise could be hidden in a mean."""
    told = figures([ONE, TWO, THREE], capacity=4)
    assert (told.promised, told.late, told.late_worst, told.moved_later) == (2, 1, 10, 1)
    assert (told.promise_error_mean, told.promise_error_p95) == ((60 - 100) / 2, 100)
    assert told.backfilled == pytest.approx(1 / 3)


def test_nothing_promised_is_no_figure_of_zero() -> None:
    """"No promise" would read as "every promise kept to the second"."""
    told = figures([ONE], capacity=4)
    assert (told.promised, told.promise_error_mean, told.promise_error_p95) == (0, None, None)


def test_nothing_ran() -> None:
    """A run of nothing would divide by nothing."""
    with pytest.raises(ValueError, match="nothing ran"):
        figures([WAITS_STILL], capacity=4)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([7], 0.95, 7), (range(1, 101), 0.95, 95), (range(1, 101), 0.99, 99), ([3, 1, 2], 1.0, 3), ([1, 2], 0.5, 1)],
)
def test_quantiles(values: list[int], share: float, expected: int) -> None:
    """The worst of twenty waits would be reported as what nineteen of twenty stay below."""
    assert quantile(values, share) == expected


def test_the_recorder_follows_a_request_through_its_promises() -> None:
    """A promise that was moved would be judged by the new date alone, or the old one."""
    recorder = Recorder()
    early, late = a_request(1, hosts=2), a_request(2, hosts=3)
    story: list[tuple[int, int, ev.EventBody]] = [
        (10, 1, ev.Submitted(request=early)),
        (20, 2, ev.Submitted(request=late)),
        (20, 1, ev.Booked(booking=BookingId(5), start=50)),
        (21, 1, ev.Booked(booking=BookingId(5), start=45)),
        (45, 1, ev.Moved(booking=BookingId(5), start=60, cause="capacity was lost")),
        (50, 2, _started()),
        (60, 1, _started()),
        (90, 2, ev.Ended(why="RELEASED", message="")),  # type: ignore[arg-type]
    ]
    for seq, (at, subject, body) in enumerate(story, 1):
        recorder.happened([_event(seq, at, subject, body)])
    one, two = recorder.courses[1], recorder.courses[2]
    assert (one.first_promise, one.promise, one.moved_later, one.started) == (50, 60, 1, 60)
    assert two == replace(two, submitted=20, size=3, started=50, ended=90, passed_others=True)
    assert not one.passed_others and one.ended == 0


def _started() -> ev.Started:
    return ev.Started(booking=BookingId(5), grant=None)  # type: ignore[arg-type]


def _event(seq: int, at: int, subject: int, body: ev.EventBody) -> ev.Event:
    return ev.Event(
        seq=seq, subject_seq=seq, at=at, actor="x", subject_kind=ev.SubjectKind.REQUEST, subject=subject, body=body
    )
