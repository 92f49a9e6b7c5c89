"""Code run by the interpreter with ``executorch``: standard library, torch and executorch only.

Started by its path (``__main__.py``); neither parent packages nor their modules are
imported there, except for the exporter, which only needs torch.
"""
