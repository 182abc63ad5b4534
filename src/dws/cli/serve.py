"""`dws serve`: settings from options, a system from settings, and the HTTP face in front of it."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from dws.cli import policy, zones
from dws.cli.signals import interrupts
from dws.cli.store import db_option, state_dir_option
from dws.client.whereabouts import DEFAULT_ADDRESS

if TYPE_CHECKING:
    from dws.bootstrap import Settings

SWITCH_S: Final = 0.001
COLLECT_AFTER: Final = (50_000, 20, 100)


@click.command()
@db_option
@state_dir_option
@click.option(
    "--fleet",
    default="",
    metavar="FILE|demo",
    help="The fleet. [default: as last time; at first this machine]",
)
@click.option("--listen", default="127.0.0.1:8470", show_default=True, metavar="HOST:PORT", help="Where.")
@click.option(
    "--clock",
    type=click.Choice(["real", "virtual"]),
    default="real",
    show_default=True,
    help="A virtual clock moves only when told ('dws clock advance').",
)
@click.option("--start", default="", metavar="TIME", help="Where a virtual clock begins. [default: now]")
@click.option("--speed", type=click.FloatRange(min=0), default=0.0, help="Virtual seconds in a real one.")
@click.option(
    "--accelerators",
    default="",
    metavar="TYPE:COUNT",
    help="What this machine has. [default: what is found]",
)
@click.option(
    "--policy",
    "policy_name",
    default="default",
    show_default=True,
    metavar="FILE|NAME",
    help="TOML file with settings of the policy, or a preset: default, seed, google.",
)
@click.option(
    "--backends",
    "backends_file",
    default=None,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with settings of the backends, such as a health check.",
)
@click.option("--name", "names", multiple=True, help="Another host name this server is called by.")
@click.option("--tls-cert", default=None, type=click.Path(exists=True, dir_okay=False), help="Certificate.")
@click.option("--tls-key", default=None, type=click.Path(exists=True, dir_okay=False), help="Its key.")
@click.option("--insecure-without-tls", is_flag=True, help="Listen beyond this machine without TLS.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much to tell on standard error.",
)
def serve(
    *,
    db: str,
    state_dir: Path | None,
    fleet: str,
    listen: str,
    clock: Literal["real", "virtual"],
    start: str,
    speed: float,
    accelerators: str,
    policy_name: str,
    backends_file: Path | None,
    names: tuple[str, ...],
    tls_cert: str | None,
    tls_key: str | None,
    insecure_without_tls: bool,
    log_level: str,
) -> None:
    """Start a server and run it until Ctrl-C. Programs it started go on without it.

    \b
    Example:
      dws serve
      dws serve --fleet demo --clock virtual
      dws serve --accelerators h100:4 --listen 127.0.0.1:8471
    """
    from dws.bootstrap import Settings, default_state_dir, read_backends
    from dws.telemetry import logging

    host, port = address_of(listen)
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key go together")
    if not (tls_cert or insecure_without_tls or _is_loopback(host)):
        raise click.UsageError(
            f"{host} can be reached from other machines, and tokens would travel in the clear: give "
            "--tls-cert and --tls-key, or say --insecure-without-tls where something in front does TLS"
        )
    logging.configure(log_level)
    settings = Settings(
        db=db,
        state_dir=state_dir or default_state_dir(os.environ),
        fleet=fleet,
        clock=clock,
        start=_instant(start) if start else None,
        speed=speed,
        accelerators=accelerators,
        policy=policy.named(policy_name),
        backends=read_backends(backends_file) if backends_file else {},
    )
    door = Door(host=host, port=port, names=names, tls_cert=tls_cert, tls_key=tls_key)
    with interrupts(), suppress(KeyboardInterrupt):
        _serve(settings, door)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Where and how the server is reached."""

    host: str
    port: int
    names: tuple[str, ...]
    tls_cert: str | None
    tls_key: str | None


def _serve(settings: Settings, door: Door) -> None:
    """Put a system together, serve it until a signal, close it durably."""
    from dws.api.http import create_app
    from dws.api.server import Server
    from dws.bootstrap import open_system
    from dws.console.routes import routes
    from dws.telemetry.metrics import EngineMetrics

    metrics = EngineMetrics()
    system = open_system(settings, meters=metrics)
    try:
        app = create_app(
            system, listen=door.host, names=door.names, metrics=metrics, routes=routes(system.engine)
        )
        server = Server(
            app,
            door.host,
            door.port,
            ssl_certfile=door.tls_cert,
            ssl_keyfile=door.tls_key,
            ready=lambda address: _greet(settings, address),
        )
        system.start()
        _answer_evenly()
        server.serve_until_told()
    finally:
        system.close()


def _answer_evenly() -> None:
    """Keep the slowest answers near the others: a call that passes through four threads waits less for the
    one that plans, and garbage is looked for seldom, never among what was loaded at the start."""
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def _greet(settings: Settings, address: str) -> None:
    """Where it listens and what to try, for people and for scripts that wait for this line."""
    hint = "" if address == DEFAULT_ADDRESS else f"; export DWS_ADDRESS={address}"
    click.echo(f"dws: serving at {address}{hint}", err=True)
    if settings.clock == "virtual" and not settings.speed:
        click.echo("dws: virtual clock: 'dws clock advance 1h' lets time pass", err=True)


def _is_loopback(host: str) -> bool:
    from dws.api.auth import is_loopback

    return is_loopback(host)


def address_of(listen: str) -> tuple[str, int]:
    """Host and port of "127.0.0.1:8470" or "[::1]:8470". Raises UsageError."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or not 0 <= int(port) < 65_536:
        raise click.UsageError(f"--listen '{listen}' is not HOST:PORT, such as 127.0.0.1:8470")
    return host.strip("[]") or "127.0.0.1", int(port)


def _instant(text: str) -> int:
    """Where a virtual clock begins: relative times count from this machine's clock."""
    import time

    return zones.parse_when(text, zones.user_zone(), server_now=int(time.time()), field="start")
