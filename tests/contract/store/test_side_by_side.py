"""Both stores, given the same things to do, answer the same: whatever is done, and however it fails.

Hypothesis writes scripts: steps, parts within parts that may fail, transactions that may fail. Each is
played on the store in memory and on the one in SQL; what each step answered and everything that can be
read is compared, during the transaction and after it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dws.engine.ports import Reader, RequestQuery, ReservationQuery, Store, Transaction
from dws.model.booking import OwnerKind, Stage
from dws.model.booking import Part as BookingPart
from dws.model.errors import DwsError
from dws.model.events import SubjectKind
from dws.model.request import RequestState
from dws.model.reservation import ReservationState
from dws.model.series import SeriesState
from dws.model.topology import Fleet, HostState
from dws.model.work import WorkItem, WorkKind
from dws.store.memory import MemoryStore
from dws.store.sql import SqlStore
from tests.contract.store.conftest import url_of
from tests.contract.store.samples import (
    a_booking,
    a_reply,
    a_request,
    a_reservation,
    a_series,
    a_status,
    a_usage,
    an_event,
)

SUBJECTS = range(1, 7)
STATES = (RequestState.PENDING, RequestState.ACTIVE, RequestState.COMPLETED)
STATES_OF_RESERVATIONS = (ReservationState.APPROVED, ReservationState.FULFILLED, ReservationState.ENDED)
KINDS = (WorkKind.PROVISION, WorkKind.RELEASE, WorkKind.EXPIRE, WorkKind.WARN)
NAMES = ("train", "serve")
TOKENS = ("a", "b")

Step = Callable[[Transaction], Any]


class Undone(Exception):
    """Ends a part or a transaction that is not to be kept."""


@dataclass(frozen=True)
class Part:
    """Steps in a savepoint."""

    steps: tuple[Any, ...]
    fails: bool


def everything(reader: Reader) -> list[Any]:
    """All that can be read, in many ways."""
    seen: list[Any] = [
        reader.count_requests(),
        reader.open_bookings(),
        reader.fleet(),
        reader.host_statuses(),
        reader.largest_id(),
        reader.last_seq(),
        reader.next_due(),
        reader.ledger_version(),
        reader.meta("key"),
        reader.usage(start=20, end=60),
        reader.usage(start=0, end=100, project="speech"),
        reader.events(),
        reader.events(after=3, limit=4, project="speech"),
        reader.events(newest_first=True, limit=3),
        reader.events(subject_kind=SubjectKind.REQUEST),
        reader.due_work(20, limit=100),
        reader.due_work(20, limit=2, kinds=KINDS[:2]),
        reader.all_series(),
        reader.all_series("speech"),
    ]
    for query in (
        RequestQuery(),
        RequestQuery(include_deleted=True, newest_first=True),
        RequestQuery(states=STATES[:2], limit=2),
        RequestQuery(states=STATES[2:], include_deleted=True, newest_first=True, after=4),
        RequestQuery(project="speech", labels={"team": "x"}),
        RequestQuery(projects=("vision",), array="sweep", after=2),
    ):
        seen.append(reader.requests(query))
    for booked in (
        ReservationQuery(),
        ReservationQuery(include_deleted=True, newest_first=True, limit=2),
        ReservationQuery(states=STATES_OF_RESERVATIONS[:2], ends_after=20, after=2),
        ReservationQuery(states=STATES_OF_RESERVATIONS[2:], include_deleted=True, newest_first=True, after=4),
        ReservationQuery(project="speech", series="nightly"),
        ReservationQuery(projects=("vision",)),
    ):
        seen.append(reader.reservations(booked))
    for subject in SUBJECTS:
        seen += (
            reader.reservation(subject),
            reader.events(subject_kind=SubjectKind.RESERVATION, subject=subject),
            reader.series(subject),
            reader.events(subject_kind=SubjectKind.SERIES, subject=subject),
            reader.request(subject),
            reader.booking(subject),
            reader.work(subject),
            reader.events(subject_kind=SubjectKind.REQUEST, subject=subject),
            reader.usage(start=0, end=100, request=subject),
        )
    for project in ("vision", "speech"):
        for name in NAMES:
            seen += (
                reader.request_named(project, name),
                reader.reservation_named(project, name),
                reader.series_named(project, name),
            )
    seen += [reader.idempotent("user:ada", "submit", call) for call in ("c-1", "c-2")]
    seen += [reader.peak("h100", cell, at, at + 15) for cell in (0, 1) for at in (0, 10, 30)]
    return seen


def put_request(number: int, state: RequestState, ended_at: int, deleted: bool, skew: int) -> Step:
    """Insert or change a request; with `skew` its version does not follow."""

    def step(tx: Transaction) -> None:
        old = tx.request(number)
        tx.put_request(
            a_request(
                number,
                name=NAMES[number % 2],
                project=("vision", "speech")[number % 3 == 0],
                array="sweep" if number > 3 else "",
                labels={"team": "xy"[number % 2]},
                state=state,
                ended_at=ended_at,
                deleted=deleted,
                version=(old.version if old else 0) + 1 + skew,
            )
        )

    return step


def put_reservation(number: int, state: ReservationState, at: int, deleted: bool, skew: int) -> Step:
    """Insert or change a reservation; with `skew` its version does not follow."""

    def step(tx: Transaction) -> None:
        old = tx.reservation(number)
        tx.put_reservation(
            a_reservation(
                number,
                (at, at + 10),
                name=NAMES[at % 2],
                project=("vision", "speech")[number % 3 == 0],
                series="nightly" if number > 2 else "",
                state=state,
                ended_at=at,
                deleted=deleted,
                version=(old.version if old else 0) + 1 + skew,
            )
        )

    return step


def put_series(number: int, state: SeriesState, at: int, skew: int) -> Step:
    """Insert or change a series; with `skew` its version does not follow."""

    def step(tx: Transaction) -> None:
        old = tx.series(number)
        tx.put_series(
            a_series(
                number,
                name=NAMES[at % 2],
                project=("vision", "speech")[number % 3 == 0],
                state=state,
                booked_until=at,
                ended_at=0 if state is SeriesState.ACTIVE else at,
                version=(old.version if old else 0) + 1 + skew,
            )
        )

    return step


def put_booking(
    number: int,
    units: frozenset[int],
    since: int,
    start: int,
    length: int,
    stage: Stage,
    parent: int,
    skew: int,
) -> Step:
    """Insert or change a booking, wherever it may collide."""

    def step(tx: Transaction) -> None:
        old = tx.booking(number)
        tx.put_booking(
            replace(
                a_booking(number, span=(start, start + length)),
                stage=stage,
                parent=parent if parent != number else 0,
                owner_kind=(OwnerKind.REQUEST, OwnerKind.RESERVATION)[number % 2],
                parts=(
                    BookingPart(cell=0, count=len(units), units=tuple(sorted(units)), since=since),
                    BookingPart(cell=0, count=number % 3),
                ),
                pool=("h100", "h100", "a100")[number % 3],
                version=(old.version if old else 0) + 1 + skew,
            )
        )

    return step


def lease_one(token: str, process_now: int) -> Step:
    """Take work and look at the leases of both holders."""

    def step(tx: Transaction) -> Any:
        taken = tx.lease_work(now=15, process_now=process_now, until=process_now + 5, token=token, limit=2)
        return taken, [tx.leased(replace(item, lease_token=t)) for item in taken for t in TOKENS]

    return step


def holders(subject: int) -> Step:
    """Whether a subject's items are leased, by whom."""

    def step(tx: Transaction) -> Any:
        items = [
            WorkItem(kind=k, subject=subject, due_at=0, lease_token=t) for k in KINDS for t in ("", *TOKENS)
        ]
        return [tx.leased(item) for item in items]

    return step


