"""What is due: order, leases, and who may apply a result."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dws.engine.ports import Store
from dws.model.work import WorkItem, WorkKind
from tests.contract.store.samples import an_item

K = WorkKind


def put(store: Store, *items: WorkItem) -> None:
    """Schedule items, in one transaction."""
    with store.begin() as tx:
        tx.schedule(items)


def lease(
    store: Store, token: str, *, now: int = 100, process_now: int = 0, limit: int = 10
) -> list[WorkItem]:
    """Take what is due, for ten seconds."""
    with store.begin() as tx:
        return tx.lease_work(
            now=now, process_now=process_now, until=process_now + 10, token=token, limit=limit
        )


def test_due_work_comes_in_one_order(store: Store) -> None:
    """Two runs of the same day would do things in another order."""
    items = [
        an_item(2, K.RUN_END, 50),
        an_item(1, K.WARN, 50, tag="600"),
        an_item(1, K.WARN, 50, tag="60", attempt=3),
        an_item(3, K.EXPIRE, 40),
        an_item(3, K.RUN_END, 50),
        an_item(4, K.EXPIRE, 101),
    ]
    put(store, *items)
    expected = sorted(items, key=lambda i: (i.due_at, i.kind, i.subject, i.tag))
    with store.begin() as tx:
        assert tx.due_work(100, limit=10) == expected[:5]
    with store.read() as reader:
        assert reader.due_work(101, limit=10) == expected
        assert reader.due_work(100, limit=2) == expected[:2]
        assert reader.due_work(39, limit=10) == []
        assert reader.due_work(100, limit=0) == []
        assert reader.due_work(100, limit=2, kinds=(K.WARN, K.RUN_END)) == expected[1:3]
        assert reader.due_work(100, limit=9, kinds=(K.WATCHDOG,)) == []
        assert reader.next_due() == 40
        assert reader.work(1) == [items[2], items[1]]
        assert reader.work(9) == []


def test_scheduling_again_moves_the_item(store: Store) -> None:
    """A run that was extended would end at its old time as well."""
    put(store, an_item(1, K.RUN_END, 50), an_item(2, K.RUN_END, 70))
    put(store, an_item(1, K.RUN_END, 90, attempt=1))
    with store.begin() as tx:
        assert tx.next_due() == 70
        assert tx.due_work(100, limit=9) == [an_item(2, K.RUN_END, 70), an_item(1, K.RUN_END, 90, attempt=1)]
        tx.schedule([an_item(2, K.RUN_END, 95)])
        tx.schedule([an_item(2, K.RUN_END, 60)])
        assert tx.next_due() == 60
    with store.read() as reader:
        assert reader.due_work(100, limit=9) == [
            an_item(2, K.RUN_END, 60),
            an_item(1, K.RUN_END, 90, attempt=1),
        ]


def test_unscheduling_takes_what_was_named_and_no_more(store: Store) -> None:
    """A warning would go out after the end, or an end would never come."""
    items = [
        an_item(1, K.WARN, 10, tag="600"),
        an_item(1, K.WARN, 20, tag="60"),
        an_item(1, K.RUN_END, 30),
        an_item(1, K.EXPIRE, 40, tag="60"),
        an_item(2, K.WARN, 50, tag="600"),
    ]
    put(store, *items)
    with store.begin() as tx:
        tx.unschedule(1, (K.WARN,), "600")
        assert tx.due_work(99, limit=9) == items[1:]
        tx.unschedule(1, (K.RUN_END, K.OVERRUN))
        assert tx.work(1) == [items[1], items[3]]
        tx.schedule([items[2]])
        tx.unschedule(1, (), "60")
        assert tx.work(1) == [items[2]]
    with store.begin() as tx:
        tx.schedule([items[0]])
        tx.unschedule(1)
        tx.schedule([items[1]])
        tx.unschedule(3)
    with store.read() as reader:
        assert reader.due_work(99, limit=9) == [items[1], items[4]]
        assert reader.next_due() == 20


def test_a_part_takes_back_what_was_scheduled_before_it(store: Store) -> None:
    """What one command of a batch cancels, an earlier one had scheduled: it would fire all the same."""
    with store.begin() as tx:
        tx.schedule(
            [an_item(1, K.WARN, 10, tag="600"), an_item(1, K.WARN, 20, tag="60"), an_item(1, K.EXPIRE, 30)]
        )
        with tx.savepoint():
            tx.unschedule(1, (K.WARN,))
            tx.schedule([an_item(1, K.WARN, 40, tag="60")])
        with tx.savepoint():
            tx.unschedule(1, (K.EXPIRE,), "")
    with store.read() as reader:
        assert reader.due_work(99, limit=9) == [an_item(1, K.WARN, 40, tag="60")]


def test_no_work_is_never_due(store: Store) -> None:
    """A server with nothing to do would spin."""
    put(store, an_item(1))
    with store.begin() as tx:
        tx.unschedule(1)
        assert tx.next_due() is None
    with store.read() as reader:
        assert reader.next_due() is None


def test_leases_go_to_what_calls_a_backend_in_due_order(store: Store) -> None:
    """Orders would be carried out late, twice or before their time."""
    calls = [an_item(3, K.PROVISION, 10), an_item(1, K.RELEASE, 20), an_item(2, K.SET_DEADLINE, 20)]
    put(store, *calls, an_item(4, K.EXPIRE, 5), an_item(5, K.PROVISION, 101))
    taken = lease(store, "a", limit=2)
    assert taken == [replace(i, lease_token="a", lease_until=10) for i in calls[:2]]
    assert [i.subject for i in lease(store, "b")] == [2]
    assert lease(store, "c") == []
    with store.read() as reader:
        assert reader.work(3) == [taken[0]]
        assert {i.subject for i in reader.due_work(100, limit=9)} == {1, 2, 3, 4}
    assert lease(store, "d", limit=0, process_now=50) == []


def test_a_lease_that_is_over_goes_to_the_next_and_the_first_can_no_longer_apply(store: Store) -> None:
    """A slow call's result would be applied on top of the one that took over."""
    put(store, an_item(1, K.PROVISION, 10))
    (first,) = lease(store, "first")
    assert lease(store, "early", process_now=9) == []
    with store.begin() as tx:
        assert tx.leased(first)
    (second,) = lease(store, "second", process_now=10)
    with store.begin() as tx:
        assert not tx.leased(first)
        assert tx.leased(second)
        assert not tx.leased(replace(second, lease_token=""))
        tx.unschedule(1, (K.PROVISION,), "")
        assert not tx.leased(second)
    with store.begin() as tx:
        assert not tx.leased(second)


