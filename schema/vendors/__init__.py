"""The vendors whose compilers the ``executorch`` package brings: one table with a line for each.

Reading it imports nothing of theirs. What a line names is looked for in an interpreter by files, so
that the list is complete, and quick, where nothing of a vendor is installed.
"""
