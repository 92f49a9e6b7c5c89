"""What the interpreter with ``executorch`` runs: the standard library, torch and executorch only.

Started by its path (``__main__.py``); neither this package's parents nor anything of theirs is
imported there, except for the exporter, which needs torch alone.
"""
