"""B01, B03: filters mean what they say, or are refused at the position that is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dws.api.filters import Dialect, Field, Kind, parse_filter, parse_order
from dws.model.errors import InvalidArgument
from tests.api.served import REQUESTS, SLICE, Served

STATES = ("PENDING", "ACTIVE", "COMPLETED")


@dataclass(frozen=True)
class Item:
    name: str = "train-1"
    state: str = "PENDING"
    priority: int = 0
    submitted: str = "2027-01-11T00:00:01Z"
    code: int | None = None
    labels: dict[str, str] = field(default_factory=dict)


FIELDS: dict[str, Field[Item]] = {
    "name": Field(Kind.TEXT, lambda i: i.name),
    "state": Field(Kind.WORD, lambda i: i.state, STATES),
    "priority": Field(Kind.NUMBER, lambda i: i.priority),
    "submitTime": Field(Kind.INSTANT, lambda i: i.submitted),
    "exitCode": Field(Kind.NUMBER, lambda i: i.code),
    "labels": Field(Kind.MAP, lambda i: i.labels),
}

ITEMS = [
    Item(
        name=f"{word}-{n}", state=STATES[n % 3], priority=n - 5, labels={"team": "ab"[n % 2]} if n % 5 else {}
    )
    for word in ("train", "serve")
    for n in range(10)
]


def names(text: str) -> list[str]:
    wanted = parse_filter(text, FIELDS)
    return [i.name for i in ITEMS if wanted(i)]


def expected(wanted: Any) -> list[str]:
    return [i.name for i in ITEMS if wanted(i)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", lambda i: True),
        ("   ", lambda i: True),
        ('state = "PENDING"', lambda i: i.state == "PENDING"),
        ("state=PENDING", lambda i: i.state == "PENDING"),
        ("state != PENDING", lambda i: i.state != "PENDING"),
        (
            "state = PENDING AND labels.team = a",
            lambda i: i.state == "PENDING" and i.labels.get("team") == "a",
        ),
        ("labels.team = a OR labels.team = b", lambda i: "team" in i.labels),
        ("labels.team != a", lambda i: i.labels.get("team") != "a"),
        ("labels.\"team\" = 'a'", lambda i: i.labels.get("team") == "a"),
        ('name = "train-*"', lambda i: i.name.startswith("train-")),
        ('name != "train-*"', lambda i: not i.name.startswith("train-")),
        ('NOT name = "train-*"', lambda i: not i.name.startswith("train-")),
        ("NOT NOT name = train-1", lambda i: i.name == "train-1"),
        ("priority >= 3", lambda i: i.priority >= 3),
        ("priority<-3", lambda i: i.priority < -3),
        (
            "(state = PENDING OR state = ACTIVE) AND NOT (priority > 0 AND labels.team = b)",
            lambda i: (
                i.state in ("PENDING", "ACTIVE") and not (i.priority > 0 and i.labels.get("team") == "b")
            ),
        ),
        ("exitCode = 0", lambda i: False),
        ("exitCode != 0", lambda i: True),
        ("exitCode < 1", lambda i: False),
    ],
)
def test_b01_a_filter_lets_through_what_it_says(text: str, wanted: Any) -> None:
    """A user would see others' requests than asked for."""
    assert names(text) == expected(wanted)


