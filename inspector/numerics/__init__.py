"""Where the values of a run differ from those of the recorded program: instruction by instruction.

Nothing here loads torch but what runs recorded graphs (``references``, ``analysis`` and what they
import): that lives in the worker, or in the caller's own process.
"""
