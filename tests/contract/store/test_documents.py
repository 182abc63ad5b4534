"""Doors' documents as the store keeps them: whole, by version, one name once, forgotten once they are over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dws.engine.ports import DocumentQuery, Store
from dws.model.document import UNLESS_DELIVERED, WITH_REQUEST, WITH_RESERVATION, Document
from dws.model.errors import AlreadyExists, Conflict
from dws.model.names import DocumentId
from dws.model.request import RequestState
from dws.model.reservation import ReservationState
from dws.store.sql import SqlStore
from tests.contract.store import samples


def a_document(number: int = 1, **changes: Any) -> Document:
    told: dict[str, Any] = {
        "id": DocumentId(number),
        "kind": "compute.instance",
        "project": "vision",
        "scope": "zones/us-central1-a",
        "name": f"vm-{number}",
        "created_at": 1000,
        "body": {"disks": [{"boot": True}], "labels": {"a": "ü"}},
    }
    return Document(**(told | changes))


@pytest.mark.parametrize("number", [1, samples.BIG])
def test_a_document_comes_back_whole(store: Store, number: int) -> None:
    """What a client said of a template or a group would come back changed."""
    first = a_document(number, parent="g", request=7, rank=3, reservation=9)
    for row in (first, replace(first, version=2, ended_at=5, body={})):
        with store.begin() as tx:
            tx.put_document(row)
            assert tx.document(number) == row
        with store.read() as reader:
            assert reader.document_named(row.kind, "vision", row.scope, row.name, "g") == row
            assert reader.document_named(row.kind, "vision", row.scope, row.name) is None
            assert reader.documents(DocumentQuery(kind=row.kind)) == [row]
            assert reader.largest_id() == number


def test_documents_outlive_the_server(sql: Callable[..., SqlStore]) -> None:
    """After a restart groups and templates would be gone while their instances run."""
    first = sql()
    with first.begin() as tx:
        tx.put_document(a_document(7))
    first.close()
    with sql().read() as reader:
        assert reader.document(7) == a_document(7)


def test_one_name_is_used_once(store: Store) -> None:
    """Two things of one name could not be told apart by those who ask for them by it."""
    with store.begin() as tx:
        tx.put_document(a_document(1))
        for other in (a_document(2, name="vm-1"), a_document(1)):
            with pytest.raises(AlreadyExists):
                tx.put_document(other)
        with pytest.raises(Conflict):
            tx.put_document(a_document(3, version=2))
        elsewhere = {"kind": "k", "project": "p", "scope": "global", "parent": "x"}
        for number, (name, value) in enumerate(elsewhere.items(), start=10):
            tx.put_document(a_document(number, **{"name": "vm-1", name: value}))
        tx.drop_document(1)
        tx.drop_document(1)
        tx.put_document(a_document(2, name="vm-1"))


def test_documents_are_listed_by_place_in_pages(store: Store) -> None:
    """Pages of a long list would leave things out or repeat them."""
    rows = [
        a_document(n, scope=f"zones/z{n % 3}", parent="" if n % 2 else "g", name=f"vm-{n % 4}-{n}", request=n % 5)
        for n in range(1, 40)
    ]
    with store.begin() as tx:
        for row in rows:
            tx.put_document(row)
        tx.put_document(a_document(90, project="other"))
        tx.put_document(a_document(91, kind="compute.image"))
    wanted = sorted(rows, key=lambda d: (d.scope, d.parent, d.name))
    query = DocumentQuery(kind="compute.instance", project="vision", limit=7)
    found: list[Document] = []
    with store.read() as reader:
        while page := reader.documents(query):
            found += page
            query = replace(query, after=(page[-1].scope, page[-1].parent, page[-1].name))
        assert found == wanted
        for field, value in (("scope", "zones/z1"), ("parent", "g"), ("request", 3)):
            narrowed = replace(query, after=None, limit=99, **{field: value})  # type: ignore[arg-type]
            assert reader.documents(narrowed) == [d for d in wanted if getattr(d, field) == value]
        assert len(reader.documents(DocumentQuery(kind="compute.instance"))) == 40


def test_what_failed_left_no_document(store: Store) -> None:
    """A group whose creation failed would be there all the same."""
    with store.begin() as tx:
        tx.put_document(a_document(1))
        with pytest.raises(ZeroDivisionError), tx.savepoint():
            tx.put_document(a_document(2))
            tx.put_document(a_document(1, version=2, body={}))
            tx.drop_document(1)
            raise ZeroDivisionError
        assert tx.documents(DocumentQuery(kind="compute.instance")) == [a_document(1)]


def test_the_past_is_forgotten(store: Store) -> None:
    """Operations of years would fill the disk; or what still stands would be forgotten."""
    with store.begin() as tx:
        tx.put_document(a_document(1))
        tx.put_document(a_document(2, ended_at=50))
        tx.put_document(a_document(3, ended_at=60))
        assert tx.forget_before(60, limit=10) == 1
        assert [d.id for d in tx.documents(DocumentQuery(kind="compute.instance"))] == [1, 3]


def test_what_is_over_with_its_request_is_forgotten_with_it(store: Store) -> None:
    """Every instance there ever was would be kept; or one whose request still runs would be forgotten."""
    over = samples.a_request(7, state=RequestState.COMPLETED, ended_at=50)
    with store.begin() as tx:
        tx.put_request(over)
        tx.put_request(samples.a_request(8))
        tx.put_document(a_document(1, request=7, ended_at=WITH_REQUEST))
        tx.put_document(a_document(2, request=8, ended_at=WITH_REQUEST))
        assert tx.forget_before(60, limit=10) == 1
        assert [d.id for d in tx.documents(DocumentQuery(kind="compute.instance"))] == [2]


def test_a_request_is_kept_as_long_as_something_stands_for_it(store: Store) -> None:
    """A stopped instance would no longer know when it ran, nor in which zone."""
    with store.begin() as tx:
        tx.put_request(samples.a_request(7, state=RequestState.COMPLETED, ended_at=50))
        tx.put_document(a_document(1, request=7))
        tx.put_document(a_document(2, request=7, ended_at=WITH_REQUEST))
        assert tx.forget_before(60, limit=10) == 0
        tx.drop_document(1)
        assert tx.forget_before(60, limit=10) == 1
        assert tx.documents(DocumentQuery(kind="compute.instance")) == []


def test_what_stays_if_it_was_delivered_is_forgotten_if_it_was_not(store: Store) -> None:
    """A stopped instance would be lost after a while; or one that never came be kept for ever."""
    grant = replace(samples.GRANT, delivered_at=40)
    with store.begin() as tx:
        for number, granted in ((7, grant), (8, None), (9, None)):
            over = {} if number == 9 else {"state": RequestState.COMPLETED, "ended_at": 50}
            tx.put_request(samples.a_request(number, grant=granted, **over))
            tx.put_document(a_document(number - 6, request=number, ended_at=UNLESS_DELIVERED))
        assert tx.forget_before(60, limit=10) == 1
        assert [d.id for d in tx.documents(DocumentQuery(kind="compute.instance"))] == [1, 3]
        assert (tx.request(7) is not None, tx.request(8)) == (True, None)


def test_what_is_over_with_its_reservation_is_forgotten_with_it(store: Store) -> None:
    """The names of reservations that are long over would fill the store."""
    with store.begin() as tx:
        tx.put_reservation(samples.a_reservation(7, state=ReservationState.ENDED, ended_at=50))
        tx.put_reservation(samples.a_reservation(8))
        tx.put_document(a_document(1, reservation=7, ended_at=WITH_RESERVATION))
        tx.put_document(a_document(2, reservation=8, ended_at=WITH_RESERVATION))
        tx.put_document(a_document(3, reservation=7))
        found = tx.documents(DocumentQuery(kind="compute.instance", reservation=7))
        assert [d.id for d in found] == [1, 3]
        assert tx.forget_before(60, limit=10) == 1
        assert [d.id for d in tx.documents(DocumentQuery(kind="compute.instance"))] == [2, 3]