WRONG = [
    ("state", 5, "expected"),
    ("state =", 7, "a value"),
    ("state == PENDING", 7, "a value"),
    ("state ~ PENDING", 6, "expected"),
    ("state : PENDING", 6, "expected"),
    ("colour = red", 0, "no field 'colour'"),
    ("state = SLEEPING", 8, "one of PENDING"),
    ("state = PEND*", 8, "one of PENDING"),
    ("state < PENDING", 0, "= and != only"),
    ("name = tr*in", 7, "at the end only"),
    ("priority = high", 11, "whole number"),
    ("priority = 1.5", 11, "whole number"),
    ("labels = a", 0, "labels.KEY"),
    ("name.first = a", 0, "no parts"),
    ("state = PENDING priority = 1", 16, "AND or OR"),
    ("state = PENDING AND", 19, "a field"),
    ("state = PENDING and priority = 1", 16, "AND or OR"),
    ("(state = PENDING", 16, "')'"),
    ("state = PENDING)", 15, "AND or OR"),
    ('name = "train', 7, "never closed"),
    ("a AND b OR c", 2, "expected"),
    ("state = PENDING AND priority = 1 OR priority = 2", 33, "parentheses"),
    ("submitTime > 2027-01-11", 13, "offset"),
    ("submitTime > yesterday", 13, "RFC 3339"),
    ("AND", 0, "a field"),
    ("()", 1, "a field"),
    ("NOT", 3, "a field"),
    ("-state = PENDING", 0, "not a field"),
]


@pytest.mark.parametrize(("text", "position", "says"), WRONG)
def test_b01_what_is_not_understood_points_at_its_position(text: str, position: int, says: str) -> None:
    """A misspelt filter would be taken for "everything", and a script act on everything."""
    with pytest.raises(InvalidArgument, match=re.escape(says)) as caught:
        parse_filter(text, FIELDS)
    assert caught.value.details == {"position": position}
    assert caught.value.field == "filter"


@pytest.mark.parametrize(
    ("op", "selects"),
    [(">", ["after"]), (">=", ["at", "after"]), ("<", ["before"]), ("<=", ["before", "at"]), ("=", ["at"])],
)
@pytest.mark.parametrize(
    "spelling",
    ["2027-01-11T00:00:00Z", "2027-01-11T09:00:00+09:00", "2027-01-11T00:00:00.000Z", "2027-01-11t00:00:00z"],
)
def test_b03_every_spelling_of_an_instant_selects_the_same(
    op: str, selects: list[str], spelling: str
) -> None:
    """A user in another zone would miss requests around midnight."""
    items = [
        Item(name="before", submitted="2027-01-10T23:59:59Z"),
        Item(name="at", submitted="2027-01-11T00:00:00Z"),
        Item(name="after", submitted="2027-01-11T00:00:01Z"),
        Item(name="never", submitted=""),
    ]
    wanted = parse_filter(f"submitTime {op} {spelling}", FIELDS)
    assert [i.name for i in items if wanted(i)] == selects


@pytest.mark.parametrize(
    ("op", "selects"), [(">", ["after"]), (">=", ["after"]), ("<", ["before"]), ("<=", ["before"]), ("=", [])]
)
@pytest.mark.parametrize("fraction", [".000000001", ".5", ",999"])
def test_b03_fractions_of_a_second_lie_between_seconds(op: str, selects: list[str], fraction: str) -> None:
    """A bound with a fraction would let the second before it through."""
    items = [
        Item(name="before", submitted="2027-01-10T23:59:59Z"),
        Item(name="after", submitted="2027-01-11T00:00:00Z"),
    ]
    wanted = parse_filter(f'submitTime {op} "2027-01-10T23:59:59{fraction}Z"', FIELDS)
    assert [i.name for i in items if wanted(i)] == selects


# --- any filter, against a reference ----------------------------------------------------------

leaves = st.one_of(
    st.sampled_from(STATES).map(lambda s: (f"state = {s}", lambda i: i.state == s)),
    st.integers(-6, 6).map(lambda n: (f"priority >= {n}", lambda i: i.priority >= n)),
    st.sampled_from(["a", "b"]).map(lambda t: (f"labels.team = {t}", lambda i: i.labels.get("team") == t)),
    st.sampled_from(["train", "serve-1", "x"]).map(
        lambda p: (f'name != "{p}*"', lambda i: not i.name.startswith(p))
    ),
)


def _joined(parts: list[Any], word: str, all_or_any: Any) -> Any:
    text = f" {word} ".join(f"({t})" for t, _ in parts)
    return text, lambda i: all_or_any(p(i) for _, p in parts)


trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(lambda tp: (f"NOT ({tp[0]})", lambda i: not tp[1](i))),
        st.lists(inner, min_size=1, max_size=3).map(lambda ps: _joined(ps, "AND", all)),
        st.lists(inner, min_size=1, max_size=3).map(lambda ps: _joined(ps, "OR", any)),
    ),
    max_leaves=8,
)


@given(trees)
def test_b01_any_filter_agrees_with_a_reference(tree: Any) -> None:
    """filter_means_the_same: some nesting would be read wrongly."""
    text, wanted = tree
    assert names(text) == expected(wanted)
    assert [i.name for i in ITEMS if parse_filter(text, FIELDS, Dialect.COMPUTE)(i)] == expected(wanted)


@given(st.text(alphabet="ab=!<>()\"'\\* .ANDORT:-1", max_size=30), st.sampled_from(Dialect))
def test_no_text_breaks_the_parser(text: str, dialect: Dialect) -> None:
    """Some text would be an internal error instead of a refusal."""
    try:
        wanted = parse_filter(text, FIELDS, dialect)
    except InvalidArgument as error:
        assert 0 <= error.details["position"] <= len(text)  # type: ignore[operator]
    else:
        for item in ITEMS:
            wanted(item)


def test_deep_and_long_filters_are_refused() -> None:
    """One caller could use up the stack or the time of the server."""
    for text in ("(" * 1_000, "NOT " * 500 + "state = PENDING", "state = PENDING" + " " * 3_000):
        with pytest.raises(InvalidArgument):
            parse_filter(text, FIELDS)


# --- Compute's grammar ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (r'name eq ".*\btrain\b.*"', lambda i: "train" in i.name),
        (r'(name eq ".*(^serve).*")(state eq ACTIVE)', lambda i: i.name[0] == "s" and i.state == "ACTIVE"),
        ("name ne train-[0-4]", lambda i: i.name not in [f"train-{n}" for n in range(5)]),
        ("name eq train", lambda i: False),
        ("state = PENDING state != ACTIVE", lambda i: i.state == "PENDING"),
        ("labels.team:*", lambda i: "team" in i.labels),
        ("labels.team:a", lambda i: i.labels.get("team") == "a"),
        (
            "priority > 0 AND state = PENDING OR state = ACTIVE",
            lambda i: i.priority > 0 and i.state in ("PENDING", "ACTIVE"),
        ),
        ("((labels.team = a)) AND ((state = PENDING) OR (state = ACTIVE))",
         lambda i: i.labels.get("team") == "a" and i.state in ("PENDING", "ACTIVE")),
    ],
)  # fmt: skip
def test_both_of_computes_grammars_are_read(text: str, wanted: Any) -> None:
    """gcloud sends one, SkyPilot and people the other."""
    got = parse_filter(text, FIELDS, Dialect.COMPUTE)
    found = [i.name for i in ITEMS if got(i)]
    if text == "labels.team:*":
        assert set(expected(wanted)) <= set(found)
    else:
        assert found == expected(wanted)


@pytest.mark.parametrize(
    "text", ['name eq "(a+)+b"', 'name eq "a*a*a*a*a*b"', 'name eq "(a)\\1"', 'name eq "["']
)
def test_expressions_that_could_take_for_ever_are_refused(text: str) -> None:
    """One list call could keep a thread busy for years."""
    with pytest.raises(InvalidArgument):
        parse_filter(text, FIELDS, Dialect.COMPUTE)


# --- order, and the list itself ---------------------------------------------------------------


def test_orders_sort_by_each_term_in_turn() -> None:
    """A list would come in another order than asked for."""
    order = parse_order("state desc, priority", FIELDS)
    ranked = sorted(ITEMS, key=lambda i: order.rank([*order.values(i), i.name]))
    assert ranked == sorted(ITEMS, key=lambda i: (-sorted(STATES).index(i.state), i.priority, i.name))


@pytest.mark.parametrize(
    ("text", "position"), [("colour", 0), ("name, colour", 6), ("name up", 0), ("labels", 0)]
)
def test_an_order_that_cannot_be_is_refused(text: str, position: int) -> None:
    """B02: an order would be ignored without a word."""
    with pytest.raises(InvalidArgument) as caught:
        parse_order(text, FIELDS)
    assert caught.value.details == {"position": position}


