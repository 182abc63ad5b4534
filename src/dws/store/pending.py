"""Writes of a transaction that the database has not been told yet.

One `Pending` for the transaction and one for every open savepoint. They are sent as multi-row
statements when a read needs them and at commit; a savepoint that nobody sent costs the database
nothing, one that fails is thrown away, one that succeeds is merged into the one around it.

`counters` and `subject_seqs` are not only written but remembered: they stay after sending.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dws.engine.ports import IdempotentReply
from dws.model.events import Event, SubjectKind
from dws.model.request import CapacityRequest
from dws.model.usage import UsageRecord
from dws.model.work import WorkItem, WorkKind

Counter = Literal["event", "ledger"]
ReplyKey = tuple[str, str, str]
Drop = tuple[int, WorkKind, str | None]


@dataclass(slots=True)
class Pending:
    """What is to be written. `is_real` is True once the database has the savepoint."""

    is_real: bool = False
    requests: dict[int, CapacityRequest] = field(default_factory=dict)
    names: set[tuple[str, str]] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    subject_seqs: dict[tuple[SubjectKind, int], int] = field(default_factory=dict)
    counters: dict[Counter, int] = field(default_factory=dict)
    unsent_counters: set[Counter] = field(default_factory=set)
    drops: set[Drop] = field(default_factory=set)
    items: dict[int, dict[tuple[WorkKind, str], WorkItem]] = field(default_factory=dict)
    replies: dict[ReplyKey, IdempotentReply] = field(default_factory=dict)
    usage: list[UsageRecord] = field(default_factory=list)

    def put_request(self, request: CapacityRequest) -> None:
        """A request is new or changed."""
        self.requests[request.id] = request
        self.names.add((request.project, request.name))

    def schedule(self, item: WorkItem) -> None:
        """An item is new or moved."""
        self.items.setdefault(item.subject, {})[item.kind, item.tag] = item

    def drop(self, drop: Drop) -> None:
        """Items of a subject and kind go, of one tag or of every (None); those scheduled here first."""
        subject, kind, tag = drop
        own = self.items.get(subject, {})
        for key in [k for k in own if k[0] is kind and tag in (None, k[1])]:
            del own[key]
        self.drops.add(drop)

    def drops_item(self, item: WorkItem) -> bool:
        """True when what the database has of this item is to go."""
        by_tag: Drop = (item.subject, item.kind, item.tag)
        return by_tag in self.drops or (item.subject, item.kind, None) in self.drops

    def merge(self, later: Pending) -> None:
        """Take over what was written after this."""
        self.requests.update(later.requests)
        self.names |= later.names
        self.events += later.events
        self.subject_seqs.update(later.subject_seqs)
        self.counters.update(later.counters)
        self.unsent_counters |= later.unsent_counters
        for drop in later.drops:
            self.drop(drop)
        for own in later.items.values():
            for item in own.values():
                self.schedule(item)
        self.replies.update(later.replies)
        self.usage += later.usage

    def sent(self) -> None:
        """The database has it all."""
        self.requests.clear()
        self.names.clear()
        self.events.clear()
        self.unsent_counters.clear()
        self.drops.clear()
        self.items.clear()
        self.replies.clear()
        self.usage.clear()
