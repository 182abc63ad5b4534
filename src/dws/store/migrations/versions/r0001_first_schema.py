"""The first schema: requests, bookings, events, work and what belongs to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


TWICE = "unit is in another booking"
OUTSIDE = "unit is outside the parent booking"

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


TRIGGERS = (
    _trigger("booking_part_twice_insert", "INSERT", _TWICE_WHEN, TWICE),
    _trigger("booking_part_twice_update", "UPDATE", _TWICE_WHEN, TWICE),
    _trigger("booking_part_outside_insert", "INSERT", _OUTSIDE_WHEN, OUTSIDE),
    _trigger("booking_part_outside_update", "UPDATE", _OUTSIDE_WHEN, OUTSIDE),
    _trigger("booking_part_orphan_update", "UPDATE", _ORPHANS.format(further=_LEFT_BEHIND), OUTSIDE),
    _trigger("booking_part_orphan_delete", "DELETE", _ORPHANS.format(further=""), OUTSIDE),
)


def whole(name: str) -> sa.Column[int]:
    return sa.Column(name, WHOLE, nullable=False)


def text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def number(name: str) -> sa.Column[int]:
    """Part of a primary key, given by us."""
    return sa.Column(name, WHOLE, primary_key=True, autoincrement=False)


def word(name: str) -> sa.Column[str]:
    """Part of a primary key."""
    return sa.Column(name, sa.Text, primary_key=True)


def upgrade() -> None:
    op.create_table(
        "booking",
        number("id"),
        whole("parent"),
        text("pool"),
        text("stage"),
        text("owner_kind"),
        whole("owner"),
        whole("start"),
        whole("end"),
        whole("version"),
        text("doc"),
    )
    op.create_index("booking_owner", "booking", ["owner_kind", "owner", "id"])
    op.create_index("booking_stage", "booking", ["stage", "id"])
    op.create_table(
        "counter",
        word("name"),
        whole("value"),
    )
    op.create_table(
        "event",
        number("seq"),
        text("subject_kind"),
        whole("subject"),
        whole("subject_seq"),
        whole("at"),
        text("kind"),
        text("actor"),
        text("project"),
        text("name"),
        text("reason"),
        text("call_id"),
        text("body"),
        sa.UniqueConstraint("subject_kind", "subject", "subject_seq", name="event_subject"),
    )
    op.create_index("event_project", "event", ["project", "seq"])
    op.create_table(
        "fleet",
        number("id"),
        whole("version"),
        text("doc"),
    )
    op.create_table(
        "host_status",
        word("pool"),
        number("unit"),
        text("state"),
        text("reason"),
        text("actor"),
        whole("since"),
        whole("until"),
        whole("unreachable_since"),
    )
    op.create_table(
        "meta",
        word("key"),
        text("value"),
    )
    op.create_table(
        "reply",
        word("principal"),
        word("method"),
        word("call_id"),
        text("body_hash"),
        text("subjects"),
        whole("at"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "request",
        number("id"),
        text("project"),
        text("name"),
        text("principal"),
        text("state"),
        sa.Column("deleted", sa.Boolean, nullable=False),
        whole("priority"),
        text("array"),
        whole("submitted_at"),
        whole("promised_start"),
        whole("ended_at"),
        whole("version"),
        text("labels"),
        text("doc"),
    )
    op.create_index("request_array", "request", ["array", "id"])
    op.create_index("request_ended", "request", ["ended_at", "id"])
    op.create_index("request_name", "request", ["project", "name", "id"])
    op.create_index("request_project", "request", ["project", "id"])
    op.create_index("request_state", "request", ["state", "deleted", "id"])
    op.create_table(
        "usage",
        sa.Column("id", WHOLE, primary_key=True),
        whole("request"),
        text("request_name"),
        text("project"),
        text("principal"),
        text("pool"),
        text("shape"),
        text("accelerator"),
        whole("accelerators"),
        whole("rank"),
        whole("start"),
        whole("end"),
        whole("price_micros_per_hour"),
        text("kind"),
    )
    op.create_index("usage_end", "usage", ["end"])
    op.create_index("usage_project", "usage", ["project", "start"])
    op.create_index("usage_request", "usage", ["request", "id"])
    op.create_table(
        "work",
        number("subject"),
        word("kind"),
        word("tag"),
        whole("due_at"),
        whole("attempt"),
        text("lease_token"),
        whole("lease_until"),
        sqlite_with_rowid=False,
    )
    op.create_index("work_due", "work", ["due_at", "kind", "subject", "tag"])
    op.create_table(
        "booking_count",
        number("booking"),
        number("cell"),
        text("pool"),
        whole("start"),
        whole("end"),
        whole("count"),
        sa.ForeignKeyConstraint(["booking"], ["booking.id"], ondelete="CASCADE"),
    )
    op.create_index("booking_count_cell", "booking_count", ["pool", "cell", "end", "start", "count"])
    op.create_table(
        "booking_part",
        number("booking"),
        number("unit"),
        whole("parent"),
        text("pool"),
        whole("start"),
        whole("end"),
        sa.CheckConstraint('start < "end"', name="booking_part_has_length"),
        sa.ForeignKeyConstraint(["booking"], ["booking.id"], ondelete="CASCADE"),
    )
    op.create_index(
        "booking_part_unit", "booking_part", ["parent", "pool", "unit", "end", "start", "booking"]
    )
    op.create_table(
        "reply_subject",
        number("subject"),
        word("principal"),
        word("method"),
        word("call_id"),
        sa.ForeignKeyConstraint(
            ["principal", "method", "call_id"],
            ["reply.principal", "reply.method", "reply.call_id"],
            ondelete="CASCADE",
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("reply_subject_reply", "reply_subject", ["principal", "method", "call_id"])
    for statement in TRIGGERS:
        op.execute(statement)
