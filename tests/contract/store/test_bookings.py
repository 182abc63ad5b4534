"""The ledger as the store keeps it: every booking, each unit once, and the peak by number."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dws.engine.ports import Store, Transaction
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.errors import AlreadyExists, Conflict, DoubleBooking
from dws.model.time import FOREVER, Span
from dws.store.memory import MemoryStore
from dws.store.sql import SqlStore
from tests.contract.store import samples
from tests.contract.store.conftest import url_of
from tests.contract.store.samples import a_booking, ended


def put(store: Store, *bookings: Booking) -> None:
    """Write bookings, in one transaction."""
    with store.begin() as tx:
        for booking in bookings:
            tx.put_booking(booking)


def test_a_booking_comes_back_whole(store: Store) -> None:
    """A restart would change what is promised."""
    booking = Booking(
        id=samples.BookingId(samples.BIG),
        pool="h100",
        span=Span(5, FOREVER),
        stage=Stage.HOLD,
        owner_kind=OwnerKind.MAINTENANCE,
        owner=samples.BIG + 1,
        parts=(Part(cell=0, count=2, units=(0, 3)), Part(cell=2, count=1, units=(9,)), Part(cell=3, count=0)),
    )
    put(store, booking)
    with store.read() as reader:
        assert reader.booking(booking.id) == booking
        assert reader.open_bookings() == [booking]
        assert reader.booking(1) is None


def test_open_bookings_are_all_but_the_ended_ones(store: Store) -> None:
    """After a restart the planner would not see what is taken."""
    promised, live, over = a_booking(3, count=2), a_booking(1, (0,)), a_booking(2, (1,))
    put(store, promised, live, over, ended(over, 50))
    with store.read() as reader:
        assert reader.open_bookings() == [live, promised]
        assert reader.booking(2) == ended(over, 50)


def test_a_bookings_version_must_follow(store: Store) -> None:
    """A plan made on an old ledger could move what has moved already."""
    put(store, a_booking(1, count=1))
    with store.begin() as tx:
        with pytest.raises(AlreadyExists):
            tx.put_booking(a_booking(1, count=2))
        with pytest.raises(Conflict):
            tx.put_booking(a_booking(1, count=2, version=3))
        with pytest.raises(Conflict):
            tx.put_booking(a_booking(2, count=2, version=2))
        tx.put_booking(a_booking(1, count=2, version=2))
    with store.read() as reader:
        assert reader.open_bookings() == [a_booking(1, count=2, version=2)]
        assert reader.peak("h100", 0, 0, 100) == 2


@pytest.mark.parametrize(
    "second",
    [
        a_booking(2, (3,), (99, 200)),
        a_booking(2, (3,), (0, 1)),
        a_booking(2, (3,), (10, 20)),
        a_booking(2, (7, 3), (0, FOREVER)),
        a_booking(2, (2,), (50, 60), owner_kind=OwnerKind.OUTAGE),
    ],
    ids=["tail", "head", "inside", "around", "outage"],
)
def test_one_unit_is_never_in_two_bookings_at_one_instant(store: Store, second: Booking) -> None:
    """Two people would be given the same host."""
    first = a_booking(1, (2, 3))
    put(store, first)
    with store.begin() as tx:
        with pytest.raises(DoubleBooking, match=r"unit [23] .*booking 1\b.*booking 2\b"):
            tx.put_booking(second)
        assert tx.booking(2) is None
        assert tx.open_bookings() == [first]
        tx.put_booking(a_booking(3, (7,)))
    with store.read() as reader:
        assert reader.open_bookings() == [first, a_booking(3, (7,))]
        assert reader.peak("h100", 0, 0, 200) == 3


def test_spans_that_touch_other_pools_and_numbers_only_are_no_conflict(store: Store) -> None:
    """Hosts would be refused that are free."""
    put(
        store,
        a_booking(1, (3,), (100, 200)),
        a_booking(2, (3,), (0, 100)),
        a_booking(3, (3,), (200, 300)),
        a_booking(4, (3,), (100, 200), pool="a100"),
        a_booking(5, count=4, span=(100, 200)),
        a_booking(6, (3,), (150, 150)),
    )
    with store.read() as reader:
        assert [b.id for b in reader.open_bookings()] == [1, 2, 3, 4, 5, 6]


def test_a_booking_that_moves_frees_where_it_was(store: Store) -> None:
    """Extending, trimming or replacing a host would leave a ghost on it, or hit its own one."""
    put(store, a_booking(1, (0, 1, 2)), a_booking(9, (5,), (100, 150)))
    put(store, a_booking(1, (0, 1, 2), (0, 120), version=2))
    put(store, a_booking(1, (0, 2, 4), (0, 80), version=3))
    put(store, a_booking(2, (1,), (0, 100)), a_booking(3, (0, 2), (80, 100)))
    with store.begin() as tx:
        for wrong in (
            a_booking(1, (0, 2, 4), (0, 81), version=4),
            a_booking(1, (1, 2, 4), (0, 80), version=4),
        ):
            with pytest.raises(DoubleBooking):
                tx.put_booking(wrong)
        tx.put_booking(a_booking(1, (4, 6), (0, 200), pool="h100", version=4))
        with pytest.raises(DoubleBooking):
            tx.put_booking(a_booking(1, (4, 5), (0, 200), version=5))
        tx.put_booking(a_booking(1, (4, 5), (0, 200), pool="a100", version=5))
    put(store, a_booking(4, (0, 2, 4, 6), (0, 80)))


def test_a_booking_that_ended_frees_the_rest_and_stays_as_history(store: Store) -> None:
    """Hosts given back early would stay taken, or the past could be written over."""
    first, early = a_booking(1, (3,)), a_booking(2, (4,), (50, 100))
    put(store, first, early, ended(first, 40), ended(early, 40))
    with store.begin() as tx:
        with pytest.raises(DoubleBooking):
            tx.put_booking(a_booking(3, (3,), (39, 100)))
        tx.put_booking(a_booking(3, (3, 4), (40, 100)))
    with store.read() as reader:
        assert [b.id for b in reader.open_bookings()] == [3]
        assert reader.booking(1) == ended(first, 40)
        assert reader.peak("h100", 0, 0, 100) == 2


def test_a_child_lies_inside_its_parent(store: Store) -> None:
    """Work inside a reservation would spill onto hosts of others."""
    parent = a_booking(1, (0, 1, 2), (10, 100), owner_kind=OwnerKind.RESERVATION)
    put(store, parent)
    inside = a_booking(2, (0, 2), (10, 100), parent=1)
    outside = (
        a_booking(3, (1, 3), (10, 100), parent=1),
        a_booking(3, (1,), (9, 100), parent=1),
        a_booking(3, (1,), (10, 101), parent=1),
        a_booking(3, (1,), (10, 100), parent=1, pool="a100"),
        a_booking(3, (1,), (10, 100), parent=7),
        a_booking(3, (2,), (50, 60), parent=1),
    )
    with store.begin() as tx:
        tx.put_booking(inside)
        for child in outside:
            with pytest.raises(DoubleBooking):
                tx.put_booking(child)
        tx.put_booking(a_booking(3, (1,), (20, 30), parent=1))
    with store.read() as reader:
        assert [b.id for b in reader.open_bookings()] == [1, 2, 3]
        assert reader.peak("h100", 0, 0, 100) == 3


def test_a_parent_cannot_leave_its_children_behind(store: Store) -> None:
    """A reservation could shrink under running work."""
    parent, child = a_booking(1, (0, 1), (0, 100)), a_booking(2, (0,), (10, 90), parent=1)
    put(store, parent, child)
    with store.begin() as tx:
        for wrong in (
            a_booking(1, (1,), (0, 100), version=2),
            a_booking(1, (0, 1), (0, 89), version=2),
            a_booking(1, (0, 1), (11, 100), version=2),
            a_booking(1, (0, 1), (0, 100), pool="a100", version=2),
            ended(parent, 50),
        ):
            with pytest.raises(DoubleBooking):
                tx.put_booking(wrong)
        tx.put_booking(a_booking(1, (0,), (10, 90), version=2))
        tx.put_booking(ended(child, 50))
        tx.put_booking(a_booking(1, (3,), (10, 90), version=3))
    with store.read() as reader:
        assert reader.booking(1) == a_booking(1, (3,), (10, 90), version=3)


def test_two_writers_at_once_cannot_book_one_unit_twice(store: Store) -> None:
    """Two commands in the same instant would both get the host."""
    together, outcomes = threading.Barrier(4), []

    def book(number: int) -> None:
        together.wait()
        try:
            put(store, a_booking(number, (3,), (number, 100)))
            outcomes.append("booked")
        except DoubleBooking:
            outcomes.append("refused")

    threads = [threading.Thread(target=book, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["booked", "refused", "refused", "refused"]
    with store.read() as reader:
        assert len(reader.open_bookings()) == 1


def test_the_peak_counts_what_is_open_and_of_the_fleet(store: Store) -> None:
    """A check of promises would pass that are too many, or fail for those that fit."""
    put(
        store,
        a_booking(1, count=3, span=(0, 100)),
        a_booking(2, (0, 1), (50, 150)),
        a_booking(3, count=4, span=(100, 200), stage=Stage.HOLD),
        a_booking(4, (5,), (120, FOREVER), owner_kind=OwnerKind.OUTAGE),
        a_booking(5, count=9, cell=1),
        a_booking(6, count=9, pool="a100"),
        a_booking(7, (0,), (60, 70), parent=2),
        a_booking(8, count=9, span=(60, 60)),
        ended(a_booking(9, count=9, version=0), 90),
    )
    with store.read() as reader:
        peaks = {
            (0, 50): 3, (0, 51): 5, (0, 100): 5, (100, 101): 6, (0, 1_000): 7, (120, 150): 7,
            (150, 1_000): 5, (200, 1_000): 1, (99, 100): 5, (40, 40): 0, (300, 200): 0,
        }  # fmt: skip
        assert {span: reader.peak("h100", 0, *span) for span in peaks} == peaks
        assert reader.peak("h100", 1, 0, 100) == 9
        assert reader.peak("h100", 2, 0, 100) == 0
        assert reader.peak("gone", 0, 0, 100) == 0


class Undone(Exception):
    """Ends a transaction that is not to be kept."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    """One store of each kind, empty; who uses them undoes what was written."""
    sql = SqlStore(url_of(tmp_path_factory.mktemp("both") / "dws.db"))
    yield MemoryStore(), sql
    sql.close()


spans = st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda t: Span(t[0], t[0] + t[1]))
by_number = st.builds(
    lambda span, counts, stage, parent: (
        span,
        tuple(Part(cell=i, count=c) for i, c in enumerate(counts)),
        stage,
        parent,
    ),
    spans,
    st.lists(st.integers(0, 5), min_size=1, max_size=2),
    st.sampled_from(Stage),
    st.sampled_from((0, 0, 0, 77)),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.lists(by_number, max_size=12), asked=spans)
def test_the_peak_is_what_counting_every_instant_gives(
    both: tuple[Store, Store],
    drawn: list,
    asked: Span,  # type: ignore[type-arg]
) -> None:
    """The independent check of the ledger would itself be wrong."""
    bookings = [
        replace(a_booking(n, count=1), span=span, parts=parts, stage=stage, parent=parent)
        for n, (span, parts, stage, parent) in enumerate(drawn, 1)
    ]
    for cell in (0, 1):
        taken = [
            sum(
                p.count
                for b in bookings
                if b.stage is not Stage.ENDED and not b.parent and b.span.covers(at)
                for p in b.parts
                if p.cell == cell
            )
            for at in range(asked.start, asked.end)
        ]
        for store in both:
            assert _peak(store, bookings, cell, asked) == max(taken, default=0)


def _peak(store: Store, bookings: list[Booking], cell: int, span: Span) -> int:
    peak = -1
    with pytest.raises(Undone), store.begin() as tx:
        for booking in bookings:
            tx.put_booking(booking)
        peak = tx.peak("h100", cell, span.start, span.end)
        raise Undone
    return peak


on_units = st.tuples(
    st.integers(1, 6),
    st.frozensets(st.integers(0, 3), min_size=1, max_size=3),
    spans,
    st.sampled_from(("put", "end")),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(on_units, max_size=14))
def test_a_unit_is_refused_exactly_when_it_is_taken(both: tuple[Store, Store], steps: list) -> None:  # type: ignore[type-arg]
    """The last guard against double booking would let one pass, or refuse what is free."""
    for store in both:
        with pytest.raises(Undone), store.begin() as tx:
            _walk(tx, steps)
            raise Undone


def _walk(tx: Transaction, steps: list) -> None:  # type: ignore[type-arg]
    taken: dict[int, set[tuple[int, int]]] = {}
    for number, units, span, what in steps:
        old = tx.booking(number)
        booking = a_booking(
            number, tuple(sorted(units)), (span.start, span.end), version=old.version + 1 if old else 1
        )
        if what == "end" and old is not None:
            booking = ended(old, min(old.span.end, max(old.span.start, span.start)))
        wants = {(u, at) for u in booking.units for at in range(booking.span.start, booking.span.end)}
        others = set().union(*(t for n, t in taken.items() if n != number))
        if wants & others:
            with pytest.raises(DoubleBooking):
                tx.put_booking(booking)
        else:
            tx.put_booking(booking)
            taken[number] = wants
