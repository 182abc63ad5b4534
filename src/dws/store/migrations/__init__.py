"""The history of the schema, one module a step, run by Alembic; see `dws.store.migrate`."""
