"""Programs to try the scheduler with: plain Python, nothing of `dws` in them."""
