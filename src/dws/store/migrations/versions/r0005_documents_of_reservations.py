"""Doors' documents are found by the reservation they stand for. Before this nothing made one that does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("document", sa.Column("reservation", WHOLE, nullable=False, server_default="0"))
    op.create_index("document_reservation", "document", ["reservation", "id"])
