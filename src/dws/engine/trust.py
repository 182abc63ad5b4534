"""Hosts that did not answer when asked for: still READY, but used last until they answer again.

Without this, one bad host would be the first free one for every request in turn.
"""

from __future__ import annotations

from dws.engine.write import Write
from dws.model import events as ev
from dws.model.topology import HostState, HostStatus, Pool


def doubt(w: Write, pool: Pool, unit: int, reason: str) -> None:
    """The host did not come up in time. Harmless on one that is doubted already or not READY."""
    if (pool.name, unit) in w.books.hosts:
        return
    _put(w, pool, unit, since=w.now, reason=reason)


def trust(w: Write, pool: Pool, unit: int) -> None:
    """The host answered. Harmless on one that is not doubted."""
    status = w.books.hosts.get((pool.name, unit))
    if status is not None and status.state is HostState.READY and status.unreachable_since:
        _put(w, pool, unit, since=0, reason="it answered")


def _put(w: Write, pool: Pool, unit: int, *, since: int, reason: str) -> None:
    status = HostStatus(
        pool=pool.name,
        unit=unit,
        state=HostState.READY,
        reason=reason if since else "",
        actor=w.actor,
        since=w.now,
        unreachable_since=since,
    )
    state = "UNREACHABLE" if since else "READY"
    w.put_host(status, ev.HostChanged(pool=pool.name, host=pool.hosts[unit], state=state), reason)
