"""A deterministic fleet that exists only in memory, with latencies and scripted faults."""
