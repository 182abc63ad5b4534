"""What doors keep for their clients."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def whole(name: str) -> sa.Column[int]:
    return sa.Column(name, WHOLE, nullable=False)


def text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def upgrade() -> None:
    op.create_table(
        "document",
        sa.Column("id", WHOLE, primary_key=True, autoincrement=False),
        text("kind"),
        text("project"),
        text("scope"),
        text("parent"),
        text("name"),
        whole("request"),
        whole("ended_at"),
        whole("version"),
        text("doc"),
        sa.UniqueConstraint("kind", "project", "scope", "parent", "name", name="document_name"),
    )
    op.create_index("document_ended", "document", ["ended_at", "id"])
    op.create_index("document_request", "document", ["request", "id"])
