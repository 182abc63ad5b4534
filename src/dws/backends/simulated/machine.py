"""One simulated instance and the program it runs.

    booting ──▶ running ──▶ exited
        └──────────┴──────────┴──▶ stopping ──▶ gone

A program is simulated by its command and environment: DWS_SIM_RUN_S is how many seconds it runs once the
whole gang is up (`sleep N` says the same), DWS_SIM_EXIT the status it ends with. Without a length it runs
until it is stopped, and so does an instance without a command.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dws.engine.ports import Fact, FactKind
from dws.model.request import Workload

MachineState = Literal["booting", "running", "exited", "stopping", "gone"]


@dataclass(slots=True)
class Machine:
    """An instance of one order. `run_s` is how long its program runs, None for as long as it may."""

    key: str
    rank: int
    pool: str
    unit: int
    address: str
    run_s: int | None
    exit_code: int
    state: MachineState = "booting"
    _running: Fact | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def place(self) -> tuple[str, int]:
        """What makes it unique: its order and rank."""
        return (self.key, self.rank)

    @property
    def gang(self) -> str:
        """The request and attempt it belongs to, whatever its incarnation."""
        return "-".join(self.key.split("-")[:2])

    @property
    def running(self) -> Fact:
        """That it runs: one fact, however often it is told."""
        if self._running is None:
            self._running = self.fact(FactKind.RUNNING)
        return self._running

    def fact(self, kind: FactKind, *, detail: str = "") -> Fact:
        """Something seen of it."""
        return Fact(
            kind=kind,
            key=self.key,
            rank=self.rank,
            pool=self.pool,
            unit=self.unit,
            code=self.exit_code if kind is FactKind.EXITED else None,
            address=self.address,
            detail=detail,
        )


@dataclass(slots=True)
class Gang:
    """The instances of one attempt, `size` of them; their programs begin together, once."""

    size: int
    members: dict[tuple[str, int], Machine] = field(default_factory=dict)
    has_begun: bool = False

    def came_up(self, machine: Machine) -> tuple[Machine, ...]:
        """Whose programs begin because this member is up: everyone's, its own as a late one, or none."""
        if self.has_begun:
            return (machine,)
        up = tuple(m for m in self.members.values() if m.state == "running")
        self.has_begun = len(up) == self.size
        return up if self.has_begun else ()


def program(workload: Workload | None) -> tuple[int | None, int]:
    """How long a workload's program runs, None for as long as it may, and its exit status."""
    if workload is None or not workload.command:
        return None, 0
    code = int(workload.environment.get("DWS_SIM_EXIT", "0"))
    told = workload.environment.get("DWS_SIM_RUN_S")
    if told is None and workload.command[0] == "sleep":
        told = workload.command[-1]
    return (int(told) if told is not None and told.isdecimal() else None), code