def test_scheduling_again_voids_the_lease(store: Store) -> None:
    """The result of an order that has changed would be taken for the new one's."""
    put(store, an_item(1, K.PROVISION, 10))
    (taken,) = lease(store, "a")
    with store.begin() as tx:
        tx.schedule([taken])
        assert not tx.leased(taken)
        assert tx.work(1) == [an_item(1, K.PROVISION, 10)]
        assert not tx.leased(taken)
    assert [i.lease_token for i in lease(store, "b")] == ["b"]


def test_leases_of_a_dead_process_are_forgotten_at_start(store: Store) -> None:
    """After a crash nothing would be started or given back until the leases run out."""
    put(store, an_item(1, K.PROVISION, 10), an_item(2, K.RELEASE, 10), an_item(3))
    (taken, _) = lease(store, "dead")
    with store.begin() as tx:
        tx.clear_leases()
        assert not tx.leased(taken)
    assert [i.subject for i in lease(store, "new")] == [1, 2]


def test_many_items_at_one_instant_are_all_there(store: Store) -> None:
    """Of a burst of ends, some would be lost or fire twice."""
    items = [an_item(n, K.RUN_END, 50 + n % 3) for n in range(300)]
    put(store, *items)
    for _ in range(4):
        put(store, *(replace(i, due_at=i.due_at + 1) for i in items[:200]))
        put(store, *items[:200])
    with store.begin() as tx:
        for n in range(100):
            tx.unschedule(n)
    with store.read() as reader:
        assert sorted(i.subject for i in reader.due_work(100, limit=1_000)) == list(range(100, 300))
        assert reader.next_due() == 50


@pytest.mark.parametrize("kind", list(K))
def test_every_kind_of_work_comes_back_whole(store: Store, kind: K) -> None:
    """A restart would forget what was to be done."""
    item = an_item(2**62 + 1, kind, 10, tag="1800", attempt=2)
    put(store, item)
    with store.read() as reader:
        assert reader.work(2**62 + 1) == [item]
