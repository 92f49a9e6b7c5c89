"""Emulates partitions of missing backends with the graph that they were lowered from."""
