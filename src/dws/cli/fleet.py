"""`dws fleet`: how the fleet stands, a new declaration of it, hosts drained, failed and repaired.

What others will feel is told first and done after a yes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from dws.cli import zones
from dws.cli.defrag import defrag
from dws.cli.groups import DefaultGroup
from dws.cli.maintenance import maintenance
from dws.cli.session import Session, complete_host, with_session
from dws.model.errors import InvalidArgument

if TYPE_CHECKING:
    from dws.wire.native_v1 import ChangeHostsAnswer, Fleet, Host, HostUse, Pool

NAMED_MAX = 8
"""Domains of a level whose free hosts are told one by one."""
ROWS_MAX = 32
"""Domains of a pool that get a row each."""
FREE, BUSY, DRAINING, DOWN = "·", "█", "▒", "x"


@click.group(cls=DefaultGroup, default="show")
def fleet() -> None:
    """Show the fleet, declare it anew, drain and repair hosts.

    \b
    Example:
      dws fleet show
    """


@fleet.command()
@with_session
@click.option("--hosts", "by_host", is_flag=True, help="A row for each host.")
def show(session: Session, by_host: bool) -> None:
    """Pools and blocks: how many hosts are free, busy, draining and down.

    \b
    Example:
      dws fleet show --hosts
    """
    answer = session.client.fleet()
    session.emit(answer, lambda: _hosts(session, answer) if by_host else _pools(answer))


def _pools(answer: Fleet) -> str:
    from dws.cli.output import table

    rows = []
    for pool in answer.pools:
        rows.append([pool.name, pool.zone, f"{len(pool.hosts)} x {pool.machine}", *_tally(pool.hosts)])
        blocks = _by_domain(pool)
        if 1 < len(blocks) <= ROWS_MAX:
            rows += [[f"  {name}", "", f"{len(hosts)}", *_tally(hosts)] for name, hosts in blocks.items()]
    lines = [f"{z.name}: unavailable, {z.unavailable}" for z in answer.zones if z.unavailable]
    lines += [f"{p.name}: unavailable, {p.unavailable}" for p in answer.pools if p.unavailable]
    lines += [line for p in answer.pools if (line := _room(p))]
    if not rows:
        return "\n".join(["The fleet has no pools.", *lines])
    headers = ["POOL", "ZONE", "HOSTS", "FREE", "BUSY", "DRAINING", "DOWN", ""]
    legend = f"\n{FREE} free  {BUSY} busy  {DRAINING} draining  {DOWN} down"
    nothing = [headers[i] for i in (5, 6) if all(row[i] == "0" for row in rows)]
    drawn = table(headers, rows, right=headers[3:7], spare=[*nothing, ""], caption=legend)
    return "\n".join([drawn, *lines])


def _room(pool: Pool) -> str:
    """What a pool has room for, where a number of hosts does not say it: free units of different hosts do not
    add up, nor do hosts of different blocks or pods."""
    parts = []
    if pool.host_units > 1:
        free = [host.free for host in pool.hosts if host.free]
        kind = "accelerators" if pool.accelerators_per_host else "machines"
        fits = " or ".join(f"{count} x {machine}" for machine, count in pool.fits.items())
        parts.append(f"{sum(free)} free {kind} on {len(free)} hosts, room for {fits}")
    levels = {level: hosts for level, hosts in pool.free_hosts.items() if len(hosts) > 1}
    whole = sum(host.free == pool.host_units for host in pool.hosts)
    if levels or pool.largest_slices:
        parts.append(f"whole hosts {whole}")
    for level, hosts in levels.items():
        told = ", ".join(f"{count} in {name}" for name, count in hosts.items() if count)
        if len(hosts) > NAMED_MAX:
            told = _many(pool, level, hosts)
        parts.append(f"by {level}: {told or 'none'}")
    if pool.largest_slices:
        sizes = pool.largest_slices
        told = ", ".join(f"{size} in {pod}" for pod, size in sizes.items() if size)
        one = next(iter(sizes.values()))
        parts.append(f"largest slice {(one if set(sizes.values()) == {one} else told) or 'none'}")
    return f"{pool.name}: {'; '.join(parts)}" if parts else ""


def _many(pool: Pool, level: str, hosts: dict[str, int]) -> str:
    """Of many domains: how many are wholly free, and the most that one has."""
    size = Counter(host.domains.get(level, "") for host in pool.hosts)
    whole = sum(count == size[name] for name, count in hosts.items())
    most = max(hosts, key=lambda name: hosts[name])
    return f"{whole} of {len(hosts)} wholly free, at most {hosts[most]} in one, {most}" if hosts[most] else ""


def _by_domain(pool: Pool) -> dict[str, list[Host]]:
    """Hosts by their innermost domain, in the pool's order."""
    found: dict[str, list[Host]] = {}
    for host in pool.hosts:
        innermost = list(host.domains.items())[-1:] or [("", "")]
        level, name = innermost[0]
        found.setdefault(f"{level} {name}".strip() or "outside", []).append(host)
    return found