def call(method: str, *arguments: Any, **named: Any) -> Step:
    """One call of the transaction."""
    return lambda tx: getattr(tx, method)(*arguments, **named)


subjects = st.sampled_from(SUBJECTS)
small = st.integers(0, 30)
kind_lists = st.lists(st.sampled_from(KINDS), max_size=2, unique=True).map(tuple)
skews = st.sampled_from((0, 0, 0, 0, 1, -1))
items = st.builds(
    lambda kind, subject, due, tag: WorkItem(
        kind=kind, subject=subject, due_at=due, tag=tag, attempt=due % 2
    ),
    st.sampled_from(KINDS),
    subjects,
    small,
    st.sampled_from(("", "60")),
)
events = st.builds(
    lambda subject, speech, kind: an_event(
        subject, project="speech" if speech else "vision", subject_kind=kind
    ),
    subjects,
    st.booleans(),
    st.sampled_from((SubjectKind.REQUEST, SubjectKind.RESERVATION, SubjectKind.SERIES, SubjectKind.HOST)),
)
steps = st.one_of(
    st.builds(put_request, subjects, st.sampled_from(STATES), small, st.booleans(), skews),
    st.builds(
        put_reservation,
        subjects,
        st.sampled_from(STATES_OF_RESERVATIONS),
        small,
        st.booleans(),
        skews,
    ),
    st.builds(put_series, subjects, st.sampled_from(SeriesState), small, skews),
    st.builds(
        put_booking,
        subjects,
        st.frozensets(st.integers(0, 3), max_size=3),
        st.sampled_from((0, 0, 10, 20)),
        small,
        st.integers(0, 15),
        st.sampled_from(Stage),
        st.sampled_from((0, 0, 0, 1, 2)),
        skews,
    ),
    st.lists(events, max_size=3).map(lambda e: call("append", e)),
    st.lists(items, max_size=3).map(lambda i: call("schedule", i)),
    st.builds(
        lambda s, k, t: call("unschedule", s, k, t), subjects, kind_lists, st.sampled_from((None, "", "60"))
    ),
    st.builds(lease_one, st.sampled_from(TOKENS), small),
    st.builds(holders, subjects),
    st.just(call("clear_leases")),
    st.builds(
        lambda n, at, length: call(
            "put_usage", [a_usage(n, (at, at + length), project=("vision", "speech")[n % 2])]
        ),
        subjects,
        small,
        st.integers(1, 40),
    ),
    st.builds(
        lambda call_id, named, at: call("put_idempotent", a_reply(call_id, tuple(named), at=at)),
        st.sampled_from(("c-1", "c-2")),
        st.lists(subjects, max_size=3),
        small,
    ),
    st.builds(lambda at, limit: call("forget_before", at, limit=limit), small, st.integers(0, 3)),
    st.builds(
        lambda unit, state, seen: call(
            "put_host_status", a_status(unit, state=state, unreachable_since=seen)
        ),
        st.integers(0, 2),
        st.sampled_from(HostState),
        st.integers(0, 1),
    ),
    st.builds(lambda v: call("put_meta", "key", str(v)), small),
    st.builds(lambda v: call("put_fleet", Fleet(zones=(), pools=(), version=v)), small),
    st.just(call("bump_ledger_version")),
    st.just(everything),
)
parts = st.recursive(
    steps,
    lambda inner: st.builds(Part, st.lists(inner, max_size=4).map(tuple), st.booleans()),
    max_leaves=8,
)


