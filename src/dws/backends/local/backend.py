"""The local backend: programs on this machine, which go on, and end in time, with or without a server.

    provision ─▶ a record, whole or not at all ─▶ a supervisor, once ─▶ the program
    release   ─▶ a file in the record           ─▶ the supervisor ends every process, then says gone
    observe   ─▶ reads the records; takes over from supervisors that died

State is in the records alone: a server that starts reads them and is where the last one was.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import dws
from dws.backends.local import environment, inventory, meeting, nvml, process
from dws.backends.local.facts import ADDRESS, News, true_now
from dws.backends.local.record import OUTPUT, TROUBLE, Fields, Record, kept_in, private_directory
from dws.backends.local.watch import Watch
from dws.engine.ports import (
    BackendUnavailable,
    Delivery,
    DeliveryState,
    InstanceOrder,
    Observations,
    Order,
    OrderRejected,
)
from dws.model.errors import InvalidArgument, NotFound
from dws.model.resources import Overheads
from dws.model.topology import Pool, Zone
from dws.wire.timefmt import format_instant

INSTANCES: Final = "instances"
MB: Final = 1_000_000
SETTING_MAX: Final = 1_000_000
_SUPERVISOR: Final = (sys.executable, "-S", "-P", "-m", "dws.backends.local.supervisor")
_SOURCE: Final = str(Path(dws.__file__).parents[1])


class LocalBackend:
    """Runs orders on this machine. Thread-safe, idempotent by order key; also SetsDeadlines, StreamsLogs.

    Settings: `accelerators` declares them (`4`, `h100:4`; empty: what the driver finds), `cpu_slots` is the
    size of the CPU pool (0: one a core). `setup_s`, `grace_s`, `teardown_s` are the pools' overheads.
    `health_check` is a command that must succeed within `health_check_timeout_s` on the unit's accelerators
    before any program starts. `foreign_process` says what a stranger's process on an accelerator means:
    `refuse` or `ignore`. `inherit` are the patterns of server variables that programs see. At most
    `output_max_mb` of an instance's output is kept; records of ended instances go, oldest first, beyond
    `keep_instances` or `keep_output_mb`. Raises InvalidArgument for a setting out of range.
    """

    def __init__(
        self,
        state_dir: Path,
        clock: Callable[[], int],
        *,
        accelerators: str = "",
        cpu_slots: int = 0,
        setup_s: int = 60,
        grace_s: int = 30,
        teardown_s: int = 10,
        health_check: str | Sequence[str] = (),
        health_check_timeout_s: int = 30,
        foreign_process: str = "refuse",
        inherit: Sequence[str] = environment.INHERITED,
        output_max_mb: int = 64,
        keep_instances: int = 1000,
        keep_output_mb: int = 4096,
    ) -> None:
        if foreign_process not in ("refuse", "ignore"):
            raise InvalidArgument(
                f"foreign_process: '{foreign_process}' is neither 'refuse' nor 'ignore'",
                field="foreign_process",
            )
        numbers = {
            "cpu_slots": cpu_slots,
            "setup_s": setup_s,
            "grace_s": grace_s,
            "teardown_s": teardown_s,
            "health_check_timeout_s": health_check_timeout_s,
            "output_max_mb": output_max_mb,
            "keep_instances": keep_instances,
            "keep_output_mb": keep_output_mb,
        }
        for name, number in numbers.items():
            if not 0 <= number <= SETTING_MAX:
                raise InvalidArgument(f"{name}: {number} must lie between 0 and {SETTING_MAX}", field=name)
        self.name = inventory.BACKEND
        self._clock = clock
        overheads = Overheads(setup_s=setup_s, grace_s=grace_s, teardown_s=teardown_s)
        self._inventory = inventory.take(accelerators, cpu_slots, overheads)
        command = shlex.split(health_check) if isinstance(health_check, str) else list(health_check)
        self._check = {"command": command, "timeout_s": health_check_timeout_s} if command else None
        self._refuses_foreign = foreign_process == "refuse"
        self._inherit = tuple(inherit)
        self._output_max_bytes = output_max_mb * MB
        self._keep_instances = keep_instances
        self._keep_bytes = keep_output_mb * MB
        self._instances = state_dir.absolute() / INSTANCES
        private_directory(self._instances)
        self._lock = threading.Lock()
        self._news = News()
        self._open: dict[tuple[str, int], Watch] = {}
        self._over: dict[tuple[str, int], Watch] = {}
        self._kept_bytes = 0
        self._children: list[Watch] = []
        for record in kept_in(self._instances):
            self._open[record.key, record.rank] = Watch(record)

    def inventory(self) -> tuple[Zone, tuple[Pool, ...]]:
        """Zone `local` and its pools, as found at the start."""
        return self._inventory.zone, self._inventory.pools

    # --- the backend port ---------------------------------------------------------------------

    def provision(self, order: Order) -> Delivery:
        """Start what is not there yet; what is there is left as it is."""
        self._check_order(order)
        with self._lock, _disk():
            new = [i for i in order.instances if not self._record(order.key, i.rank).exists]
            strangers = {i.unit: who for i in new if (who := self._stranger(order.pool, i))}
            if strangers:
                return Delivery(
                    state=DeliveryState.FAILED,
                    cause="; ".join(strangers.values()),
                    bad_hosts=tuple(strangers),
                )
            port = meeting.master_port(self._instances, order.key)
            for instance in order.instances:
                self._begin(order, instance, port)
            if all(place in self._open and self._open[place].is_running for place in _places(order)):
                up = {rank: ADDRESS for _, rank in _places(order)}
                return Delivery(state=DeliveryState.DELIVERED, addresses=up)
            return Delivery(state=DeliveryState.UNDER_WAY)

    def release(self, order: Order, *, hard: bool = False) -> Delivery:
        """End what is there; what is not is given back already. GONE follows when nothing is left."""
        with self._lock, _disk():
            there = [watch for place in _places(order) if (watch := self._watch(place))]
            over = [watch.let_go(hard=hard, grace_s=order.grace_s) for watch in there]
            return Delivery(state=DeliveryState.DELIVERED if all(over) else DeliveryState.UNDER_WAY)

    def observe(self, cursor: str) -> Observations:
        """News since the cursor; from the empty one, or one of another server, what is true now and the
        last word of every instance still kept."""
        with self._lock, _disk():
            self._look()
            facts = self._news.since(cursor)
            if facts is None:
                facts = tuple(
                    fact
                    for watches in (self._over, self._open)
                    for watch in watches.values()
                    for fact in true_now(watch.said)
                )
            return Observations(facts=facts, cursor=self._news.cursor)

    # --- optional abilities -------------------------------------------------------------------

    def set_deadline(self, order: Order) -> None:
        """Make `runs_until` the end of every instance of the order that is not over."""
        with self._lock, _disk():
            for place in _places(order):
                if watch := self._watch(place):
                    watch.record.set_deadline(self._deadline(order))

    def read_log(self, key: str, rank: int, *, offset: int, limit: int) -> tuple[bytes, int]:
        """Part of what an instance printed. Raises NotFound when no such instance is kept."""
        record = self._record(key, rank)
        if not record.exists:
            raise NotFound(f"nothing is kept of rank {rank} of {key}")
        try:
            with (record.path / OUTPUT).open("rb") as file:
                file.seek(offset)
                data = file.read(limit)
        except FileNotFoundError:  # it has not begun
            data = b""
        return data, offset + len(data)

    def forget(self, key: str) -> None:
        """Remove what is kept of an order's instances that are over."""
        with self._lock:
            for place in [place for place in self._over if place[0] == key]:
                self._remove(place)

    # --- inside -------------------------------------------------------------------------------

    def _record(self, key: str, rank: int) -> Record:
        return Record(self._instances, key, rank)

    def _check_order(self, order: Order) -> None:
        """Refuse for good what can never run here."""
        for instance in order.instances:
            if not self._inventory.has(order.pool, instance.unit, instance.slots):
                which = f" with slots {instance.slots}" if instance.slots else ""
                raise OrderRejected(
                    f"pool {order.pool} of this machine has no host {instance.unit}{which}"
                )
        directory = order.workload.directory if order.workload is not None else ""
        if directory and not Path(directory).is_dir():
            raise OrderRejected(f"workload.directory: '{directory}' is not a directory on this machine")

    def _begin(self, order: Order, instance: InstanceOrder, port: int) -> None:
        """Make the record and start its supervisor. Either may have been done before, by a server that
        died in between too: the record is made once, and of several supervisors one stays."""
        record = self._record(order.key, instance.rank)
        record.make(self._fields(order, instance, record, port), self._deadline(order))
        watch = self._watch((order.key, instance.rank))
        if watch is not None and watch.is_waiting:
            watch.child = _start_supervisor(record)
            self._children.append(watch)

    def _watch(self, place: tuple[str, int]) -> Watch | None:
        """The watch over an instance that is not over, whoever made it; None when there is no such one."""
        if place not in self._open and place not in self._over:
            record = self._record(*place)
            if record.exists:
                self._open[place] = Watch(record)
        return self._open.get(place)

    def _fields(self, order: Order, instance: InstanceOrder, record: Record, port: int) -> Fields:
        workload = order.workload
        return {
            "pool": order.pool,
            "unit": instance.unit,
            "command": list(workload.command) if workload is not None else [],
            "directory": (workload.directory if workload is not None else "") or str(Path.home()),
            "environment": environment.build(
                order,
                instance,
                [d.id for d in self._inventory.of(order.pool, instance.unit, instance.slots)],
                record.deadline_file,
                port,
                mark=str(record.path),
                base=environment.inherited(os.environ, self._inherit),
            ),
            "signal_before_s": workload.signal_before_s if workload is not None else 0,
            "grace_s": order.grace_s,
            "check": self._check,
            "output_max_bytes": self._output_max_bytes,
        }

    def _deadline(self, order: Order) -> Fields:
        """Domain time to boot time: never early, and late by less than the clock's second."""
        return {
            "at": format_instant(order.runs_until),
            "epoch": order.runs_until,
            "boottime": process.boottime() + order.runs_until - self._clock(),
        }

    def _stranger(self, pool: str, instance: InstanceOrder) -> str:
        """Who else computes on an instance's accelerators; empty when nobody does or nobody minds."""
        if not self._refuses_foreign:
            return ""
        for device in self._inventory.of(pool, instance.unit, instance.slots):
            for pid in nvml.computing_on(device.id):
                mark = process.environment_value(pid, environment.INSTANCE)
                if not mark.startswith(str(self._instances)):
                    return f"process {pid} of {_owner(pid)} computes on accelerator {device.id}"
        return ""

    def _look(self) -> None:
        """Look at every instance that is not over, and put away those that are."""
        for place, watch in list(self._open.items()):
            self._news.add(watch.look())
            if watch.is_told:
                self._kept_bytes += watch.output_bytes
                self._over[place] = self._open.pop(place)
        self._children = [watch for watch in self._children if watch.has_child]
        self._prune()

    def _prune(self) -> None:
        """Keep no more of the past than the bounds say; the oldest goes first."""
        while len(self._over) > self._keep_instances or self._kept_bytes > self._keep_bytes:
            self._remove(next(iter(self._over)))

    def _remove(self, place: tuple[str, int]) -> None:
        watch = self._over.pop(place)
        self._kept_bytes -= watch.output_bytes
        watch.record.remove()


def _places(order: Order) -> list[tuple[str, int]]:
    return [(order.key, instance.rank) for instance in order.instances]


def _start_supervisor(record: Record) -> subprocess.Popen[bytes]:
    """A process that outlives this one: a session of its own, nothing of the server's open in it."""
    with os.fdopen(os.open(record.path / TROUBLE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)) as trouble:
        return subprocess.Popen(
            [*_SUPERVISOR, str(record.path)],
            stdin=subprocess.DEVNULL,
            stdout=trouble,
            stderr=trouble,
            cwd="/",
            env={"PYTHONPATH": _SOURCE},
            start_new_session=True,
        )


def _owner(pid: int) -> str:
    try:
        user = (process.PROC / str(pid)).stat().st_uid
    except OSError:
        return "an unknown user"
    try:
        return f"user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"user {user}"


@contextlib.contextmanager
def _disk() -> Iterator[None]:
    """A state directory that cannot be written is trouble that may pass."""
    try:
        yield
    except OSError as error:
        raise BackendUnavailable(f"{error.filename or 'state directory'}: {error.strerror}") from error
