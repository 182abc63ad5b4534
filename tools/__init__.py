"""What the project's own upkeep needs; not part of what is installed."""
