"""Series of reservations as the store keeps them: whole, by version, by name, forgotten once they are over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dws.engine.ports import RequestQuery, ReservationQuery, Store
from dws.model.booking import OwnerKind
from dws.model.errors import AlreadyExists, Conflict
from dws.model.events import SeriesEvent, SubjectKind
from dws.model.request import RequestState
from dws.model.reservation import ReservationState
from dws.model.series import SeriesState
from dws.store.sql import SqlStore
from tests.contract.store import samples
from tests.contract.store.samples import a_booking, a_request, a_reservation, a_series, an_event


@pytest.mark.parametrize("number", [1, samples.BIG])
def test_a_series_comes_back_whole(store: Store, number: int) -> None:
    """Days, hours, zone or what was missed would be lost, and other nights booked than those asked for."""
    first, second = a_series(number), replace(samples.a_full_series(number), version=2)
    for row in (first, second):
        with store.begin() as tx:
            tx.put_series(row)
            assert tx.series(number) == row
        with store.read() as reader:
            assert reader.series(number) == row
            assert reader.all_series() == [row]
            assert reader.series(number - 1) is None


def test_a_series_outlives_the_server(sql: Callable[..., SqlStore]) -> None:
    """After a restart nothing more would be booked of what repeats."""
    told_of_series = [body for body in samples.BODIES if isinstance(body, SeriesEvent)]
    first = sql()
    with first.begin() as tx:
        tx.put_series(samples.a_full_series(7))
        tx.append([an_event(7, body, subject_kind=SubjectKind.SERIES) for body in told_of_series])
        told = tx.events()
    first.close()
    with sql().read() as reader:
        assert reader.series_named("vision", "nights-7") == samples.a_full_series(7)
        assert reader.events(subject_kind=SubjectKind.SERIES, subject=7) == told


def test_a_series_version_must_follow(store: Store) -> None:
    """An amendment could be overwritten unseen by the booking of the next occurrence."""
    with store.begin() as tx:
        tx.put_series(a_series(5))
        for wrong, error in (
            (a_series(5), AlreadyExists),
            (a_series(5, version=3), Conflict),
            (a_series(6, version=2), Conflict),
        ):
            with pytest.raises(error, match="series"):
                tx.put_series(wrong)
        tx.put_series(a_series(5, version=2, booked_until=9))
    with store.read() as reader:
        assert reader.all_series() == [a_series(5, version=2, booked_until=9)]


def test_a_name_means_its_newest_series(store: Store) -> None:
    """A name used again would show or cancel the series that is long over, or another project's."""
    old, new = a_series(1, name="nights", ended_at=5), a_series(2, name="nights")
    with store.begin() as tx:
        assert tx.series_named("vision", "nights") is None
        tx.put_request(a_request(8, name="nights"))
        tx.put_reservation(a_reservation(9, name="nights"))
        assert tx.series_named("vision", "nights") is None
        tx.put_series(new)
        tx.put_series(old)
        tx.put_series(a_series(3, name="nights", project="speech"))
        assert tx.series_named("vision", "nights") == new
    with store.begin() as tx:
        tx.put_series(replace(new, version=2, name="other"))
        assert tx.series_named("vision", "nights") == old
    with store.read() as reader:
        assert reader.series_named("vision", "other") == replace(new, version=2, name="other")
        assert reader.series_named("speech", "other") is None


def test_all_series_are_listed_by_id_those_that_are_over_too(store: Store) -> None:
    """The timetable would miss a series, or show one project what another does at night."""
    kept = [
        a_series(1, state=SeriesState.ENDED, ended_at=5),
        a_series(2, project="speech"),
        a_series(3),
        a_series(4, project="speech", state=SeriesState.CANCELLED, ended_at=9),
    ]
    with store.begin() as tx:
        for one in (kept[2], kept[0], kept[3], kept[1]):
            tx.put_series(one)
        assert tx.all_series() == kept
    with store.read() as reader:
        assert reader.all_series() == kept
        assert reader.all_series("speech") == [kept[1], kept[3]]
        assert reader.all_series("maps") == []


def test_the_largest_id_counts_series(store: Store) -> None:
    """After a restart an id could be given a second time."""
    with store.begin() as tx:
        tx.put_request(a_request(5))
        tx.put_reservation(a_reservation(6))
        tx.put_booking(a_booking(7))
        tx.put_series(a_series(9))
        assert tx.largest_id() == 9
        tx.put_booking(a_booking(11))
        assert tx.largest_id() == 11
    with store.begin() as tx:
        tx.put_series(a_series(12, state=SeriesState.ENDED, ended_at=1))
    with store.read() as reader:
        assert reader.largest_id() == 12


