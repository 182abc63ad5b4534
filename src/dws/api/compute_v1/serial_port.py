"""An instance's serial port: what its startup script printed, or, where nothing runs, how it came up."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from dws.api.compute_v1 import documents, instances, vm
from dws.api.compute_v1.instance_power import ONE
from dws.api.compute_v1.names import ROOT, scope_of
from dws.api.method import Call, Method, Query
from dws.declared.fleetfile import DEFAULT_BACKEND as SIMULATED
from dws.model.document import Document
from dws.model.errors import NotFound
from dws.model.request import CapacityRequest
from dws.wire.timefmt import format_instant

OUTPUT_MAX: Final = 1_000_000
"""How much one answer has, in bytes."""
CONSOLE: Final = 1


class PortQuery(Query):
    """Which port, and from where on."""

    port: Annotated[int, Meta(ge=1, le=4, description="1 is the console; nothing is said at others.")] = 1
    start: Annotated[
        int | None, Meta(description="The first byte, from the end when negative; else the last part.")
    ] = None


def get(call: Call[None, PortQuery]) -> dict[str, Any]:
    """What an instance has said since it was last started, from a byte on or at the end."""
    scope, place = scope_of(call), documents.where(call)
    with call.engine.reading() as reader:
        kept = instances.look_up(reader, call)
        request = reader.request(kept.request)
    said = b""
    if call.query.port == CONSOLE and request is not None and request.grant is not None:
        pool = next((p for p in scope.fleet.pools if p.name == request.grant.pool), None)
        real = pool is not None and pool.backend != SIMULATED
        said = _printed(call, request, kept.rank) if real else _record(kept, request)
    asked = call.query.start
    first = len(said) - OUTPUT_MAX if asked is None else asked if asked >= 0 else len(said) + asked
    first = min(max(0, first), len(said))
    contents = said[first : first + OUTPUT_MAX]
    return {
        "kind": "compute#serialPortOutput",
        "selfLink": scope.link(f"{place}/instances/{kept.name}/serialPort"),
        "contents": contents.decode(errors="replace"),
        "start": str(first),
        "next": str(first + len(contents)),
    }


def _printed(call: Call[None, PortQuery], request: CapacityRequest, rank: int) -> bytes:
    """All an instance's program has printed so far; its backend bounds it."""
    found = b""
    while True:
        try:
            data, _, _ = call.engine.read_log(
                call.who, request.project, str(request.id), rank, len(found), OUTPUT_MAX
            )
        except NotFound:  # put away in the meantime
            return found
        if not data:
            return found
        found += data


def _record(kept: Document, request: CapacityRequest) -> bytes:
    """The life of an instance in which nothing runs, a line for each step."""
    grant, instance = request.grant, vm.instance_of(kept, request)
    if grant is None or instance is None:
        return b""
    steps = [(grant.started_at, f"{kept.name} boots on host {instance.host} of {grant.pool} in {grant.zone}")]
    if grant.delivered_at:
        steps.append((grant.delivered_at, f"{kept.name} is up; simulated, so that no script runs"))
    if request.ended_at:
        steps.append((request.ended_at, f"{kept.name} is down: {request.end_message}"))
    return "".join(f"[{format_instant(at)}] {what}\n" for at, what in steps).encode()


METHODS: Final = (
    Method(
        id="compute.instances.getSerialPortOutput",
        verb="GET",
        path=f"{ROOT}/{ONE}/serialPort",
        summary="What an instance has said.",
        query=PortQuery,
        lenient=True,
        handler=get,
    ),
)
