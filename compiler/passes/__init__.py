"""Passes: what they are, how they run, and the standard ones, a file each and a line in a table."""
