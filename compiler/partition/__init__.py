"""Partitioning: which nodes of an edge program are delegated to which backend, and why."""
