"""What is stored is what comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dws.engine.ports import RequestQuery, Store
from dws.model.booking import Stage
from dws.model.errors import AlreadyExists, Conflict
from dws.model.events import EventBody, SubjectKind
from dws.model.request import RequestState
from dws.model.topology import HostState
from tests.contract.store import samples
from tests.contract.store.samples import a_request, a_status, a_usage, an_event

S = RequestState


@pytest.mark.parametrize("number", [1, samples.BIG])
def test_a_request_comes_back_whole(store: Store, number: int) -> None:
    """A restart would lose parts of what people asked for and were granted."""
    first, second = a_request(number), replace(samples.a_full_request(number), version=2)
    with store.begin() as tx:
        tx.put_request(first)
        assert tx.request(number) == first
    with store.begin() as tx:
        tx.put_request(second)
        assert tx.request(number) == second
    with store.read() as reader:
        assert reader.request(number) == second
        assert reader.requests(RequestQuery(include_deleted=True)) == [second]
        assert reader.request(number - 1) is None


def test_a_version_that_does_not_follow_is_a_conflict(store: Store) -> None:
    """Two writers could overwrite each other's change unseen."""
    with store.begin() as tx:
        tx.put_request(a_request(5))
        for version in (3, 4):
            with pytest.raises(Conflict):
                tx.put_request(a_request(5, version=version))
    with store.begin() as tx:
        for request, error in (
            (a_request(5), AlreadyExists),
            (a_request(5, version=3), Conflict),
            (a_request(4, version=2), Conflict),
            (a_request(6, version=2), Conflict),
        ):
            with pytest.raises(error):
                tx.put_request(request)
        tx.put_request(a_request(4))
        with pytest.raises(AlreadyExists):
            tx.put_request(a_request(4))
    with store.read() as reader:
        assert reader.requests(RequestQuery()) == [a_request(4), a_request(5)]


def test_a_name_means_its_newest_bearer_that_is_not_deleted(store: Store) -> None:
    """A name used again would show, or cancel, the wrong request."""
    old, new = a_request(1, name="train"), a_request(2, name="train")
    with store.begin() as tx:
        assert tx.request_named("vision", "train") is None
        tx.put_request(old)
        assert tx.request_named("vision", "train") == old
        tx.put_request(new)
        tx.put_request(a_request(3, name="train", project="speech"))
        assert tx.request_named("vision", "train") == new
    with store.begin() as tx:
        tx.put_request(replace(new, version=2, deleted=True))
        assert tx.request_named("vision", "train") == old
        tx.put_request(replace(old, version=2, deleted=True))
        assert tx.request_named("vision", "train") is None
    with store.read() as reader:
        assert reader.request_named("vision", "train") is None
        assert reader.request(1) == replace(old, version=2, deleted=True)


def _many() -> list:  # type: ignore[type-arg]
    states = (S.PENDING, S.ACTIVE, S.COMPLETED)
    return [
        a_request(
            n,
            state=states[n % 3],
            project=("vision", "speech", "maps")[n % 3 if n % 2 else 0],
            array="sweep" if n % 4 == 0 else "",
            labels={"team": f"t{n % 2}", 'odd "key".x': str(n % 5)},
            deleted=n % 7 == 0,
        )
        for n in range(1, 31)
    ]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (RequestQuery(), lambda r: not r.deleted),
        (RequestQuery(include_deleted=True), lambda r: True),
        (RequestQuery(project="vision"), lambda r: r.project == "vision" and not r.deleted),
        (RequestQuery(projects=("maps", "speech")), lambda r: r.project != "vision" and not r.deleted),
        (RequestQuery(project="vision", projects=("maps",)), lambda r: False),
        (RequestQuery(states=(S.PENDING,)), lambda r: r.state is S.PENDING and not r.deleted),
        (
            RequestQuery(states=(S.PENDING, S.ACTIVE), include_deleted=True),
            lambda r: r.state in (S.PENDING, S.ACTIVE),
        ),
        (RequestQuery(array="sweep"), lambda r: r.array == "sweep" and not r.deleted),
        (RequestQuery(array="other"), lambda r: False),
        (RequestQuery(labels={"team": "t1"}), lambda r: r.labels["team"] == "t1" and not r.deleted),
        (
            RequestQuery(labels={"team": "t1", 'odd "key".x': "3"}),
            lambda r: r.labels == {"team": "t1", 'odd "key".x': "3"} and not r.deleted,
        ),
        (RequestQuery(labels={"team": ""}), lambda r: False),
        (RequestQuery(labels={"absent": ""}), lambda r: False),
        (
            RequestQuery(states=(S.ACTIVE,), array="sweep", labels={"team": "t0"}),
            lambda r: (
                r.state is S.ACTIVE and r.array == "sweep" and r.labels["team"] == "t0" and not r.deleted
            ),
        ),
    ],
)
def test_a_list_shows_what_was_asked_for_page_by_page(store: Store, query: RequestQuery, wanted) -> None:  # type: ignore[no-untyped-def]
    """A list would miss requests, show others', or show one twice on two pages."""
    rows = _many()
    expected = [r for r in rows if wanted(r)]
    with store.begin() as tx:
        for row in rows:
            tx.put_request(row)
        assert tx.requests(query) == expected
    for newest_first in (False, True):
        pages, after = [], None
        while True:
            with store.read() as reader:
                page = reader.requests(replace(query, newest_first=newest_first, after=after, limit=4))
            assert len(page) <= 4
            if not page:
                break
            pages += page
            after = page[-1].id
        assert pages == (expected[::-1] if newest_first else expected)


