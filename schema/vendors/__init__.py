"""The vendors whose compilers the ``executorch`` package brings: one table with a line for each.

Reading it imports nothing of theirs. The modules of a line are looked up by files in an
interpreter, so that the list is complete, and quick, where nothing of a vendor is installed.
"""
