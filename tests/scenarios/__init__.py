"""Situations that must hold, each a test that carries its id."""