def test_retention_drops_series_that_are_over(store: Store) -> None:
    """Old series would stay for ever, or one that still books would vanish, and its nights with it."""
    with store.begin() as tx:
        for n, state, ended_at in (
            (1, SeriesState.ENDED, 50),
            (2, SeriesState.CANCELLED, 40),
            (3, SeriesState.ENDED, 100),
            (4, SeriesState.ACTIVE, 0),
        ):
            tx.put_series(a_series(n, state=state, ended_at=ended_at))
            tx.append([an_event(n, subject_kind=SubjectKind.SERIES), an_event(n)])
            tx.put_idempotent(samples.a_reply(f"c-{n}", subjects=(n,)))
    with store.begin() as tx:
        assert tx.forget_before(100, limit=1) == 1
        assert [s.id for s in tx.all_series()] == [1, 3, 4]
        assert tx.forget_before(100, limit=10) == 1
        assert tx.forget_before(100, limit=10) == 0
    with store.read() as reader:
        assert [s.id for s in reader.all_series()] == [3, 4]
        assert (reader.series(1), reader.series_named("vision", "nights-1")) == (None, None)
        assert [e.subject for e in reader.events(subject_kind=SubjectKind.SERIES)] == [3, 4]
        assert [e.subject for e in reader.events(subject_kind=SubjectKind.REQUEST)] == [1, 2, 3, 4]
        answered = [reader.idempotent("user:ada", "submit", f"c-{n}") is not None for n in range(1, 5)]
        assert answered == [False, False, True, True]


def test_forgetting_a_series_touches_nothing_that_bears_its_number_or_its_name(store: Store) -> None:
    """The nights that a series booked, or a stranger's request, would go with it."""
    occurrence = a_reservation(8, series="nights-1")
    with store.begin() as tx:
        tx.put_series(a_series(1, state=SeriesState.ENDED, ended_at=10))
        tx.put_request(a_request(1))
        tx.put_reservation(a_reservation(1))
        tx.put_reservation(occurrence)
        tx.put_booking(a_booking(1, (0,), owner=1))
        tx.put_booking(a_booking(2, (1,), owner_kind=OwnerKind.RESERVATION, owner=1))
    with store.begin() as tx:
        assert tx.forget_before(100, limit=9) == 1
    with store.read() as reader:
        assert reader.all_series() == []
        assert reader.requests(RequestQuery()) == [a_request(1)]
        assert reader.reservations(ReservationQuery()) == [a_reservation(1), occurrence]
        assert [b.id for b in reader.open_bookings()] == [1, 2]


def test_forgetting_others_touches_no_series_that_bears_their_number(store: Store) -> None:
    """A series that still books would vanish because something else of its number is old."""
    kept = [a_series(1), a_series(2)]
    with store.begin() as tx:
        for one in kept:
            tx.put_series(one)
            tx.append([an_event(one.id, subject_kind=SubjectKind.SERIES)])
        tx.put_request(a_request(1, state=RequestState.COMPLETED, ended_at=10))
        tx.put_reservation(a_reservation(2, state=ReservationState.ENDED, ended_at=10))
    with store.begin() as tx:
        assert tx.forget_before(100, limit=9) == 2
    with store.read() as reader:
        assert reader.all_series() == kept
        assert [e.subject for e in reader.events(subject_kind=SubjectKind.SERIES)] == [1, 2]


def test_retention_takes_all_that_ended_in_the_order_it_ended(store: Store) -> None:
    """With many old requests the old series would never have their turn."""
    with store.begin() as tx:
        for n, ended_at in ((1, 10), (4, 40)):
            tx.put_request(a_request(n, state=RequestState.COMPLETED, ended_at=ended_at))
        for n, ended_at in ((2, 20), (5, 40)):
            tx.put_series(a_series(n, state=SeriesState.ENDED, ended_at=ended_at))
        tx.put_reservation(a_reservation(3, state=ReservationState.ENDED, ended_at=30))
    with store.begin() as tx:
        assert tx.forget_before(100, limit=2) == 2
        assert [s.id for s in tx.all_series()] == [5]
        assert tx.reservation(3) is not None
        assert tx.forget_before(100, limit=2) == 2
        assert (tx.requests(RequestQuery()), tx.reservation(3)) == ([], None)
        assert [s.id for s in tx.all_series()] == [5]
