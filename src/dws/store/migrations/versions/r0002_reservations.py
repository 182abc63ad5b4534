"""Reservations, and use that names the reservation it lay in.

`usage` is made anew and copied, because SQLite would put an added column behind the table's constraints,
where no new database has it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def whole(name: str) -> sa.Column[int]:
    return sa.Column(name, WHOLE, nullable=False)


def text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def upgrade() -> None:
    op.create_table(
        "reservation",
        sa.Column("id", WHOLE, primary_key=True, autoincrement=False),
        text("project"),
        text("name"),
        text("state"),
        sa.Column("deleted", sa.Boolean, nullable=False),
        text("pool"),
        whole("start"),
        whole("end"),
        text("series"),
        whole("created_at"),
        whole("ended_at"),
        whole("version"),
        text("doc"),
    )
    op.create_index("reservation_end", "reservation", ["end", "id"])
    op.create_index("reservation_ended", "reservation", ["ended_at", "id"])
    op.create_index("reservation_name", "reservation", ["project", "name", "id"])
    op.create_index("reservation_project", "reservation", ["project", "id"])
    op.create_index("reservation_series", "reservation", ["series", "id"])
    op.create_index("reservation_state", "reservation", ["state", "deleted", "id"])
    _usage_with_reservation()


def _usage_with_reservation() -> None:
    for index in ("usage_end", "usage_project", "usage_request"):
        op.drop_index(index, "usage")
    op.rename_table("usage", "usage_before")
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
        whole("reservation"),
    )
    op.execute("INSERT INTO usage SELECT *, 0 FROM usage_before")
    op.drop_table("usage_before")
    op.create_index("usage_end", "usage", ["end"])
    op.create_index("usage_project", "usage", ["project", "start"])
    op.create_index("usage_request", "usage", ["request", "id"])
