"""Times of a method: by event, operator and node."""