def test_pages_stay_stable_while_requests_come_and_change(store: Store) -> None:
    """A reader who turns pages would see one twice or miss one because others wrote meanwhile."""
    with store.begin() as tx:
        for n in (10, 20, 30, 40):
            tx.put_request(a_request(n))
    with store.read() as reader:
        first = reader.requests(RequestQuery(limit=2))
    with store.begin() as tx:
        tx.put_request(a_request(5))
        tx.put_request(a_request(50))
        tx.put_request(a_request(20, version=2, state=S.ACTIVE))
    with store.read() as reader:
        rest = reader.requests(RequestQuery(after=first[-1].id))
        assert reader.requests(RequestQuery(limit=0)) == []
    assert [r.id for r in first + rest] == [10, 20, 30, 40, 50]


def test_states_are_counted_without_deleted_requests(store: Store) -> None:
    """The overview would count what people no longer see."""
    with store.begin() as tx:
        for row in _many():
            tx.put_request(row)
        tx.put_request(a_request(3, version=2, state=S.CANCELLED))
        counts = tx.count_requests()
    with store.read() as reader:
        assert reader.count_requests() == counts
    assert set(counts) == set(S)
    assert {s: n for s, n in counts.items() if n} == {
        S.PENDING: 8,
        S.ACTIVE: 8,
        S.COMPLETED: 9,
        S.CANCELLED: 1,
    }


def test_a_fleet_comes_back_whole(store: Store) -> None:
    """Pools, prices, blocks or overheads would change with a restart."""
    with store.begin() as tx:
        assert tx.fleet() is None
        tx.put_fleet(replace(samples.FLEET, version=6))
        tx.put_fleet(samples.FLEET)
        assert tx.fleet() == samples.FLEET
    with store.read() as reader:
        kept = reader.fleet()
    assert kept == samples.FLEET
    assert kept is not None
    assert kept.pools[0].cells == samples.FLEET.pools[0].cells


def test_hosts_are_kept_until_they_are_ready_and_reachable(store: Store) -> None:
    """A host under repair would be used again after a restart, or never again."""
    down, unseen = a_status(2), a_status(1, state=HostState.READY, unreachable_since=9)
    with store.begin() as tx:
        for status in (down, unseen, a_status(0), a_status(7, pool="a100")):
            tx.put_host_status(status)
        tx.put_host_status(replace(down, reason="other"))
        tx.put_host_status(a_status(0, state=HostState.READY, unreachable_since=0))
        tx.put_host_status(a_status(5, state=HostState.READY, unreachable_since=0))
    with store.read() as reader:
        assert reader.host_statuses() == [a_status(7, pool="a100"), unseen, replace(down, reason="other")]


@pytest.mark.parametrize("body", samples.BODIES, ids=lambda b: type(b).__name__)
def test_every_event_comes_back_whole(store: Store, body: EventBody) -> None:
    """The story of a request could not be told, checked or replayed."""
    new = an_event(samples.BIG, body, reason="because", call_id="c-1", at=1_234)
    with store.begin() as tx:
        (event,) = tx.append([new])
        assert tx.events() == [event]
    with store.read() as reader:
        (kept,) = reader.events()
    assert kept == event
    assert type(kept.body) is type(body)
    for name in ("at", "actor", "subject_kind", "subject", "project", "name", "reason", "call_id", "body"):
        assert getattr(kept, name) == getattr(new, name)
    assert (kept.seq, kept.subject_seq) == (1, 1)


