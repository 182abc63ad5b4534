"""What operators see of a running server: logs and metrics. Knows the model and nothing above it."""
