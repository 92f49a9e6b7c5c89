"""Bytes of files and their owners."""
