"""The other toolchain: an ``executorch`` package in an interpreter of the user's choice.

Nothing of it is imported into our processes. ``stock/`` is what that interpreter runs; the rest
starts it, listens to it, and makes of what it leaves the same files as those of our own compiler.
"""
