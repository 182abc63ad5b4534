"""The story: append-only, numbered without a gap over all and for every subject."""

from __future__ import annotations

import pytest

from dws.engine.ports import Store
from dws.model import events as ev
from dws.model.events import SubjectKind
from tests.contract.store.samples import an_event


class Undone(Exception):
    """Ends what is not to be kept."""


def test_numbers_have_no_gap_and_no_double(store: Store) -> None:
    """A follower would miss an event, or see one twice."""
    told = []
    for batch in ([1, 2, 1], [2], [], [1, 3, 3]):
        with store.begin() as tx:
            told += tx.append([an_event(subject) for subject in batch])
            assert tx.last_seq() == len(told)
    assert [e.seq for e in told] == [1, 2, 3, 4, 5, 6, 7]
    assert [(e.subject, e.subject_seq) for e in told] == [
        (1, 1),
        (2, 1),
        (1, 2),
        (2, 2),
        (1, 3),
        (3, 1),
        (3, 2),
    ]
    with store.read() as reader:
        assert reader.events() == told
        assert reader.last_seq() == 7


def test_subjects_of_one_number_and_several_kinds_are_counted_apart(store: Store) -> None:
    """The story of host 1 would run into that of request 1."""
    with store.begin() as tx:
        told = tx.append(
            [an_event(1), an_event(1, ev.Noted(what="x"), subject_kind=SubjectKind.HOST), an_event(1)]
        )
    assert [e.subject_seq for e in told] == [1, 1, 2]
    with store.read() as reader:
        assert reader.events(subject_kind=SubjectKind.HOST, subject=1) == [told[1]]
        assert reader.events(subject=1) == told
        assert reader.events(subject_kind=SubjectKind.REQUEST) == [told[0], told[2]]


def test_what_was_undone_leaves_no_gap(store: Store) -> None:
    """After a failed command every follower would wait for an event that never comes."""
    with store.begin() as tx:
        tx.append([an_event(1)])
    with pytest.raises(Undone), store.begin() as tx:
        tx.append([an_event(1), an_event(2)])
        assert len(tx.events()) == 3
        raise Undone
    with store.begin() as tx:
        with pytest.raises(Undone), tx.savepoint():
            tx.append([an_event(1), an_event(2)])
            raise Undone
        with pytest.raises(Undone), tx.savepoint():
            tx.append([an_event(2)])
            assert tx.events()[-1].seq == 2
            raise Undone
        told = tx.append([an_event(1), an_event(2)])
    assert [(e.seq, e.subject_seq) for e in told] == [(2, 2), (3, 1)]
    with store.read() as reader:
        assert [e.seq for e in reader.events()] == [1, 2, 3]
        assert reader.last_seq() == 3


def test_events_are_read_by_subject_project_place_and_from_the_end(store: Store) -> None:
    """`dws events` would show others' events, skip some, or not the last ones."""
    with store.begin() as tx:
        told = tx.append([an_event(n % 3, project=("vision", "speech")[n % 2]) for n in range(10)])
    with store.read() as reader:
        assert reader.events(after=4, limit=3) == told[4:7]
        assert reader.events(newest_first=True, limit=3) == told[:-4:-1]
        assert reader.events(after=8, newest_first=True) == [told[9], told[8]]
        assert reader.events(project="speech", after=2) == [e for e in told[2:] if e.project == "speech"]
        assert reader.events(project="speech", newest_first=True, limit=1) == [told[9]]
        own = [e for e in told if e.subject == 1]
        assert reader.events(subject_kind=SubjectKind.REQUEST, subject=1) == own
        assert reader.events(subject_kind=SubjectKind.REQUEST, subject=1, after=2, limit=1) == [own[1]]
        assert reader.events(subject_kind=SubjectKind.REQUEST, subject=1, newest_first=True) == own[::-1]
        assert reader.events(subject_kind=SubjectKind.REQUEST, subject=1, project="vision") == [
            e for e in own if e.project == "vision"
        ]
        assert reader.events(after=10) == []
        assert reader.events(limit=0) == []
