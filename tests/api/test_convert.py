"""Conversion between the native wire and the model: nothing is lost on the way there and back."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dws.api.native_v1 import convert, convert_events
from dws.engine.answers import RequestView
from dws.model import events as ev
from dws.model.demand import Alternative, Demand
from dws.model.errors import InvalidArgument
from dws.model.names import BookingId, RequestId
from dws.model.request import (
    CapacityRequest,
    EndReason,
    Grant,
    HostLossPolicy,
    Instance,
    InstanceState,
    RequestState,
    Workload,
)
from dws.wire import native_v1 as wire

NINE = 1_799_658_000
GRANT = Grant(
    booking=BookingId(2**60),
    attempt=2,
    alternative=1,
    pool="a3",
    zone="z1",
    shape="a3-highgpu-8g",
    duration_s=3600,
    started_at=NINE,
    instances=(Instance(rank=0, unit=3, host="h4", address="10.0.0.4", exit_code=3, note="said no"),),
    delivered_at=NINE + 60,
    ends_at=NINE + 3660,
)
REQUEST = CapacityRequest(
    id=RequestId(2**62 + 1),
    name="train",
    project="research",
    principal="ann",
    demand=Demand(alternatives=(Alternative(count=16, duration_s=5400, accelerator="h100", within="block"),)),
    state=RequestState.ACTIVE,
    submitted_at=NINE,
    labels={"team": "a"},
    workload=Workload(command=("python", "train.py"), environment={"A": "b"}, directory="/w"),
    grant=GRANT,
)


def told(request: CapacityRequest) -> dict[str, object]:
    """A request as JSON, through the encoder."""
    return msgspec.json.decode(msgspec.json.encode(convert.request(RequestView(request=request), cost=True)))


def test_a_request_is_told_in_full() -> None:
    """A field would be missing, misspelt, or a number too large for JavaScript."""
    json = told(REQUEST)
    assert json["id"] == "4611686018427387905"
    assert json["alternatives"] == [{"duration": "5400s", "accelerators": "h100:16", "within": "block"}]
    assert json["submittedAt"] == "2027-01-11T09:00:00Z"
    assert json["promisedStart"] == json["endedAt"] == json["notBefore"] == json["notAfter"] == ""
    assert json["exitCode"] == 3
    assert json["cost"] == "0.00"
    assert json["grant"]["endsAt"] == "2027-01-11T10:01:00Z"  # type: ignore[index]
    assert json["grant"]["instances"] == [  # type: ignore[index]
        {
            "rank": 0,
            "host": "h4",
            "state": "STARTING",
            "address": "10.0.0.4",
            "exitCode": 3,
            "note": "said no",
            "slots": [],
            "slice": 0,
            "worker": 0,
        }
    ]


@pytest.mark.parametrize("state", RequestState)
def test_every_state_has_its_word(state: RequestState) -> None:
    """A state without a word would break every list it is in; a waiting one must not look running."""
    assert told(replace(REQUEST, state=state))["state"] == state.name


@pytest.mark.parametrize("why", EndReason)
@pytest.mark.parametrize("policy", HostLossPolicy)
def test_every_end_and_policy_has_its_word(why: EndReason, policy: HostLossPolicy) -> None:
    """An end without a word would leave people without a reason."""
    json = told(replace(REQUEST, end_reason=why, on_host_loss=policy))
    assert (json["endReason"], json["onHostLoss"]) == (why.value, policy.value)
    assert convert.host_loss(policy.value) is policy


@pytest.mark.parametrize("state", InstanceState)
def test_every_instance_state_has_its_word(state: InstanceState) -> None:
    """As for requests."""
    assert convert.instance(replace(GRANT.instances[0], state=state)).state == state.name


words = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
forms = st.builds(
    Alternative,
    count=st.integers(1, 10_000),
    duration_s=st.integers(1, 604_800),
    shape=words,
    locations=st.lists(words, max_size=3).map(tuple),
    within=st.none() | words,
)
any_form = forms | forms.map(lambda a: replace(a, shape="", accelerator=a.shape))


@given(st.lists(any_form, min_size=1, max_size=3).map(tuple))
def test_conversion_round_trips(alternatives: tuple[Alternative, ...]) -> None:
    """What a client reads and sends again would be another demand."""
    sent = msgspec.json.encode([convert.wire_alternative(each) for each in alternatives])
    assert convert.alternatives(msgspec.json.decode(sent, type=list[wire.Alternative])) == alternatives


@given(
    st.builds(
        Workload,
        command=st.lists(st.text(), max_size=3).map(tuple),
        environment=st.dictionaries(st.text(), st.text(), max_size=3),
        directory=st.text(),
        signal_before_s=st.integers(0, 10_000),
    )
)
def test_workloads_round_trip(workload: Workload) -> None:
    """A program would run with other words than it was given."""
    assert convert.workload(convert.wire_workload(workload)) == workload


def test_an_amendment_carries_only_what_was_sent() -> None:
    """A07: what was not sent would be cleared."""
    nothing = convert.amend("p", "n", wire.AmendRequest())
    kept = {f.name for f in fields(nothing) if getattr(nothing, f.name) is None}
    assert kept == {f.name for f in fields(nothing)} - {"project", "name", "call_id"}
    some = convert.amend("p", "n", wire.AmendRequest(labels={}, not_before="", priority=0))
    assert (some.labels, some.not_before, some.priority, some.not_after) == ({}, 0, 0, None)


@pytest.mark.parametrize("text", ["h100:١٦", "h100:", ":16", "h100:1_6", "h100: 16", "h100:16:2", "h100:1e1"])
def test_an_amount_is_a_type_and_a_plain_number(text: str) -> None:
    """A number that is written in another way would be taken for one that was not meant."""
    if text == "h100:":
        assert convert.alternative(wire.Alternative(duration=1, accelerators=text)).count == 1
        return
    with pytest.raises(InvalidArgument):
        convert.alternative(wire.Alternative(duration=1, accelerators=text))


# --- events -----------------------------------------------------------------------------------

BODIES = get_args(ev.EventBody)


@pytest.mark.parametrize("kind", BODIES)
def test_every_field_of_every_event_is_told_in_its_way(kind: type) -> None:
    """A new fact's instants would travel as bare numbers, its ids as numbers JavaScript rounds."""
    ways = [
        convert_events.IDS,
        convert_events.INSTANTS,
        convert_events.PLAIN,
        convert_events.TOLD_OTHERWISE,
    ]
    for each in fields(kind):
        assert sum(each.name in way for way in ways) == 1, each.name
        if each.name in convert_events.INSTANTS:
            assert each.type == "int", each.name


