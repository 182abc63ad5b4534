"""The planner against brute force, and the properties that carry its name."""
