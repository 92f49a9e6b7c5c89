"""A program before it runs: its bytes, named data, metadata and value table."""