@pytest.fixture(scope="module")
def thirty(served: Served) -> Served:
    """30 requests of two teams; some run, some wait, some are cancelled."""
    for n in range(30):
        served.submit(
            f"{'train' if n % 2 else 'serve'}-{n:02}", priority=n % 4, labels={"team": "abc"[n % 3]}
        )
    for n in (9, 19, 29):
        served.owner.post(f"{REQUESTS}/train-{n:02}:cancel")
    return served


def listed(served: Served, **query: Any) -> list[str]:
    """Names over all pages."""
    found, token = [], ""
    while True:
        answer = served.owner.get(REQUESTS, params=query | ({"pageToken": token} if token else {}))
        assert answer.status_code == 200, answer.text
        found += [r["name"] for r in answer.json()["items"]]
        token = answer.json()["nextPageToken"]
        if not token:
            return found


def test_b02_filter_and_order_hold_together_over_pages(thirty: Served) -> None:
    """B02: with both given one would be ignored, or pages repeat or lose requests."""
    everything = {r["name"]: r for r in thirty.owner.get(REQUESTS).json()["items"]}
    assert len(everything) == 30
    query = {"filter": "labels.team = a OR labels.team = b", "orderBy": "priority desc, name"}
    want = sorted(
        (r for r in everything.values() if r["labels"]["team"] in "ab"),
        key=lambda r: (-r["priority"], r["name"]),
    )
    for size in (1, 3, 7, 20, 1000):
        assert listed(thirty, **query, pageSize=size) == [r["name"] for r in want], size
        assert listed(thirty, pageSize=size) == list(everything), size
        assert listed(thirty, orderBy="submitTime desc", pageSize=size) == list(everything)[::-1], size
    cancelled = [r["name"] for r in everything.values() if r["state"] == "CANCELLED"]
    assert listed(thirty, state="CANCELLED") == listed(thirty, filter="state = CANCELLED") == cancelled
    assert "train-09" in cancelled


def test_pages_are_stable_while_requests_come(fresh: Served) -> None:
    """A page would repeat or skip what was there from the beginning when others submit meanwhile."""
    for n in range(6):
        fresh.submit(f"b-{n}")
    query = {"orderBy": "name desc", "pageSize": 3}
    first = fresh.owner.get(REQUESTS, params=query).json()
    fresh.submit("z-new")
    second = fresh.owner.get(REQUESTS, params=query | {"pageToken": first["nextPageToken"]}).json()
    assert [r["name"] for r in first["items"] + second["items"]] == [f"b-{n}" for n in range(5, -1, -1)]


def test_a_page_token_of_another_list_is_refused(thirty: Served) -> None:
    """A token with another filter would give a page of neither list."""
    token = thirty.owner.get(REQUESTS, params={"pageSize": 1}).json()["nextPageToken"]
    for query in ({"filter": "priority = 1"}, {"orderBy": "name"}, {"state": "ACTIVE"}):
        answer = thirty.owner.get(REQUESTS, params=query | {"pageToken": token})
        assert answer.json()["error"]["field"] == "pageToken"
    answer = thirty.owner.get(REQUESTS.replace("research", "other"), params={"pageToken": token})
    assert answer.status_code == 400
    answer = thirty.owner.get(REQUESTS, params={"pageToken": token[:-2] + "AA"})
    assert answer.status_code == 400


@pytest.mark.parametrize("spelling", ["5400s", "5400", 5400, "1h30m", "90m", " 1H30M "])
def test_b04_every_spelling_of_a_duration_is_the_same(served: Served, spelling: str | int) -> None:
    """A request would run longer or shorter than asked, depending on the client."""
    body = {"alternatives": [SLICE | {"duration": spelling}]}
    told = served.owner.post(REQUESTS, json=body).json()["items"][0]
    assert told["alternatives"][0]["duration"] == "5400s"
