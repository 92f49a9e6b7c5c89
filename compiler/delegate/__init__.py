"""Delegation: partitions of an edge program are lowered to backends and become delegate calls."""
