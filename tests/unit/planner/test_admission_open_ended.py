"""Runs without an end of their own."""

from __future__ import annotations

import pytest

from dws.model.demand import OPEN_ENDED_S, Alternative, Demand
from dws.model.errors import InvalidArgument
from dws.model.resources import MachineShape
from dws.model.topology import Fleet, Pool, Zone
from dws.planner import admission
from dws.planner.options import PolicyOptions

FLEET = Fleet(
    zones=(Zone(name="z-a"),),
    pools=(Pool(name="p", zone="z-a", shape=MachineShape(name="m", vcpus=1), backend="x", hosts=("h",)),),
)


def asked(duration_s: int) -> Demand:
    return Demand(alternatives=(Alternative(shape="m", count=1, duration_s=duration_s),))


def test_a_run_without_an_end_is_admitted_where_the_owner_allows_it() -> None:
    """An ordinary instance could not be had, or a fleet be held for ever against its owner's will."""
    admission.check(asked(OPEN_ENDED_S), FLEET, PolicyOptions(), 0)
    with pytest.raises(InvalidArgument, match="duration"):
        admission.check(asked(OPEN_ENDED_S), FLEET, PolicyOptions(open_ended=False), 0)
    with pytest.raises(InvalidArgument, match="duration"):
        admission.check(asked(OPEN_ENDED_S - 1), FLEET, PolicyOptions(), 0)
