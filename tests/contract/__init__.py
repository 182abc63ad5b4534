"""The same tests for every implementation of a port."""
