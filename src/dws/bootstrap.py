"""The only place that builds and connects objects.

    Settings ─▶ store · clock · backends · fleet ─▶ Engine ─▶ System, which a face serves

`open_system` is what `dws serve` calls; the simulator builds its engine from the same pieces.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import structlog

from dws.backends import registry
from dws.declared import demo, fleetfile, table
from dws.declared.fleetfile import LOCAL_ZONE
from dws.engine.app import CLOCK_KEY, Engine, run_here
from dws.engine.clock import SystemClock, VirtualClock
from dws.engine.loop import CallerPool, Loop
from dws.engine.ports import Backend, Clock, Meters, Store
from dws.model.access import SYSTEM
from dws.model.errors import InvalidArgument
from dws.model.topology import Pool, Zone
from dws.planner.options import DEFAULT_POLICY, PolicyOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server is to run. `fleet` is a file, `demo`, or empty for what the store has (this machine
    alone the first time). `start` is where a virtual clock begins, `speed` how many of its seconds pass
    in a real one (0: only when told). `accelerators` declares this machine's (`h100:4`)."""

    db: str = ""
    state_dir: Path = field(default_factory=lambda: default_state_dir(os.environ))
    fleet: str = ""
    clock: Literal["real", "virtual"] = "real"
    start: int | None = None
    speed: float = 0.0
    accelerators: str = ""
    policy: PolicyOptions = DEFAULT_POLICY
    backends: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    @property
    def db_url(self) -> str:
        """The store's URL; a file in the state directory by default."""
        return self.db or f"sqlite:///{self.state_dir / 'dws.db'}"


def default_state_dir(environment: Mapping[str, str]) -> Path:
    """$DWS_STATE_DIR, else opendws under the XDG state directory."""
    if own := environment.get("DWS_STATE_DIR"):
        return Path(own)
    base = environment.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "opendws"


def read_backends(path: Path) -> dict[str, dict[str, object]]:
    """The settings of backends from a TOML file, a table each.

    Raises InvalidArgument whose message begins with `FILE:LINE: ` of the first mistake.
    """
    try:
        root = table.read(path.read_text(encoding="utf-8"), source=str(path))
    except OSError as error:
        raise InvalidArgument(f"backends: cannot read {path}: {error.strerror}", field="backends") from None
    found: dict[str, dict[str, object]] = {}
    for name in root.values:
        entry = root.table(name)
        with root.at(name):
            entry.only(*registry.settings_of(name))
        found[name] = {}
        for key, value in entry.values.items():
            with entry.at(key):
                found[name][key] = registry.decode(name, key, value)
    return found


@dataclass(slots=True)
class System:
    """A running scheduler: the engine, what it stands on, and how to stop it."""

    settings: Settings
    engine: Engine
    store: Store
    clock: Clock
    loop: Loop | None = None
    driver: VirtualDriver | None = None

    def start(self) -> None:
        """Begin to do what is due."""
        if self.loop is not None:
            self.loop.start()
        else:
            self.engine.open()
            self.engine.tick()
            if self.driver is not None:
                self.driver.start()

    def close(self) -> None:
        """Stop, durably. Running programs go on."""
        if self.driver is not None:
            self.driver.stop()
        if self.loop is not None:
            self.loop.stop()
        self.store.close()


class VirtualDriver:
    """Lets virtual time pass by itself, `speed` seconds in each real one."""

    def __init__(self, engine: Engine, speed: float) -> None:
        import threading

        self._engine = engine
        self._speed = speed
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dws-virtual-driver", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        owed = 0.0
        while not self._stopping.wait(0.1):
            owed += 0.1 * self._speed
            whole = int(owed)
            if whole:
                owed -= whole
                self._engine.advance(SYSTEM, whole)


