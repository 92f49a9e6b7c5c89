"""Renderers of a session."""
