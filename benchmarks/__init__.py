"""How fast it is, how it grows, and with how much memory. Measured, never asserted."""
