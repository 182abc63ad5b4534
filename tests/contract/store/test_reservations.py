"""Reservations as the store keeps them: whole, by version, found by what people ask for, forgotten in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dws.engine.ports import RequestQuery, ReservationQuery, Store
from dws.model.booking import OwnerKind, Stage
from dws.model.errors import AlreadyExists, Conflict, DoubleBooking
from dws.model.events import SubjectKind
from dws.model.request import RequestState
from dws.model.reservation import Reservation, ReservationState
from dws.model.usage import UsageKind
from tests.contract.store import samples
from tests.contract.store.samples import a_booking, a_request, a_reservation, a_usage, an_event, ended

S = ReservationState


@pytest.mark.parametrize("number", [1, samples.BIG])
def test_a_reservation_comes_back_whole(store: Store, number: int) -> None:
    """A restart would lose parts of what people booked."""
    first, second = a_reservation(number), replace(samples.a_full_reservation(number), version=2)
    for row in (first, second):
        with store.begin() as tx:
            tx.put_reservation(row)
            assert tx.reservation(number) == row
    with store.read() as reader:
        assert reader.reservation(number) == second
        assert reader.reservations(ReservationQuery()) == []
        assert reader.reservations(ReservationQuery(include_deleted=True)) == [second]
        assert reader.reservation(number - 1) is None


def test_a_reservations_version_must_follow(store: Store) -> None:
    """Two people who change one reservation could overwrite each other unseen."""
    with store.begin() as tx:
        tx.put_reservation(a_reservation(5))
        for wrong, error in (
            (a_reservation(5), AlreadyExists),
            (a_reservation(5, version=3), Conflict),
            (a_reservation(6, version=2), Conflict),
        ):
            with pytest.raises(error, match="reservation"):
                tx.put_reservation(wrong)
        tx.put_reservation(a_reservation(5, version=2, count=8))
    with store.read() as reader:
        assert reader.reservations(ReservationQuery()) == [a_reservation(5, version=2, count=8)]


def test_a_name_means_its_newest_reservation_that_is_not_deleted(store: Store) -> None:
    """A name used again, or given to another, would show or cancel the wrong reservation."""
    old, new = a_reservation(1, name="block"), a_reservation(2, name="block")
    with store.begin() as tx:
        assert tx.reservation_named("vision", "block") is None
        tx.put_request(a_request(9, name="block"))
        tx.put_reservation(new)
        tx.put_reservation(old)
        tx.put_reservation(a_reservation(3, name="block", project="speech"))
        assert tx.reservation_named("vision", "block") == new
    with store.begin() as tx:
        tx.put_reservation(replace(new, version=2, name="other"))
        assert tx.reservation_named("vision", "block") == old
        tx.put_reservation(replace(old, version=2, deleted=True))
        assert tx.reservation_named("vision", "block") is None
    with store.read() as reader:
        assert reader.reservation_named("vision", "other") == replace(new, version=2, name="other")
        assert reader.reservation_named("vision", "block") is None


def _many() -> list[Reservation]:
    states = (S.PENDING_APPROVAL, S.APPROVED, S.FULFILLED, S.ENDED)
    return [
        a_reservation(
            n,
            (n * 10, n * 10 + 100),
            state=states[n % 4],
            project=("vision", "speech", "maps")[n % 3],
            series="nightly" if n % 5 == 0 else "",
            deleted=n % 7 == 0,
        )
        for n in range(1, 31)
    ]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (ReservationQuery(), lambda r: not r.deleted),
        (ReservationQuery(include_deleted=True), lambda r: True),
        (ReservationQuery(project="vision"), lambda r: r.project == "vision" and not r.deleted),
        (ReservationQuery(projects=("maps", "speech")), lambda r: r.project != "vision" and not r.deleted),
        (ReservationQuery(project="vision", projects=("maps",)), lambda r: False),
        (ReservationQuery(states=(S.ENDED,)), lambda r: r.state is S.ENDED and not r.deleted),
        (
            ReservationQuery(states=(S.APPROVED, S.FULFILLED), include_deleted=True),
            lambda r: r.state in (S.APPROVED, S.FULFILLED),
        ),
        (ReservationQuery(series="nightly"), lambda r: r.series and not r.deleted),
        (ReservationQuery(series="weekly"), lambda r: False),
        (ReservationQuery(ends_after=250), lambda r: r.window.end > 250 and not r.deleted),
        (ReservationQuery(ends_after=400), lambda r: False),
        (
            ReservationQuery(states=(S.APPROVED,), project="vision", ends_after=150),
            lambda r: (
                r.state is S.APPROVED and r.project == "vision" and r.window.end > 150 and not r.deleted
            ),
        ),
    ],
)
def test_a_list_shows_the_reservations_asked_for_page_by_page(
    store: Store, query: ReservationQuery, wanted: Callable[[Reservation], bool]
) -> None:
    """A calendar would miss reservations, show others', or show one twice on two pages."""
    rows = _many()
    expected = [r for r in rows if wanted(r)]
    with store.begin() as tx:
        for row in rows[::-1]:
            tx.put_reservation(row)
        assert tx.reservations(query) == expected
        assert tx.reservations(replace(query, limit=0)) == []
    for newest_first in (False, True):
        pages: list[Reservation] = []
        while True:
            after = pages[-1].id if pages else None
            with store.read() as reader:
                page = reader.reservations(replace(query, newest_first=newest_first, after=after, limit=4))
            assert len(page) <= 4
            if not page:
                break
            pages += page
        assert pages == (expected[::-1] if newest_first else expected)


