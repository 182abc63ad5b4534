"""Bookings inside bookings: what works in a reservation lies within its hosts and its window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dws.engine.ports import Store, Transaction
from dws.model.booking import Booking, OwnerKind, Part, Stage
from dws.model.errors import DoubleBooking
from dws.store.memory import MemoryStore
from dws.store.sql import SqlStore
from tests.contract.store.conftest import url_of
from tests.contract.store.samples import a_booking, ended


class Undone(Exception):
    """Ends a transaction that is not to be kept."""


def a_block(units: tuple[int, ...], span: tuple[int, int] = (0, 100), **changes: Any) -> Booking:
    """The booking of a reservation, number 1; `undrawn` hosts are still to be found."""
    undrawn = changes.pop("undrawn", 0)
    block = a_booking(1, units, span, owner_kind=OwnerKind.RESERVATION, **changes)
    return replace(block, parts=(*block.parts, Part(cell=0, count=undrawn))) if undrawn else block


def inside(number: int, units: tuple[int, ...], span: tuple[int, int] = (10, 90), **changes: Any) -> Booking:
    """A booking inside the block."""
    return a_booking(number, units, span, **{"parent": 1, **changes})


def put(store: Store, *bookings: Booking) -> None:
    """Write bookings, in one transaction."""
    with store.begin() as tx:
        for booking in bookings:
            tx.put_booking(booking)


def refuse(tx: Transaction, *bookings: Booking) -> None:
    """Each of them is a double booking and changes nothing."""
    for booking in bookings:
        before = tx.booking(booking.id)
        with pytest.raises(DoubleBooking):
            tx.put_booking(booking)
        assert tx.booking(booking.id) == before


def test_a_block_may_have_some_of_its_hosts_and_wait_for_others(store: Store) -> None:
    """A reservation that starts while a host is still busy would lose its promise of that host."""
    block = a_block((0, 1), undrawn=3)
    put(store, block)
    with store.read() as reader:
        assert reader.booking(1) == block
        assert reader.open_bookings() == [block]
        assert reader.peak("h100", 0, 0, 100) == 5
    with store.begin() as tx:
        tx.put_booking(inside(2, (0,)))
        refuse(tx, inside(3, (2,)))
        tx.put_booking(a_booking(4, (2,), (0, 20)))
        refuse(tx, a_block((0, 1, 2), undrawn=2, version=2))
        tx.put_booking(ended(a_booking(4, (2,), (0, 20)), 0))
        tx.put_booking(a_block((0, 1, 2), undrawn=2, version=2))
        tx.put_booking(inside(3, (2,)))
        assert tx.peak("h100", 0, 0, 100) == 5
    put(store, a_block((0, 1, 2), undrawn=0, version=3))
    with store.read() as reader:
        assert reader.peak("h100", 0, 0, 100) == 3


def test_a_block_grows_under_what_lies_in_it(store: Store) -> None:
    """Nobody could extend or enlarge a reservation while work runs in it."""
    put(store, a_block((0, 1)), inside(2, (0,)))
    with store.begin() as tx:
        refuse(tx, inside(3, (2,)), inside(2, (0,), (10, 120), version=2))
        tx.put_booking(a_block((0, 1, 2), (-10, 150), version=2))
        tx.put_booking(inside(2, (0, 1), (10, 120), version=2))
        tx.put_booking(inside(3, (2,), (-10, 150)))
        refuse(tx, a_booking(4, (2,), (140, 160)))


def test_a_block_gives_up_only_what_nothing_lies_in(store: Store) -> None:
    """A reservation made smaller would pull hosts, or time, from under running work."""
    put(store, a_block((0, 1, 2, 3)), inside(2, (0, 1), (10, 60)), inside(3, (1,), (60, 90)))
    with store.begin() as tx:
        refuse(
            tx,
            a_block((0, 2, 3), version=2),
            a_block((1, 2, 3), version=2),
            a_block((0, 1), (0, 89), version=2),
            a_block((0, 1), (11, 100), version=2),
            a_block((), version=2, undrawn=4),
            ended(a_block((0, 1, 2, 3)), 89),
        )
        tx.put_booking(a_block((0, 1), (10, 90), version=2))
        tx.put_booking(a_booking(4, (2, 3)))
        tx.put_booking(a_booking(5, (0, 1), (90, 100)))


def test_what_lies_in_a_block_makes_room_before_the_block_shrinks(store: Store) -> None:
    """An amendment would need two steps, and others could see, or take, what is between them."""
    put(store, a_block((0, 1)), inside(2, (0, 1)))
    with store.begin() as tx:
        refuse(tx, a_block((0,), (0, 50), version=2))
        tx.put_booking(inside(2, (0,), (10, 50), version=2))
        tx.put_booking(a_block((0,), (0, 50), version=2))
        tx.put_booking(ended(inside(2, (0,), (10, 50), version=2), 30))
        tx.put_booking(a_block((5,), (0, 50), version=3))
        tx.put_booking(ended(a_block((5,), (0, 50), version=3), 40))
    with store.read() as reader:
        assert reader.open_bookings() == []
        assert reader.peak("h100", 0, 0, 100) == 0


def test_a_block_and_what_lies_in_it_are_booked_together(store: Store) -> None:
    """Work submitted with its reservation would be refused, or stay behind when the reservation is."""
    with store.begin() as tx:
        refuse(tx, inside(2, (0,)))
        with pytest.raises(DoubleBooking), tx.savepoint():
            tx.put_booking(a_block((0, 1)))
            tx.put_booking(inside(2, (0,)))
            tx.put_booking(inside(3, (0,), (80, 90)))
        assert tx.open_bookings() == []
        tx.put_booking(a_block((0, 1)))
        tx.put_booking(inside(2, (0,)))
    with store.read() as reader:
        assert reader.open_bookings() == [a_block((0, 1)), inside(2, (0,))]
        assert reader.bookings_inside(1) == [inside(2, (0,))]
        assert reader.bookings_inside(2) == []


def test_a_lost_host_is_replaced_in_the_block_and_in_what_runs_there(store: Store) -> None:
    """A broken host inside a reservation would stay in it, or its spare be used before it joined."""

    def parts(*lines: tuple[tuple[int, ...], int]) -> tuple[Part, ...]:
        return tuple(Part(cell=0, count=len(units), units=units, since=since) for units, since in lines)

    outage = a_booking(9, (1,), (50, 500), owner_kind=OwnerKind.OUTAGE)
    put(store, a_block((0, 1)), inside(2, (0, 1)))
    with store.begin() as tx:
        refuse(tx, outage)
        tx.put_booking(a_block((), version=2, parts=parts(((0, 1), 0), ((7,), 50)), stage=Stage.LIVE))
        refuse(
            tx,
            inside(2, (0, 7), version=2),
            inside(2, (), version=2, parts=parts(((0,), 0), ((7,), 49)), stage=Stage.LIVE),
        )
        tx.put_booking(inside(2, (), version=2, parts=parts(((0,), 0), ((7,), 50)), stage=Stage.LIVE))
        refuse(tx, a_block((), version=3, parts=parts(((0,), 0), ((7,), 51)), stage=Stage.LIVE))
        tx.put_booking(a_block((), version=3, parts=parts(((0,), 0), ((7,), 50)), stage=Stage.LIVE))
        tx.put_booking(outage)
        tx.put_booking(a_booking(10, (7,), (0, 50)))
        refuse(tx, inside(3, (7,), (40, 45)))


def test_blocks_are_apart_and_what_lies_in_one_excludes_each_other(store: Store) -> None:
    """Two requests in a reservation would share a host, or one reservation's work stop another's."""
    other = a_booking(5, (2, 3), owner_kind=OwnerKind.RESERVATION)
    put(store, a_block((0, 1)), other, inside(2, (0,)), inside(6, (2,), parent=5))
    with store.begin() as tx:
        refuse(
            tx,
            inside(3, (0,), (89, 100)),
            inside(3, (2,)),
            inside(6, (2,), parent=1, version=2),
            a_booking(7, (0,), (95, 120)),
        )
        tx.put_booking(inside(3, (0,), (90, 100)))
        tx.put_booking(inside(4, (1,)))
        tx.put_booking(a_booking(7, (0,), (100, 120)))


def test_a_promise_inside_a_block_has_no_hosts_yet(store: Store) -> None:
    """Nothing could wait inside a reservation whose hosts are drawn at its start."""
    promise = inside(2, (), count=2)
    put(store, a_booking(1, count=2, owner_kind=OwnerKind.RESERVATION), promise)
    with store.begin() as tx:
        assert tx.open_bookings()[1] == promise
        assert tx.peak("h100", 0, 0, 100) == 2
        live = replace(promise, stage=Stage.LIVE, parts=(Part(cell=0, count=2, units=(0, 1)),), version=2)
        refuse(tx, live)
        tx.put_booking(a_block((0, 1), version=2))
        tx.put_booking(live)
        assert tx.peak("h100", 0, 0, 100) == 2


def test_the_peak_counts_a_block_once(store: Store) -> None:
    """Work inside a reservation would count a second time, and the fleet seem overbooked."""
    put(
        store,
        a_block((0, 1), undrawn=1),
        inside(2, (0, 1)),
        inside(3, (), count=3),
        a_booking(4, (5,), (50, 150)),
    )
    with store.read() as reader:
        assert reader.peak("h100", 0, 0, 50) == 3
        assert reader.peak("h100", 0, 0, 100) == 4
        assert reader.peak("h100", 0, 100, 200) == 1


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    """One store of each kind, empty; who uses them undoes what was written."""
    sql = SqlStore(url_of(tmp_path_factory.mktemp("both") / "dws.db"))
    yield MemoryStore(), sql
    sql.close()


moves = st.tuples(
    st.sampled_from((1, 1, 2, 3, 4)),
    st.frozensets(st.integers(0, 3), min_size=1, max_size=4),
    st.integers(0, 6),
    st.integers(0, 12),
    st.sampled_from((0, 0, 0, 4, 8)),
    st.sampled_from(("put", "put", "put", "end")),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(moves, max_size=16))
def test_a_child_is_refused_exactly_when_it_leaves_its_parent(
    both: tuple[Store, Store], steps: list[tuple[int, frozenset[int], int, int, int, str]]
) -> None:
    """The last guard of a reservation would let work spill out of it, or stop what fits."""
    for store in both:
        with pytest.raises(Undone), store.begin() as tx:
            tx.put_booking(a_block((0, 1, 2, 3), (0, 10)))
            _walk(tx, steps)
            raise Undone


def _walk(tx: Transaction, steps: list[tuple[int, frozenset[int], int, int, int, str]]) -> None:
    for number, units, start, length, since, what in steps:
        old = tx.booking(number)
        version = old.version + 1 if old else 1
        part = Part(cell=0, count=len(units), units=tuple(sorted(units)), since=since)
        new = a_booking(
            number, parts=(part,), span=(start, start + length), stage=Stage.LIVE, version=version
        )
        new = replace(new, parent=0 if number == 1 else 1)
        if old is not None and old.stage is Stage.ENDED:
            continue
        if what == "end" and old is not None:
            new = ended(old, min(old.span.end, start))
        if _is_sound(tx, new):
            tx.put_booking(new)
        else:
            refuse(tx, new)


def _is_sound(tx: Transaction, new: Booking) -> bool:
    """Counted instant by instant."""
    present = {int(b.id): b for b in (tx.booking(n) for n in range(1, 5)) if b is not None}
    if new.parent == 0:
        children = [b for b in present.values() if b.parent and b.stage is not Stage.ENDED]
        return all(_held(child) <= _held(new) for child in children)
    siblings = [b for b in present.values() if b.parent and b.id != new.id]
    return _held(new) <= _held(present[1]) and not any(_held(new) & _held(b) for b in siblings)


def _held(booking: Booking) -> set[tuple[int, int]]:
    return {(u, at) for u, start in booking.holdings for at in range(start, booking.span.end)}
