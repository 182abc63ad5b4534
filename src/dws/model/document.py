"""What a door keeps for its clients under a name: a template, a group, an instance's record, an operation.

The engine's own nouns (requests, reservations) know nothing of a door's names and forms. A document holds
what its client said, as said, and the id of what it stands for; what becomes of that is read from the
request or reservation itself, so that the two can never disagree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from dws.model.names import DocumentId

WITH_REQUEST: Final = -1
"""When a document is over that is over with its request."""
WITH_RESERVATION: Final = -2
"""When a document is over that is over with its reservation."""
UNLESS_DELIVERED: Final = -3
"""When a document is over that is over with its request if that was never delivered, and else stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One named thing of a door.

    `kind` is the door's word for it (`compute.instanceTemplate`), `scope` where it is (`global`,
    `zones/Z`, `regions/R`), `parent` the thing it belongs to (the group of a resize request), empty for none.
    One name is used once per kind, project, scope and parent. `body` is what the client said, JSON values
    only. `request` and `rank` say which request, and which instance of it, it stands for (0: none);
    `reservation` which reservation. `ended_at` is when it became a thing of the past, 0 until then: from
    there its time to be forgotten is counted. One that is over `WITH_REQUEST`, or `WITH_RESERVATION`, is
    forgotten with the record of that; so is one `UNLESS_DELIVERED` whose request came to nothing. A
    request that one still stands for which is not over is not forgotten.
    """

    id: DocumentId
    kind: str
    project: str
    name: str
    created_at: int
    scope: str = "global"
    parent: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    version: int = 1
    request: int = 0
    rank: int = 0
    reservation: int = 0
    ended_at: int = 0
