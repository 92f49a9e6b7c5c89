"""Backends: partitioners, and writers of delegate payloads."""
