"""Where the numbers of a run leave those of the recorded program: instruction by instruction.

Nothing here loads torch but ``reference``, ``graph_run``, ``analysis`` and ``documented``, which
run recorded graphs; they live in the worker or in the caller's own process.
"""
