"""Screenshots of the real window: for the verb, the demo and the documentation."""
