"""Where the values of a run differ from those of the recorded program: instruction by instruction.

Nothing here loads torch but ``replay``, which runs recorded graphs: in the worker, or in the
process of who calls the documented Inspector.
"""
