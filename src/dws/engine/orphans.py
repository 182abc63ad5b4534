"""Instances nobody owns, and how they are given back.

One can be left when a host was called down while it ran on, when an order was carried out after its request
had gone, or when a backend was wrong about a release. Each is asked back by a work item of the fleet itself,
so that a crash forgets none; what is not there is given back already.
"""

from __future__ import annotations

from dws.engine.ports import InstanceOrder, Order
from dws.engine.write import Write
from dws.model.resources import MachineShape
from dws.model.work import WorkItem, WorkKind

FLEET = 0
"""The subject of work that belongs to no request."""


def give_back(w: Write, *, backend: str, key: str, rank: int, unit: int) -> None:
    """Ask `backend` for the instance of an order back, soon and without grace."""
    w.wake(FLEET, WorkKind.RELEASE, w.now, tag=f"{backend}/{key}/{rank}/{unit}")


def backend_of(item: WorkItem) -> str:
    """Which backend holds the orphan that a work item is about."""
    return item.tag.partition("/")[0]


def order_of(item: WorkItem) -> Order:
    """The order that asks the orphan back: its key and rank are all a backend needs."""
    _, key, rank, unit = item.tag.split("/")
    return Order(
        key=key,
        request=0,
        request_name="",
        project="",
        pool="",
        zone="",
        shape=MachineShape(name="unknown"),
        instances=(InstanceOrder(rank=int(rank), unit=int(unit), host=""),),
        size=1,
        workload=None,
        environment={},
        runs_until=0,
        duration_s=0,
        grace_s=0,
        issued_at=0,
    )
