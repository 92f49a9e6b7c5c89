"""Partitioning: which nodes of an edge program go to which backend, and why."""
