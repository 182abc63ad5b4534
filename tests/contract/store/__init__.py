"""The contract of `dws.engine.ports.Store`, for the store in memory and the one in SQL."""
