"""Series of reservations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def whole(name: str) -> sa.Column[int]:
    return sa.Column(name, WHOLE, nullable=False)


def text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def upgrade() -> None:
    op.create_table(
        "series",
        sa.Column("id", WHOLE, primary_key=True, autoincrement=False),
        text("project"),
        text("name"),
        text("state"),
        whole("ended_at"),
        whole("version"),
        text("doc"),
    )
    op.create_index("series_ended", "series", ["ended_at", "id"])
    op.create_index("series_name", "series", ["project", "name", "id"])
    op.create_index("series_project", "series", ["project", "id"])
