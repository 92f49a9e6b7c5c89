"""Jobs that run in a process of their own: request, progress, outcome.

Nothing here imports torch or the compiler; they live in ``inspector.worker``, which is started as a
child process and can be lost without losing anything else.
"""
