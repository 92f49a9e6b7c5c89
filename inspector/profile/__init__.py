"""Where the time of a method went: by event, operator and node."""
