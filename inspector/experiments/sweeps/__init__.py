"""Sweeps: a recipe compiled, and run, with every combination of some of its fields."""
