"""Notable facts of a session, as sentences."""
