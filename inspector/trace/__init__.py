"""Times of runs."""