def an_event(body: ev.EventBody) -> dict[str, object]:
    event = ev.Event(
        seq=7,
        subject_seq=1,
        at=NINE,
        actor="ann",
        subject_kind=ev.SubjectKind.REQUEST,
        subject=2**60,
        body=body,
        project="research",
        name="train",
        call_id="r-1",
    )
    return msgspec.json.decode(msgspec.json.encode(convert_events.event(event)))


def test_events_are_told_in_words_of_the_api() -> None:
    """L07: who did what, when and with which call would not be known."""
    json = an_event(ev.Booked(booking=BookingId(2**60), start=NINE))
    assert json == {
        "seq": 7,
        "at": "2027-01-11T09:00:00Z",
        "actor": "ann",
        "kind": "Booked",
        "subjectKind": "REQUEST",
        "subject": str(2**60),
        "project": "research",
        "name": "train",
        "reason": "",
        "data": {"booking": str(2**60), "start": "2027-01-11T09:00:00Z"},
        "requestId": "r-1",
    }
    json = an_event(ev.Submitted(request=REQUEST))
    assert json["data"]["request"]["labels"] == {"team": "a"}  # type: ignore[index]
    json = an_event(ev.Started(booking=BookingId(1), grant=GRANT))
    assert json["data"]["grant"]["instances"][0]["host"] == "h4"  # type: ignore[index]
    json = an_event(ev.InstancesRan(attempt=1, addresses={0: "10.0.0.4"}))
    assert json["data"] == {"attempt": 1, "addresses": {"0": "10.0.0.4"}}
    json = an_event(ev.Ended(why=EndReason.HOST_LOST, message="h4 is gone"))
    assert json["data"] == {"why": "HOST_LOST", "message": "h4 is gone", "requeue": False}
    amended = ev.Amended(
        demand=REQUEST.demand, priority=3, labels={}, workload=None, on_host_loss=HostLossPolicy.END
    )
    data = an_event(amended)["data"]
    assert data["alternatives"][0]["accelerators"] == "h100:16"  # type: ignore[index]
    assert (data["onHostLoss"], data["workload"]) == ("end", None)  # type: ignore[index]
