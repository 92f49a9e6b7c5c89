"""Partitioners and quantizers of vendors, created from words; nothing of theirs is imported before.

A function of the table ``schema.vendors`` reads the options that its vendor knows and returns the
factory of the object. It runs in our worker and, unchanged, in the interpreter of the other
toolchain.
"""