def play(tx: Transaction, script: list[Any]) -> list[Any]:
    """Carry a script out; what every step answered, or how it failed."""
    told: list[Any] = []
    for step in script:
        if isinstance(step, Part):
            told.append(_play_part(tx, step))
            continue
        try:
            told.append(step(tx))
        except DwsError as error:
            told.append(type(error))
    return told


def _play_part(tx: Transaction, part: Part) -> list[Any]:
    told: list[Any] = []
    try:
        with tx.savepoint():
            told = play(tx, list(part.steps))
            if part.fails:
                raise Undone
    except Undone:
        told.append("undone")
    return told


def perform(store: Store, script: list[Any], fails: bool) -> list[Any]:
    """Play a script in a transaction of its own."""
    told: list[Any] = []
    try:
        with store.begin() as tx:
            told = play(tx, script)
            if fails:
                told.append(everything(tx))
                raise Undone
    except Undone:
        told.append("undone")
    return told


class SideBySide(RuleBasedStateMachine):
    """The two stores."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.url = url_of(self.folder / "dws.db")
        self.memory = MemoryStore()
        self.sql = SqlStore(self.url)

    @rule(script=st.lists(parts, min_size=1, max_size=6), fails=st.booleans())
    def write(self, script: list[Any], fails: bool) -> None:
        """A transaction."""
        assert perform(self.memory, script, fails) == perform(self.sql, script, fails)

    @rule(script=st.lists(steps, min_size=1, max_size=12))
    def write_plainly(self, script: list[Any]) -> None:
        """A transaction that is kept."""
        assert perform(self.memory, script, False) == perform(self.sql, script, False)

    @rule()
    def reopen(self) -> None:
        """The server restarts."""
        self.sql.close()
        self.sql = SqlStore(self.url)

    @invariant()
    def read_the_same(self) -> None:
        """Nothing that can be read differs."""
        with self.memory.read() as one, self.sql.read() as other:
            assert everything(one) == everything(other)

    def teardown(self) -> None:
        """Leave nothing behind."""
        self.sql.close()
        shutil.rmtree(self.folder)


TestSideBySide = SideBySide.TestCase
TestSideBySide.__doc__ = "What was tried in simulation would turn out otherwise on a real server."
TestSideBySide.settings = settings(max_examples=15, stateful_step_count=10, deadline=None)
