"""Compute structs exactly as on the wire: camelCase, 64-bit integers as strings, defaults left out."""

from __future__ import annotations

import msgspec


class Wire(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """Base of every Compute struct."""


class Resource(Wire):
    """What every named thing has."""

    kind: str
    id: str
    name: str
    self_link: str
    description: str


class Zone(Resource):
    """A place."""

    region: str
    status: str


class Region(Resource):
    """Zones near each other; `zones` are their URLs."""

    status: str
    zones: list[str] = []


class MachineAccelerators(Wire):
    """What a machine type has built in."""

    guest_accelerator_type: str
    guest_accelerator_count: int


class MachineType(Resource):
    """A machine shape in a zone; `zone` is its bare name."""

    zone: str
    guest_cpus: int
    memory_mb: int
    is_shared_cpu: bool
    accelerators: list[MachineAccelerators] = []


class AcceleratorType(Resource):
    """A type of accelerator in a zone; `zone` is a URL."""

    zone: str
    maximum_cards_per_instance: int


class Fingerprinted(Wire):
    """Metadata without any entry."""

    kind: str
    fingerprint: str


class Project(Resource):
    """A project; `quotas` is always empty: the policy's limits are not of these kinds."""

    default_service_account: str
    default_network_tier: str
    common_instance_metadata: Fingerprinted
    quotas: list[str]
    xpn_project_status: str


class ResourceList(Wire):
    """A page."""

    kind: str
    id: str
    self_link: str
    items: list[Resource] = []
    next_page_token: str = ""


class Datum(Wire):
    """One fact of a warning."""

    key: str
    value: str


class Warning(Wire):
    """Why something is not there."""

    code: str
    message: str
    data: list[Datum] = []


class AggregatedList(Wire):
    """A page over all scopes: by scope, the resources under their collection's name, or a warning."""

    kind: str
    id: str
    self_link: str
    items: dict[str, dict[str, list[Resource] | Warning]]
    next_page_token: str = ""