def open_store(url: str) -> Store:
    """The store behind a URL: `memory:` or an SQLAlchemy URL. Raises InvalidArgument."""
    if url in ("memory", "memory:", "memory://"):
        from dws.store.memory import MemoryStore

        return MemoryStore()
    from dws.store.sql import SqlStore

    if url.startswith("sqlite:///"):
        folder = Path(url.removeprefix("sqlite:///")).parent
        make_private(folder)
    return SqlStore(url)


def make_private(folder: Path) -> None:
    """Make a directory only its owner can enter, if it is not there."""
    if not folder.exists():
        folder.mkdir(parents=True, mode=stat.S_IRWXU)


def open_system(settings: Settings, *, meters: Meters | None = None) -> System:
    """Build everything a server needs, nothing started yet.

    Raises InvalidArgument for a setting that cannot be, naming it; FailedPrecondition when the store is
    in use by another process.
    """
    make_private(settings.state_dir)
    store = open_store(settings.db_url)
    try:
        clock = _clock(settings, store)
        backends = _backends(settings, clock)
        callers = None if clock.is_virtual else CallerPool(report)
        engine = Engine(
            store=store,
            backends=backends,
            clock=clock,
            policy=settings.policy,
            meters=meters,
            run_all=callers.run_all if callers is not None else run_here,
        )
        _declare_fleet(engine, settings, backends)
    except BaseException:
        store.close()
        raise
    return System(
        settings=settings,
        engine=engine,
        store=store,
        clock=clock,
        loop=None if callers is None else Loop(engine, report, callers),
        driver=VirtualDriver(engine, settings.speed) if clock.is_virtual and settings.speed else None,
    )


def report(where: str, error: BaseException) -> None:
    """Say that a loop hit trouble; the loop goes on."""
    structlog.get_logger("dws").error("trouble", where=where, error=str(error), exc_info=error)


def _clock(settings: Settings, store: Store) -> Clock:
    if settings.clock == "real":
        if settings.start is not None or settings.speed:
            raise InvalidArgument(
                "start, speed: only a virtual clock can be set; add --clock virtual", field="start"
            )
        return SystemClock()
    with store.read() as reader:
        told = reader.events(limit=1, newest_first=True)
        kept = max([int(reader.meta(CLOCK_KEY) or 0), *(event.at for event in told)])
    start = settings.start if settings.start is not None else SystemClock().now()
    return VirtualClock(max(start, kept))


def _backends(settings: Settings, clock: Clock) -> dict[str, Backend]:
    wanted = ["simulated"] if clock.is_virtual else ["simulated", "local"]
    context: dict[str, object] = {
        "state_dir": settings.state_dir,
        "clock": clock.now,
        "accelerators": settings.accelerators,
    }
    return {name: registry.create(name, settings.backends.get(name, {}), context) for name in wanted}


def _declare_fleet(engine: Engine, settings: Settings, backends: Mapping[str, Backend]) -> None:
    """Apply the fleet asked for, with this machine as zone `local`."""
    known = engine.declared_fleet(SYSTEM)
    if settings.fleet == "demo":
        fleet = demo.demo_fleet()
    elif settings.fleet:
        path = Path(settings.fleet)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidArgument(f"fleet: cannot read {path}: {error.strerror}", field="fleet") from None
        fleet = fleetfile.parse(text, source=str(path), backends=backends)
    else:
        fleet = known
    zone, pools = _this_machine(backends)
    engine.apply_fleet(SYSTEM, fleetfile.with_local(fleet, zone, pools), confirm=True)


def _this_machine(backends: Mapping[str, Backend]) -> tuple[Zone, tuple[Pool, ...]]:
    """Zone `local`: this machine's pools, or why it is unavailable."""
    if "local" not in backends:
        reason = "programs on this machine need the real clock; this server runs on a virtual one"
        return Zone(name=LOCAL_ZONE, region=LOCAL_ZONE, unavailable=reason), ()
    inventory: Callable[[], tuple[Zone, tuple[Pool, ...]]] = backends["local"].inventory  # type: ignore[attr-defined]
    return inventory()