def _standing(host: Host) -> str:
    if host.state in ("DOWN", "DRAINING"):
        return host.state
    return "BUSY" if host.request else "FREE"


def _tally(hosts: list[Host]) -> list[str]:
    from dws.cli.output import bar

    stands = [_standing(host) for host in hosts]
    free, busy, draining, down = (stands.count(s) for s in ("FREE", "BUSY", "DRAINING", "DOWN"))
    drawn = bar([(BUSY, busy), (DRAINING, draining), (DOWN, down), (FREE, free)])
    return [str(free), str(busy), str(draining), str(down), drawn]


def _hosts(session: Session, answer: Fleet) -> str:
    from dws.cli.output import table

    now = zones.instant_of(answer.now) or 0
    rows = []
    for pool in answer.pools:
        for host in pool.hosts:
            standing = _standing(host)
            if pool.host_units > 1 and standing == "BUSY" and host.free:
                standing = f"{host.free} of {pool.host_units} free"
            where = "/".join(host.domains.values())
            uses = host.uses[1:] if len(host.uses) > 1 else []
            first = host.uses[0] if host.uses else None
            until = zones.instant_of((first.until if first else host.busy_until) or host.until)
            rows.append(
                [
                    host.name,
                    pool.name,
                    where,
                    standing,
                    _user(first) if first else f"{host.project}/{host.request}" if host.request else "",
                    "" if until is None else zones.short_time(until, session.zone, now=now),
                    host.reason,
                ]
            )
            for use in uses:
                end = zones.instant_of(use.until) or 0
                rows.append(["", "", "", "", _user(use), zones.short_time(end, session.zone, now=now), ""])
    headers = ["HOST", "POOL", "DOMAIN", "STATE", "REQUEST", "UNTIL", "REASON"]
    return table(headers, rows, below="REASON", caption=f"\nTimes in {session.zone}.")


def _user(use: HostUse) -> str:
    """A request on a host, with the accelerators it has where the host is shared."""
    which = f" ({_ranges(use.slots)})" if use.slots else ""
    return f"{use.project}/{use.request}{which}"


def _ranges(slots: list[int]) -> str:
    """Numbers as people write them: 0-3,6."""
    told: list[str] = []
    first = 0
    for at, slot in enumerate(slots):
        if at + 1 == len(slots) or slots[at + 1] != slot + 1:
            told.append(f"{slots[first]}-{slot}" if at > first else str(slot))
            first = at + 1
    return ",".join(told)


