"""Whether files belong together: compared pair by pair."""
