"""All or nothing: transactions, parts of them, and readers beside them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from dws.engine.ports import Reader, RequestQuery, ReservationQuery, Store, Transaction
from dws.model.errors import Conflict, DoubleBooking
from dws.model.request import RequestState
from dws.model.reservation import ReservationState
from dws.model.work import WorkKind
from tests.contract.store import samples
from tests.contract.store.samples import a_booking, a_request, a_reservation, a_series, an_event, an_item


class Undone(Exception):
    """Ends what is not to be kept."""


def everything(reader: Reader) -> dict[str, Any]:
    """All that can be read."""
    return {
        "requests": reader.requests(RequestQuery(include_deleted=True)),
        "waiting": reader.requests(RequestQuery(states=(RequestState.PENDING,))),
        "named": [reader.request_named("vision", f"run-{n}") for n in range(5)],
        "counts": reader.count_requests(),
        "reservations": reader.reservations(ReservationQuery(include_deleted=True)),
        "reserved": reader.reservations(ReservationQuery(states=(ReservationState.APPROVED,))),
        "block": [reader.reservation_named("vision", f"block-{n}") for n in range(10, 14)],
        "series": [*reader.all_series(), *(reader.series(n) for n in range(20, 24))],
        "nights": [reader.series_named("vision", f"nights-{n}") for n in range(20, 24)],
        "largest": reader.largest_id(),
        "bookings": [reader.booking(n) for n in range(5)],
        "open": reader.open_bookings(),
        "peak": reader.peak("h100", 0, 0, 100),
        "fleet": reader.fleet(),
        "hosts": reader.host_statuses(),
        "events": reader.events(),
        "seq": reader.last_seq(),
        "work": reader.due_work(10_000, limit=100),
        "work of": [reader.work(n) for n in range(5)],
        "next": reader.next_due(),
        "reply": reader.idempotent("user:ada", "submit", "c-1"),
        "usage": reader.usage(start=0, end=10_000),
        "usage of": reader.usage(start=0, end=10_000, request=1),
        "ledger": reader.ledger_version(),
        "meta": reader.meta("key"),
    }


def write_one(tx: Transaction) -> None:
    """A little of everything."""
    tx.put_request(a_request(1))
    tx.put_request(a_request(2, state=RequestState.COMPLETED, ended_at=5))
    tx.put_reservation(a_reservation(11))
    tx.put_reservation(a_reservation(12, state=ReservationState.ENDED, ended_at=5))
    tx.put_series(a_series(21))
    tx.put_series(a_series(22, ended_at=5))
    tx.put_booking(a_booking(1, (0, 1)))
    tx.put_booking(a_booking(2, (3,), (10, 90), parent=0))
    tx.put_fleet(samples.FLEET)
    tx.put_host_status(samples.a_status(1))
    tx.append([an_event(1), an_event(2)])
    tx.schedule([an_item(1), an_item(1, WorkKind.PROVISION, 10), an_item(2)])
    tx.put_usage([samples.a_usage(1)])
    tx.put_idempotent(samples.a_reply(subjects=(1,)))
    tx.put_meta("key", "one")
    tx.bump_ledger_version()


def write_two(tx: Transaction) -> None:
    """A change of all that, and something new."""
    tx.put_request(a_request(1, version=2, state=RequestState.ACTIVE, deleted=True))
    tx.put_request(a_request(3))
    tx.put_reservation(a_reservation(11, version=2, name="block-10", state=ReservationState.FULFILLED))
    tx.put_reservation(a_reservation(13))
    tx.put_series(a_series(21, version=2, name="nights-20", booked_until=9))
    tx.put_series(a_series(23))
    tx.put_booking(a_booking(1, (1, 2), (0, 200), version=2))
    tx.put_booking(samples.ended(a_booking(2, (3,), (10, 90)), 50))
    tx.put_booking(a_booking(3, (0,)))
    tx.put_fleet(samples.Fleet(zones=(), pools=(), version=9))
    tx.put_host_status(samples.a_status(1, state=samples.HostState.READY, unreachable_since=0))
    tx.put_host_status(samples.a_status(2))
    tx.append([an_event(1), an_event(3)])
    tx.unschedule(1, (WorkKind.EXPIRE,))
    tx.schedule([an_item(1, WorkKind.PROVISION, 20), an_item(3, due_at=7)])
    tx.lease_work(now=100, process_now=0, until=9, token="t", limit=9)
    tx.put_usage([samples.a_usage(1, (100, 200))])
    tx.put_idempotent(samples.a_reply(subjects=(3,), at=9))
    tx.put_meta("key", "two")
    tx.bump_ledger_version()
    tx.forget_before(100, limit=9)


def test_a_transaction_that_fails_leaves_no_trace(store: Store) -> None:
    """Half of a command would stay."""
    with pytest.raises(Undone), store.begin() as tx:
        write_one(tx)
        raise Undone
    with store.read() as reader:
        assert reader.requests(RequestQuery(include_deleted=True)) == []
        assert (reader.last_seq(), reader.next_due(), reader.fleet()) == (0, None, None)
    with store.begin() as tx:
        write_one(tx)
        before = everything(tx)
    with store.read() as reader:
        assert everything(reader) == before
    with pytest.raises(Undone), store.begin() as tx:
        write_two(tx)
        assert everything(tx) != before
        raise Undone
    with store.read() as reader:
        assert everything(reader) == before


@pytest.mark.parametrize("looks", [False, True], ids=["unseen", "seen"])
def test_a_part_that_fails_is_undone_alone(store: Store, looks: bool) -> None:
    """One bad command of a batch would spoil the others, or leave half of itself."""
    with store.begin() as tx:
        write_one(tx)
        before = everything(tx) if looks else None
        with pytest.raises(Undone), tx.savepoint():
            write_two(tx)
            if looks:
                everything(tx)
            raise Undone
        assert before in (None, everything(tx))
        tx.put_meta("after", "yes")
    with store.begin() as tx:
        kept = everything(tx)
        assert tx.meta("after") == "yes"
        assert kept["ledger"] == 1
        assert before in (None, kept)
        write_two(tx)


@pytest.mark.parametrize("looks", [False, True], ids=["unseen", "seen"])
def test_parts_within_parts(store: Store, looks: bool) -> None:
    """A plan of which one decision fails would lose, or keep, the wrong ones."""

    def step(tx: Transaction, number: int) -> None:
        tx.put_request(a_request(number))
        tx.append([an_event(1)])
        tx.schedule([an_item(1, due_at=number)])
        tx.put_booking(a_booking(number, (number,)))
        tx.bump_ledger_version()
        if looks:
            everything(tx)

    with store.begin() as tx:
        with tx.savepoint():
            step(tx, 1)
            with pytest.raises(Undone), tx.savepoint():
                step(tx, 2)
                with tx.savepoint():
                    step(tx, 3)
                raise Undone
            with tx.savepoint():
                step(tx, 4)
                with pytest.raises(Undone), tx.savepoint():
                    step(tx, 5)
                    tx.unschedule(1)
                    raise Undone
        with pytest.raises(Undone), tx.savepoint():
            with tx.savepoint():
                step(tx, 6)
            raise Undone
    with store.read() as reader:
        assert [r.id for r in reader.requests(RequestQuery())] == [1, 4]
        assert [b.id for b in reader.open_bookings()] == [1, 4]
        assert [e.subject_seq for e in reader.events()] == [1, 2]
        assert reader.work(1) == [an_item(1, due_at=4)]
        assert reader.ledger_version() == 2


def test_a_refused_write_undoes_its_part_and_the_rest_is_kept(store: Store) -> None:
    """A refused double booking would take the whole batch with it."""
    with store.begin() as tx:
        tx.put_booking(a_booking(1, (0,)))
        with pytest.raises(DoubleBooking), tx.savepoint():
            tx.put_request(a_request(1))
            tx.put_booking(a_booking(2, (7,)))
            tx.put_booking(a_booking(3, (0,)))
        with pytest.raises(Conflict), tx.savepoint():
            tx.put_request(a_request(2))
            tx.put_request(a_request(2, version=7))
        tx.put_request(a_request(3))
    with store.read() as reader:
        assert [r.id for r in reader.requests(RequestQuery())] == [3]
        assert [b.id for b in reader.open_bookings()] == [1]


def test_writers_of_several_threads_queue_up(store: Store) -> None:
    """Commands at one time would fail, or their numbers would collide."""
    failures: list[BaseException] = []

    def write(first: int) -> None:
        try:
            for n in range(first, first + 20):
                with store.begin() as tx:
                    tx.put_request(a_request(n))
                    tx.append([an_event(1)])
                    tx.bump_ledger_version()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(n * 100,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with store.read() as reader:
        assert [e.seq for e in reader.events()] == list(range(1, 81))
        assert reader.ledger_version() == 80
        assert len(reader.requests(RequestQuery())) == 80


def test_a_reader_sees_whole_commits(store: Store) -> None:
    """A reader would see a request without its events, or a number that goes back."""
    stop, broken = threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            with store.read() as reader:
                seen = (len(reader.requests(RequestQuery())), reader.last_seq(), reader.ledger_version())
            if len(set(seen)) != 1:
                broken.append(seen)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(1, 60):
        with store.begin() as tx:
            tx.put_request(a_request(n))
            tx.append([an_event(n)])
            tx.bump_ledger_version()
    stop.set()
    for thread in threads:
        thread.join()
    assert broken == []


def test_a_transaction_inside_a_transaction_is_a_mistake(store: Store) -> None:
    """The inner one would commit the half-done outer one, or wait for it for ever."""
    with pytest.raises(RuntimeError), store.begin(), store.begin():
        pass
    with store.begin() as tx:
        tx.put_meta("key", "fine")


@pytest.mark.parametrize(
    "write",
    [
        lambda tx: tx.put_fleet(samples.FLEET),
        lambda tx: tx.put_meta("key", "x"),
        lambda tx: tx.put_reservation(a_reservation(3)),
        lambda tx: tx.put_series(a_series(23)),
        lambda tx: tx.put_host_status(samples.a_status()),
        lambda tx: tx.clear_leases(),
        lambda tx: tx.forget_before(10, limit=1),
    ],
)
def test_a_part_with_a_single_write_is_undone(store: Store, write: Callable[[Transaction], None]) -> None:
    """A write that is sent at once would escape the part it was in."""
    with store.begin() as tx:
        tx.put_request(a_request(1, state=RequestState.COMPLETED, ended_at=5))
        tx.schedule([an_item(1, WorkKind.PROVISION, 10)])
        tx.lease_work(now=10, process_now=0, until=9, token="t", limit=9)
        before = everything(tx)
    with store.begin() as tx:
        tx.append([an_event(2)])
        with pytest.raises(Undone), tx.savepoint():
            write(tx)
            raise Undone
    with store.read() as reader:
        after = everything(reader)
    assert after.pop("events")[0].subject == before.pop("seq") + 2
    assert after.pop("seq") == 1
    before.pop("events")
    assert after == before
