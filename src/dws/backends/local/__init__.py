"""This machine as a backend: its accelerators and CPUs, with programs as supervised process trees.

    backend ── order.json, deadline, stop ──▶ instances/KEY/RANK/ ◀── status.json, output.log ── supervisor

`backend` answers the engine and `supervisor` looks after one instance; they meet only in files, so that
either may die and the other goes on.
"""
