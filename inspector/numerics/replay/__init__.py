"""Runs recorded graphs and compares their values with logged ones; loads torch: worker only."""
