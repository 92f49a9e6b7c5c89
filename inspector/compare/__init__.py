"""Differences of two or more programs, and whether a difference in time is significant."""
