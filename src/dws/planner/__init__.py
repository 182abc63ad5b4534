"""What should happen: a pure function from (snapshot, options, now) to a plan.

Standard library and NumPy only (numba in `kernels`). No clock, no randomness, no logging: equal
inputs give equal bytes, and every decision comes with its reason.
"""
