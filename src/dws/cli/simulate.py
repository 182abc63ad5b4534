"""`dws simulate`: the real engine under simulated time, to compare policies or to break it. No server."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

from dws.cli import output, policy
from dws.cli.exits import Exit
from dws.cli.session import Session, with_output
from dws.planner.options import DEFAULT_POLICY
from dws.simulator import command
from dws.simulator.evaluating import Estimates


@click.command()
@with_output
@click.option("--trace", metavar="FILE", default="", help="Jobs to run: .swf or .csv, also .gz; 'generated'.")
@click.option(
    "--hosts", type=click.IntRange(min=0), default=0, help="Hosts of one unit; the trace's own number."
)
@click.option(
    "--block", type=click.IntRange(min=0), default=0, help="Hosts in a block; no blocks by default."
)
@click.option("--jobs", type=click.IntRange(min=0), default=0, help="Only the first so many jobs.")
@click.option("--load", type=float, default=0.8, show_default=True, help="Offered load of generated jobs.")
@click.option(
    "--profile",
    type=click.Choice(command.profiles()),
    default="philly",
    show_default=True,
    help="Whose statistics generated jobs have.",
)
@click.option(
    "--estimates",
    type=click.Choice(("requested", "exact", "slack")),
    default="requested",
    show_default=True,
    help="What owners declare: the trace's word, the truth, 1 to 3 times it.",
)
@click.option(
    "--policy",
    "policy_file",
    metavar="FILE",
    help="A policy file.",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="For generated jobs and declared lengths."
)
@click.option(
    "--break",
    "broken",
    metavar="[SEED]",
    is_flag=False,
    flag_value="",
    default=None,
    help="Break the scheduler instead: random fleets, commands and faults from a seed.",
)
@click.option("--seeds", type=click.IntRange(min=1), help="With --break: so many seeds, from SEED or 0.")
@click.option("--forever", is_flag=True, help="With --break: until stopped.")
@click.option("--steps", type=click.IntRange(min=1), help="With --break: how long each run is.")
def simulate(
    session: Session,
    trace: str,
    hosts: int,
    block: int,
    jobs: int,
    load: float,
    profile: str,
    estimates: Estimates,
    policy_file: Path | None,
    seed: int,
    broken: str | None,
    seeds: int | None,
    forever: bool,
    steps: int | None,
) -> int:
    """Run a workload through the real engine and print how it went, or try to break it.

    \b
    Examples:
      dws simulate --trace philly.csv.gz --hosts 640
      dws simulate --trace generated --profile helios --hosts 512 --jobs 20000 -o json
      dws simulate --break 7
      dws simulate --break --seeds 50 -o json
    """
    if broken is not None or seeds or forever:
        if trace:
            raise click.UsageError("--break makes up its own workload; leave out --trace")
        count = None if forever else seeds or 1
        return _break(session, _seed(broken or "0"), count, steps or 0)
    hosts = hosts or (command.HOSTS if trace in ("", command.GENERATED) else 0)
    work = command.workload(
        trace or command.GENERATED, hosts=hosts, jobs=jobs, load=load, profile=profile, seed=seed
    )
    done = command.evaluate(
        work,
        hosts=hosts,
        block=block,
        estimates=estimates,
        policy=policy.load(policy_file) if policy_file else DEFAULT_POLICY,
        seed=seed,
        progress=_progress(len(work.jobs)),
    )
    session.emit(command.as_data(done), lambda: output.facts(command.as_lines(done)))
    return Exit.OK


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise click.BadParameter(f"'{text}' is not a whole number", param_hint="--break")
    return int(text)


def _progress(total: int) -> Callable[[int], None] | None:
    """Tells on a terminal how far the workload has come."""
    if not sys.stderr.isatty():
        return None

    def tell(done: int) -> None:
        if done % 100 == 0 or done == total:
            click.echo(f"\r{done:,} of {total:,} jobs", nl=done == total, err=True)

    return tell


def _break(session: Session, first: int, count: int | None, steps: int) -> int:
    """Run seeds until one breaks, all are done, or somebody stops it; for programs a line of JSON each."""
    seeds = itertools.count(first) if count is None else range(first, first + count)
    began = time.monotonic()
    done = 0
    try:
        for outcome in command.break_seeds(seeds, steps=steps):
            done += 1
            click.echo(outcome.text() if session.is_table else json.dumps(outcome.data()))
            if not outcome.ok:
                return Exit.FAILED
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    rate = done / max(0.001, time.monotonic() - began)
    click.echo(f"{done} seeds, nothing broken ({rate:.2f} seeds/s)", err=not session.is_table)
    return Exit.OK
