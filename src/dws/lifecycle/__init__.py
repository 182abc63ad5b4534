"""How things change: tables as data, (state, event) -> next value and effects. Pure.

Nothing outside this package assigns a state.
"""
