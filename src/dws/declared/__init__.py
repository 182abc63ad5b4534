"""The declared fleet: a TOML file to model values and back.

What people write about their fleet is read here and nowhere else. A mistake is reported at its line.
Knows the model and how durations are spelt; the engine, the store and the faces are above.
"""
