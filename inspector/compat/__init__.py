"""Documented names of the `executorch` package and their places in this project."""
