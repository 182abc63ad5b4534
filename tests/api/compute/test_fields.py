"""Partial responses: what a mask leaves of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from dws.api.partial import parse_mask, prune
from dws.model.errors import InvalidArgument
from tests.api.served import Served

ANSWER = {"a": 1, "b": {"c": [{"x": 1, "y": 2}, {"x": 3, "z": {"u": 4}}], "d": 5}, "e": "f"}


@pytest.mark.parametrize(
    ("mask", "left"),
    [
        ("a", {"a": 1}),
        ("a, e", {"a": 1, "e": "f"}),
        ("b/c/x", {"b": {"c": [{"x": 1}, {"x": 3}]}}),
        ("b(c(y,z/u),d)", {"b": {"c": [{"y": 2}, {"z": {"u": 4}}], "d": 5}}),
        ("b/c/x,b/d", {"b": {"c": [{"x": 1}, {"x": 3}], "d": 5}}),
        ("b/d,b", {"b": ANSWER["b"]}),
        ("*/d", {"a": 1, "b": {"d": 5}, "e": "f"}),
        ("nothing", {}),
    ],
)
def test_a_mask_leaves_what_it_names(mask: str, left: Any) -> None:
    """A client that asks for two fields would get others, or none."""
    assert prune(ANSWER, parse_mask(mask)) == left


@pytest.mark.parametrize("mask", ["a,", "a(b", "a)", "/a", "a//b", "a()", "(" * 99, "a(" * 99, "x" * 3_000])
def test_a_mask_that_is_none_is_refused(mask: str) -> None:
    """A misspelt mask would silently give everything, or nothing."""
    with pytest.raises(InvalidArgument, match="field"):
        parse_mask(mask)


def test_answers_are_cut_to_fields(served: Served) -> None:
    """A client that saves bytes would get everything."""
    zones = "/compute/v1/projects/research/zones"
    found = served.anyone.get(zones, params={"fields": "items(name,status),nextPageToken"}).json()
    assert found["items"][0] == {"name": "local", "status": "DOWN"}
    assert found.keys() == {"items"}
    refused = served.anyone.get(zones, params={"fields": "items("})
    assert (refused.status_code, refused.json()["error"]["errors"][0]["location"]) == (400, "fields")
