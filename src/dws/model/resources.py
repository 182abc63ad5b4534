"""Machine shapes and the accelerators in them.

A shape is a kind of host: so many accelerators of one type, CPUs and memory. `dws.model.catalog`
has the public GPU machine types; a fleet file may declare others.
"""

from __future__ import annotations

from dataclasses import dataclass

from dws.model.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineShape:
    """A kind of host.

    `accelerator` is the full type name (`nvidia-h100-80gb`), empty for a CPU-only shape, and
    `accelerators` how many of them one host has. `memory_gb` is in GB as the maker states it.
    """

    name: str
    accelerator: str = ""
    accelerators: int = 0
    vcpus: int = 0
    memory_gb: int = 0

    def __post_init__(self) -> None:
        if self.accelerators < 0 or (self.accelerators > 0) != bool(self.accelerator):
            raise InvalidArgument(
                f"shape {self.name}: 'accelerators' ({self.accelerators}) and 'accelerator' "
                f"('{self.accelerator}') must be given together",
                field="accelerators",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """What a run costs around its duration, in seconds; part of every booking's span.

    `setup_s` bounds the time from order to the whole gang delivered; `grace_s` is the time between
    the soft and the hard stop; `teardown_s` bounds the time until the hosts are confirmed free.
    """

    setup_s: int = 0
    grace_s: int = 0
    teardown_s: int = 0

    def __post_init__(self) -> None:
        for name in ("setup_s", "grace_s", "teardown_s"):
            if getattr(self, name) < 0:
                raise InvalidArgument(f"{name}: must not be negative", field=name)

    @property
    def total_s(self) -> int:
        """Seconds a booking needs beyond the run duration."""
        return self.setup_s + self.grace_s + self.teardown_s

    @property
    def after_run_s(self) -> int:
        """Seconds a booking lasts beyond the end of the run."""
        return self.grace_s + self.teardown_s


NO_OVERHEADS = Overheads()
