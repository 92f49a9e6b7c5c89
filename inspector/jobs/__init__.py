"""Jobs that run in a child process: request, progress, outcome.

Nothing here imports torch or the compiler; these are used in ``inspector.worker``, which runs as a
child process whose crash affects nothing else.
"""
