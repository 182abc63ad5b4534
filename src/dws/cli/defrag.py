"""`dws fleet defrag`: whose work would have to end or move to make room for a shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dws.cli import demand, zones
from dws.cli.demand import Wish
from dws.cli.session import Session, with_session

if TYPE_CHECKING:
    from dws.wire.native_v1 import DefragAnswer, DefragRoom

HOSTS_SHOWN = 4


@click.command()
@with_session
@click.option("--plan", is_flag=True, required=True, help="Only say it; there is nothing else it can do.")
@demand.only("accelerators", "machine", "tpu", "topology", "count", "zone", "within")
def defrag(session: Session, *, plan: bool, wish: Wish) -> None:
    """Say which running work would have to end, or move, to make room for a shape now.

    In each pool where it could be, it is told for the domain with the least running time in the way. Nothing
    is changed: ask the owners, or drain the hosts so that nothing new starts there.

    \b
    Examples:
      dws fleet defrag --plan --machine a3-highgpu-8g --count 8 --within block
      dws fleet defrag --plan --accelerators h100:64
      dws fleet defrag --plan --tpu v5e --topology 8x8
    """
    from dws.wire.native_v1 import Alternative

    del plan
    what = demand.what_of(wish)
    wanted = Alternative(locations=list(wish.locations), within=wish.within or None, **what)
    answer = session.client.defrag(wanted)
    session.emit(answer, lambda: _told(session, answer))


def _told(session: Session, answer: DefragAnswer) -> str:
    if not answer.rooms:
        return "There would be no room even without all that runs: hosts are down, draining or reserved."
    return "\n\n".join(_room(session, room) for room in answer.rooms)


def _room(session: Session, room: DefragRoom) -> str:
    from dws.cli.output import table

    where = f"{room.pool} in {room.zone}, {', '.join(room.places)}"
    if not room.in_the_way:
        return f"{where}: there is room now."
    now = zones.instant_of(session.client.clock().now) or 0
    rows = [
        [
            f"{each.project}/{each.request}",
            str(each.accelerators),
            _hosts(each.hosts),
            zones.short_time(zones.instant_of(each.until) or 0, session.zone, now=now),
            "move it" if each.fits_elsewhere else "end it",
        ]
        for each in room.in_the_way
    ]
    hours = room.accelerator_s / 3_600
    title = f"{where}: in the way, {hours:,.1f} accelerator-hours in all"
    drawn = table(["REQUEST", "ACCELERATORS", "HOSTS", "UNTIL", "TO MAKE ROOM"], rows, right=["ACCELERATORS"])
    return f"{title}\n{drawn}"


def _hosts(names: list[str]) -> str:
    """The first hosts and how many more: a slice has dozens, and -o json tells them all."""
    more = len(names) - HOSTS_SHOWN
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:HOSTS_SHOWN])} and {more} more"
