"""Remembers: the only place that knows SQL, a dialect or a file.

`MemoryStore` serves simulation and tests, `SqlStore` everything that must survive. Both keep the one
contract of `dws.engine.ports.Store`, and the same tests run against both.
"""
