"""Passes: base classes, the manager, and the standard passes, one file and one table entry each."""
