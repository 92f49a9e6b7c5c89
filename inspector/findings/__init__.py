"""What stands out in a session, in sentences."""
