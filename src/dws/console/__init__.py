"""What people look at in a browser: one page that shows how the fleet stands. Reads only."""
