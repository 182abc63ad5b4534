"""What exists: frozen values and arithmetic, standard library only.

Every other package is written in terms of these nouns; this one imports none of them.
All values are frozen, keyword-only and checked when made; `dataclasses.replace` makes the next
version. Time is an integer number of seconds since the epoch, spans are half-open.
"""
