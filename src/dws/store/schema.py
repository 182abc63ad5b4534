"""Tables, indexes, constraints and triggers of the SQL store.

A row has columns for what is searched, sorted or shown by SQL tools, and, where a value is more than
that, one JSON document with all of it: the document is what we read, the columns are how we find it.
The database itself refuses what must never be: two siblings on one unit at one instant, and a child
outside its parent. Migrations in order give exactly this schema; a test compares them.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
)

metadata = MetaData()
Whole = BigInteger().with_variant(Integer(), "sqlite")


def _whole(name: str) -> Column[int]:
    return Column(name, Whole, nullable=False)


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _id(name: str = "id") -> Column[int]:
    return Column(name, Whole, primary_key=True, autoincrement=False)


request = Table(
    "request",
    metadata,
    _id(),
    _text("project"),
    _text("name"),
    _text("principal"),
    _text("state"),
    Column("deleted", Boolean, nullable=False),
    _whole("priority"),
    _text("array"),
    _whole("submitted_at"),
    _whole("promised_start"),
    _whole("ended_at"),
    _whole("version"),
    _text("labels"),
    _text("doc"),
    Index("request_state", "state", "deleted", "id"),
    Index("request_name", "project", "name", "id"),
    Index("request_project", "project", "id"),
    Index("request_array", "array", "id"),
    Index("request_ended", "ended_at", "id"),
)

reservation = Table(
    "reservation",
    metadata,
    _id(),
    _text("project"),
    _text("name"),
    _text("state"),
    Column("deleted", Boolean, nullable=False),
    _text("pool"),
    _whole("start"),
    _whole("end"),
    _text("series"),
    _whole("created_at"),
    _whole("ended_at"),
    _whole("version"),
    _text("doc"),
    Index("reservation_state", "state", "deleted", "id"),
    Index("reservation_name", "project", "name", "id"),
    Index("reservation_project", "project", "id"),
    Index("reservation_series", "series", "id"),
    Index("reservation_end", "end", "id"),
    Index("reservation_ended", "ended_at", "id"),
)

series = Table(
    "series",
    metadata,
    _id(),
    _text("project"),
    _text("name"),
    _text("state"),
    _whole("ended_at"),
    _whole("version"),
    _text("doc"),
    Index("series_name", "project", "name", "id"),
    Index("series_project", "project", "id"),
    Index("series_ended", "ended_at", "id"),
)

document = Table(
    "document",
    metadata,
    _id(),
    _text("kind"),
    _text("project"),
    _text("scope"),
    _text("parent"),
    _text("name"),
    _whole("request"),
    _whole("ended_at"),
    _whole("version"),
    _text("doc"),
    Column("reservation", Whole, nullable=False, server_default="0"),
    UniqueConstraint("kind", "project", "scope", "parent", "name", name="document_name"),
    Index("document_request", "request", "id"),
    Index("document_reservation", "reservation", "id"),
    Index("document_ended", "ended_at", "id"),
)

booking = Table(
    "booking",
    metadata,
    _id(),
    _whole("parent"),
    _text("pool"),
    _text("stage"),
    _text("owner_kind"),
    _whole("owner"),
    _whole("start"),
    _whole("end"),
    _whole("version"),
    _text("doc"),
    Index("booking_stage", "stage", "id"),
    Index("booking_owner", "owner_kind", "owner", "id"),
)

booking_part = Table(
    "booking_part",
    metadata,
    Column(
        "booking",
        Whole,
        ForeignKey("booking.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    _id("unit"),
    _whole("parent"),
    _text("pool"),
    _whole("start"),
    _whole("end"),
    CheckConstraint('start < "end"', name="booking_part_has_length"),
    Index("booking_part_unit", "parent", "pool", "unit", "end", "start", "booking"),
)
"""One row a drawn unit. `parent` 0 is the fleet; what ended stays, trimmed, as history."""

booking_count = Table(
    "booking_count",
    metadata,
    Column(
        "booking",
        Whole,
        ForeignKey("booking.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    _id("cell"),
    _text("pool"),
    _whole("start"),
    _whole("end"),
    _whole("count"),
    Index("booking_count_cell", "pool", "cell", "end", "start", "count"),
)
"""What open bookings of the fleet take, by number, whether their units are drawn or not."""

fleet = Table("fleet", metadata, _id(), _whole("version"), _text("doc"))

host_status = Table(
    "host_status",
    metadata,
    Column("pool", Text, primary_key=True),
    _id("unit"),
    _text("state"),
    _text("reason"),
    _text("actor"),
    _whole("since"),
    _whole("until"),
    _whole("unreachable_since"),
)

recorded = Table(
    "event",
    metadata,
    _id("seq"),
    _text("subject_kind"),
    _whole("subject"),
    _whole("subject_seq"),
    _whole("at"),
    _text("kind"),
    _text("actor"),
    _text("project"),
    _text("name"),
    _text("reason"),
    _text("call_id"),
    _text("body"),
    UniqueConstraint("subject_kind", "subject", "subject_seq", name="event_subject"),
    Index("event_project", "project", "seq"),
)

work = Table(
    "work",
    metadata,
    _id("subject"),
    Column("kind", Text, primary_key=True),
    Column("tag", Text, primary_key=True),
    _whole("due_at"),
    _whole("attempt"),
    _text("lease_token"),
    _whole("lease_until"),
    Index("work_due", "due_at", "kind", "subject", "tag"),
    sqlite_with_rowid=False,
)

reply = Table(
    "reply",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("method", Text, primary_key=True),
    Column("call_id", Text, primary_key=True),
    _text("body_hash"),
    _text("subjects"),
    _whole("at"),
    sqlite_with_rowid=False,
)

reply_subject = Table(
    "reply_subject",
    metadata,
    _id("subject"),
    Column("principal", Text, primary_key=True),
    Column("method", Text, primary_key=True),
    Column("call_id", Text, primary_key=True),
    ForeignKeyConstraint(
        ["principal", "method", "call_id"],
        ["reply.principal", "reply.method", "reply.call_id"],
        ondelete="CASCADE",
    ),
    Index("reply_subject_reply", "principal", "method", "call_id"),
    sqlite_with_rowid=False,
)

usage = Table(
    "usage",
    metadata,
    Column("id", Whole, primary_key=True),
    _whole("request"),
    _text("request_name"),
    _text("project"),
    _text("principal"),
    _text("pool"),
    _text("shape"),
    _text("accelerator"),
    _whole("accelerators"),
    _whole("rank"),
    _whole("start"),
    _whole("end"),
    _whole("price_micros_per_hour"),
    _text("kind"),
    _whole("reservation"),
    Index("usage_request", "request", "id"),
    Index("usage_project", "project", "start"),
    Index("usage_end", "end"),
)

meta = Table("meta", metadata, Column("key", Text, primary_key=True), _text("value"))

counter = Table("counter", metadata, Column("name", Text, primary_key=True), _whole("value"))
"""`event` is the last sequence number given out, `ledger` the ledger's version."""

