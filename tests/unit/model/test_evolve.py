"""Values that are made fast are the same values: checked, frozen, equal, copied, with their defaults."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from dws.model.evolve import evolve, swift


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A value with every kind of field."""

    width: int
    height: int = 2
    labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.width < 0:
            raise ValueError("width")


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class Crate(Box):
    """One more field than what it is derived from."""

    lid: bool = False


def test_defaults_are_those_of_the_class() -> None:
    """Fields left out would be wrong, or shared between values, everywhere."""
    a, b = Box(width=1), Box(width=1)
    assert (a.width, a.height, a.labels) == (1, 2, {})
    assert a.labels is not b.labels
    assert Box(width=1, labels={"a": "b"}).labels == {"a": "b"}
    assert Crate(width=3, lid=True) == replace(Crate(width=1, lid=True), width=3)


def test_a_missing_or_unknown_field_is_refused() -> None:
    """A typo in a field's name would be found much later."""
    with pytest.raises(TypeError):
        Box()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Box(width=1, depth=2)  # type: ignore[call-arg]


def test_what_is_made_is_checked_and_frozen() -> None:
    """A value that cannot be would be stored, or changed behind everyone's back."""
    with pytest.raises(ValueError, match="width"):
        Box(width=-1)
    with pytest.raises(ValueError, match="width"):
        evolve(Box(width=1), width=-1)
    box = Crate(width=1)
    assert type(box) is Crate
    with pytest.raises(FrozenInstanceError):
        box.width = 2  # type: ignore[misc]


def test_copies_are_equal() -> None:
    """Values could not be handed to another process or kept aside."""
    box = Crate(width=1, labels={"a": "b"})
    assert copy.copy(box) == box
    assert pickle.loads(pickle.dumps(box)) == box
    assert evolve(box, lid=True) == Crate(width=1, labels={"a": "b"}, lid=True)
