"""Partitions whose backend is not here, run by the graph they were made from."""
