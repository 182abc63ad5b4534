"""Which reservation instances run in, as their properties say: one by name, any that is open to all, or none.

    consumeReservationType   SPECIFIC_RESERVATION   ANY_RESERVATION, UNSPECIFIED           NO_RESERVATION
    runs                     in the one it names    in one that need not be named, if one  outside
                             and nowhere else       has room, else outside

Instances that wait for capacity (FLEX_START) or may lose it (SPOT) run outside; those bound to a reservation
(RESERVATION_BOUND) must name it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dws.api.compute_v1 import reservation_layout, reservations
from dws.api.compute_v1.documents import Called
from dws.api.compute_v1.forms import invalid, required
from dws.api.compute_v1.names import last
from dws.api.compute_v1.shortages import FULL, NOT_READY
from dws.engine import requests
from dws.engine.commands import Submit
from dws.engine.ports import Reader
from dws.engine.write import Write
from dws.model.demand import ANY_RESERVATION, NO_RESERVATION, OPEN_ENDED_S, UNTIL_END, Alternative, Demand
from dws.model.errors import FailedPrecondition, InvalidArgument, NeverFits, PermissionDenied
from dws.model.evolve import evolve
from dws.model.request import CapacityRequest
from dws.model.reservation import Reservation

KEYS: Final = ("compute.googleapis.com/reservation-name", "googleapis.com/reservation-name")
BOUND: Final = "RESERVATION_BOUND"
_FIELD: Final = "reservationAffinity"
_OUTSIDE: Final = ("FLEX_START", "SPOT")


@dataclass(frozen=True, slots=True)
class Aim:
    """Where instances are to run: in the reservation `named`, there in the domain `within` (`block/b1`, empty
    for anywhere), else in `any_open` one or outside."""

    named: Reservation | None = None
    within: str = ""
    any_open: bool = False

    def applied(self, demand: Demand) -> Demand:
        """A demand aimed there. In a reservation that it names a run ends with it at the latest; one without
        an end of its own then."""
        if self.named is None:
            return evolve(demand, reservation=ANY_RESERVATION if self.any_open else NO_RESERVATION)
        placed = [evolve(one, within=self.within) if self.within else one for one in demand.alternatives]
        alternatives = tuple(each for one in placed for each in _until_end(one))
        return evolve(demand, alternatives=alternatives, reservation=self.named.id)


def _until_end(one: Alternative) -> tuple[Alternative, ...]:
    """A run, and the shorter one that is left of it where the reservation ends before."""
    shorter = evolve(one, duration_s=UNTIL_END)
    return (shorter,) if one.duration_s in (UNTIL_END, OPEN_ENDED_S) else (one, shorter)


def reference_in(properties: Mapping[str, Any], path: str = "") -> reservations.Reference | None:
    """The reservation that properties name, None when they name none; `path` is where they stand in the body.

    Raises InvalidArgument for an affinity that cannot be, or not with their provisioning model.
    """
    affinity, model = properties.get(_FIELD, {}), model_of(properties)
    kind = affinity.get("consumeReservationType", "UNSPECIFIED")
    if kind != "SPECIFIC_RESERVATION":
        if model == BOUND:
            why = f"With provisioning model {BOUND} it must be SPECIFIC_RESERVATION, naming the reservation."
            raise invalid(f"{path}{_FIELD}.consumeReservationType", kind, why)
        return None
    if model in _OUTSIDE:
        why = (
            f"Instances with provisioning model {model} cannot consume a specific reservation: say "
            f"NO_RESERVATION, or {BOUND} as the provisioning model."
        )
        raise invalid(f"{path}{_FIELD}.consumeReservationType", kind, why)
    if affinity.get("key") not in KEYS:
        raise invalid(f"{path}{_FIELD}.key", affinity.get("key", ""), f"It must be {KEYS[0]}.")
    values = affinity.get("values", [])
    if not values:
        raise required(f"{path}{_FIELD}.values")
    named = reservations.parse(values[0]) if len(values) == 1 else None
    if named is None:
        why = "One reservation is needed, as R or projects/P/reservations/R."
        raise invalid(f"{path}{_FIELD}.values", ", ".join(values), why)
    return named


def model_of(properties: Mapping[str, Any]) -> str:
    """The provisioning model of instances."""
    return str(properties.get("scheduling", {}).get("provisioningModel", "STANDARD"))


def aim_of(reader: Reader, properties: Mapping[str, Any], project: str, zones: Sequence[str]) -> Aim:
    """Where instances of a project in one of `zones` are to run.

    Raises InvalidArgument in the words clients look for when there is no such reservation or it is for other
    machines, PermissionDenied when it is another project's and not shared with this one.
    """
    named = reference_in(properties)
    if named is None:
        kind = properties.get(_FIELD, {}).get("consumeReservationType")
        return Aim(any_open=kind != "NO_RESERVATION" and model_of(properties) not in _OUTSIDE)
    value = properties[_FIELD]["values"][0]
    every = (reservations.look_up(reader, project, zone, value) for zone in zones)
    found = next((reader.reservation(kept.reservation) for kept in every if kept is not None), None)
    if found is None and named.project not in ("", project):
        raise PermissionDenied(
            f"The reservation must exist in the same project as the instance or be shared with it; '{value}' "
            f"is not shared with project '{project}'.",
            field=f"resource.{_FIELD}.values",
        )
    if found is None:
        raise InvalidArgument(
            f"Specified reservations [{value}] do not exist in project '{project}', {', '.join(zones)}; one "
            "that another project shares is named projects/OWNER/reservations/NAME.",
            field=f"resource.{_FIELD}.values",
        )
    machine = last(properties["machineType"])
    if machine != found.shape:
        raise InvalidArgument(
            f"No available resources in specified reservations '{value}': it holds {found.shape}, not "
            f"{machine}.",
            field="resource.machineType",
        )
    return Aim(named=found, within=_domain(reader, found, named, value))


def _domain(reader: Reader, found: Reservation, named: reservations.Reference, value: str) -> str:
    """The domain that the block or sub-block it names is, empty where it names none. Raises InvalidArgument
    when the reservation has no hosts there."""
    names = [name for name in (named.block, named.sub_block) if name]
    if not names:
        return ""
    within = reservation_layout.domain_of(reader, found, names)
    if within is None:
        raise InvalidArgument(
            f"Specified reservations [{value}] do not exist: '{found.name}' has no hosts there.",
            field=f"resource.{_FIELD}.values",
        )
    return within


def check_ready(aim: Aim) -> None:
    """Raises FailedPrecondition when instances cannot start in the reservation they name now."""
    state = reservations.status(aim.named) if aim.named is not None else "READY"
    if state != "READY":
        raise FailedPrecondition(NOT_READY.format(status=state), reason="resourceNotReady")


def submit(w: Write, call: Called, aim: Aim, command: Submit) -> CapacityRequest:
    """Submit what runs where `aim` says. Raises FailedPrecondition when it is more than a project may have of
    the reservation it names."""
    try:
        return requests.submit(w, call.who, command)[0]
    except NeverFits as error:
        if aim.named is None:
            raise
        raise full(aim.named.name, error.message) from None


def full(name: str, why: str) -> FailedPrecondition:
    """The error for a reservation that has not enough left."""
    return FailedPrecondition(f"{FULL.format(name=name)} {why}", reason="resourceNotReady")
