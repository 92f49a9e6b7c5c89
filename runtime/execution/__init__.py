"""Binds the instructions of a method and runs them."""
