"""Bytes of files and who owns them."""
