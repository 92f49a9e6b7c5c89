"""Documented names of the `executorch` package and where they are here."""
