"""Spans: half-open at every boundary."""

from __future__ import annotations

import pytest

from dws.model.time import FOREVER, Span


@pytest.mark.parametrize("a", range(4))
@pytest.mark.parametrize("b", range(4))
def test_spans_agree_with_sets_of_seconds(a: int, b: int) -> None:
    """An off-by-one at a boundary would double-book or waste a second."""
    for length_a in range(4):
        for length_b in range(4):
            one, two = Span(a, a + length_a), Span(b, b + length_b)
            seconds_one, seconds_two = set(range(a, a + length_a)), set(range(b, b + length_b))
            both = seconds_one & seconds_two
            assert one.overlaps(two) == bool(both)
            clipped = one.clipped(two)
            assert (set() if clipped is None else set(range(clipped.start, clipped.end))) == both
            if length_a and length_b:
                assert one.contains(two) == (seconds_two <= seconds_one)
            assert [s for s in range(8) if one.covers(s)] == sorted(seconds_one)


def test_a_span_cannot_end_before_it_starts() -> None:
    """A negative length could enter the ledger."""
    with pytest.raises(ValueError, match="cannot end"):
        Span(5, 4)


def test_for_ever_stays_for_ever() -> None:
    """An open-ended span could overflow when moved."""
    assert Span(5, FOREVER).shifted(10) == Span(15, FOREVER)
    assert Span(5, FOREVER).is_open and not Span(5, 6).is_open
