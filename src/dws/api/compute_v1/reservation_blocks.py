"""Blocks and sub-blocks of a reservation: the parts of its pool's topology that it holds hosts of.

There are none before its hosts are drawn, which is at its start. They are named as the fleet's owner named
them, and found by whoever places work in one of them.
"""

from __future__ import annotations

from typing import Any, Final

from dws.api.compute_v1 import documents, reservation_layout, reservations
from dws.api.compute_v1.documents import Called
from dws.api.compute_v1.names import Scope, scope_of, stable_id
from dws.api.compute_v1.reservation_layout import Held, Layout
from dws.model.document import Document
from dws.model.reservation import Reservation
from dws.wire.timefmt import format_instant


def _layout(call: Called) -> tuple[Document, Reservation, Layout]:
    """The reservation a path names, and what it holds. Raises NotFound."""
    with call.engine.reading() as reader:
        kept = reservations.find(reader, call)
        behind = reader.reservation(kept.reservation)
        assert behind is not None, "find found it"
        return kept, behind, reservation_layout.of(reader, behind)


def _block(call: Called, kept: Document, layout: Layout) -> Held:
    """The block a path names. Raises NotFound."""
    name = call.path["reservationBlock"]
    found = next((held for held in layout.blocks if held.domain.name == name), None)
    if found is None:
        raise scope_of(call).not_found(f"{_path(kept)}/reservationBlocks/{name}")
    return found


def list_blocks(call: Called) -> dict[str, Any]:
    """The blocks of a reservation."""
    kept, behind, layout = _layout(call)
    items = [_shown_block(scope_of(call), kept, behind, layout, held) for held in layout.blocks]
    path = f"{_path(kept)}/reservationBlocks"
    return documents.listed(call, "reservationBlock", path, documents.page_of(call, path, items))


def get_block(call: Called) -> dict[str, Any]:
    """One block."""
    kept, behind, layout = _layout(call)
    held = _block(call, kept, layout)
    return {"resource": _shown_block(scope_of(call), kept, behind, layout, held)}


def list_sub_blocks(call: Called) -> dict[str, Any]:
    """The sub-blocks of a block."""
    kept, behind, layout = _layout(call)
    block = _block(call, kept, layout)
    items = [_shown_sub_block(scope_of(call), kept, behind, layout, block, held) for held in block.parts]
    path = f"{_path(kept)}/reservationBlocks/{block.domain.name}/reservationSubBlocks"
    return documents.listed(call, "reservationSubBlock", path, documents.page_of(call, path, items))


def get_sub_block(call: Called) -> dict[str, Any]:
    """One sub-block."""
    kept, behind, layout = _layout(call)
    block = _block(call, kept, layout)
    name = call.path["reservationSubBlock"]
    for held in block.parts:
        if held.domain.name == name:
            return {"resource": _shown_sub_block(scope_of(call), kept, behind, layout, block, held)}
    path = f"{_path(kept)}/reservationBlocks/{block.domain.name}/reservationSubBlocks/{name}"
    raise scope_of(call).not_found(path)


def _shown_block(
    scope: Scope, kept: Document, behind: Reservation, layout: Layout, held: Held
) -> dict[str, Any]:
    degraded = sum(part.degraded for part in held.parts)
    path = f"{_path(kept)}/reservationBlocks/{held.domain.name}"
    return _shown(scope, kept, behind, layout, held, path, "reservationBlock") | {
        "count": (len(held.units) + held.lacking) // layout.pool.piece_held(behind.shape).units,
        "reservationSubBlockCount": len(held.parts),
        "reservationSubBlockInUseCount": sum(bool(part.used) for part in held.parts),
        "physicalTopology": {"cluster": layout.pool.name, "block": held.domain.name},
        "healthInfo": {
            "healthStatus": _health(held),
            "healthySubBlockCount": len(held.parts) - degraded,
            "degradedSubBlockCount": degraded,
        },
    }


def _shown_sub_block(
    scope: Scope, kept: Document, behind: Reservation, layout: Layout, block: Held, held: Held
) -> dict[str, Any]:
    name = held.domain.name
    path = f"{_path(kept)}/reservationBlocks/{block.domain.name}/reservationSubBlocks/{name}"
    lacking = -(-held.lacking // layout.pool.host_units)
    hosts, down = _hosts(layout, held.units) + lacking, _hosts(layout, held.down) + lacking
    return _shown(scope, kept, behind, layout, held, path, "reservationSubBlock") | {
        "count": hosts,
        "physicalTopology": {
            "cluster": layout.pool.name,
            "block": block.domain.name,
            "subBlock": name,
        },
        "healthInfo": {
            "healthStatus": _health(held),
            "healthyHostCount": hosts - down,
            "degradedHostCount": down,
        },
    }


def _shown(
    scope: Scope, kept: Document, behind: Reservation, layout: Layout, held: Held, path: str, word: str
) -> dict[str, Any]:
    """What blocks and sub-blocks have in common."""
    number = stable_id(word, f"{kept.id}/{path}")
    above, _, _ = path.rpartition("/")
    return {
        "kind": f"compute#{word}",
        "id": number,
        "name": held.domain.name,
        "creationTimestamp": format_instant(behind.window.start),
        "zone": scope.link(kept.scope),
        "selfLink": scope.link(path),
        "selfLinkWithId": scope.link(f"{above}/{number}"),
        "status": reservations.status(behind),
        "inUseCount": len(held.used),
        "inUseHostCount": _hosts(layout, held.used),
    }


def _hosts(layout: Layout, units: tuple[int, ...] | frozenset[int]) -> int:
    """On how many hosts units lie."""
    return len({layout.pool.host_of(unit) for unit in units})


def _health(held: Held) -> str:
    return "DEGRADED" if held.degraded else "HEALTHY"


def _path(kept: Document) -> str:
    return f"{kept.scope}/reservations/{kept.name}"


_BLOCKS: Final = "zones/{zone}/reservations/{reservation}/reservationBlocks"
_SUB_BLOCKS: Final = f"{_BLOCKS}/{{reservationBlock}}/reservationSubBlocks"
METHODS: Final = (
    documents.read("reservationBlocks.list", _BLOCKS, "The blocks of a reservation.", list_blocks),
    documents.read("reservationBlocks.get", f"{_BLOCKS}/{{reservationBlock}}", "One of them.", get_block),
    documents.read("reservationSubBlocks.list", _SUB_BLOCKS, "The sub-blocks of a block.", list_sub_blocks),
    documents.read(
        "reservationSubBlocks.get", f"{_SUB_BLOCKS}/{{reservationSubBlock}}", "One of them.", get_sub_block
    ),
)
