"""What Alembic runs to apply migrations: on the connection `dws.store.migrate` hands over, in its
transaction."""

from __future__ import annotations

from alembic import context

from dws.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
