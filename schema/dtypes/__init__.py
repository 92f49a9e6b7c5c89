"""Dtypes: the scalar types of files, and the dtypes that operators accept."""
