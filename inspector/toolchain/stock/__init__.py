"""Code for the interpreter with ``executorch``: uses only the standard library, torch and it.

Started by its path (``__main__.py``); neither parent packages nor their modules are
imported there, except for the exporter, which only needs torch.
"""
