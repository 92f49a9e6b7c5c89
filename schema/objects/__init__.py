"""Python objects in large numbers: the cyclic garbage collector, caches keyed by identity."""
