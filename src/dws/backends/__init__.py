"""Adapters that act on the world: each provisions, releases and observes, and knows no other.

The engine's ports say what a backend must do; `registry` finds them by entry point.
"""
