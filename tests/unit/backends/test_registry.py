"""Backends are found by name and made from settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from dws.backends import registry
from dws.backends.local.backend import LocalBackend
from dws.backends.simulated.faults import Faults
from dws.model.errors import InvalidArgument


def test_the_backends_of_this_project_are_found() -> None:
    """A server would start without any way to run anything."""
    assert {"local", "simulated"} <= set(registry.available())


def test_settings_reach_the_backend_and_win_over_the_context(tmp_path: Path) -> None:
    """What an operator wrote would be ignored."""
    context = {"state_dir": tmp_path, "clock": lambda: 0, "accelerators": "9", "unknown": 1}
    backend = registry.create("local", {"accelerators": "h100:2", "grace_s": 7}, context)
    assert isinstance(backend, LocalBackend)
    _, pools = backend.inventory()
    assert (len(pools[0].hosts), pools[0].overheads.grace_s) == (2, 7)


def test_a_misspelt_setting_is_named() -> None:
    """A typing error would silently mean the default."""
    with pytest.raises(
        InvalidArgument, match=r"backends\.local\.graze_s: no such setting .*grace_s"
    ) as error:
        registry.create("local", {"graze_s": 1})
    assert error.value.field == "backends.local.graze_s"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("grace_s", "soon", "'soon' is not a duration"),
        ("grace_s", True, "expected `int`"),
        ("health_check", 5, "expected `"),
        ("clock", "x", "no such setting"),
        ("cpu_slots", -1, "cpu_slots: -1 must lie between 0 and"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, key: str, value: object, message: str) -> None:
    """A server would start and fail at the first program."""
    context = {"state_dir": tmp_path, "clock": lambda: 0}
    with pytest.raises(InvalidArgument, match=message):
        registry.create("local", {key: value}, context)


def test_settings_may_be_written_as_in_a_file() -> None:
    """Nobody writes 5400 when they mean 90 minutes; scripted faults could not be had from a file."""
    assert registry.decode("local", "grace_s", "90m") == 5400
    assert registry.decode("local", "health_check", ["nvidia-smi", "-L"]) == ["nvidia-smi", "-L"]
    assert registry.decode("simulated", "faults", {"refuse": "full"}) == Faults(refuse="full")
    with pytest.raises(InvalidArgument, match=r"backends\.simulated\.faults\.refuze: no such setting"):
        registry.decode("simulated", "faults", {"refuze": "full"})


def test_a_backend_that_is_not_there_is_named() -> None:
    """Nobody would know what to install."""
    with pytest.raises(InvalidArgument, match=r"no backend 'abacus' is installed .*local.*simulated"):
        registry.create("abacus", {})