def test_a_reservation_that_changed_is_listed_as_what_it_is(store: Store) -> None:
    """What is over would still be planned with, or a cancelled name stay taken."""
    with store.begin() as tx:
        tx.put_reservation(a_reservation(1))
        tx.put_reservation(a_reservation(1, (0, 50), version=2, state=S.CANCELLED, ended_at=40))
        assert tx.reservations(ReservationQuery(states=(S.APPROVED,))) == []
        assert [r.id for r in tx.reservations(ReservationQuery(states=(S.CANCELLED,)))] == [1]
        assert tx.reservations(ReservationQuery(ends_after=50)) == []


def test_the_largest_id_counts_reservations(store: Store) -> None:
    """After a restart an id could be given a second time."""
    with store.begin() as tx:
        tx.put_request(a_request(5))
        tx.put_booking(a_booking(7))
        assert tx.largest_id() == 7
        tx.put_request(a_request(8))
        assert tx.largest_id() == 8
        tx.put_reservation(a_reservation(9, deleted=True))
        assert tx.largest_id() == 9
    with store.read() as reader:
        assert reader.largest_id() == 9


def test_use_names_the_reservation_it_lay_in(store: Store) -> None:
    """Idle reserved capacity could not be told from used one, and would be billed twice."""
    held = a_usage(9, kind=UsageKind.RESERVED, reservation=9)
    inside, outside = a_usage(1, kind=UsageKind.RUN, reservation=9), a_usage(2, reservation=0)
    with store.begin() as tx:
        tx.put_usage([held, inside, outside])
    with store.read() as reader:
        assert reader.usage(start=0, end=100) == [held, inside, outside]
        assert reader.usage(start=0, end=100, request=9) == [held]


def test_retention_drops_reservations_that_are_over_and_keeps_the_bill(store: Store) -> None:
    """Old reservations would stay for ever, those ahead would vanish, or bills would lose their lines."""
    with store.begin() as tx:
        for n, state, ended_at in (
            (1, S.ENDED, 50),
            (2, S.DECLINED, 40),
            (3, S.CANCELLED, 100),
            (4, S.ENDING, 10),
            (5, S.APPROVED, 0),
        ):
            tx.put_reservation(a_reservation(n, state=state, ended_at=ended_at))
            tx.append([an_event(n, subject_kind=SubjectKind.RESERVATION), an_event(n)])
            tx.put_booking(
                a_booking(n * 10, (n,), owner_kind=OwnerKind.RESERVATION, owner=n, stage=Stage.FIRM)
            )
            tx.put_idempotent(samples.a_reply(f"c-{n}", subjects=(n,)))
            tx.put_usage([a_usage(n, kind=UsageKind.RESERVED, reservation=n)])
        tx.put_booking(a_booking(99, (9,), owner=1))
    with store.begin() as tx:
        assert tx.forget_before(100, limit=1) == 1
        assert tx.reservation(2) is None
        assert tx.reservation(1) is not None
        assert tx.forget_before(100, limit=10) == 1
        assert tx.forget_before(100, limit=10) == 0
    with store.read() as reader:
        assert [r.id for r in reader.reservations(ReservationQuery())] == [3, 4, 5]
        assert reader.reservation_named("vision", "block-1") is None
        assert [b.id for b in reader.open_bookings()] == [30, 40, 50, 99]
        assert reader.events(subject_kind=SubjectKind.RESERVATION, subject=1) == []
        assert len(reader.events(subject_kind=SubjectKind.RESERVATION)) == 3
        assert len(reader.events(subject_kind=SubjectKind.REQUEST)) == 5
        assert reader.idempotent("user:ada", "submit", "c-1") is None
        assert reader.idempotent("user:ada", "submit", "c-3") is not None
        assert len(reader.usage(start=0, end=1_000)) == 5


def test_retention_takes_requests_and_reservations_in_the_order_they_ended(store: Store) -> None:
    """With many old requests the old reservations would never have their turn."""
    with store.begin() as tx:
        for n, ended_at in ((1, 10), (3, 30), (5, 50)):
            tx.put_request(a_request(n, state=RequestState.COMPLETED, ended_at=ended_at))
        for n, ended_at in ((2, 20), (4, 40)):
            tx.put_reservation(a_reservation(n, state=S.ENDED, ended_at=ended_at))
    with store.begin() as tx:
        assert tx.forget_before(100, limit=2) == 2
        assert [r.id for r in tx.requests(RequestQuery())] == [3, 5]
        assert [r.id for r in tx.reservations(ReservationQuery())] == [4]
        assert tx.forget_before(100, limit=9) == 3
        assert (tx.requests(RequestQuery()), tx.reservations(ReservationQuery())) == ([], [])


def test_retention_keeps_a_booking_in_which_work_still_lies(store: Store) -> None:
    """Running work would lose the ground it stands on: its hosts could be booked again."""
    parent = a_booking(10, (0, 1), owner_kind=OwnerKind.RESERVATION, owner=1)
    child = a_booking(20, (1,), (10, 90), parent=10, owner=2)
    with store.begin() as tx:
        tx.put_reservation(a_reservation(1, state=S.ENDED, ended_at=50))
        tx.append([an_event(1, subject_kind=SubjectKind.RESERVATION)])
        tx.put_booking(parent)
        tx.put_booking(child)
    with store.begin() as tx:
        with pytest.raises(DoubleBooking):
            tx.forget_before(100, limit=9)
        assert tx.reservation(1) is not None
        assert len(tx.events()) == 1
        assert tx.open_bookings() == [parent, child]
        tx.put_booking(ended(child, 50))
        assert tx.forget_before(100, limit=9) == 1
        assert tx.booking(10) is None
