"""The real engine under a virtual clock: to evaluate policies on traces, and to break it from seeds.

The simulator drives and watches; it decides nothing. `evaluate` is long and quiet, `breaking` short and
cruel.
"""
