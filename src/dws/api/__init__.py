"""The HTTP face: one registry of methods, one pipeline, and a door for each API.

    bytes ─▶ http (guard, log) ─▶ dispatch (who? which method? what?) ─▶ handler ─▶ engine

A door (`native_v1`, `compute_v1`) is a list of `Method` records with handlers of a few lines that convert,
call the engine and convert back. Everything else here is shared by the doors. Knows the engine; no other
face knows it.
"""