@fleet.command()
@with_session
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
def apply(session: Session, file: Path, yes: bool, dry_run: bool) -> None:
    """Declare the fleet anew from a file, after showing what changes.

    \b
    Example:
      dws fleet apply fleet.toml
    """
    text = file.read_text(encoding="utf-8")
    try:
        answer = session.client.apply_fleet(text)
    except InvalidArgument as error:
        error.message = error.message.replace("fleet.toml:", f"{file}:", 1)
        raise
    if answer.lines and not dry_run:
        if session.is_table and not yes:
            session.say("\n".join(answer.lines))
        if session.confirmed("Apply this?", yes=yes):
            answer = session.client.apply_fleet(text, confirm=True)
    session.emit(answer, lambda: _applied(answer.lines, applied=answer.applied))


def _applied(lines: list[str], *, applied: bool) -> str:
    if not lines:
        return "Nothing changes."
    return "\n".join([*lines, "Applied." if applied else "Nothing was changed."])


def _change(
    session: Session,
    hosts: tuple[str, ...],
    state: Literal["READY", "DRAINING", "DOWN"],
    *,
    reason: str,
    until: str = "",
    yes: bool,
    dry_run: bool,
) -> None:
    """Tell whom a change of hosts affects, ask, do it."""
    ends = session.instant("until", until) if until else ""
    answer = session.client.change_hosts(hosts, state, reason=reason, until=ends)
    if not dry_run:
        if session.is_table and not yes:
            session.say(_affected(answer))
        if session.confirmed(f"Make {', '.join(answer.hosts)} {state}?", yes=yes):
            answer = session.client.change_hosts(hosts, state, reason=reason, until=ends, confirm=True)
    session.emit(answer, lambda: _changed(answer))


def _affected(answer: ChangeHostsAnswer) -> str:
    from dws.cli.output import table

    if not answer.affected:
        return "This affects nobody."
    rows = [[f"{a.project}/{a.name}", a.state, a.effect, ", ".join(a.hosts)] for a in answer.affected]
    return table(["AFFECTED", "STATE", "HOW", "HOSTS"], rows)


def _changed(answer: ChangeHostsAnswer) -> str:
    done = f"{', '.join(answer.hosts)}: {answer.state}" if answer.confirmed else "Nothing was changed."
    return f"{_affected(answer)}\n{done}" if answer.affected or not answer.confirmed else done


hosts_argument = click.argument(
    "hosts", nargs=-1, required=True, metavar="HOST...", shell_complete=complete_host
)
reason_option = click.option("--reason", default="", help="Why; kept in the audit log.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say whom it affects.")


@fleet.command()
@with_session
@hosts_argument
@reason_option
@yes_option
@dry_run_option
def drain(session: Session, hosts: tuple[str, ...], reason: str, yes: bool, dry_run: bool) -> None:
    """Let what runs on hosts finish and start nothing more there.

    \b
    Example:
      dws fleet drain h001 h002 --reason "firmware" --yes
    """
    _change(session, hosts, "DRAINING", reason=reason, yes=yes, dry_run=dry_run)


@fleet.command()
@with_session
@hosts_argument
@reason_option
@click.option("--until", default="", metavar="TIME", help="When they are expected back: a time or +2h.")
@yes_option
@dry_run_option
def outage(
    session: Session, hosts: tuple[str, ...], *, reason: str, until: str, yes: bool, dry_run: bool
) -> None:
    """Declare hosts failed, now; what runs there ends or moves as it asked for.

    \b
    Example:
      dws fleet outage h003 --until +2h --reason "power supply"
    """
    _change(session, hosts, "DOWN", reason=reason, until=until, yes=yes, dry_run=dry_run)


@fleet.command()
@with_session
@hosts_argument
@reason_option
@yes_option
@dry_run_option
def repair(session: Session, hosts: tuple[str, ...], reason: str, yes: bool, dry_run: bool) -> None:
    """Bring drained or failed hosts back.

    \b
    Example:
      dws fleet repair h003 --yes
    """
    _change(session, hosts, "READY", reason=reason, yes=yes, dry_run=dry_run)


fleet.add_command(maintenance)
fleet.add_command(defrag)
