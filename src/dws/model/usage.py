"""Metered use: who held what, from when to when, at which price."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dws.model.evolve import swift
from dws.model.names import RequestId


class UsageKind(StrEnum):
    """RUN is what the owner pays for; FAILED_ATTEMPT was held but never delivered and costs nothing;
    RESERVED is a reservation's hold of a host, in which runs may lie."""

    RUN = "RUN"
    FAILED_ATTEMPT = "FAILED_ATTEMPT"
    RESERVED = "RESERVED"


@swift
@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    """One instance's use over [start, end). `accelerators` is 0 for a CPU-only host.

    `reservation` is the id of the reservation it ran in, 0 for none; a RESERVED record names it in
    `request` and `request_name` too. `price_micros_per_hour` is per accelerator (per host where there is
    none), in millionths of the fleet's currency.
    """

    request: RequestId
    request_name: str
    project: str
    principal: str
    pool: str
    shape: str
    accelerator: str
    accelerators: int
    rank: int
    start: int
    end: int
    price_micros_per_hour: int
    kind: UsageKind = UsageKind.RUN
    reservation: int = 0

    @property
    def seconds(self) -> int:
        """Length of use in seconds."""
        return self.end - self.start

    @property
    def cost_micros(self) -> int:
        """What it cost, in millionths of the currency, rounded down; 0 for a failed attempt."""
        if self.kind is UsageKind.FAILED_ATTEMPT:
            return 0
        return self.price_micros_per_hour * max(1, self.accelerators) * self.seconds // 3600
