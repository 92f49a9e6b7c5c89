"""Dtypes: the scalar types of the files, and which of them an operator accepts."""