def test_usage_is_found_by_time_project_and_request(store: Store) -> None:
    """A bill would miss use, or count others' use."""
    records = [
        a_usage(1, (0, 100)),
        a_usage(1, (100, 200)),
        a_usage(2, (50, 60), project="speech"),
        a_usage(1, (0, 100), rank=4),
    ]
    with store.begin() as tx:
        tx.put_usage(records[:3])
        tx.put_usage(records[3:])
        assert tx.usage(start=0, end=1_000) == records
    with store.read() as reader:
        assert reader.usage(start=0, end=1_000) == records
        assert reader.usage(start=100, end=150) == [records[1]]
        assert reader.usage(start=0, end=100, project="vision") == [records[0], records[3]]
        assert reader.usage(start=0, end=1_000, request=2) == [records[2]]
        assert reader.usage(start=0, end=1_000, request=2, project="vision") == []
        assert reader.usage(start=200, end=300) == []


def test_an_answer_is_remembered_by_caller_method_and_call(store: Store) -> None:
    """A call repeated after a timeout would be carried out twice."""
    with store.begin() as tx:
        assert tx.idempotent("user:ada", "submit", "c-1") is None
        tx.put_idempotent(samples.a_reply())
        assert tx.idempotent("user:ada", "submit", "c-1") == samples.a_reply()
    with store.begin() as tx:
        newer = samples.a_reply(subjects=(3,), body_hash="cd", at=2_000)
        tx.put_idempotent(newer)
        tx.put_idempotent(samples.a_reply("c-2", subjects=()))
    with store.read() as reader:
        assert reader.idempotent("user:ada", "submit", "c-1") == newer
        assert reader.idempotent("user:ada", "submit", "c-2") == samples.a_reply("c-2", subjects=())
        for other in (
            ("user:bo", "submit", "c-1"),
            ("user:ada", "extend", "c-1"),
            ("user:ada", "submit", "c"),
        ):
            assert reader.idempotent(*other) is None


def test_small_values_and_the_ledgers_version_are_kept(store: Store) -> None:
    """A plan made on an old ledger would be taken for a fresh one."""
    with store.begin() as tx:
        assert tx.meta("state_dir_id") is None
        tx.put_meta("state_dir_id", "one")
        tx.put_meta("state_dir_id", "two")
        assert tx.ledger_version() == 0
        assert [tx.bump_ledger_version(), tx.bump_ledger_version()] == [1, 2]
    with store.begin() as tx:
        assert tx.bump_ledger_version() == 3
    with store.read() as reader:
        assert reader.meta("state_dir_id") == "two"
        assert reader.ledger_version() == 3


def test_retention_drops_what_is_over_and_keeps_the_bill(store: Store) -> None:
    """Old records would stay for ever, live ones would vanish, or bills would lose their lines."""
    over = {"state": S.COMPLETED}
    with store.begin() as tx:
        for n, changes in (
            (1, {**over, "ended_at": 50}),
            (2, {**over, "ended_at": 40, "deleted": True}),
            (3, {**over, "ended_at": 100}),
            (4, {"state": S.ENDING, "ended_at": 10}),
            (5, {}),
        ):
            tx.put_request(a_request(n, **changes))
            tx.append([an_event(n), an_event(n)])
            tx.put_booking(samples.a_booking(n * 10, (n,), owner=n))
            tx.put_idempotent(samples.a_reply(f"c-{n}", subjects=(n,)))
            tx.put_usage([a_usage(n)])
        tx.put_idempotent(samples.a_reply("both", subjects=(1, 5)))
        tx.append([an_event(1, subject_kind=SubjectKind.HOST)])
    with store.begin() as tx:
        assert tx.forget_before(100, limit=1) == 1
        assert tx.request(2) is None
        assert tx.request(1) is not None
        assert tx.forget_before(100, limit=10) == 1
        assert tx.forget_before(100, limit=10) == 0
    with store.read() as reader:
        assert [r.id for r in reader.requests(RequestQuery(include_deleted=True))] == [3, 4, 5]
        assert [b.id for b in reader.open_bookings()] == [30, 40, 50]
        assert [e.seq for e in reader.events()] == [5, 6, 7, 8, 9, 10, 11]
        assert reader.events(subject_kind=SubjectKind.REQUEST, subject=1) == []
        assert reader.last_seq() == 11
        assert len(reader.usage(start=0, end=1_000)) == 5
        assert reader.idempotent("user:ada", "submit", "c-1") is None
        assert reader.idempotent("user:ada", "submit", "both") is None
        assert reader.idempotent("user:ada", "submit", "c-3") is not None
        assert reader.peak("h100", 0, 0, 100) == 3
    with store.begin() as tx:
        tx.put_booking(samples.a_booking(99, (1, 2)))


def test_the_largest_id_counts_what_has_ended(store: Store) -> None:
    """After a restart an id could be given a second time."""
    with store.read() as reader:
        assert reader.largest_id() == 0
    with store.begin() as tx:
        tx.put_request(a_request(5))
        tx.put_booking(samples.a_booking(900))
        tx.put_booking(replace(samples.a_booking(900), version=2, stage=Stage.ENDED))
    with store.read() as reader:
        assert reader.largest_id() == 900
