"""Helpers for large numbers of objects: the cyclic garbage collector, identity caches."""
