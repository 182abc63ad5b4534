"""A real server process, real clients, real signals."""