TWICE: Final = "unit is in another booking"
OUTSIDE: Final = "unit is outside the parent booking"

_TWICE_WHEN = """EXISTS (
  SELECT 1 FROM booking_part AS other
  WHERE other.parent = NEW.parent AND other.pool = NEW.pool AND other.unit = NEW.unit
    AND other."end" > NEW.start AND other.start < NEW."end" AND other.booking <> NEW.booking
)"""
_OUTSIDE_WHEN = """NEW.parent <> 0 AND NOT EXISTS (
  SELECT 1 FROM booking_part AS holder
  WHERE holder.booking = NEW.parent AND holder.pool = NEW.pool AND holder.unit = NEW.unit
    AND holder.start <= NEW.start AND holder."end" >= NEW."end"
)"""
_ORPHANS = """EXISTS (
  SELECT 1 FROM booking_part AS child
  JOIN booking ON booking.id = child.booking AND booking.stage <> 'ENDED'
  WHERE child.parent = OLD.booking AND child.unit = OLD.unit{further}
)"""
_LEFT_BEHIND = """
    AND (child.pool <> NEW.pool OR child.start < NEW.start OR child."end" > NEW."end")"""


def _trigger(name: str, moment: str, when: str, fault: str) -> str:
    return (
        f"CREATE TRIGGER {name} BEFORE {moment} ON booking_part WHEN {when} "
        f"BEGIN SELECT RAISE(ABORT, '{fault}'); END"
    )


SQLITE_TRIGGERS: Final = (
    _trigger("booking_part_twice_insert", "INSERT", _TWICE_WHEN, TWICE),
    _trigger("booking_part_twice_update", "UPDATE", _TWICE_WHEN, TWICE),
    _trigger("booking_part_outside_insert", "INSERT", _OUTSIDE_WHEN, OUTSIDE),
    _trigger("booking_part_outside_update", "UPDATE", _OUTSIDE_WHEN, OUTSIDE),
    _trigger("booking_part_orphan_update", "UPDATE", _ORPHANS.format(further=_LEFT_BEHIND), OUTSIDE),
    _trigger("booking_part_orphan_delete", "DELETE", _ORPHANS.format(further=""), OUTSIDE),
)

for _statement in SQLITE_TRIGGERS:
    _ddl = DDL(_statement)  # type: ignore[no-untyped-call]
    event.listen(booking_part, "after_create", _ddl.execute_if(dialect="sqlite"))
