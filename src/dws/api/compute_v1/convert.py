"""The declared fleet as Compute's catalogue. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from dws.api.compute_v1 import wire
from dws.api.compute_v1.names import Scope, fingerprint, stable_id
from dws.model.resources import MachineShape
from dws.model.topology import Fleet, Zone


def project(scope: Scope) -> wire.Project:
    """A project: any name is one."""
    return wire.Project(
        kind="compute#project",
        id=stable_id("project", scope.project),
        name=scope.project,
        description=scope.project,
        self_link=scope.link(),
        default_service_account=f"default@{scope.project}.iam.gserviceaccount.com",
        default_network_tier="PREMIUM",
        common_instance_metadata=wire.Fingerprinted(kind="compute#metadata", fingerprint=fingerprint(1)),
        quotas=[],
        xpn_project_status="UNSPECIFIED_XPN_PROJECT_STATUS",
    )


def zone(scope: Scope, told: Zone) -> wire.Zone:
    """A zone; DOWN while nothing can start there."""
    return wire.Zone(
        kind="compute#zone",
        id=stable_id("zone", told.name),
        name=told.name,
        description=told.unavailable or told.name,
        region=scope.link(f"regions/{told.region}"),
        status="DOWN" if told.unavailable else "UP",
        self_link=scope.link(f"zones/{told.name}"),
    )


def regions(scope: Scope, fleet: Fleet) -> list[wire.Region]:
    """The regions of a fleet's zones; UP while one zone is."""
    found: dict[str, list[Zone]] = {}
    for each in fleet.zones:
        found.setdefault(each.region, []).append(each)
    return [
        wire.Region(
            kind="compute#region",
            id=stable_id("region", name),
            name=name,
            description=name,
            status="DOWN" if all(z.unavailable for z in zones) else "UP",
            zones=[scope.link(f"zones/{z.name}") for z in zones],
            self_link=scope.link(f"regions/{name}"),
        )
        for name, zones in found.items()
    ]


def machine_types(scope: Scope, fleet: Fleet, zone_name: str) -> list[wire.MachineType]:
    """The shapes a zone has pools of."""
    return [machine_type(scope, zone_name, shape) for shape in _shapes(fleet, zone_name)]


def machine_type(scope: Scope, zone_name: str, shape: MachineShape) -> wire.MachineType:
    """A machine shape."""
    parts = [f"{shape.vcpus} vCPUs", f"{shape.memory_gb} GB RAM"]
    built_in = []
    if shape.accelerator:
        parts.insert(0, f"{shape.accelerators} {shape.accelerator}")
        built_in.append(
            wire.MachineAccelerators(
                guest_accelerator_type=shape.accelerator, guest_accelerator_count=shape.accelerators
            )
        )
    return wire.MachineType(
        kind="compute#machineType",
        id=stable_id("machineType", shape.name),
        name=shape.name,
        description=", ".join(parts),
        zone=zone_name,
        guest_cpus=shape.vcpus,
        memory_mb=shape.memory_gb * 1024,
        is_shared_cpu=False,
        accelerators=built_in,
        self_link=scope.link(f"zones/{zone_name}/machineTypes/{shape.name}"),
    )


def accelerator_types(scope: Scope, fleet: Fleet, zone_name: str) -> list[wire.AcceleratorType]:
    """The accelerators in a zone's pools, with how many one host has at most."""
    most: dict[str, int] = {}
    for shape in _shapes(fleet, zone_name):
        if shape.accelerator:
            most[shape.accelerator] = max(most.get(shape.accelerator, 0), shape.accelerators)
    return [
        wire.AcceleratorType(
            kind="compute#acceleratorType",
            id=stable_id("acceleratorType", name),
            name=name,
            description=name,
            zone=scope.link(f"zones/{zone_name}"),
            maximum_cards_per_instance=count,
            self_link=scope.link(f"zones/{zone_name}/acceleratorTypes/{name}"),
        )
        for name, count in most.items()
    ]


def _shapes(fleet: Fleet, zone_name: str) -> Iterable[MachineShape]:
    """The machines of a zone: its pools' hosts, and the parts of them where these are shared."""
    return {s.name: s for p in fleet.pools if p.zone == zone_name for s in p.shapes}.values()
