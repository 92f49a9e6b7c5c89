"""The other toolchain: an ``executorch`` package in an interpreter chosen by the user.

Nothing of it is imported into our processes. ``stock/`` is run by that interpreter; the rest
starts it, receives its messages, and converts its output to the same files as those of our
compiler.
"""
