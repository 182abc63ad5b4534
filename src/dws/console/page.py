"""The fleet on one page, as HTML: pools host by host, who waits and why, what just happened.

Pure: from the engine's answers to text. Everything that a person chose (names, reasons) is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dws.engine.answers import FleetView, HostView, PoolView, RequestView
from dws.model.events import Event
from dws.model.topology import HostState, Zone
from dws.wire.timefmt import format_duration, format_for_people, render_reason

REFRESH_S = 2

_STYLE = """
:root{color-scheme:light dark;--free:#7aa583;--busy:#3f6fb5;--drain:#c9962e;--down:#b5483f;--edge:#8886}
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem;margin:0}h2{font-size:1rem;margin:2rem 0 .5rem}
.pools{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:1rem}
.pool{border:1px solid var(--edge);border-radius:.5rem;padding:.75rem 1rem}
.pool small,.muted{opacity:.7}
.block{display:inline-flex;gap:3px;margin:.4rem .8rem .2rem 0;flex-wrap:wrap;align-items:center}
.host{width:1.1rem;height:1.1rem;border-radius:3px;background:var(--free)}
.host.busy{background:var(--busy)}.host.draining{background:var(--drain)}.host.down{background:var(--down)}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem .75rem .25rem 0;
border-bottom:1px solid var(--edge);vertical-align:top}th{font-weight:600}
.key span{margin-right:1rem}.key i{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;
vertical-align:-1px;margin-right:.3rem}
"""


def render(fleet: FleetView, waiting: Sequence[RequestView], events: Sequence[Event]) -> str:
    """The whole page. `events` newest first; times are in UTC."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>OpenDWS</title>
<meta name="viewport" content="width=device-width"><meta http-equiv="refresh" content="{REFRESH_S}">
<style>{_STYLE}</style></head><body>
<h1>OpenDWS</h1><p class="muted">{format_for_people(fleet.now)} · fleet version {fleet.version} ·
<a href="/dws/v1/openapi.json">API</a> · <a href="/metrics">metrics</a></p>
{_key()}
<div class="pools">{"".join(_pool(p) for p in fleet.pools)}</div>
{_closed(fleet.zones, fleet.pools)}
<h2>Waiting ({len(waiting)})</h2>{_queue(waiting, fleet.now)}
<h2>Lately</h2>{_events(events)}
</body></html>"""


def _key() -> str:
    kinds = (("free", "--free"), ("in use", "--busy"), ("draining", "--drain"), ("down", "--down"))
    items = "".join(f'<span><i style="background:var({v})"></i>{k}</span>' for k, v in kinds)
    return f'<p class="key">{items}</p>'


def _pool(view: PoolView) -> str:
    pool = view.pool
    what = f"{pool.shape.accelerators} × {pool.shape.accelerator}" if pool.shape.accelerators else "CPU"
    cells = "".join(
        _block(cell.name, [view.hosts[u] for u in cell.units]) for cell in pool.cells
    )
    return f"""<section class="pool"><strong>{escape(pool.name)}</strong>
<small>{escape(pool.zone)} · {escape(pool.shape.name)} · {escape(what)}</small><div>{cells}</div>
<small>{view.free} free, {view.busy} in use, {view.draining} draining, {view.down} down</small></section>"""


def _block(name: str, hosts: Iterable[HostView]) -> str:
    squares = "".join(_host(h) for h in hosts)
    return f'<span class="block"><small>{escape(name)}</small>{squares}</span>'


def _host(host: HostView) -> str:
    kind, told = "", "free"
    if host.status.state is HostState.DOWN:
        kind, told = "down", f"down: {host.status.reason}"
    elif host.status.state is HostState.DRAINING:
        kind, told = "draining", f"draining: {host.status.reason}"
    if host.request and kind != "down":
        kind = kind or "busy"
        told = f"{host.request} ({host.project}) until {format_for_people(host.busy_until)}"
    label = escape(f"{host.name}: {told}", quote=True)
    return f'<span class="host {kind}" role="img" title="{label}" aria-label="{label}"></span>'


def _closed(zones: Iterable[Zone], pools: Sequence[PoolView]) -> str:
    used = {view.pool.zone for view in pools}
    lines = [
        f"<li>{escape(z.name)}: {escape(z.unavailable or 'no pools yet')}</li>"
        for z in zones
        if z.unavailable or z.name not in used
    ]
    return f'<ul class="muted">{"".join(lines)}</ul>' if lines else ""


def _queue(waiting: Sequence[RequestView], now: int) -> str:
    if not waiting:
        return '<p class="muted">Nobody waits.</p>'
    rows = "".join(_waiting(view, now) for view in waiting)
    head = "<tr><th>#<th>Request<th>Project<th>Waits<th>Expected start<th>At the latest<th>Why not now"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _waiting(view: RequestView, now: int) -> str:
    forecast, request = view.forecast, view.request
    if forecast is None:
        return ""
    why = render_reason(forecast.reason.text, dict(forecast.reason.facts))
    return (
        f"<tr><td>{forecast.place}<td>{escape(request.name)}<td>{escape(request.project)}"
        f"<td>{format_duration(now - request.submitted_at)}"
        f"<td>{_when(forecast.expected_start, now)}<td>{_when(forecast.promised_start or None, now)}"
        f"<td>{escape(why)}"
    )


def _when(instant: int | None, now: int) -> str:
    if instant is None:
        return "—"
    ahead = "now" if instant <= now else f"in {format_duration(instant - now)}"
    return f"{ahead} <small class=muted>{format_for_people(instant)}</small>"


def _events(events: Sequence[Event]) -> str:
    if not events:
        return '<p class="muted">Nothing yet.</p>'
    rows = "".join(
        f"<tr><td>{format_for_people(e.at)}<td>{escape(e.name)}<td>{escape(e.kind)}"
        f"<td>{escape(e.reason)}<td class=muted>{escape(e.actor)}"
        for e in events
    )
    return f"<table><tbody>{rows}</tbody></table>"
