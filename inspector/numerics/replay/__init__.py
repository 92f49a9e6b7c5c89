"""Runs recorded graphs beside what a run has logged; loads torch: for the worker only."""
